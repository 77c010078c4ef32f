//! Kind `audio_decoder`: decodes packets into samples.

#[cfg(feature = "media")]
mod decode;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::{Fault, Message, Parameters};
use sinew_pictures::messages::{Packet, SoundBlock};
use sinew_runtime::{Service, ServiceEntry};

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "audio_decoder",
    runs_in: RunsIn::Service,
    doc: "Decodes sound of any rate and channels with FFmpeg's libraries, to blocks of 48 000 \
          samples a second, left and right, of 16 bits. Packets that cannot be decoded are counted \
          and logged.",
    ports: &[
        Port::input("in", "Packets of sound.", Packet::TYPE),
        Port::output("out", "Blocks of samples.", SoundBlock::TYPE),
    ],
    parameters: &[],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

#[cfg(feature = "media")]
fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(decode::AudioDecoder::default()))
}

#[cfg(not(feature = "media"))]
fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(super::without_media())
}
