//! What tests need of a recorder: that it observes, so that cycles leave their messages behind; and
//! of who stands for other hosts: that it is there.

use sinew_core::catalogue::{Kind, RunsIn};
use sinew_core::{Fault, Parameters, fault};
use sinew_runtime::{Service, ServiceEntry};

/// Stands for the recorder in graphs that are not run.
pub(crate) const OBSERVER: ServiceEntry =
    ServiceEntry { kind: &Kind::new("recorder", RunsIn::Observer, &[]), make };

/// Stands for the kind that stands for other hosts.
pub(crate) const STAND_IN: ServiceEntry =
    ServiceEntry { kind: &Kind::new("zenoh", RunsIn::Hosts, &[]), make };

fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(fault!("it is not to be run"))
}
