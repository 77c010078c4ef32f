//! Where the time of a flow goes: a span for each flow and for each node that has its packet, for
//! whoever asks: a file that takes all of them, a collector that takes those that are sampled.
//! Nobody asks as a rule, and then a node costs one look at a word more.
//!
//! That is decided once for a flow, as it begins. One of which nobody wants spans makes none, and
//! remembers at most what others may ask of it: the trace of who asked.

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

/// Begins with what the environment of this process asks for, for a domain of a graph.
///
/// # Errors
/// It asks for what cannot be.
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

/// Sends what is left until then, and says what is missing, when all flows have ended.
pub(crate) fn end(until: Instant) {
    sent::end(until);
    lines::end();
}

/// Whether what the environment asks for of spans can be had, as far as that is known before a
/// domain starts, which would be restarted in vain.
///
/// # Errors
/// Which variable asks for what cannot be.
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

/// Whether anybody asks; that is known before the first program is made.
pub(crate) fn is_on() -> bool {
    lines::is_on() || sent::is_on()
}

/// Whether all flows have spans.
#[inline]
pub(crate) fn takes_all() -> bool {
    lines::is_on()
}

/// Decides about the spans of a flow that begins with a packet, or below a span of another domain:
/// the context that it begins in. `None` if it has none, and is not sampled.
#[inline]
pub(crate) fn decide(packet: Option<&Value>, parent: Option<&SpanContext>) -> Option<SpanContext> {
    sent::decide(packet, parent)
}

/// Who begins a flow: its number, and the node.
pub(crate) struct Beginner<'a> {
    pub(crate) flow: u64,
    pub(crate) name: &'a ByteString,
    pub(crate) kind: &'static str,
    pub(crate) clock: Clock,
}

/// The spans of a flow, and what others may ask of them.
pub(crate) struct FlowTrace {
    /// The flow's own, for the file.
    line: Span,
    /// For a collector, if it is sampled.
    sampled: Option<Sampled>,
    /// That of the flow's own span, as others hear of it; of one that is not sampled that of its
    /// parent, or what stands for one.
    context: OnceCell<SpanContext>,
}

/// A node that has the packet of a flow; it ends when this is dropped.
pub(crate) struct NodeSpan<'a> {
    line: Span,
    sent: Option<OpenSpan<'a>>,
}

impl FlowTrace {
    /// Of a flow that a source begins with a packet, as it was decided.
    pub(crate) fn of_source(
        by: &Beginner<'_>,
        packet: Option<&Value>,
        decided: Option<SpanContext>,
    ) -> Option<Box<FlowTrace>> {
        FlowTrace::of(lines::flow(by.flow, by.name), sent::flow(by, packet, decided))
    }

    /// Of a child of the flow `parent` with these spans.
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

    /// Of one that has no spans, for who asks for its context.
    pub(crate) fn none() -> Box<FlowTrace> {
        Box::new(FlowTrace { line: Span::none(), sampled: None, context: OnceCell::new() })
    }

    /// The context that goes out with what the node sends that this thread is in; `None` without a
    /// collector.
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

    /// A node that has the packet since `begun`, in ticks; `None` if its span is not made.
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

    /// The same with what needs time.
    pub(crate) fn wrap<'a, T>(&'a self, future: impl Future<Output = T> + 'a) -> InSpan<'a, T> {
        wrap(future, |poll| self.within(poll))
    }

    /// The flow has this error.
    pub(crate) fn failed(&self, error: &Error) {
        if let Some(sampled) = &self.sampled {
            sampled.failed(error);
        }
    }

    /// Whoever asked is answered so, in HTTP's terms.
    pub(crate) fn answered(&self, status: u16) {
        if let Some(sampled) = &self.sampled {
            sampled.answered(status);
        }
    }

    /// A request goes this way, as the graph writes it.
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
    /// Does something in it.
    pub(crate) fn within<T>(&self, does: impl FnOnce() -> T) -> T {
        let own = self.sent.as_ref().map(OpenSpan::enter);
        let done = self.line.in_scope(does);
        drop(own);
        done
    }

    /// The same with what needs time.
    pub(crate) fn wrap<'a, T>(&'a self, future: impl Future<Output = T> + 'a) -> InSpan<'a, T> {
        wrap(future, |poll| self.within(poll))
    }

    /// The node has this error.
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
