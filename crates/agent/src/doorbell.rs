//! How Linux sleeps at a link to a guest, and how it wakes the guest: two eventfds in the place of
//! a futex, which the other operating system does not have.
//!
//! The link's own words decide who rings: a side says in `waiting` that it is about to sleep, and
//! looks once more; the other one publishes, then looks at `waiting` (`sinew_link::wait`). So
//! nobody rings for a peer that is awake, and a ring that comes while a side is only about to sleep
//! stays in the eventfd and ends that sleep.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;

use rustix::event::{PollFd, PollFlags, poll};
use sinew_core::bell::Bell;
use sinew_core::clock::{now_ns, timespec};
use sinew_link::Os;

use crate::ivshmem::GuestBells;

/// The bells of one link, as Linux uses them. Only one thread may wait with the same number: a ring
/// is heard once.
#[derive(Clone, Copy, Debug)]
pub struct Doorbell<'a> {
    hears: &'a Bell,
    rings: &'a Bell,
}

impl GuestBells {
    /// The bell with this number, in both directions; that of a link stands in its row.
    ///
    /// # Panics
    /// If there is none.
    pub fn doorbell(&self, number: usize) -> Doorbell<'_> {
        Doorbell { hears: &self.of_linux[number], rings: &self.of_guest[number] }
    }
}

impl Os for Doorbell<'_> {
    fn yield_now(&self) {
        yield_now();
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, timeout_ns: u64) {
        // Acquire: pairs with the release of who rings. It moves the word on before it rings.
        if word.load(Ordering::Acquire) == expected {
            // A signal ends the sleep early; the link looks.
            let _ =
                poll(&mut [PollFd::new(self.hears, PollFlags::IN)], Some(&timespec(timeout_ns)));
        }
        // Before the link looks: who rings from now on is heard by the next sleep.
        self.hears.hush();
    }

    fn futex_wake(&self, _word: &AtomicU32) {
        self.rings.ring();
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }
}

#[cfg(test)]
mod tests;
