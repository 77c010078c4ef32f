//! The turns of a worker. Flows that compute share the worker with its sockets, its clocks and each
//! other.
//!
//! tokio looks at sockets and clocks after a fixed number of tasks, however long each of them took.
//! So a source asks before it begins a flow. When flows have computed for as long as a turn lasts,
//! new flows wait until the worker has looked at its sockets and clocks. They wait in a line for
//! each connection, and go on one of each line in turn. Flows that wait for something else take no
//! part in this.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use sinew_core::clock::Clock;
use tokio::sync::oneshot::{self, Sender};
use tokio::task::{spawn_local, yield_now};

use crate::Local;

/// How long flows compute before their worker looks at its sockets and clocks. If it is longer, a
/// new request is seen later. If it is shorter, the cost of the look, some microseconds, begins to
/// matter.
const TURN: Duration = Duration::from_millis(10);

/// The turns of a worker.
pub(crate) struct Turns {
    /// Ticks that flows have computed in this turn.
    spent: Cell<u64>,
    /// Ticks that a turn lasts.
    turn: u64,
    waiting: RefCell<Lines>,
    /// Whether `go_round` runs, which lets those that wait go on.
    goes_round: Cell<bool>,
}

/// Flows that wait to begin: a line for each connection.
#[derive(Default)]
struct Lines {
    lines: HashMap<usize, VecDeque<Sender<()>>>,
    /// The lines in the order of their turns, each with the time since when it has waited.
    order: VecDeque<(usize, Instant)>,
}

impl Lines {
    fn push(&mut self, line: usize) -> impl Future<Output = ()> + use<> {
        let (sender, receiver) = oneshot::channel();
        let waiting = self.lines.entry(line).or_default();
        if waiting.is_empty() {
            self.order.push_back((line, Instant::now()));
        }
        waiting.push_back(sender);
        // `go_round` runs until nobody waits, so the sender is used before it is dropped.
        async move { drop(receiver.await) }
    }

    /// Lets the first flow of the next line go on; `false` if none waits.
    fn next(&mut self) -> bool {
        while let Some((line, _)) = self.order.pop_front() {
            let Some(waiting) = self.lines.get_mut(&line) else { continue };
            // If a waiting flow is gone, it is the turn of the one behind it.
            let went_on = std::iter::from_fn(|| waiting.pop_front()).any(|it| it.send(()).is_ok());
            match waiting.is_empty() {
                true => drop(self.lines.remove(&line)),
                false => self.order.push_back((line, Instant::now())),
            }
            if went_on {
                return true;
            }
        }
        false
    }
}

impl Turns {
    /// The turns of a worker with this clock.
    pub(crate) fn new(clock: Clock) -> Turns {
        let turn = clock.ticks_of(TURN);
        Turns {
            spent: Cell::new(0),
            turn,
            waiting: RefCell::default(),
            goes_round: Cell::new(false),
        }
    }

    /// A flow has computed for this many ticks.
    #[inline]
    pub(crate) fn spend(&self, ticks: u64) {
        self.spent.set(self.spent.get().saturating_add(ticks));
    }

    fn is_over(&self) -> bool {
        self.spent.get() >= self.turn
    }

    /// What to wait for before a flow of this line begins; `None` if it may begin at once.
    #[inline]
    pub(crate) fn wait(self: &Rc<Self>, line: usize) -> Option<Local<'static, ()>> {
        if !self.is_over() && !self.goes_round.get() {
            return None;
        }
        Some(self.line_up(line))
    }

    #[cold]
    fn line_up(self: &Rc<Self>, line: usize) -> Local<'static, ()> {
        if !self.goes_round.replace(true) {
            spawn_local(Rc::clone(self).go_round());
        }
        Box::pin(self.waiting.borrow_mut().push(line))
    }

    /// Whether the next flow has been waiting for its turn for longer than `limit`.
    pub(crate) fn is_behind(&self, limit: Duration) -> bool {
        let waiting = self.waiting.borrow();
        waiting.order.front().is_some_and(|(_, since)| since.elapsed() > limit)
    }

    /// Lets those that wait go on, until none is left.
    async fn go_round(self: Rc<Turns>) {
        loop {
            if self.is_over() {
                // tokio resumes this after it has looked at sockets and clocks.
                yield_now().await;
                self.spent.set(0);
            }
            if !self.waiting.borrow_mut().next() {
                self.goes_round.set(false);
                return;
            }
            behind_the_others().await;
        }
    }
}

/// Goes on after all that is ready now, but still in this turn of tokio.
pub(crate) async fn behind_the_others() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::time::timeout;

    use super::*;
    use crate::testing::run;

    /// A flow that waits longer than this hangs.
    const HANGS_AFTER: Duration = Duration::from_secs(20);

    fn turns() -> Rc<Turns> {
        Rc::new(Turns::new(Clock::from_rate(1.0)))
    }

    #[test]
    fn flows_begin_at_once_until_they_have_computed_for_a_turn() {
        run(async {
            let turns = turns();
            turns.spend(turns.turn - 1);
            assert!(turns.wait(1).is_none());
            turns.spend(1);
            let mut next = turns.wait(1).expect("the turn is over");
            assert!((&mut next).now_or_never().is_none());
            next.await;
            while turns.goes_round.get() {
                yield_now().await;
            }
            assert!(turns.wait(1).is_none(), "another turn has begun");
        });
    }

    #[test]
    fn one_of_each_line_goes_on_in_turn_and_one_that_is_gone_counts_for_nothing() {
        run(async {
            let (turns, went) = (turns(), Rc::<RefCell<Vec<(usize, u32)>>>::default());
            turns.spend(turns.turn);
            let of = |line: usize, number: u32| {
                let (turn, went) = (turns.wait(line).expect("it waits"), Rc::clone(&went));
                let turns = Rc::clone(&turns);
                spawn_local(async move {
                    turn.await;
                    turns.spend(turns.turn);
                    went.borrow_mut().push((line, number));
                })
            };
            let first = [of(1, 0), of(1, 1), of(1, 2)];
            // One waiting flow that is alone in its line, and one with another behind it.
            drop([turns.wait(2), turns.wait(3)]);
            let then = [of(3, 0), of(4, 0), of(4, 1)];
            for each in first.into_iter().chain(then) {
                timeout(HANGS_AFTER, each).await.expect("its turn comes").expect("no panic");
            }
            assert_eq!(*went.borrow(), [(1, 0), (3, 0), (4, 0), (1, 1), (4, 1), (1, 2)]);
        });
    }

    #[test]
    fn who_waits_for_longer_than_the_limit_is_behind() {
        run(async {
            let turns = turns();
            turns.spend(turns.turn);
            assert!(!turns.is_behind(Duration::ZERO), "nobody waits");
            let _next = turns.wait(1);
            let begun = Instant::now();
            while begun.elapsed().is_zero() {}
            assert!(turns.is_behind(Duration::ZERO));
            assert!(!turns.is_behind(Duration::from_secs(3600)));
        });
    }
}
