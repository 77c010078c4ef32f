//! Where the time of a flow goes: a span for each flow and for each node that has its packet. Spans
//! go to a file, which takes all of them, and to a collector, which takes those that are sampled.
//! Usually neither is asked for, and then the cost is one more read of a word for each node.
//!
//! That is decided once for a flow, when it begins. A flow whose spans nobody wants makes none. It
//! remembers at most the trace of its caller, which it passes on to others.

mod lines;
mod sent;

use std::cell::OnceCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use bytestring::ByteString;
use sinew_core::clock::Clock;
use sinew_otlp::{SpanContext, TraceSettings, new_span};
use sinew_spec::plan::Plan;
use tracing::Span;

use crate::{Error, Value};

use self::sent::{Decided, OpenSpan, Sampled};

/// Begins the spans that the environment of this process asks for, for a domain of a graph.
///
/// # Errors
/// The environment asks for something impossible.
pub(crate) fn begin(plan: &Plan, domain: usize) -> io::Result<()> {
    lines::begin()?;
    let settings = TraceSettings::of_environment().map_err(io::Error::other)?;
    settings.map_or(Ok(()), |settings| {
        let more = [
            ("sinew.graph", plan.name.clone()),
            ("sinew.domain", plan.domains[domain].name.clone()),
        ];
        sent::begin(settings.of(&plan.name, more))
    })
}

/// When all flows have ended: sends the remaining spans, until `until` at most, and says what is
/// missing.
pub(crate) fn end(until: Instant) {
    sent::end(until);
    lines::end();
}

/// Checks whether the spans that the environment asks for are possible, as far as that is known
/// before a domain starts. Otherwise the domain would be restarted in vain.
///
/// # Errors
/// The variable that asks for something impossible.
pub fn try_spans() -> io::Result<()> {
    lines::open()?;
    TraceSettings::of_environment().map(drop).map_err(io::Error::other)
}

/// Begins to send spans as these variables ask for, for a benchmark without a domain.
pub(crate) fn begin_with(variables: &[(&str, &str)]) -> Result<(), String> {
    let get = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        Ok(found.map(|(_, value)| (*value).to_owned()))
    };
    let settings = TraceSettings::read(&get)?;
    settings.map_or(Ok(()), |settings| {
        sent::begin(settings.of("sinew", [])).map_err(|error| error.to_string())
    })
}

/// Whether spans are asked for; that is known before the first program is made.
pub(crate) fn is_on() -> bool {
    lines::is_on() || sent::is_on()
}

/// Whether all flows have spans.
#[inline]
pub(crate) fn takes_all() -> bool {
    lines::is_on()
}

/// Decides about the spans of a flow that begins with a packet, or below a span of another domain.
/// Returns the context that it begins in; `None` if it has none and is not sampled.
#[inline]
pub(crate) fn decide(packet: Option<&Value>, parent: Option<&SpanContext>) -> Option<SpanContext> {
    sent::decide(packet, parent)
}

/// The number of a flow that begins, and the node that begins it.
pub(crate) struct Beginner<'a> {
    pub(crate) flow: u64,
    pub(crate) name: &'a ByteString,
    pub(crate) kind: &'static str,
    pub(crate) clock: Clock,
}

/// The spans of a flow, and the context that it passes on to others.
pub(crate) struct FlowTrace {
    /// The flow's own span, for the file.
    line: Span,
    /// The spans for a collector, if the flow is sampled.
    sampled: Option<Sampled>,
    /// The context of the flow's own span, as others get it. If the flow is not sampled, the
    /// context of its parent, or one made up for others.
    context: OnceCell<SpanContext>,
}

/// The span of a node that has the packet of a flow; it ends when this is dropped.
pub(crate) struct NodeSpan<'a> {
    line: Span,
    sent: Option<OpenSpan<'a>>,
}

impl FlowTrace {
    /// The trace of a flow that a source begins with a packet, as `decided`.
    pub(crate) fn of_source(
        by: &Beginner<'_>,
        packet: Option<&Value>,
        decided: Option<SpanContext>,
    ) -> Option<Box<FlowTrace>> {
        FlowTrace::of(lines::flow(by.flow, by.name), sent::flow(by, packet, decided))
    }

