//! Scripts and templates: languages, and the nodes that decide by expressions.

pub(crate) mod branch;
pub(crate) mod expression;
mod languages;
pub(crate) mod set;
pub(crate) mod snippet;
pub(crate) mod switch;
pub(crate) mod template;
