//! The bridge to the core: its newest messages as values, commands into its mailboxes, orders to
//! its supervisor.

pub(crate) mod halt;
pub(crate) mod read;
pub(crate) mod reset;
pub(crate) mod send;
pub(crate) mod set_parameters;
pub(crate) mod status;
mod supervisor;
#[cfg(test)]
mod testing;

use sinew_flow::Error;

use crate::script::{refused, refused_for_now};

/// The error that the core cannot be reached now. The caller is told so, and may try again.
fn unavailable(text: &str) -> Error {
    refused_for_now(503, text, 1)
}
