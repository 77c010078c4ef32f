//! Kind `dashboard`: the run on a web page.

pub mod protocol;

use std::time::Duration;

use sinew_nodes::robot::messages::PlannerCommand;
use sinew_runtime::catalogue::{Direction, Kind, Port, RunsIn};
use sinew_runtime::{Fault, Make, Message, NodeEntry, Parameters, Service, ServiceIo};

use crate::camera::image::Image;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "dashboard",
    runs_in: RunsIn::Observer,
    doc: "the run on a web page.",
    ports: &[
        Port {
            name: "image",
            doc: "Frames of a camera.",
            direction: Direction::In,
            message: Image::TYPE,
            optional: true,
            safe: &[],
        },
        Port {
            name: "command",
            doc: "What people ask of the planner.",
            direction: Direction::Out,
            message: PlannerCommand::TYPE,
            optional: true,
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
