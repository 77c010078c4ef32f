//! Why a node cannot be made, and where in the spec that stands.

use std::fmt;

use sinew_plan::Span;

use crate::fault::Fault;

/// Why a node cannot be made of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where in the spec; `None`: at the node.
    pub span: Option<Span>,
    /// What is wrong.
    pub message: String,
    /// What to write instead; may be empty.
    pub help: String,
}

/// A node, or all that is wrong with its parameters.
pub type Made<T> = Result<Box<T>, Vec<Refusal>>;

impl Refusal {
    /// Something is wrong at this place.
    pub fn new(span: Span, message: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal { span: Some(span), message: message.into(), help: help.into() }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal { span: None, message: fault.text().to_owned(), help: String::new() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}
