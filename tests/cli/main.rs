//! The command line as a new user meets it, and a hostile one: the real program, the real arm.
//!
//! Every run here has a graph that bears a busy machine (`calm.yaml`), and every wait a limit
//! so generous that only a hang reaches it. No test knows how long anything takes.

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
