//! The branches of a flow, and how one learns that none of the others can help it any more.
//!
//! A flow begins as one branch. Who sends several packets at once makes more of it, until their
//! replies are back. A branch that waits for what only another one can bring is idle; when all are,
//! nothing will ever come.

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
    /// Beside the one that every flow has.
    more: Cell<usize>,
    idle: Cell<usize>,
    changed: Notify,
}

/// How many replies one node, or one fan-out, waits for; and what lies around it.
#[derive(Default)]
pub(crate) struct Calls {
    open: Cell<usize>,
    around: Option<Rc<Around>>,
}

/// What a node has put around a packet, and what lay around that before.
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
    /// Those of a node further on.
    pub(crate) fn within(&self) -> Calls {
        Calls { open: Cell::new(0), around: self.around.clone() }
    }

    /// Whether a reply is waited for.
    pub(crate) fn is_open(&self) -> bool {
        self.open.get() > 0
    }

    /// The same with something more around them.
    pub(crate) fn around(&self, thing: Rc<dyn Any>) -> Calls {
        let around = Around { thing, outer: self.around.clone() };
        Calls { open: Cell::new(0), around: Some(Rc::new(around)) }
    }

    /// What lies around, from the inside.
    pub(crate) fn things(&self) -> impl Iterator<Item = &dyn Any> {
        let innermost = self.around.as_deref();
        successors(innermost, |around| around.outer.as_deref()).map(|around| &*around.thing)
    }

    /// A packet is sent; its reply is back when what this returns is dropped. The first goes on as
    /// the branch that sent it, each other one is a branch more.
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

    /// Lets all look again that wait in this flow.
    pub(crate) fn wake_all(&self) {
        self.changed.notify_waiters();
    }

    /// Waits until one of them is to look again.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Lets idle branches look again if no other one is left: before that they wait for a packet,
    /// and not for each other, of whom there may be many.
    fn wake_if_none_is_left(&self) {
        if self.idle.get() > self.more.get() {
            self.changed.notify_waiters();
        }
    }

    /// Waits until `is_there`, for what another branch brings and says with [`Branches::wake`];
    /// false as soon as none can.
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
                // Some branch may just begin another, or have been woken.
                others_had_a_turn = true;
                behind_the_others().await;
            }
        }
    }
}

/// A branch that is idle, until this is dropped.
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
            // Whoever gives up brings what the other one waits for.
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
