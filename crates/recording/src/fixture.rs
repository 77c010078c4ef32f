//! Kinds for tests: a recorder, which makes cycles record their messages, and a kind that handles
//! other hosts.

use sinew_core::catalogue::{Kind, RunsIn};
use sinew_core::{Fault, Parameters, fault};
use sinew_runtime::{Service, ServiceEntry};

/// Replaces the recorder in graphs that are not run.
pub(crate) const OBSERVER: ServiceEntry =
    ServiceEntry { kind: &Kind::new("recorder", RunsIn::Observer, &[]), make };

/// Replaces the kind that handles other hosts.
pub(crate) const STAND_IN: ServiceEntry =
    ServiceEntry { kind: &Kind::new("zenoh", RunsIn::Hosts, &[]), make };

fn make(_: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    Err(fault!("it is not to be run"))
}
