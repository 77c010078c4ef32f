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

/// The core cannot be reached now; whoever asked is told so, and may ask again.
fn unavailable(text: &str) -> Error {
    refused_for_now(503, text, 1)
}
