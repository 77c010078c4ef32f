//! What a node goes on with beside its flow, when that has long had its reply: the elements of a
//! stream, a connection. It is a child of the flow, with work of its own.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use crate::path::branches::Calls;
use crate::path::children::Child;
use crate::path::program::Program;
use crate::{At, Error, Flow, FlowLimits};

/// A child of a flow, or of a source, that has not begun. It sees the values of its parent, not the
/// other way round, has no deadline, and does not draw from the work of its parent.
pub struct Offshoot {
    flow: Flow,
    node: usize,
    /// It counts as one that is under way.
    _begun: Child,
}

impl<'a> At<'a> {
    /// What goes on beside this flow, with so much work.
    ///
    /// # Errors
    /// Too many children of this worker are under way (503).
    pub fn beside(self, work: u64) -> Result<Offshoot, Error> {
        let begun = self.flow.program.base.children.begin()?;
        let flow = self.flow.child_of_its_own(FlowLimits { deadline: Duration::MAX, work });
        if flow.program.is_watched() {
            flow.begin_watched_below(self.node, self.flow);
        }
        Ok(Offshoot { flow, node: self.node, _begun: begun })
    }

    /// Waits until the worker stops, or an edit has brought another graph: what has no end of its
    /// own ends then.
    pub fn retired(self) -> impl Future<Output = ()> + 'a {
        self.flow.program.retirement.wait()
    }

    /// Whether that is so already.
    pub fn is_retired(self) -> bool {
        self.flow.program.retirement.is_over()
    }
}

impl Offshoot {
    /// What a source does from its own place, with so much work.
    ///
    /// # Errors
    /// As for [`At::beside`].
    pub(crate) fn of_source(
        program: &Rc<Program>,
        node: usize,
        work: u64,
    ) -> Result<Offshoot, Error> {
        let begun = program.base.children.begin()?;
        let flow = Flow::new(Rc::clone(program));
        flow.limit(FlowLimits { deadline: Duration::MAX, work });
        if program.is_watched() {
            flow.begin_watched(node, None, None);
        }
        Ok(Offshoot { flow, node, _begun: begun })
    }

    /// Does it. An error is counted as the node's, and told in the log.
    pub async fn run(self, work: impl AsyncFnOnce(At<'_>) -> Result<(), Error>) {
        let Offshoot { flow, node, .. } = &self;
        let (calls, entry) = (Calls::default(), flow.program.entry(*node));
        let at = At { flow, node: *node, calls: &calls };
        let _waits = entry.figures().waits();
        let done = match flow.trace() {
            None => flow.in_time(pin!(work(at))).await,
            Some(trace) => trace.wrap(async { flow.in_time(pin!(work(at))).await }).await,
        };
        if let Err(error) = done {
            flow.trace_failed(&error);
            entry.figures().failed();
            flow.tell(*node, &error.of(entry.name()));
        }
    }
}
