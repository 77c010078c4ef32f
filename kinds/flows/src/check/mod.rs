//! Tests in the graph itself: the kinds `test` and `assert`, and what `sinew test` does with them.

pub(crate) mod assert;
mod mock;
mod suite;
pub(crate) mod test;

use sinew_flow::Value;
pub use suite::{Suite, TestOutcome};

use crate::script::expression::shortened;

/// Most characters of a value that a failure shows.
const SHOWN_MAX: usize = 1000;

/// A value as a failure shows it.
fn show(value: &Value) -> String {
    match value.to_json() {
        Ok(json) => shortened(&json.to_string(), SHOWN_MAX).into_owned(),
        Err(error) => format!("a value that cannot be read: {}", error.text()),
    }
}
