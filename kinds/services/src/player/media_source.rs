//! Kind `media_source`: reads a film and hands out its packets.

#[cfg(feature = "media")]
mod backlog;
#[cfg(feature = "media")]
mod hand_out;
#[cfg(feature = "media")]
mod reader;

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Fault, Message, Parameters};
use sinew_pictures::messages::{Packet, PlayClock, PlayOrder};
use sinew_runtime::{Service, ServiceEntry};

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "media_source",
    runs_in: RunsIn::Service,
    doc: "Splits a film with FFmpeg's libraries (AVI and all that they can read): packets of video \
          and of sound, each at its port, as fast as they are taken. A decoder of video that does \
          not take them never holds up the sound: then the oldest are left out, up to the next one \
          that can be decoded alone, and counted. A film without sound gets silence, so that its \
          clock goes on. Jumps where an order says; one that comes back goes on where the clock \
          is.",
    ports: &[
        Port::input("orders", "Orders of the viewer: where to jump to.", PlayOrder::TYPE)
            .optional(),
        Port::input("clock", "What is heard: a new life goes on there.", PlayClock::TYPE)
            .optional(),
        Port::output("video", "Packets of video.", Packet::TYPE).optional(),
        Port::output("sound", "Packets of sound.", Packet::TYPE).optional(),
    ],
    parameters: &[
        Parameter::new("film", ParameterType::Text).doc(
            "A file or a pipe, relative to the folder of the spec, or an address such as \
             http://host/film.avi.",
        ),
        Parameter::new("grows", ParameterType::Bool).or("false").doc(
            "Whether the file is still being written: then its end is not the end of the film, and \
             there are no jumps.",
        ),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

#[cfg(feature = "media")]
fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    hand_out::make(parameters)
}

#[cfg(not(feature = "media"))]
fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(super::without_media())
}
