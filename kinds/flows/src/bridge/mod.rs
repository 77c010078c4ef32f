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
    Error::new(text).with_status(503).with_shown(shown(text)).with_header("retry-after", "1")
}

/// The body of an answer that says why not.
fn shown(text: &str) -> Value {
    Value::map([("error", Value::text(text))])
}
