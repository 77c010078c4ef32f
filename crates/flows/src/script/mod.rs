//! Scripts and templates: languages, and the nodes that decide by expressions.

pub(crate) mod expression;
pub(crate) mod template;
