//! A player, in parts that can be used separately: one reads a film, others decode its pictures and
//! its sound, and others output them. docs/player.md describes how they are linked.
//!
//! There is one clock, that of the sound: [`audio_sink`] keeps it and all others read it. There is
//! one place that decides what is late, dropped or repeated: `presenter`.

pub mod audio_decoder;
pub mod audio_sink;
pub mod media_source;
pub mod video_decoder;
pub mod video_sink;

mod clock;
mod complaint;
#[cfg(feature = "media")]
mod device;
mod metronome;
mod orders;
#[cfg(feature = "media")]
mod packets;
mod presenter;
mod sound;
mod watchers;

#[cfg(not(feature = "media"))]
use sinew_core::{Fault, fault};

/// The fault of a kind if this program was built without media.
#[cfg(not(feature = "media"))]
fn without_media() -> Fault {
    fault!(
        "this program was built without FFmpeg; install libavformat-dev, libavcodec-dev, \
         libswresample-dev, libclang-dev, libasound2-dev and pkg-config (Debian's names), then \
         build it with 'cargo build --release --features media'"
    )
}
