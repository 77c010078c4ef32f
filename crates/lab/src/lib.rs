//! The lab: what threads, processes, transports and waiting cost on this machine.
//!
//! A [`Scenario`] makes rows. Its rows are measured in turn, round after round, so that whatever
//! the machine does meanwhile affects all of them ([`rounds`]). The result is a [`ScenarioReport`].
//! [`compare`] compares two programs or reports, [`history`] many.

pub mod advise;
pub mod bar;
pub mod compare;
pub mod drill;
pub mod graph;
pub mod harness;
mod headlines;
pub mod history;
pub mod report;
pub mod rivals;
pub mod rounds;
pub mod scenario;
pub mod show;
mod words;

pub use report::ScenarioReport;
pub use scenario::{SCENARIOS, Scenario};
