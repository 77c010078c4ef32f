//! Values: what a packet is made of.
//!
//! Values are cheap to clone, as long content is shared. A [`Document`] is a mapping whose fields
//! are made when somebody asks for them, such as an HTTP request.

pub mod cbor;
pub(crate) mod error;
mod read;

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use bytestring::ByteString;
use futures_core::Stream as Parts;
use indexmap::IndexMap;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value as Json;
use sinew_otlp::SpanContext;

use crate::Error;

/// A packet, a reply, or a part of one.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text(ByteString),
    /// Bytes that need not be text.
    Bytes(Bytes),
    /// Values in a row.
    List(Arc<Vec<Value>>),
    /// Values by name, in order.
    Map(Arc<Map>),
    /// A mapping whose fields are made on demand.
    Document(Arc<dyn Document>),
    /// Bytes that are still to come.
    Stream(Stream),
}

/// Values by name, in order.
pub type Map = IndexMap<ByteString, Value>;

/// A mapping whose fields are made on demand. Code that knows its type can get that by [`Any`].
pub trait Document: Any + fmt::Debug + Send + Sync {
    /// The field `name`; [`Value::Null`] if there is none.
    ///
    /// # Errors
    /// The data that it is made of is malformed.
    fn field(&self, name: &str) -> Result<Value, Error>;
    /// What it would cost to make the field now, in units of work.
    fn price(&self, _name: &str) -> u64 {
        0
    }
    /// A field that would keep its worker for long if it were made when somebody asks; it is made
    /// on another thread beforehand. `None` if there is no such field, or once it is made.
    fn heavy(&self) -> Option<&'static str> {
        None
    }
    /// The names of all fields.
    fn names(&self) -> &[ByteString];
    /// Whether a field holds what the caller has sent: a missing part is then the caller's mistake.
    fn is_sent(&self, _name: &str) -> bool {
        false
    }
    /// A copy in memory of its own, if the document is part of a larger buffer.
    fn compact(&self) -> Option<Arc<dyn Document>> {
        None
    }
    /// What spans say of this request; `None` if this is not a request.
    fn asked(&self) -> Option<AskedFor<'_>> {
        None
    }
    /// The caller's span, if this is a request of a caller that has one.
    fn context(&self) -> Option<SpanContext> {
        None
    }
}

/// What spans say of a request.
#[derive(Clone, Debug)]
pub struct AskedFor<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its path.
    pub path: &'a str,
    /// How it came: `http` or `https`.
    pub scheme: &'static str,
}

/// Bytes that are still to come, part by part. Clones share them, and only one can take them.
#[derive(Clone)]
pub struct Stream {
    parts: Arc<Mutex<Option<BytesToCome>>>,
    len: Option<u64>,
    content_type: Option<&'static str>,
}

/// What a [`Stream`] holds.
pub type BytesToCome = Pin<Box<dyn Parts<Item = Result<Bytes, Error>> + Send>>;

impl Stream {
    /// A stream of the bytes of `parts`.
    pub fn new(parts: impl Parts<Item = Result<Bytes, Error>> + Send + 'static) -> Stream {
        let parts = Arc::new(Mutex::new(Some(Box::pin(parts) as BytesToCome)));
        Stream { parts, len: None, content_type: None }
    }

    /// The same with exactly `len` bytes; parts of another total length end in an error.
    pub fn with_len(self, len: u64) -> Stream {
        Stream { len: Some(len), ..self }
    }

    /// The same with this content type (RFC 9110, 8.3).
    pub fn with_content_type(self, content_type: &'static str) -> Stream {
        Stream { content_type: Some(content_type), ..self }
    }

