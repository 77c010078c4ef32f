//! The bridge to the core: its newest messages as values, commands into its mailboxes, orders to
//! its supervisor.

pub(crate) mod halt;
pub(crate) mod read;
pub(crate) mod reset;
pub(crate) mod send;
pub(crate) mod status;
mod supervisor;
#[cfg(test)]
mod testing;

use sinew_flow::{Error, Value};

/// The core cannot be reached now; whoever asked is told so, and may ask again.
fn unavailable(text: &str) -> Error {
    refused(503, text).with_header("retry-after", "1")
}

/// Why not; whoever asked may read it.
fn refused(status: u16, text: impl Into<String>) -> Error {
    let text = text.into();
    let shown = Value::map([("error", Value::text(text.clone()))]);
    Error::new(text).with_status(status).with_shown(shown)
}
