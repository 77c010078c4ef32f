//! Kind `video_decoder`: decodes packets into pictures, in the places of its link.

#[cfg(feature = "media")]
mod decode;

use sinew_core::catalogue::{Kind, Port, RunsIn};
use sinew_core::{Fault, Message, Parameters};
use sinew_pictures::messages::{Packet, Picture, PlayClock};
use sinew_runtime::{Service, ServiceEntry};

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "video_decoder",
    runs_in: RunsIn::Service,
    doc: "Decodes video with FFmpeg's libraries straight into the places of its output link, which \
          needs 'delivery: queue' in shared memory and room for 8 or more: no picture is copied. \
          With a clock at its port it leaves out what would come too late: of a codec whose \
          pictures stand alone each such picture, of others those by which no other is decoded, \
          and far behind all up to the next one that stands alone. One that comes back begins at \
          such a picture too. Packets that cannot be decoded are counted and logged.",
    ports: &[
        Port::input("in", "Packets of video.", Packet::TYPE),
        Port::input("clock", "What is heard.", PlayClock::TYPE).optional(),
        Port::output("out", "Pictures, in the order in which they are decoded.", Picture::TYPE),
    ],
    parameters: &[],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

#[cfg(feature = "media")]
fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(decode::VideoDecoder))
}

#[cfg(not(feature = "media"))]
fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(super::without_media())
}
