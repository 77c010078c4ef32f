//! Why a node cannot be made, and where in the spec the reason is.

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
    /// Whether it only follows from what is wrong with another node, which reports that itself.
    /// Then it is not shown where that report is shown.
    pub follows: bool,
}

/// A node, or all that is wrong with its parameters.
pub type Made<T> = Result<Box<T>, Vec<Refusal>>;

impl Refusal {
    /// Something is wrong at this place.
    pub fn new(span: Span, message: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal { span: Some(span), ..Refusal::of_node(message, help) }
    }

    /// Something is wrong with the node, and with no place in particular.
    pub fn of_node(message: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal { span: None, message: message.into(), help: help.into(), follows: false }
    }

    /// The same, and whether it only follows from what is wrong with another node.
    #[must_use]
    pub fn following(self, follows: bool) -> Refusal {
        Refusal { follows, ..self }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal { span: fault.span(), ..Refusal::of_node(fault.text(), "") }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "; {}", self.help) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_stands_where_its_fault_says() {
        let span = Span { source: 0, start: 7, len: 3 };
        let refusal = Refusal::from(crate::fault!("too much").at(span));
        assert_eq!((refusal.span, refusal.message.as_str()), (Some(span), "too much"));
        assert_eq!(Refusal::from(crate::fault!("too much")).span, None);
    }
}
