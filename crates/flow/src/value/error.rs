//! Errors of flows: what a node answers when it fails.

use std::fmt;

use bytestring::ByteString;
use sinew_control::outside;

use crate::Value;

/// A failed answer of a flow. Its text is for the log; only [`Error::shown`] may leave the machine.
#[derive(Clone, PartialEq)]
pub struct Error(Box<Inside>);

#[derive(Clone, Default, PartialEq)]
struct Inside {
    text: String,
    status: u16,
    shown: Option<Value>,
    headers: Vec<(ByteString, ByteString)>,
    node: Option<ByteString>,
    parts: Vec<Error>,
    /// Whether it is in the log already.
    told: bool,
    /// Whether another error of the flow may have caused it.
    follows: bool,
}

/// The HTTP status of what went wrong inside.
const INTERNAL: u16 = 500;

impl Error {
    /// An error for what went wrong inside; HTTP answers 500. Secrets are removed from the text.
    pub fn new(text: impl fmt::Display) -> Error {
        let text = outside::hidden(text.to_string());
        Error(Box::new(Inside { text, status: INTERNAL, ..Inside::default() }))
    }

    /// The same with another HTTP status.
    pub fn with_status(mut self, status: u16) -> Error {
        self.0.status = status;
        self
    }

    /// The same with an answer for the caller.
    pub fn with_shown(mut self, shown: Value) -> Error {
        self.0.shown = Some(shown);
        self
    }

    /// The same with a header of the HTTP answer.
    pub fn with_header(
        mut self,
        name: impl Into<ByteString>,
        value: impl Into<ByteString>,
    ) -> Error {
        self.0.headers.push((name.into(), value.into()));
        self
    }

    /// The same as an error of this node, if it has no node yet.
    pub(crate) fn of(mut self, node: &ByteString) -> Error {
        self.0.node.get_or_insert_with(|| node.clone());
        self
    }

    /// The same, marked as perhaps caused by another error of the flow: joined with that error, it
    /// is left out.
    pub fn following(mut self) -> Error {
        self.0.follows = true;
        self
    }

    /// The same, marked as logged.
    pub(crate) fn told(mut self) -> Error {
        self.0.told = true;
        self
    }

    /// Whether it is in the log, or all errors that it joins are.
    pub(crate) fn is_told(&self) -> bool {
        self.0.told || (!self.0.parts.is_empty() && self.0.parts.iter().all(Error::is_told))
    }

    /// Joins several errors into one. A single error stays as it is, and errors that only follow
    /// from another are left out. The status is the one that all share, otherwise 500.
    ///
    /// # Panics
    /// If there are no errors.
    pub fn joined(mut errors: Vec<Error>) -> Error {
        if errors.iter().any(|error| !error.0.follows) {
            errors.retain(|error| !error.0.follows);
        }
        if errors.len() == 1 {
            return errors.swap_remove(0);
        }
        let first = errors[0].status();
        let same = errors.iter().all(|error| error.status() == first);
        let texts: Vec<String> = errors.iter().map(Error::to_string).collect();
        let mut error = Error::new(texts.join("; "));
        error.0.status = if same { first } else { INTERNAL };
        error.0.follows = errors[0].0.follows;
        error.0.parts = errors;
        error
    }

    /// What went wrong.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// What may be shown to the caller.
    pub fn shown(&self) -> Option<&Value> {
        self.0.shown.as_ref()
    }

    /// Headers of the HTTP answer.
    pub fn headers(&self) -> &[(ByteString, ByteString)] {
        &self.0.headers
    }

    /// The node that answered with it.
    pub fn node(&self) -> Option<&ByteString> {
        self.0.node.as_ref()
    }

    /// The errors that it joins.
    pub fn parts(&self) -> &[Error] {
        &self.0.parts
    }

    /// The packet for an `error` port: `{error, status, node}`, `body` if the caller may see more
    /// than the status, `header` if the answer has headers, and `parts` if it joins several errors.
    pub fn to_value(&self) -> Value {
        let node = self.0.node.clone().map_or(Value::Null, Value::Text);
        let mut entries = vec![
            ("error", Value::text(self.0.text.clone())),
            ("status", Value::Integer(self.0.status.into())),
            ("node", node),
        ];
        if let Some(shown) = &self.0.shown {
            entries.push(("body", shown.clone()));
        }
        if !self.0.headers.is_empty() {
            let text = |(name, value): &(ByteString, ByteString)| {
                (name.to_lowercase(), Value::Text(value.clone()))
            };
            entries.push(("header", Value::map(self.0.headers.iter().map(text))));
        }
        if !self.0.parts.is_empty() {
            entries.push(("parts", Value::list(self.0.parts.iter().map(Error::to_value))));
        }
        Value::map(entries)
    }
}

/// An error as a value that crosses to another domain, and back.
impl Error {
    pub(crate) fn to_wire(&self) -> Value {
        let Inside { text, status, shown, headers, node, parts, told, .. } = &*self.0;
        let optional = |value: Option<Value>| Value::list(value);
        let pair = |(name, value): &(ByteString, ByteString)| {
            Value::list([name, value].map(|text| Value::Text(text.clone())))
        };
        Value::list([
            Value::text(text.clone()),
            Value::Integer((*status).into()),
            optional(shown.clone()),
            Value::list(headers.iter().map(pair)),
            optional(node.clone().map(Value::Text)),
            Value::list(parts.iter().map(Error::to_wire)),
            Value::Bool(*told),
        ])
    }

    /// `None` if the value is not an error.
    pub(crate) fn of_wire(value: &Value) -> Option<Error> {
        let list = |value: &'_ Value| match value {
            Value::List(items) => Some(items.to_vec()),
            _ => None,
        };
        let Value::List(fields) = value else { return None };
        let [Value::Text(text), Value::Integer(status), shown, headers, node, parts, told] =
            fields.as_slice()
        else {
            return None;
        };
        let status = u16::try_from(*status).ok().filter(|it| (400..=599).contains(it))?;
        let mut error = Error::new(text).with_status(status);
        error.0.shown = list(shown)?.into_iter().next();
        error.0.node = match list(node)?.into_iter().next() {
            Some(Value::Text(name)) => Some(name),
            Some(_) => return None,
            None => None,
        };
        for header in list(headers)? {
            let Value::List(pair) = header else { return None };
            let [Value::Text(name), Value::Text(value)] = pair.as_slice() else { return None };
            error.0.headers.push((name.clone(), value.clone()));
        }
        error.0.parts = list(parts)?.iter().map(Error::of_wire).collect::<Option<_>>()?;
        error.0.told = *told == Value::Bool(true);
        Some(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.node {
            Some(node) => write!(f, "node '{node}': {}", self.0.text),
            None => f.write_str(&self.0.text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self}, {})", self.0.status)
    }
}

impl std::error::Error for Error {}
