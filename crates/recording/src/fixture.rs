//! What tests need of a recorder: that it observes, so that cycles leave their messages behind, and
//! what it says of a part.

use sinew_core::catalogue::{Kind, RunsIn};
use sinew_core::{Fault, Parameters, fault};
use sinew_runtime::{Service, ServiceEntry};

use crate::format::Head;

/// Of the first part of a run.
pub(crate) fn head() -> Head {
    Head {
        run: "a1".into(),
        part: 1,
        life: 0,
        graph: "arm".into(),
        file: "arm.yaml".into(),
        base: "nowhere".into(),
        overrides: vec![],
        cpus: vec![0, 1],
        clock_offset_ns: 0,
        host: "here".into(),
    }
}

/// Stands for the recorder in graphs that are not run.
pub(crate) const OBSERVER: ServiceEntry = ServiceEntry {
    kind: &Kind {
        name: "recorder",
        runs_in: RunsIn::Observer,
        doc: "Observes.",
        ports: &[],
        parameters: &[],
        signals: &[],
    },
    make,
};

fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(fault!("it is not to be run"))
}
