//! What a piece of work took: time on a CPU, for a CPU, for other pools, and the rest, in which it
//! waited for something outside.

use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sinew_core::clock::now_ns;
use sinew_figures::process::Taken;

/// How often a thread asks how long it waited for a CPU: that is a file of /proc, and costs some
/// microseconds.
const ASKS_EVERY_NS: u64 = 20_000_000;

thread_local! {
    /// What the piece under way has waited for other pools, ns.
    static ELSEWHERE_NS: Cell<u64> = const { Cell::new(0) };
}

/// Waits for room in another pool, such as one of connections. To be called by work on a
/// [`Pool`](crate::Pool): this time is no reason for more threads of it, as they would only wait in
/// the same place.
pub fn queued_elsewhere<T>(wait: impl FnOnce() -> T) -> T {
    let began_ns = now_ns();
    let value = wait();
    ELSEWHERE_NS.set(ELSEWHERE_NS.get() + (now_ns() - began_ns));
    value
}

/// What pieces of work took in all, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// How many have ended.
    pub(super) pieces: u64,
    /// From their beginnings to their ends.
    pub(super) wall_ns: u64,
    /// On a CPU.
    pub(super) cpu_ns: u64,
    /// Ready, while others had the CPUs.
    pub(super) ready_ns: u64,
    /// For room in other pools.
    pub(super) elsewhere_ns: u64,
    /// Before their beginnings, for a thread.
    pub(super) queued_ns: u64,
}

impl Spent {
    pub(super) fn add(&mut self, more: Spent) {
        let Spent { pieces, wall_ns, cpu_ns, ready_ns, elsewhere_ns, queued_ns } = more;
        self.pieces += pieces;
        self.wall_ns += wall_ns;
        self.cpu_ns += cpu_ns;
        self.ready_ns += ready_ns;
        self.elsewhere_ns += elsewhere_ns;
        self.queued_ns += queued_ns;
    }

    /// What came after `before`.
    pub(super) fn since(self, before: Spent) -> Spent {
        Spent {
            pieces: self.pieces - before.pieces,
            wall_ns: self.wall_ns - before.wall_ns,
            cpu_ns: self.cpu_ns - before.cpu_ns,
            ready_ns: self.ready_ns - before.ready_ns,
            elsewhere_ns: self.elsewhere_ns - before.elsewhere_ns,
            queued_ns: self.queued_ns - before.queued_ns,
        }
    }

    /// The part of their time in which they waited for a CPU.
    pub(super) fn ready_share(self) -> f64 {
        self.ready_ns as f64 / self.wall_ns.max(1) as f64
    }

    /// For something outside. Readiness is known a little late: it may be taken off once too much.
    pub(super) fn waiting_ns(self) -> u64 {
        let known = self.cpu_ns + self.ready_ns + self.elsewhere_ns;
        self.wall_ns.saturating_sub(known)
    }
}

/// Times what its thread does.
pub(super) struct Stopwatch {
    ready: Duration,
    asked_ns: u64,
}

impl Stopwatch {
    pub(super) fn new() -> Stopwatch {
        Stopwatch { ready: ready(), asked_ns: now_ns() }
    }

    /// Does a piece of work that was queued then.
    pub(super) fn time(&mut self, queued_ns: u64, work: impl FnOnce()) -> Spent {
        ELSEWHERE_NS.set(0);
        let (began_ns, cpu_ns) = (now_ns(), thread_cpu_ns());
        work();
        let (ended_ns, cpu_ns) = (now_ns(), thread_cpu_ns() - cpu_ns);
        let mut ready_ns = 0;
        if ended_ns - self.asked_ns >= ASKS_EVERY_NS {
            let ready = ready();
            ready_ns = ready.saturating_sub(self.ready).as_nanos() as u64;
            (self.ready, self.asked_ns) = (ready, ended_ns);
        }
        Spent {
            pieces: 1,
            wall_ns: ended_ns - began_ns,
            cpu_ns,
            ready_ns,
            elsewhere_ns: ELSEWHERE_NS.get(),
            queued_ns: began_ns.saturating_sub(queued_ns),
        }
    }
}

/// How long this thread could have run, but others had the CPUs. A kernel that does not count it
/// says nothing: then it is part of the waiting time.
fn ready() -> Duration {
    Taken::by_this_thread().map(|taken| taken.waited).unwrap_or_default()
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn sleep_is_waiting_and_another_pool_is_not() {
        let nap = Duration::from_millis(30);
        let spent = Stopwatch::new().time(now_ns(), || sleep(nap));
        assert!(spent.waiting_ns() > spent.cpu_ns, "{spent:?}");
        assert_eq!((spent.pieces, spent.elsewhere_ns), (1, 0));
        let spent = Stopwatch::new().time(now_ns(), || queued_elsewhere(|| sleep(nap)));
        assert!(spent.elsewhere_ns >= nap.as_nanos() as u64, "{spent:?}");
        assert!(spent.waiting_ns() < spent.elsewhere_ns, "{spent:?}");
        let next = Stopwatch::new().time(now_ns(), || ());
        assert_eq!(next.elsewhere_ns, 0, "each piece begins anew");
    }

    #[test]
    fn work_that_computes_is_on_a_cpu() {
        let busy = || {
            let until_ns = thread_cpu_ns() + 5_000_000;
            while thread_cpu_ns() < until_ns {}
        };
        let spent = Stopwatch::new().time(now_ns(), busy);
        assert!(spent.cpu_ns >= 5_000_000 && spent.cpu_ns <= spent.wall_ns, "{spent:?}");
    }

    #[test]
    fn what_came_after_is_the_difference() {
        let one = Spent { pieces: 1, wall_ns: 10, cpu_ns: 3, ..Spent::default() };
        let mut both = one;
        both.add(Spent { pieces: 2, wall_ns: 8, ready_ns: 20, ..Spent::default() });
        let after = both.since(one);
        assert_eq!((after.pieces, after.wall_ns, after.waiting_ns()), (2, 8, 0));
        assert_eq!(one.waiting_ns(), 7);
    }
}
