//! Kind `camera`: frames of the machine, 30 a second.

pub mod image;
pub mod jpeg;

use std::time::Duration;

use sinew_nodes::robot::messages::AxisFeedback;
use sinew_runtime::catalogue::{Direction, Kind, Port, RunsIn};
use sinew_runtime::{Fault, Make, Message, NodeEntry, Parameters, Service, ServiceIo};

use self::image::Image;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "camera",
    runs_in: RunsIn::Service,
    doc: "frames of the machine, 30 a second.",
    ports: &[
        Port {
            name: "pose",
            doc: "What the drives report: the pose that is drawn.",
            direction: Direction::In,
            message: AxisFeedback::TYPE,
            optional: true,
            safe: &[],
        },
        Port {
            name: "out",
            doc: "A frame.",
            direction: Direction::Out,
            message: Image::TYPE,
            optional: false,
            safe: &[],
        },
    ],
    parameters: &[],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: NodeEntry = NodeEntry { kind: &INFO, make: Make::Service(make), safe: None };

fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Ok(Box::new(Waits))
}

struct Waits;

impl Service for Waits {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        while io.wait(Duration::from_millis(10)) {}
        Ok(())
    }
}
