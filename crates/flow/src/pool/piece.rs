//! How long a piece of work took: before its beginning, on a CPU, waiting for a CPU, and in all.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sinew_core::clock::now_ns;
use sinew_figures::process::Taken;

/// How often a thread asks how long it waited for a CPU. To read that from /proc costs some
/// microseconds.
const ASKS_EVERY_NS: u64 = 20_000_000;

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
    /// Before their beginnings, if no thread was free.
    pub(super) queued_ns: u64,
}

impl Spent {
    /// Sums of ns wrap around after some months of many threads; differences stay right.
    pub(super) fn add(&mut self, more: Spent) {
        let Spent { pieces, wall_ns, cpu_ns, ready_ns, queued_ns } = more;
        self.pieces = self.pieces.wrapping_add(pieces);
        self.wall_ns = self.wall_ns.wrapping_add(wall_ns);
        self.cpu_ns = self.cpu_ns.wrapping_add(cpu_ns);
        self.ready_ns = self.ready_ns.wrapping_add(ready_ns);
        self.queued_ns = self.queued_ns.wrapping_add(queued_ns);
    }

    /// The difference to `before`.
    pub(super) fn since(self, before: Spent) -> Spent {
        Spent {
            pieces: self.pieces.wrapping_sub(before.pieces),
            wall_ns: self.wall_ns.wrapping_sub(before.wall_ns),
            cpu_ns: self.cpu_ns.wrapping_sub(before.cpu_ns),
            ready_ns: self.ready_ns.wrapping_sub(before.ready_ns),
            queued_ns: self.queued_ns.wrapping_sub(before.queued_ns),
        }
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

    /// Does a piece of work, which has waited for a thread since `waits_since_ns`, and times it.
    pub(super) fn time(&mut self, waits_since_ns: Option<u64>, work: impl FnOnce()) -> Spent {
        let (began_ns, cpu_ns) = (now_ns(), thread_cpu_ns());
        work();
        // The CPU time is read inside the two reads of the clock, so it is never the longer of the
        // two.
        let cpu_ns = thread_cpu_ns() - cpu_ns;
        let ended_ns = now_ns();
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
            queued_ns: waits_since_ns.map_or(0, |since_ns| began_ns.saturating_sub(since_ns)),
        }
    }
}

/// How long this thread was ready to run while others had the CPUs. Zero if the kernel does not
/// count it; then this time is part of the waiting time.
fn ready() -> Duration {
    Taken::by_this_thread().map(|taken| taken.waited).unwrap_or_default()
}

fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time of this thread or process.
pub(super) fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn sleep_takes_no_cpu_and_a_wait_for_a_thread_is_told_where_there_was_one() {
        let nap = Duration::from_millis(30);
        let spent = Stopwatch::new().time(None, || sleep(nap));
        assert!(spent.wall_ns >= nap.as_nanos() as u64, "{spent:?}");
        assert!(spent.cpu_ns < spent.wall_ns / 2, "{spent:?}");
        assert_eq!((spent.pieces, spent.queued_ns), (1, 0));
        let spent = Stopwatch::new().time(Some(now_ns() - 5_000), || ());
        assert!(spent.queued_ns >= 5_000, "{spent:?}");
    }

    #[test]
    fn work_that_computes_is_on_a_cpu() {
        let busy = || {
            let until_ns = thread_cpu_ns() + 5_000_000;
            while thread_cpu_ns() < until_ns {}
        };
        let spent = Stopwatch::new().time(None, busy);
        assert!(spent.cpu_ns >= 5_000_000 && spent.cpu_ns <= spent.wall_ns, "{spent:?}");
    }

    #[test]
    fn what_came_after_is_the_difference_also_where_a_sum_went_round() {
        let one = Spent { pieces: 1, wall_ns: u64::MAX - 1, cpu_ns: 3, ..Spent::default() };
        let mut both = one;
        let more = Spent { pieces: 2, wall_ns: 8, ready_ns: 20, ..Spent::default() };
        both.add(more);
        assert_eq!(both.since(one), more);
    }
}
