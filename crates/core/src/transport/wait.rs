//! The wait strategies, for ends that have none of their own.

use std::hint::spin_loop;

use rustix::thread::sched_yield;
use sinew_plan::plan::Wait;

use crate::clock::now_ns;

/// How long `spin_then_park` polls before it sleeps: about what going to sleep and being woken
/// cost, so that it never costs more than twice the better of the two.
const SPIN_NS: u64 = 20_000;

/// What can be waited for.
pub(super) trait Poll {
    /// Whether the wait is over; does not block.
    fn ready(&mut self) -> bool;

    /// Sleeps in the kernel until `ready` may have changed or the monotonic clock shows `until_ns`;
    /// may come back early.
    fn park(&mut self, until_ns: u64);
}

/// Waits until `end` is ready or the monotonic clock shows `until_ns`. Returns whether it is ready.
pub(super) fn wait(end: &mut impl Poll, strategy: Wait, until_ns: u64) -> bool {
    let park_from_ns = match strategy {
        Wait::Spin | Wait::Yield => u64::MAX,
        Wait::Park => 0,
        Wait::SpinThenPark => now_ns().saturating_add(SPIN_NS),
    };
    while !end.ready() {
        let now_ns = now_ns();
        if now_ns >= until_ns {
            return false;
        }
        if now_ns >= park_from_ns {
            end.park(until_ns);
        } else if strategy == Wait::Yield {
            sched_yield();
        } else {
            spin_loop();
        }
    }
    true
}
