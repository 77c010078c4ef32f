//! The cycle: nodes of a thread, put together once and then only run.
//!
//! [`assemble`] makes an [`executor`] of a plan; [`release`] is the loop around it, and the fault
//! order. `step` is one node with what it reads, obeys and sends; `tuning` brings new values of its
//! parameters.

pub mod assemble;
pub mod executor;
pub mod finite;
pub mod release;
mod rest;
mod spoiled;
mod step;
pub(crate) mod taps;
pub mod tuning;
