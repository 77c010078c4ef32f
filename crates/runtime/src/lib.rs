//! Executors, domains, transports and faults: what carries out a plan.
//!
//! A node implements [`Node`] and describes itself in a [`Kind`](sinew_spec::catalogue::Kind); a
//! table of [`NodeEntry`] rows is all that the runtime knows of nodes.

// So that `message!` finds the same path here as in every other crate.
extern crate self as sinew_runtime;

mod assemble;
mod bell;
pub mod board;
pub mod clock;
pub mod confine;
pub mod control;
mod cyclic;
pub mod domain;
mod edition;
pub mod executor;
pub mod fault;
mod finite;
pub mod flow;
mod halt;
pub mod hosts;
pub mod inject;
mod launch;
pub mod message;
pub mod node;
pub mod observer;
mod panics;
pub mod privileges;
pub mod profile;
mod refusal;
pub mod replay;
mod rest;
pub mod run;
pub mod service;
mod slots;
mod spoiled;
pub mod status;
mod step;
pub mod sys;
mod table;
mod taps;
pub mod trace;
pub mod transport;
pub mod watch;

pub use assemble::{check_node, node_files, parameters, try_open};
pub use edition::Edition;
pub use fault::{Cause, Fault};
pub use message::Message;
pub use node::{Cycle, Fixture, Fresh, Io, Make, Node, NodeEntry, Parameters};
pub use refusal::{Made, Refusal};
pub use service::{Service, ServiceIo};
pub use sinew_spec::catalogue;
pub use table::table_errors;
pub use watch::Watch;
/// For the code that [`message!`] writes.
#[doc(hidden)]
pub use zerocopy;
