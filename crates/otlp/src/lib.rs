//! Spans for collectors of OpenTelemetry: where a span stands in its trace and what others are told
//! of that ([`SpanContext`]), which traces are made at all ([`Sampler`]), what the environment asks
//! for ([`TraceSettings`]), and the thread that sends spans over OTLP ([`Collector`]).
//!
//! Nothing here knows a flow, and nothing here keeps who makes spans waiting.

mod collector;
mod context;
mod message;
mod sampler;
mod settings;

pub use collector::Collector;
pub use context::SpanContext;
pub use message::{Attribute, SpanKind, SpanRecord};
pub use sampler::{Sampler, new_span};
pub use settings::TraceSettings;
