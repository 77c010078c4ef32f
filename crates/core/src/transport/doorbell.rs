//! How Linux sleeps at a link to a guest, and how it wakes the guest: two eventfds in the place of
//! a futex, which the other operating system does not have.
//!
//! The link's own words decide who rings: a side says in `waiting` that it is about to sleep, and
//! looks once more; the other one publishes, then looks at `waiting` (`sinew_link::wait`). So
//! nobody rings for a peer that is awake, and a ring that comes while a side is only about to sleep
//! stays in the eventfd and ends that sleep. A guest that rings without end and without a reason
//! costs a service a bounded part of a CPU: after such a ring it rests.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use sinew_link::Os;

use super::Kernel;
use crate::bell::Bell;
use crate::clock::{now_ns, timespec};

/// How long a side that was rung without a reason listens to nobody.
const REST: Duration = Duration::from_micros(200);

/// The bells of one link, as Linux uses them. Only one thread may wait with it, because a ring is
/// heard once.
#[derive(Debug)]
pub struct Doorbell {
    /// The guest rings it.
    pub hears: Bell,
    /// The guest hears it.
    pub rings: Bell,
}

impl Os for Doorbell {
    fn yield_now(&self) {
        Kernel.yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, timeout_ns: u64) {
        let until_ns = now_ns().saturating_add(timeout_ns);
        // Acquire: pairs with the release of the ringing side, which changes the word before it
        // rings.
        let is_rung = || word.load(Ordering::Acquire) != expected;
        // The first ring may be an old one: of a message that was found without a sleep.
        for _ in 0..2 {
            let left = timespec(until_ns.saturating_sub(now_ns()));
            // A signal ends the sleep early; then the link looks again.
            let ready = !is_rung()
                && poll(&mut [PollFd::new(&self.hears, PollFlags::IN)], Some(&left))
                    .is_ok_and(|ready| ready > 0);
            // Before anybody looks: a ring from now on is heard by the next sleep.
            self.hears.hush();
            if !ready || is_rung() {
                return;
            }
        }
        sleep(REST);
    }

    fn futex_wake(&self, _word: &AtomicU32) {
        self.rings.ring();
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

/// The means by which an end sleeps and wakes its peer.
#[derive(Debug)]
pub(super) enum Parking {
    /// With a futex: the peer runs on the same kernel.
    Futex,
    /// With bells: the peer runs on another one.
    Doorbell(Doorbell),
}

impl Os for Parking {
    fn yield_now(&self) {
        Kernel.yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, timeout_ns: u64) {
        match self {
            Parking::Futex => Kernel.futex_wait(word, expected, timeout_ns),
            Parking::Doorbell(doorbell) => doorbell.futex_wait(word, expected, timeout_ns),
        }
    }

    fn futex_wake(&self, word: &AtomicU32) {
        match self {
            Parking::Futex => Kernel.futex_wake(word),
            Parking::Doorbell(doorbell) => doorbell.futex_wake(word),
        }
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

#[cfg(test)]
mod tests;
