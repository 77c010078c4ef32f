//! The command line as a new user meets it, and a hostile one: the real program, the real arm.
//!
//! Every run here has a graph that bears a busy machine (`cli/calm.yaml`), and every wait a limit
//! so generous that only a hang reaches it. No test knows how long anything takes.

#[path = "cli/api.rs"]
mod api;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/computes.rs"]
mod computes;
#[path = "cli/control.rs"]
mod control;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/drill.rs"]
mod drill;
#[path = "cli/flow_tests.rs"]
mod flow_tests;
#[path = "cli/hold.rs"]
mod hold;
#[path = "cli/lab.rs"]
mod lab;
#[path = "cli/lost.rs"]
mod lost;
#[path = "cli/program.rs"]
mod program;
#[path = "cli/replay.rs"]
mod replay;
#[path = "cli/requests.rs"]
mod requests;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/specs.rs"]
mod specs;
#[path = "cli/stops.rs"]
mod stops;
#[path = "cli/systemd.rs"]
mod systemd;
