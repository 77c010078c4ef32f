//! Spans for OpenTelemetry collectors: the place of a span in its trace, and how it is sent to
//! others ([`SpanContext`]), which traces are recorded at all ([`Sampler`]), what the environment
//! asks for ([`TraceSettings`]), and the thread that sends spans over OTLP ([`Collector`]).
//!
//! This crate does not know flows, and never blocks the code that makes spans.

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
