//! The command line used by a new user, and by a hostile one: the real program, the real arm.
//!
//! Every run here has a graph that tolerates a busy machine (`calm.yaml`). Every wait has a limit
//! that only a hang reaches. No test depends on how long anything takes.

mod advise;
mod apart;
mod api;
mod apps;
mod chat_bot;
mod check;
mod compare;
mod computes;
mod control;
mod declared;
mod doctor;
mod drill;
mod flow_figures;
mod flow_tests;
mod guest;
mod history;
mod hold;
mod import;
mod kinds;
mod lab;
mod lost;
mod plain;
mod program;
mod replay;
mod requests;
mod runs;
mod schema;
mod scope;
mod secrets;
mod set;
mod spans;
mod specs;
mod stops;
mod streaming;
mod systemd;
mod tap;
mod tune;
mod tutorial;
mod uniflow;
