//! What a flow may compute, and how it shares its worker with others.
//!
//! Whatever computes for a flow (expressions, templates, scripts, decoding) draws from the work of
//! that flow, and so do the children that it forks. No flow keeps its worker's thread for long:
//! between two pieces of work it looks at the clock, and after a slice of time it waits until the
//! other flows have had their turn. For a flow that computes nothing, all this costs one store.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::time::Duration;

use crate::Error;

/// Default work of a flow, in units. A unit takes at most 100 ns in a release build, and most take
/// less. So this is about half a second of processor time.
pub const WORK_DEFAULT: u64 = 5_000_000;
/// How long a flow keeps its worker. A piece of work that has begun is finished first.
pub const SLICE: Duration = Duration::from_millis(2);

/// What a flow may take.
#[derive(Clone, Copy, Debug)]
pub struct FlowLimits {
    /// Longest time, from the flow's first wait or from the first question for its deadline.
    pub deadline: Duration,
    /// Most work, in units of 100 ns at most.
    pub work: u64,
}

impl From<Duration> for FlowLimits {
    fn from(deadline: Duration) -> FlowLimits {
        FlowLimits { deadline, work: WORK_DEFAULT }
    }
}

/// The work that is left to a flow.
pub(crate) struct Budget {
    own: Cell<u64>,
    /// Replaces `own` once there are children that draw from it too.
    shared: OnceCell<Rc<Cell<u64>>>,
}

impl Budget {
    /// A budget of this much work.
    pub(crate) fn of(work: u64) -> Budget {
        Budget { own: Cell::new(work), shared: OnceCell::new() }
    }

    /// From now on this much work is left.
    pub(crate) fn allow(&self, work: u64) {
        self.place().set(work);
    }

    /// What is left.
    pub(crate) fn left(&self) -> u64 {
        self.place().get()
    }

    /// Draws this much work. `false` if less was left; then nothing is left.
    pub(crate) fn draw(&self, work: u64) -> bool {
        let place = self.place();
        let left = place.get().checked_sub(work);
        place.set(left.unwrap_or(0));
        left.is_some()
    }

    /// The same budget for a child.
    pub(crate) fn share(&self) -> Budget {
        let shared = self.shared.get_or_init(|| Rc::new(Cell::new(self.own.get())));
        Budget { own: Cell::default(), shared: Rc::clone(shared).into() }
    }

    fn place(&self) -> &Cell<u64> {
        self.shared.get().map_or(&self.own, |shared| &**shared)
    }
}

#[cold]
pub(crate) fn spent(limit: u64) -> Error {
    Error::new(format_args!(
        "the flow has used all the work that it may do, {limit} units; give it less to do, or \
         raise 'work_max' of the node that began it"
    ))
    .with_status(503)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_children_draw_their_parent_has_not() {
        let parent = Budget::of(10);
        assert!(parent.draw(3));
        let (child, other) = (parent.share(), parent.share());
        let grandchild = child.share();
        assert!(child.draw(2) && other.draw(1) && grandchild.draw(1));
        assert_eq!([&parent, &child, &other, &grandchild].map(Budget::left), [3; 4]);
        assert!(!grandchild.draw(4));
        assert!(parent.left() == 0 && !parent.draw(1) && parent.draw(0));
    }
}
