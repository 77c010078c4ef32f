//! Spans for a collector, of the flows that are sampled.
//!
//! A flow keeps its spans until it ends, and hands them over then. A flow that goes on for long
//! hands them over from time to time. Only a thread itself knows which span it is in.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::take;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytestring::ByteString;
use sinew_core::clock::Clock;
use sinew_otlp::{
    Attribute, Collector, Sampler, SpanContext, SpanKind, SpanRecord, TraceSettings, new_span,
};

use super::Beginner;
use crate::{Error, Value};

/// A flow that has this many spans hands them over before its end.
const SPANS_MAX: usize = 64;

/// Where the spans of this process go, if anywhere.
static TRACES: OnceLock<Traces> = OnceLock::new();

struct Traces {
    sampler: Sampler,
    collector: Collector,
}

thread_local! {
    /// The span that this thread is in; 0 if it is in none.
    static WITHIN: Cell<u64> = const { Cell::new(0) };
}

/// The spans of a flow if it is sampled, and the context that it passes on to others, if there is
/// one.
pub(super) type Decided = (Option<Sampled>, Option<SpanContext>);

/// Begins to send spans as the settings say.
///
/// # Errors
/// The kernel refuses a thread.
pub(super) fn begin(settings: TraceSettings) -> io::Result<()> {
    if TRACES.get().is_none() {
        let (sampler, collector) = (settings.sampler, Collector::begin(settings)?);
        // An error means that another thread was quicker; its collector serves as well.
        let _ = TRACES.set(Traces { sampler, collector });
    }
    Ok(())
}

/// Sends the remaining spans, until `until` at most.
pub(super) fn end(until: Instant) {
    if let Some(traces) = TRACES.get() {
        traces.collector.end(until);
    }
}

pub(super) fn is_on() -> bool {
    TRACES.get().is_some()
}

/// Decides about a flow that begins with a packet, or below a span of another domain. Returns the
/// context that it begins in; its span is 0 if the trace begins here.
pub(super) fn decide(packet: Option<&Value>, parent: Option<&SpanContext>) -> Option<SpanContext> {
    let Traces { sampler, .. } = TRACES.get()?;
    let parent = parent.cloned().or_else(|| packet?.context());
    let Some(mut parent) = parent else {
        let trace = sampler.begin()?;
        return Some(SpanContext { trace, span: 0, is_sampled: true, state: None });
    };
    parent.is_sampled = sampler.follow(&parent);
    Some(parent)
}

/// The methods that OpenTelemetry's conventions for HTTP know. All others get one name, so that a
/// caller cannot make up any number of names.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// The spans of a flow that begins with a packet, as `decided`.
pub(super) fn flow(
    by: &Beginner<'_>,
    packet: Option<&Value>,
    decided: Option<SpanContext>,
) -> Decided {
    let (Some(context), Some(Traces { collector, .. })) = (decided, TRACES.get()) else {
        return (None, None);
    };
    if !context.is_sampled {
        return (None, Some(context));
    }
    let is_remote = context.span != 0;
    let (sampled, context) = Sampled::new(collector, by, context);
    let mut own = sampled.own.borrow_mut();
    own.is_remote = is_remote;
    if let Some(asked) = packet.and_then(Value::asked) {
        own.kind = SpanKind::Server;
        let text = |text: &str| Attribute::Text(text.into());
        if METHODS.contains(&asked.method) {
            own.name = asked.method.into();
            own.attributes.push(("http.request.method", text(asked.method)));
        } else {
            own.name = "HTTP".into();
            own.attributes.push(("http.request.method", "_OTHER".into()));
            own.attributes.push(("http.request.method_original", text(asked.method)));
        }
        own.attributes.push(("url.path", text(asked.path)));
        own.attributes.push(("url.scheme", asked.scheme.into()));
    }
    drop(own);
    (Some(sampled), Some(context))
}

/// The context of a flow that is not sampled and whose trace nobody else began.
pub(super) fn unmade() -> Option<SpanContext> {
    let Traces { sampler, .. } = TRACES.get()?;
    let (trace, span) = (sampler.begin_unmade(), new_span());
    Some(SpanContext { trace, span, is_sampled: false, state: None })
}

/// The spans of a flow that is sampled.
pub(super) struct Sampled {
    collector: &'static Collector,
    clock: Clock,
    flow: i64,
    /// When it began, in ticks.
    begun: u64,
    own: RefCell<SpanRecord>,
    ended: RefCell<Vec<SpanRecord>>,
    /// Spans that have sent requests to others.
    asking: RefCell<Vec<u64>>,
}

impl Sampled {
    /// A flow below a span, and the flow's own context.
    fn new(
        collector: &'static Collector,
        by: &Beginner<'_>,
        parent: SpanContext,
    ) -> (Sampled, SpanContext) {
        let (span, begun) = (new_span(), by.clock.ticks());
        // If the clock is set before 1970, the time counts as 0.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut own = SpanRecord::below(&parent, span, by.name.clone(), since.as_nanos() as u64);
        own.attributes = attributes(by.name, by.kind, by.flow as i64);
        let (own, ended, asking) = (RefCell::new(own), RefCell::default(), RefCell::default());
        let (clock, flow) = (by.clock, by.flow as i64);
        let sampled = Sampled { collector, clock, flow, begun, own, ended, asking };
        (sampled, SpanContext { span, ..parent })
    }

