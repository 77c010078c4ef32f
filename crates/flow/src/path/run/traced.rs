//! What looks at a flow: its spans, if they are asked for, and the taps.

use std::rc::Rc;

use bytestring::ByteString;
use sinew_otlp::SpanContext;

use crate::spans::{Beginner, FlowTrace};
use crate::{Error, Flow, Value, spans};

use super::taps::TapView;
use super::taps::flow::FlowTaps;

/// What looks at a flow.
pub(crate) struct Watched {
    /// Its spans.
    pub(super) trace: Option<Box<FlowTrace>>,
    /// What it shows of its packets.
    pub(super) taps: Option<Rc<FlowTaps>>,
}

impl Flow {
    /// Its spans.
    #[inline]
    pub(crate) fn trace(&self) -> Option<&FlowTrace> {
        self.watched.get()?.trace.as_deref()
    }

    /// Decides what looks at the flow when it begins at the node `by` with a packet, or below the
    /// span of another service.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_watched(
        &self,
        by: usize,
        packet: Option<&Value>,
        parent: Option<&SpanContext>,
    ) {
        let mut trace = None;
        if self.program.is_traced {
            let decided = spans::decide(packet, parent);
            if decided.is_some() || spans::takes_all() {
                trace = FlowTrace::of_source(&self.beginner(by), packet, decided);
            }
        }
        self.watch(trace, self.taps(by, packet));
    }

    /// The same for a child that the node `by` of the flow `parent` begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_watched_below(&self, by: usize, parent: &Flow) {
        let mut trace = None;
        if self.program.is_traced {
            trace = FlowTrace::of_child(&self.beginner(by), parent.id(), parent.trace());
        }
        let of = parent.watched.get().and_then(|watched| watched.taps.clone());
        self.watch(trace, of.or_else(|| self.taps(by, None)));
    }

    /// The taps that see its packets, decided when it begins.
    fn taps(&self, by: usize, packet: Option<&Value>) -> Option<Rc<FlowTaps>> {
        if !self.program.is_looked_at() {
            return None;
        }
        TapView::of_this_worker().begin(self, self.program.entry(by).name(), packet)
    }

    fn watch(&self, trace: Option<Box<FlowTrace>>, taps: Option<Rc<FlowTaps>>) {
        if trace.is_some() || taps.is_some() {
            // If only its packets are seen, the flow still gets an empty trace, which remembers the
            // context that others have sent.
            let trace = trace.or_else(|| self.program.is_traced.then(FlowTrace::none));
            // An error is impossible: this is decided once.
            let _ = self.watched.set(Box::new(Watched { trace, taps }));
        }
    }

    fn beginner(&self, by: usize) -> Beginner<'_> {
        let (entry, clock) = (self.program.entry(by), self.program.base.clock);
        Beginner { flow: self.id(), name: entry.name(), kind: entry.kind().name, clock }
    }

    /// The span context that goes out with the requests that its node sends.
    pub(crate) fn context(&self) -> Option<SpanContext> {
        if !self.program.is_traced {
            return None;
        }
        let bare = || Box::new(Watched { trace: Some(FlowTrace::none()), taps: None });
        self.watched.get_or_init(bare).trace.as_ref()?.context()
    }

    /// Notes an error in the flow's span.
    #[cold]
    pub(crate) fn trace_failed(&self, error: &Error) {
        if let Some(trace) = self.trace() {
            trace.failed(error);
        }
    }

    /// Notes, for spans, the route that a request takes, as the graph writes it. `route` is called
    /// only if this flow has spans.
    #[inline]
    pub fn routed(&self, route: impl FnOnce() -> Option<ByteString>) {
        if let Some(trace) = self.trace() {
            trace.routed(route);
        }
    }
}