    /// The content type of its bytes, if that is known.
    pub fn content_type(&self) -> Option<&'static str> {
        self.content_type
    }

    /// How many bytes come, if that is known.
    pub fn known_len(&self) -> Option<u64> {
        self.len
    }

    /// The bytes; `None` if somebody took them before.
    pub fn take(&self) -> Option<BytesToCome> {
        // A poisoned lock is still good: no code panics while holding it.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<ByteString>) -> Value {
        Value::Text(text.into())
    }

    /// A list.
    pub fn list(values: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Arc::new(values.into_iter().collect()))
    }

    /// A mapping.
    pub fn map<K: Into<ByteString>>(entries: impl IntoIterator<Item = (K, Value)>) -> Value {
        Value::Map(Arc::new(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()))
    }

    /// The user's word for its type.
    pub fn sort(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "a whole number",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "a list",
            Value::Map(_) | Value::Document(_) => "a mapping",
            Value::Stream(_) => "a stream",
        }
    }

    /// The field `name` of a mapping; [`Value::Null`] if there is none, or this is not a mapping.
    ///
    /// # Errors
    /// The data that the field is made of is malformed.
    pub fn field(&self, name: &str) -> Result<Value, Error> {
        match self {
            Value::Map(map) => Ok(map.get(name).cloned().unwrap_or_default()),
            Value::Document(document) => document.field(name),
            _ => Ok(Value::Null),
        }
    }

    /// The same value, for a packet that is kept while its source goes on. A document that keeps a
    /// larger buffer alive, such as the one that it came in, is copied out of the buffer.
    #[must_use]
    pub fn compact(self) -> Value {
        match self {
            Value::Document(document) => Value::Document(document.compact().unwrap_or(document)),
            other => other,
        }
    }

    /// What spans say of this value, if it is a request.
    pub(crate) fn asked(&self) -> Option<AskedFor<'_>> {
        if let Value::Document(document) = self { document.asked() } else { None }
    }

    /// The caller's span, if this value is a request.
    pub(crate) fn context(&self) -> Option<SpanContext> {
        if let Value::Document(document) = self { document.context() } else { None }
    }

    /// The text, if this is a text.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// Whether it has values nested in more than `levels` lists and mappings.
    pub fn is_deeper_than(&self, levels: usize) -> bool {
        let below = |value: &Value| levels == 0 || value.is_deeper_than(levels - 1);
        match self {
            Value::List(items) => items.iter().any(below),
            Value::Map(map) => map.values().any(below),
            _ => false,
        }
    }

    /// What it would cost to [resolve](Value::resolve) it now, in units of work.
    pub fn price(&self) -> u64 {
        match self {
            Value::Document(document) => document.names().iter().map(|it| document.price(it)).sum(),
            Value::List(items) => items.iter().map(Value::price).sum(),
            Value::Map(map) => map.values().map(Value::price).sum(),
            _ => 0,
        }
    }

    /// The same with documents made into mappings, all the way down.
    ///
    /// # Errors
    /// As for [`Value::field`].
    pub fn resolve(&self) -> Result<Value, Error> {
        match self {
            Value::Document(document) => {
                let field =
                    |name: &ByteString| Ok((name.clone(), document.field(name)?.resolve()?));
                Ok(Value::Map(Arc::new(
                    document.names().iter().map(field).collect::<Result<_, _>>()?,
                )))
            }
            Value::List(items) => {
                let items: Result<Vec<_>, _> = items.iter().map(Value::resolve).collect();
                Ok(Value::List(Arc::new(items?)))
            }
            Value::Map(map) => {
                let entry =
                    |(key, value): (&ByteString, &Value)| Ok((key.clone(), value.resolve()?));
                Ok(Value::Map(Arc::new(map.iter().map(entry).collect::<Result<_, _>>()?)))
            }
            other => Ok(other.clone()),
        }
    }

    /// The value as JSON. Bytes become text, with invalid UTF-8 replaced. A number that is not
    /// finite becomes `null`, and so do bytes that are still to come.
    ///
    /// # Errors
    /// As for [`Value::field`].
    pub fn to_json(&self) -> Result<Json, Error> {
        // Resolved first, because a malformed document gives a better error here than through a
        // serializer.
        serde_json::to_value(self.resolve()?).map_err(Error::new)
    }
}

/// The same JSON as from [`Value::to_json`], without a tree in between.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null | Value::Stream(_) => to.serialize_unit(),
            Value::Bool(value) => to.serialize_bool(*value),
            Value::Integer(value) => to.serialize_i64(*value),
            Value::Number(value) if value.is_finite() => to.serialize_f64(*value),
            Value::Number(_) => to.serialize_unit(),
            Value::Text(text) => to.serialize_str(text),
            Value::Bytes(bytes) => to.serialize_str(&String::from_utf8_lossy(bytes)),
            Value::List(items) => to.collect_seq(items.iter()),
            Value::Map(map) => to.collect_map(map.iter().map(|(key, value)| (&**key, value))),
            Value::Document(_) => self.resolve().map_err(S::Error::custom)?.serialize(to),
        }
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Value::Integer(value),
                // Every other JSON number is a finite double.
                None => Value::Number(number.as_f64().unwrap_or_default()),
            },
            Json::String(text) => Value::text(text),
            Json::Array(items) => Value::list(items.into_iter().map(Value::from)),
            Json::Object(entries) => {
                Value::map(entries.into_iter().map(|(key, value)| (key, Value::from(value))))
            }
        }
    }
}

/// Compares content: a document equals the mapping of its fields, and a whole number equals the
/// same number as a double.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => a == b,
            (Value::Integer(a), Value::Number(b)) | (Value::Number(b), Value::Integer(a)) => {
                *a as f64 == *b
            }
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::List(a), Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            (Value::Document(_), _) => self.resolve().is_ok_and(|this| this == *other),
            (_, Value::Document(_)) => other == self,
            (Value::Stream(a), Value::Stream(b)) => Arc::ptr_eq(&a.parts, &b.parts),
            _ => false,
        }
    }
}
