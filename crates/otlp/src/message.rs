//! A span as its maker passes it on, and as OTLP carries it (opentelemetry/proto, version 1).

use std::sync::Arc;

use bytestring::ByteString;
use prost::{Message, Oneof};
use sinew_control::outside;

use crate::SpanContext;

/// Most characters of a text of a span. A longer text is cut. Specifications set no limit, but a
/// client may send a path of any length.
const TEXT_LEN_MAX: usize = 1024;

/// The role of a span in its trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpanKind {
    /// Internal work.
    #[default]
    Internal,
    /// The handling of another service's request.
    Server,
    /// A request to another service.
    Client,
}

/// The value of an attribute of a span.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A text.
    Text(ByteString),
    /// A number.
    Integer(i64),
}

impl From<&'static str> for Attribute {
    fn from(text: &'static str) -> Attribute {
        Attribute::Text(ByteString::from_static(text))
    }
}

impl From<&ByteString> for Attribute {
    fn from(text: &ByteString) -> Attribute {
        Attribute::Text(text.clone())
    }
}

/// A span.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanRecord {
    /// The number of its trace.
    pub trace: u128,
    /// The number of the span.
    pub span: u64,
    /// The number of its parent span; 0 if it is the first of its trace.
    pub parent: u64,
    /// Whether the parent belongs to another service.
    pub is_remote: bool,
    /// What other services have added to the trace.
    pub state: Option<Arc<str>>,
    /// What it does.
    pub name: ByteString,
    /// Its role in the trace.
    pub kind: SpanKind,
    /// Since 1970, ns.
    pub begun_ns: u64,
    /// Since 1970, ns.
    pub ended_ns: u64,
    /// Its attributes, by name.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Why it failed, if it did. An empty text if the reason is unknown.
    pub error: Option<String>,
}

impl SpanRecord {
    /// A span of this trace that has just begun, as a child of the span in the context.
    pub fn below(context: &SpanContext, span: u64, name: ByteString, begun_ns: u64) -> SpanRecord {
        SpanRecord {
            trace: context.trace,
            span,
            parent: context.span,
            state: context.state.clone(),
            name,
            begun_ns,
            ..SpanRecord::default()
        }
    }
}

/// A request to a collector.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Data", tags = "1, 3")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Integer(i64),
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    flags: u32,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

/// The answer of a collector.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportAnswer {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial: Option<PartialSuccess>,
}

/// Says that the collector has not taken all spans.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected: i64,
    #[prost(string, tag = "2")]
    pub(crate) why: String,
}

/// The code of a status.
const FAILED: i32 = 2;
/// In the flags of a span: the trace is sampled.
const IS_SAMPLED: u32 = 1;
/// It is known whether the parent is of another service, and it is.
const KNOWS_REMOTE: u32 = 1 << 8;
const IS_REMOTE: u32 = 1 << 9;

impl ExportRequest {
    /// A request with these spans, from the sender that `resource` describes.
    pub(crate) fn of(resource: &[(String, String)], spans: Vec<SpanRecord>) -> ExportRequest {
        let text = |(key, value): &(String, String)| KeyValue::text(key, value);
        let resource = Resource { attributes: resource.iter().map(text).collect() };
        let scope = Scope { name: "sinew".into(), version: env!("CARGO_PKG_VERSION").into() };
        let spans = spans.into_iter().map(Span::from).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
        ExportRequest {
            resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }],
        }
    }
}

impl KeyValue {
    fn text(key: &str, value: &str) -> KeyValue {
        let data = Some(Data::Text(shown(value)));
        KeyValue { key: key.to_owned(), value: Some(AnyValue { data }) }
    }
}

impl From<SpanRecord> for Span {
    fn from(span: SpanRecord) -> Span {
        let parent = if span.parent == 0 { vec![] } else { span.parent.to_be_bytes().to_vec() };
        let remote = if span.is_remote { IS_REMOTE } else { 0 };
        let attribute = |(key, value): (&'static str, Attribute)| match value {
            Attribute::Text(text) => KeyValue::text(key, &text),
            Attribute::Integer(number) => {
                let data = Some(Data::Integer(number));
                KeyValue { key: key.to_owned(), value: Some(AnyValue { data }) }
            }
        };
        Span {
            trace_id: span.trace.to_be_bytes().to_vec(),
            span_id: span.span.to_be_bytes().to_vec(),
            trace_state: span.state.as_deref().unwrap_or_default().to_owned(),
            parent_span_id: parent,
            name: shown(&span.name),
            kind: match span.kind {
                SpanKind::Internal => 1,
                SpanKind::Server => 2,
                SpanKind::Client => 3,
            },
            start_time_unix_nano: span.begun_ns,
            end_time_unix_nano: span.ended_ns,
            attributes: span.attributes.into_iter().map(attribute).collect(),
            status: span.error.map(|error| Status { message: shown(&error), code: FAILED }),
            flags: IS_SAMPLED | KNOWS_REMOTE | remote,
        }
    }
}

/// A text with secrets hidden, and cut if it is too long.
fn shown(text: &str) -> String {
    let text = outside::hide_first(text, TEXT_LEN_MAX);
    text[..text.floor_char_boundary(TEXT_LEN_MAX)].to_owned()
}
