//! The branches of a flow, and how a branch learns that no other branch can help it any more.
//!
//! A flow begins as one branch. A node that sends several packets at once makes more branches,
//! until their replies are back. A branch that waits for something that only another branch can
//! bring is idle. When all branches are idle, that will never come.

use std::any::Any;
use std::cell::Cell;
use std::iter::successors;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::path::turns::behind_the_others;

/// The branches of a flow.
#[derive(Default)]
pub(crate) struct Branches {
    /// Branches beside the one that every flow has.
    more: Cell<usize>,
    idle: Cell<usize>,
    changed: Notify,
}

/// How many replies one node, or one fan-out, waits for; and the things around its packet.
#[derive(Default)]
pub(crate) struct Calls {
    open: Cell<usize>,
    around: Option<Rc<Around>>,
}

/// A thing that a node has put around a packet, and the things that were around it before.
struct Around {
    thing: Rc<dyn Any>,
    outer: Option<Rc<Around>>,
}

/// A packet whose reply is not back yet.
pub(crate) struct Call<'a> {
    calls: &'a Calls,
    branches: &'a Branches,
}

impl Calls {
    /// The calls of a later node, with the same things around them.
    pub(crate) fn within(&self) -> Calls {
        Calls { open: Cell::new(0), around: self.around.clone() }
    }

    /// Whether a reply is outstanding.
    pub(crate) fn is_open(&self) -> bool {
        self.open.get() > 0
    }

    /// The same with one more thing around them.
    pub(crate) fn around(&self, thing: Rc<dyn Any>) -> Calls {
        let around = Around { thing, outer: self.around.clone() };
        Calls { open: Cell::new(0), around: Some(Rc::new(around)) }
    }

    /// The things around the packet, innermost first.
    pub(crate) fn things(&self) -> impl Iterator<Item = &dyn Any> {
        let innermost = self.around.as_deref();
        successors(innermost, |around| around.outer.as_deref()).map(|around| &*around.thing)
    }

    /// Says that a packet is sent. Dropping the result says that its reply is back. The first
    /// packet goes on in the branch that sent it; each further one is a new branch.
    pub(crate) fn begin<'a>(&'a self, branches: &'a Branches) -> Call<'a> {
        let open = self.open.replace(self.open.get() + 1);
        if open > 0 {
            branches.more.set(branches.more.get() + 1);
        }
        Call { calls: self, branches }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let open = self.calls.open.get() - 1;
        self.calls.open.set(open);
        if open > 0 {
            self.branches.more.set(self.branches.more.get() - 1);
            self.branches.wake_if_none_is_left();
        }
    }
}

impl Branches {
    /// Lets idle branches look again.
    pub(crate) fn wake(&self) {
        if self.idle.get() > 0 {
            self.changed.notify_waiters();
        }
    }

    /// Lets everything that waits in this flow look again.
    pub(crate) fn wake_all(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until the branches are to look again.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Lets idle branches look again if all are idle. While some branch is not idle, they wait for
    /// its packet, and waking them, of whom there may be many, would be in vain.
    fn wake_if_none_is_left(&self) {
        if self.idle.get() > self.more.get() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until `is_there`, for something that another branch brings and signals with
    /// [`Branches::wake`]. `false` as soon as no branch can bring it.
    pub(crate) async fn wait(&self, is_there: impl Fn() -> bool) -> bool {
        let _idle = Idle::new(self);
        let mut others_had_a_turn = false;
        loop {
            let changed = self.changed.notified();
            if is_there() {
                return true;
            }
            if self.idle.get() <= self.more.get() {
                others_had_a_turn = false;
                changed.await;
            } else if others_had_a_turn {
                return false;
            } else {
                // Some branch may be about to begin another, or may have been woken.
                others_had_a_turn = true;
                behind_the_others().await;
            }
        }
    }
}

/// A branch that is idle until this is dropped.
struct Idle<'a>(&'a Branches);

impl<'a> Idle<'a> {
    fn new(branches: &'a Branches) -> Idle<'a> {
        branches.idle.set(branches.idle.get() + 1);
        branches.wake_if_none_is_left();
        Idle(branches)
    }
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.idle.set(self.0.idle.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;
    use futures_util::future::{join, join3, ready};

    #[test]
    fn a_branch_waits_for_another_and_learns_that_none_is_left() {
        let (branches, calls, found) = (Branches::default(), Calls::default(), Cell::new(false));
        let waits = |call| async {
            let _call: Call<'_> = call;
            branches.wait(|| found.get()).await
        };
        let brings = |call| async {
            let _call: Call<'_> = call;
            behind_the_others().await;
            found.set(true);
            branches.wake();
        };
        let begin = || calls.begin(&branches);
        let (a, b, ()) = run(join3(waits(begin()), waits(begin()), brings(begin())));
        assert!(a && b);
        found.set(false);
        let (a, ()) = run(join(waits(begin()), async { drop(begin()) }));
        assert!(!a, "the other has ended and brought nothing");
        let (a, ()) = run(join(waits(begin()), ready(())));
        assert!(!a, "there is no other");
        assert_eq!((calls.open.get(), branches.more.get(), branches.idle.get()), (0, 0, 0));
    }

    #[test]
    fn of_branches_that_wait_for_each_other_one_gives_up_at_a_time() {
        let (branches, calls, given_up) = (Branches::default(), Calls::default(), Cell::new(0));
        let waits = |call| async {
            let _call: Call<'_> = call;
            // A branch that gives up brings what the other one waits for.
            let is_there = branches.wait(|| given_up.get() > 0).await;
            if !is_there {
                given_up.set(given_up.get() + 1);
                branches.wake();
            }
            is_there
        };
        let begin = || calls.begin(&branches);
        let (a, b) = run(join(waits(begin()), waits(begin())));
        assert!(a != b && given_up.get() == 1);
    }
}
