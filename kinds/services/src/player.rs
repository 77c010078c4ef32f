//! A player, in parts that are of use alone: what takes a film apart, what decodes its pictures and
//! its sound, what lets them be heard and seen. docs/player.md tells how they are linked.
//!
//! One clock: that of the sound, which [`audio_sink`] keeps and everybody else reads. One place
//! that decides what is late, dropped or repeated: `presenter`.

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

/// What a kind says that this program was built without.
#[cfg(not(feature = "media"))]
fn without_media() -> Fault {
    fault!(
        "this program was built without FFmpeg; install libavformat-dev, libavcodec-dev, \
         libswresample-dev, libclang-dev, libasound2-dev and pkg-config (Debian's names), then \
         build it with 'cargo build --release --features media'"
    )
}
