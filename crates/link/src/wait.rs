//! How a side waits for the other one, and how it is woken.
//!
//! In a region that [parks](crate::Shape::parks) each direction has a *bell*, two words: `waiting`,
//! which a side sets before it looks a last time and sleeps, and `signal`, on which it sleeps. The
//! other side publishes, then looks at `waiting`; a fence on both sides makes sure that either the
//! sleeper sees the message or the waker sees the sleeper. `signal` changes before the wake, so the
//! kernel does not let a side sleep that is only about to sleep.

use core::hint::spin_loop;

use crate::cells::{At, AtomicU32, Ordering, Region, Site, fenced};
use crate::memory::Memory;
use crate::region::End;

/// How a side waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Polls, as often as its [`Tuning`](crate::Tuning) says. For a side that has a CPU to itself.
    Spin,
    /// Polls and gives the CPU away in between.
    Yield,
    /// Sleeps in the kernel until woken. In a region that does not park: as `Yield`.
    Park,
    /// Polls for as long as its [`Tuning`](crate::Tuning) says, then parks.
    SpinThenPark,
}

impl Wait {
    /// Whether a wait begins with polls.
    pub(crate) fn polls(self) -> bool {
        matches!(self, Wait::Spin | Wait::SpinThenPark)
    }
}

/// Longest sleep before a side looks again. So a peer that was killed after it published and before
/// it woke us, or that closed without waking us, only delays us.
pub const PARK_NS_MAX: u64 = 50_000_000;
/// Polls between two looks at the clock and at whether the peer has closed, which cost about half a
/// poll each.
const SPINS_PER_LOOK: u32 = 8;

/// What waiting needs of the operating system; given by the caller, because the crate knows no
/// operating system.
pub trait Os {
    /// Gives the CPU to another thread.
    fn yield_now(&self);
    /// Sleeps while `word` is `expected`, at most `timeout_ns`; may wake for no reason. The word
    /// is shared between processes: on Linux, FUTEX_WAIT *without* the private flag.
    fn futex_wait(&self, word: &AtomicU32, expected: u32, timeout_ns: u64);
    /// Wakes all that sleep on `word`.
    fn futex_wake(&self, word: &AtomicU32);
    /// Monotonic time.
    fn now_ns(&self) -> u64;
}

/// The two words by which one side wakes the other.
#[derive(Clone, Copy)]
pub(crate) struct Bell {
    signal: At,
    waiting: At,
}

/// Rung by the writer: there is a message.
pub(crate) const MESSAGE: Bell = Bell { signal: At::control(3, 1), waiting: At::control(3, 2) };
/// Rung by the reader: there is room.
pub(crate) const ROOM: Bell = Bell { signal: At::control(4, 1), waiting: At::control(4, 2) };

impl<M: Memory> Region<M> {
    /// The side that rings calls this when it attaches. Its predecessor may have been killed
    /// between clearing `waiting` and waking, so the first ring must wake the other side in any
    /// case.
    pub(crate) fn arm(&self, bell: Bell) {
        self.word(bell.waiting).store(1, Ordering::Relaxed);
    }

    /// Wakes the side that waits for what this side has published.
    #[inline]
    pub(crate) fn ring(&self, bell: Bell, os: &impl Os) {
        if !self.parks {
            return;
        }
        // Store, fence, load; `park` does the same the other way round.
        fenced(Site::BellFence, Ordering::SeqCst);
        if self.word(bell.waiting).load(Ordering::Relaxed) != 0 {
            self.ring_now(bell, os);
        }
    }

    #[cold]
    fn ring_now(&self, bell: Bell, os: &impl Os) {
        self.word(bell.waiting).store(0, Ordering::Relaxed);
        let signal = self.word(bell.signal);
        // Only this side writes it. Release: a side that sees the new signal and sets `waiting`
        // again does so after the store above, which therefore cannot undo it.
        signal.store(signal.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        os.futex_wake(signal);
    }

    /// Sleeps until rung, unless `ready` turns true before.
    fn park(&self, bell: Bell, timeout_ns: u64, os: &impl Os, ready: &mut impl FnMut() -> bool) {
        let signal = self.word(bell.signal);
        // Acquire: pairs with the release in `ring_now`.
        let expected = signal.load(Ordering::Acquire);
        self.word(bell.waiting).store(1, Ordering::Relaxed);
        // Store, fence, load; `ring` does the same the other way round.
        fenced(Site::BellFence, Ordering::SeqCst);
        if !ready() {
            os.futex_wait(signal, expected, timeout_ns);
        }
    }
}

impl<M: Memory> End<M> {
    /// Waits until `ready`, until the peer has closed, or until the deadline is over; returns
    /// whether ready. It is for a side that has just looked: if it polls, it pauses before it looks
    /// again.
    // The eager polls are inlined into the caller, because a near peer answers within them. The
    // rest is a call, so that it takes no registers from the eager polls.
    #[inline(always)]
    pub(crate) fn wait(
        &self,
        bell: Bell,
        wait: Wait,
        deadline_ns: Option<u64>,
        os: &impl Os,
        mut ready: impl FnMut(&Region<M>) -> bool,
    ) -> bool {
        let mut poll = |_| {
            spin_loop();
            ready(&self.region)
        };
        wait.polls() && (0..self.region.tuning.eager_polls).any(&mut poll)
            || self.wait_on(bell, wait, deadline_ns, os, ready)
    }

    #[inline(never)]
    fn wait_on(
        &self,
        bell: Bell,
        wait: Wait,
        deadline_ns: Option<u64>,
        os: &impl Os,
        mut ready: impl FnMut(&Region<M>) -> bool,
    ) -> bool {
        let region = &self.region;
        let tuning = region.tuning;
        let (mut polls, mut paused) = (0_u32, 0_u32);
        loop {
            let spins = match wait {
                Wait::Spin => true,
                Wait::Yield | Wait::Park => false,
                Wait::SpinThenPark => paused < tuning.pauses_before_park,
            };
            let mut left_ns = PARK_NS_MAX;
            if !spins || polls % SPINS_PER_LOOK == SPINS_PER_LOOK - 1 {
                if let Some(deadline_ns) = deadline_ns {
                    left_ns = left_ns.min(deadline_ns.saturating_sub(os.now_ns()));
                }
                if left_ns == 0 || self.is_peer_closed() {
                    // What was waited for may have come between the two looks.
                    return ready(region);
                }
            }
            if spins {
                let pauses = tuning.pauses.max(1);
                (0..pauses).for_each(|_| spin_loop());
                paused = paused.saturating_add(pauses);
            } else if wait == Wait::Yield || !region.parks {
                os.yield_now();
            } else {
                // A closed peer counts as ready: nobody would ring again.
                region.park(bell, left_ns, os, &mut || ready(region) || self.is_peer_closed());
            }
            polls = polls.wrapping_add(1);
            if ready(region) {
                return true;
            }
        }
    }
}
