//! Values: what a packet is made of.
//!
//! Cheap to clone: what is long is shared. A [`Document`] stands for a mapping whose fields are
//! made when somebody asks for them, such as an HTTP request.

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

/// A mapping whose fields are made on demand. As [`Any`] it is for who knows its type.
pub trait Document: Any + fmt::Debug + Send + Sync {
    /// The field `name`; [`Value::Null`] if there is none.
    ///
    /// # Errors
    /// What it would be made of is malformed.
    fn field(&self, name: &str) -> Result<Value, Error>;
    /// What it would cost to make the field now, in units of work.
    fn price(&self, _name: &str) -> u64 {
        0
    }
    /// The field that would keep its worker for long, made by whoever asks first: it is made on
    /// another thread before. `None` once it is made.
    fn heavy(&self) -> Option<&'static str> {
        None
    }
    /// The names of all fields.
    fn names(&self) -> &[ByteString];
    /// Whether a field holds what whoever asked has sent: a part that it lacks is his mistake.
    fn is_sent(&self, _name: &str) -> bool {
        false
    }
    /// The same in memory of its own, if it lies in what is larger than itself.
    fn compact(&self) -> Option<Arc<dyn Document>> {
        None
    }
    /// What is said in spans of the request that this is; `None` if it is none.
    fn asked(&self) -> Option<AskedFor<'_>> {
        None
    }
    /// The span that it is part of, if it is a request of somebody who has one.
    fn context(&self) -> Option<SpanContext> {
        None
    }
}

/// What is said of a request in spans.
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
    /// Bytes to come.
    pub fn new(parts: impl Parts<Item = Result<Bytes, Error>> + Send + 'static) -> Stream {
        let parts = Arc::new(Mutex::new(Some(Box::pin(parts) as BytesToCome)));
        Stream { parts, len: None, content_type: None }
    }

    /// The same, of just so many bytes; parts that come to another length end in an error.
    pub fn with_len(self, len: u64) -> Stream {
        Stream { len: Some(len), ..self }
    }

    /// The same, of bytes of this type (RFC 9110, 8.3).
    pub fn with_content_type(self, content_type: &'static str) -> Stream {
        Stream { content_type: Some(content_type), ..self }
    }

    /// What its bytes are, if that is known.
    pub fn content_type(&self) -> Option<&'static str> {
        self.content_type
    }

    /// How many bytes come, if that is known.
    pub fn known_len(&self) -> Option<u64> {
        self.len
    }

    /// The bytes; `None` if somebody took them before.
    pub fn take(&self) -> Option<BytesToCome> {
        // No one can have panicked while holding it.
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

    /// What a user would call it.
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

    /// The field `name` of a mapping; [`Value::Null`] if there is none, or this is no mapping.
    ///
    /// # Errors
    /// The field is made of something malformed.
    pub fn field(&self, name: &str) -> Result<Value, Error> {
        match self {
            Value::Map(map) => Ok(map.get(name).cloned().unwrap_or_default()),
            Value::Document(document) => document.field(name),
            _ => Ok(Value::Null),
        }
    }

    /// The same for a packet that stays while its source goes on: a document that holds more than
    /// itself, such as the buffer that it came in, is copied out of there.
    #[must_use]
    pub fn compact(self) -> Value {
        match self {
            Value::Document(document) => Value::Document(document.compact().unwrap_or(document)),
            other => other,
        }
    }

    /// The request that it is, for spans.
    pub(crate) fn asked(&self) -> Option<AskedFor<'_>> {
        if let Value::Document(document) = self { document.asked() } else { None }
    }

    /// The span that it is part of, as a request.
    pub(crate) fn context(&self) -> Option<SpanContext> {
        if let Value::Document(document) = self { document.context() } else { None }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// Whether it holds values below more than so many lists and mappings.
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

    /// The same as JSON. Bytes become text, with what is no UTF-8 replaced; a number that is not
    /// finite becomes nothing, and so do bytes to come.
    ///
    /// # Errors
    /// As for [`Value::field`].
    pub fn to_json(&self) -> Result<Json, Error> {
        // A document that is malformed says more here than a serializer can.
        serde_json::to_value(self.resolve()?).map_err(Error::new)
    }
}

/// As JSON, as [`Value::to_json`] has it, without that tree.
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
                // Every other JSON number is a finite one.
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

/// By what they hold: a document equals the mapping of its fields, a whole number the same number.
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
