//! Scripts and templates: languages, and the nodes that decide by expressions.
