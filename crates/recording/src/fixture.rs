//! What tests need of a recorder: that it observes, so that cycles leave their messages behind.

use sinew_runtime::catalogue::{Kind, RunsIn};
use sinew_runtime::{Fault, Make, NodeEntry, Parameters, Service, fault};

/// Stands for the recorder in graphs that are not run.
pub(crate) const OBSERVER: NodeEntry = NodeEntry {
    kind: &Kind {
        name: "recorder",
        runs_in: RunsIn::Observer,
        doc: "Observes.",
        ports: &[],
        parameters: &[],
        signals: &[],
    },
    make: Make::Service(make),
    safe: None,
};

fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(fault!("it is not to be run"))
}
