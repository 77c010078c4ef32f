//! The services that people see: each is a service domain of its own beside the core, and none can
//! disturb the core. They are a crate apart from the node kinds of the core because of their
//! dependencies: web server, file formats. The camera is from `sinew-pictures`.

pub mod axis_log;
pub mod dashboard;
mod hosts;
pub mod monitor;
pub mod player;
pub mod recorder;
mod server;

use sinew_runtime::ServiceEntry;

/// Every kind, one row each.
pub const SERVICES: &[ServiceEntry] = &[
    axis_log::NODE,
    sinew_pictures::camera::NODE,
    dashboard::NODE,
    recorder::NODE,
    monitor::NODE,
    player::media_source::NODE,
    player::video_decoder::NODE,
    player::audio_decoder::NODE,
    player::audio_sink::NODE,
    player::video_sink::NODE,
];
