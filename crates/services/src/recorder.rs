//! Kind `recorder`: every message of the core in a file.

pub mod cycle;
pub mod format;

use std::time::Duration;

use sinew_runtime::catalogue::{Kind, RunsIn};
use sinew_runtime::{Fault, Make, NodeEntry, Parameters, Service, ServiceIo};

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "recorder",
    runs_in: RunsIn::Observer,
    doc: "every message of the core in a file.",
    ports: &[],
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
