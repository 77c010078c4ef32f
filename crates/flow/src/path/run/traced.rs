//! Who looks at a flow: its spans, where somebody asks for them, and what it shows to taps.

use std::rc::Rc;

use bytestring::ByteString;
use sinew_otlp::SpanContext;

use crate::spans::{Beginner, FlowTrace};
use crate::{Error, Flow, Value, spans};

use super::taps::TapView;
use super::taps::flow::FlowTaps;

/// Who looks at a flow.
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

    /// Decides who looks at it, as it begins at the node `by` with a packet, or below the span of
    /// somebody else.
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

    /// The same of a child that the node `by` of the flow `parent` begins.
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

    /// What it shows of its packets, as it begins.
    fn taps(&self, by: usize, packet: Option<&Value>) -> Option<Rc<FlowTaps>> {
        if !self.program.is_looked_at() {
            return None;
        }
        TapView::of_this_worker().begin(self, self.program.entry(by).name(), packet)
    }

    fn watch(&self, trace: Option<Box<FlowTrace>>, taps: Option<Rc<FlowTaps>>) {
        if trace.is_some() || taps.is_some() {
            // What others ask of its spans is remembered, also where only its packets are seen.
            let trace = trace.or_else(|| self.program.is_traced.then(FlowTrace::none));
            // It is decided once.
            let _ = self.watched.set(Box::new(Watched { trace, taps }));
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
        let bare = || Box::new(Watched { trace: Some(FlowTrace::none()), taps: None });
        self.watched.get_or_init(bare).trace.as_ref()?.context()
    }

    /// It has this error.
    #[cold]
    pub(crate) fn trace_failed(&self, error: &Error) {
        if let Some(trace) = self.trace() {
            trace.failed(error);
        }
    }

    /// A request goes this way, as the graph writes it; for spans, and asked for only if this flow
    /// has some.
    #[inline]
    pub fn routed(&self, route: impl FnOnce() -> Option<ByteString>) {
        if let Some(trace) = self.trace() {
            trace.routed(route);
        }
    }
}