    /// A child, below the span that this thread is in.
    pub(super) fn child(&self, by: &Beginner<'_>, parent: u64) -> Decided {
        let own = self.own.borrow();
        let (trace, state) = (own.trace, own.state.clone());
        let context = SpanContext { trace, span: self.current(&own), is_sampled: true, state };
        let (sampled, context) = Sampled::new(self.collector, by, context);
        let parent = Attribute::Integer(parent as i64);
        sampled.own.borrow_mut().attributes.push(("sinew.parent", parent));
        (Some(sampled), Some(context))
    }

    /// The span of a node that has the packet.
    pub(super) fn node(&self, name: &ByteString, kind: &'static str, begun: u64) -> OpenSpan<'_> {
        let own = self.own.borrow();
        let mut record = SpanRecord {
            trace: own.trace,
            span: new_span(),
            parent: self.current(&own),
            state: own.state.clone(),
            name: name.clone(),
            attributes: attributes(name, kind, self.flow),
            ..SpanRecord::default()
        };
        record.begun_ns = own.begun_ns + self.clock.ns(begun.saturating_sub(self.begun));
        OpenSpan { sampled: self, record }
    }

    /// The span that this thread is in, noted as one that sends requests to others.
    pub(super) fn asks(&self) -> u64 {
        let span = self.current(&self.own.borrow());
        self.asking.borrow_mut().push(span);
        span
    }

    /// The span that this thread is in; the flow's own span if no node has the packet.
    fn current(&self, own: &SpanRecord) -> u64 {
        match WITHIN.get() {
            0 => own.span,
            span => span,
        }
    }

    pub(super) fn enter(&self) -> Within {
        Within::enter(self.own.borrow().span)
    }

    /// Notes an error. For a request, only an error inside (status from 500) counts; an error of
    /// the caller does not.
    pub(super) fn failed(&self, error: &Error) {
        let mut own = self.own.borrow_mut();
        if own.kind != SpanKind::Server || error.status() >= 500 {
            own.error = Some(error.to_string());
        }
    }

    pub(super) fn answered(&self, status: u16) {
        let mut own = self.own.borrow_mut();
        let number = Attribute::Integer(status.into());
        own.attributes.push(("http.response.status_code", number));
        if status >= 500 {
            own.error.get_or_insert_default();
        }
    }

    pub(super) fn routed(&self, route: ByteString) {
        let mut own = self.own.borrow_mut();
        if own.kind == SpanKind::Server {
            // If a request passes several routers, the route of the last one counts.
            own.attributes.retain(|(key, _)| *key != "http.route");
            let method = own.name.split(' ').next().unwrap_or_default();
            own.name = format!("{method} {route}").into();
            own.attributes.push(("http.route", Attribute::Text(route)));
        }
    }

    /// Time since 1970, ns.
    fn now_ns(&self, own: &SpanRecord) -> u64 {
        own.begun_ns + self.clock.ns(self.clock.ticks().saturating_sub(self.begun))
    }

    fn end(&self, mut record: SpanRecord) {
        record.ended_ns = self.now_ns(&self.own.borrow());
        let mut asking = self.asking.borrow_mut();
        if asking.contains(&record.span) {
            asking.retain(|span| *span != record.span);
            record.kind = SpanKind::Client;
        }
        let mut ended = self.ended.borrow_mut();
        ended.push(record);
        if ended.len() >= SPANS_MAX {
            self.collector.send(take(&mut *ended));
        }
    }
}

impl Drop for Sampled {
    fn drop(&mut self) {
        let mut own = take(self.own.get_mut());
        own.ended_ns = self.now_ns(&own);
        let mut ended = take(self.ended.get_mut());
        ended.push(own);
        self.collector.send(ended);
    }
}

/// The span of a node, until it is dropped.
pub(super) struct OpenSpan<'a> {
    sampled: &'a Sampled,
    record: SpanRecord,
}

impl OpenSpan<'_> {
    pub(super) fn enter(&self) -> Within {
        Within::enter(self.record.span)
    }

    pub(super) fn failed(&mut self, error: &Error) {
        self.record.error = Some(error.to_string());
    }
}

impl Drop for OpenSpan<'_> {
    fn drop(&mut self) {
        self.sampled.end(take(&mut self.record));
    }
}

/// This thread is in a span until this is dropped; then it is in the span that it was in before.
pub(super) struct Within(u64);

impl Within {
    fn enter(span: u64) -> Within {
        Within(WITHIN.replace(span))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(self.0);
    }
}

fn attributes(node: &ByteString, kind: &'static str, flow: i64) -> Vec<(&'static str, Attribute)> {
    let flow = Attribute::Integer(flow);
    vec![("sinew.node", node.into()), ("sinew.kind", kind.into()), ("sinew.flow", flow)]
}