    /// The trace of a child of the flow `parent`, whose trace is `of`.
    pub(crate) fn of_child(
        by: &Beginner<'_>,
        parent: u64,
        of: Option<&FlowTrace>,
    ) -> Option<Box<FlowTrace>> {
        let (sampled, context) = match of.map(|of| (&of.sampled, of.context.get())) {
            Some((Some(sampled), _)) => sampled.child(by, parent),
            Some((None, context)) => (None, context.cloned()),
            None => (None, None),
        };
        FlowTrace::of(lines::child(by.flow, by.name, parent), (sampled, context))
    }

    fn of(line: Span, (sampled, context): Decided) -> Option<Box<FlowTrace>> {
        let is_any = !line.is_disabled() || context.is_some();
        let context = context.map(OnceCell::from).unwrap_or_default();
        is_any.then(|| Box::new(FlowTrace { line, sampled, context }))
    }

    /// The trace of a flow that has no spans; it only gives a context.
    pub(crate) fn none() -> Box<FlowTrace> {
        Box::new(FlowTrace { line: Span::none(), sampled: None, context: OnceCell::new() })
    }

    /// The context that goes out with the requests of the node that this thread is in; `None`
    /// without a collector.
    pub(crate) fn context(&self) -> Option<SpanContext> {
        match &self.sampled {
            Some(sampled) => {
                Some(SpanContext { span: sampled.asks(), ..self.context.get()?.clone() })
            }
            None if self.context.get().is_none() => {
                let context = sent::unmade()?;
                Some(self.context.get_or_init(|| context).clone())
            }
            None => Some(SpanContext { span: new_span(), ..self.context.get()?.clone() }),
        }
    }

    /// The span of a node that has had the packet since `begun`, in ticks; `None` if it makes no
    /// span.
    pub(crate) fn node(
        &self,
        name: &ByteString,
        kind: &'static str,
        begun: u64,
    ) -> Option<Box<NodeSpan<'_>>> {
        let line = if self.line.is_disabled() { Span::none() } else { lines::node(name) };
        let sent = self.sampled.as_ref().map(|sampled| sampled.node(name, kind, begun));
        (sent.is_some() || !line.is_disabled()).then(|| Box::new(NodeSpan { line, sent }))
    }

    /// Does something in the flow's span.
    pub(crate) fn within<T>(&self, does: impl FnOnce() -> T) -> T {
        let own = self.sampled.as_ref().map(Sampled::enter);
        let done = self.line.in_scope(does);
        drop(own);
        done
    }

    /// The same for a future.
    pub(crate) fn wrap<'a, T>(&'a self, future: impl Future<Output = T> + 'a) -> InSpan<'a, T> {
        wrap(future, |poll| self.within(poll))
    }

    /// Notes an error of the flow.
    pub(crate) fn failed(&self, error: &Error) {
        if let Some(sampled) = &self.sampled {
            sampled.failed(error);
        }
    }

    /// Notes the HTTP status of the answer.
    pub(crate) fn answered(&self, status: u16) {
        if let Some(sampled) = &self.sampled {
            sampled.answered(status);
        }
    }

    /// Notes the route that a request takes, as the graph writes it.
    pub(crate) fn routed(&self, route: impl FnOnce() -> Option<ByteString>) {
        if let Some(sampled) = &self.sampled
            && let Some(route) = route()
        {
            sampled.routed(route);
        }
    }
}

/// A future in a span.
type InSpan<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

impl NodeSpan<'_> {
    /// Does something in the node's span.
    pub(crate) fn within<T>(&self, does: impl FnOnce() -> T) -> T {
        let own = self.sent.as_ref().map(OpenSpan::enter);
        let done = self.line.in_scope(does);
        drop(own);
        done
    }

    /// The same for a future.
    pub(crate) fn wrap<'a, T>(&'a self, future: impl Future<Output = T> + 'a) -> InSpan<'a, T> {
        wrap(future, |poll| self.within(poll))
    }

    /// Notes an error of the node.
    #[cold]
    pub(crate) fn failed(&mut self, error: &Error) {
        if let Some(sent) = &mut self.sent {
            sent.failed(error);
        }
    }
}

/// A future that is polled in a span.
fn wrap<'a, T>(
    future: impl Future<Output = T> + 'a,
    within: impl Fn(&mut dyn FnMut() -> Poll<T>) -> Poll<T> + 'a,
) -> InSpan<'a, T> {
    let mut future = Box::pin(future);
    Box::pin(poll_fn(move |context| within(&mut || future.as_mut().poll(context))))
}
