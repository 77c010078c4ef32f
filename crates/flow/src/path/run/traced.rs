//! The spans of a flow, where somebody asks for them.

use bytestring::ByteString;
use sinew_otlp::SpanContext;

use crate::spans::{Beginner, FlowTrace};
use crate::{Error, Flow, Value, spans};

impl Flow {
    /// Decides about its spans, as it begins at the node `by` with a packet, or below the span of
    /// somebody else.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_trace(
        &self,
        by: usize,
        packet: Option<&Value>,
        parent: Option<&SpanContext>,
    ) {
        let decided = spans::decide(packet, parent);
        if decided.is_some() || spans::takes_all() {
            self.set_trace(FlowTrace::of_source(&self.beginner(by), packet, decided));
        }
    }

    /// The same of a child that the node `by` of the flow `parent` begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_trace_below(&self, by: usize, parent: &Flow) {
        let of = parent.trace.get().map(|trace| &**trace);
        self.set_trace(FlowTrace::of_child(&self.beginner(by), parent.id(), of));
    }

    fn set_trace(&self, trace: Option<Box<FlowTrace>>) {
        if let Some(trace) = trace {
            // It is decided once.
            let _ = self.trace.set(trace);
        }
    }

    fn beginner(&self, by: usize) -> Beginner<'_> {
        let (entry, clock) = (self.program.entry(by), self.program.base.clock);
        Beginner { flow: self.id(), name: entry.name(), kind: entry.kind().name, clock }
    }

    /// The context that goes out with what its node sends.
    pub(crate) fn context(&self) -> Option<SpanContext> {
        if !self.program.is_traced {
            return None;
        }
        self.trace.get_or_init(FlowTrace::none).context()
    }

    /// It has this error.
    #[cold]
    pub(crate) fn trace_failed(&self, error: &Error) {
        if let Some(trace) = self.trace.get() {
            trace.failed(error);
        }
    }

    /// A request goes this way, as the graph writes it; for spans, and asked for only if this flow
    /// has some.
    #[inline]
    pub fn routed(&self, route: impl FnOnce() -> Option<ByteString>) {
        if let Some(trace) = self.trace.get() {
            trace.routed(route);
        }
    }
}
