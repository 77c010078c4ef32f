//! Scripts and templates: languages, and the nodes that decide by expressions.

pub(crate) mod branch;
pub(crate) mod expression;
pub(crate) mod key;
mod languages;
pub(crate) mod library;
pub(crate) mod set;
pub(crate) mod snippet;
pub(crate) mod switch;
pub(crate) mod template;

use sinew_core::Refusal;
use sinew_flow::{Error, Value};

/// The byte at which a line begins; lines are counted from 1.
fn line_start(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

/// What was made; if it could not be made, the reasons are added to `refusals`.
pub(crate) fn taken<T>(made: Result<T, Vec<Refusal>>, refusals: &mut Vec<Refusal>) -> Option<T> {
    made.map_err(|found| refusals.extend(found)).ok()
}

/// An error with this status and text, which the client may read.
pub(crate) fn refused(status: u16, text: impl Into<String>) -> Error {
    let text = text.into();
    let shown = Value::map([("error", Value::text(text.clone()))]);
    Error::new(text).with_status(status).with_shown(shown)
}

/// The same, but it may work later: the client is told to retry after so many seconds.
pub(crate) fn refused_for_now(status: u16, text: impl Into<String>, seconds: u64) -> Error {
    refused(status, text).with_header("retry-after", seconds.to_string())
}
