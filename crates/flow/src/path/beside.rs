//! What a node goes on with after its flow has had its reply, such as the elements of a stream or a
//! connection. It is a child of the flow, with work of its own.

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
    /// Counts as a child that is under way.
    _begun: Child,
}

impl<'a> At<'a> {
    /// A child that goes on beside this flow, with this much work.
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

    /// Waits until the worker stops, or an edit has replaced the graph. What would not end by
    /// itself ends then.
    pub fn retired(self) -> impl Future<Output = ()> + 'a {
        self.flow.program.retirement.wait()
    }

    /// Whether the worker stops or the graph was replaced.
    pub fn is_retired(self) -> bool {
        self.flow.program.retirement.is_over()
    }
}

impl Offshoot {
    /// A child that goes on for a source, with this much work.
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

    /// Does the work. An error is counted as the node's, and logged.
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
