//! The services that people see: each a service domain of its own beside the core, none able to
//! disturb it. A crate apart from the node kinds of the core, because of what they depend on: web
//! server, file formats, pictures.

pub mod axis_log;
pub mod camera;
pub mod dashboard;
mod hosts;
pub mod messages;
pub mod monitor;
pub mod picture;
pub mod player;
pub mod recorder;
mod server;

use std::io::{Write, stdout};

use sinew_runtime::ServiceEntry;

/// Every kind, one row each.
pub const SERVICES: &[ServiceEntry] = &[
    axis_log::NODE,
    camera::NODE,
    dashboard::NODE,
    recorder::NODE,
    monitor::NODE,
    player::media_source::NODE,
    player::video_decoder::NODE,
    player::audio_decoder::NODE,
    player::audio_sink::NODE,
    player::video_sink::NODE,
];

/// Says a line, which becomes an event of the run.
fn tell(line: &str) {
    // If nobody listens any more, there is nobody to be told.
    let _ = writeln!(stdout(), "{line}");
}
