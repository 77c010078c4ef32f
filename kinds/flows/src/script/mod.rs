//! Scripts and templates: languages, and the nodes that decide by expressions.

pub(crate) mod branch;
pub(crate) mod expression;
mod languages;
pub(crate) mod set;
pub(crate) mod snippet;
pub(crate) mod switch;
pub(crate) mod template;

use sinew_core::Refusal;

/// The byte at which a line begins, counted from 1.
fn line_start(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

/// What was made, or why not: that goes to the others.
pub(crate) fn taken<T>(made: Result<T, Vec<Refusal>>, refusals: &mut Vec<Refusal>) -> Option<T> {
    made.map_err(|found| refusals.extend(found)).ok()
}
