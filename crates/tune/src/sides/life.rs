//! Whether the other side still runs, and how long to wait for it: no side waits for ever.

use std::hint::spin_loop;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sinew_core::clock::now_ns;

use super::Gone;

/// A side that is silent for this long hangs. It is much longer than the slowest message takes on a
/// busy machine, and short enough for a user who waits.
pub const SILENT_NS_MAX: u64 = 10_000_000_000;

/// Polls between two checks whether the other side runs. A check may cost a system call.
const POLLS_PER_LOOK: u32 = 1 << 16;

/// How to find out whether the other side still runs.
#[derive(Clone, Debug)]
pub enum Life {
    /// A thread. True once it has ended.
    Thread(Arc<AtomicBool>),
    /// A process, by its pidfd.
    Process(Arc<OwnedFd>),
    /// The process that started this one. This one ends with it.
    Parent,
}

impl Life {
    /// Whether the other side has ended. May be a system call.
    pub fn is_over(&self) -> bool {
        match self {
            // Acquire: pairs with the release store at the end of the thread, so that everything it
            // did before is seen.
            Life::Thread(ended) => ended.load(Ordering::Acquire),
            Life::Process(pidfd) => {
                let mut ended = [PollFd::new(pidfd.as_ref(), PollFlags::IN)];
                // This descriptor cannot cause an error. If it does, the silence counts.
                poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1)
            }
            Life::Parent => false,
        }
    }

    /// Polls until `look` finds something.
    ///
    /// # Errors
    /// As for [`Patience::poll`].
    #[inline(always)]
    pub fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> Result<T, Gone> {
        let mut patience = self.patience();
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            patience.poll()?;
        }
    }

    /// The state of one wait that polls.
    #[inline]
    pub fn patience(&self) -> Patience<'_> {
        Patience { life: self, polls: 0, until_ns: u64::MAX, is_over: false }
    }
}

/// The state of one wait that polls.
pub struct Patience<'a> {
    life: &'a Life,
    polls: u32,
    until_ns: u64,
    /// The other side has ended. What it sent before can be found by one more poll.
    is_over: bool,
}

impl Patience<'_> {
    /// To be called after each poll that found nothing. Executes the CPU's hint for a wait loop.
    ///
    /// # Errors
    /// The other side has ended, or has been silent for [`SILENT_NS_MAX`]. Its end is noticed only
    /// after a poll, and it may have sent its last message in between. So it is an error only if
    /// the next poll also finds nothing.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<(), Gone> {
        spin_loop();
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_LOOK) { self.look() } else { Ok(()) }
    }

    /// The same for a wait that checks rarely: after a yield or a sleep.
    ///
    /// # Errors
    /// As for [`Patience::poll`].
    #[cold]
    pub fn look(&mut self) -> Result<(), Gone> {
        if self.is_over {
            return Err(Gone("the other side has ended".into()));
        }
        if self.life.is_over() {
            self.is_over = true;
            // The next poll is the last one, in `poll` as well as in `look`.
            self.polls = POLLS_PER_LOOK - 1;
            return Ok(());
        }
        let now_ns = now_ns();
        if self.until_ns == u64::MAX {
            self.until_ns = now_ns + SILENT_NS_MAX;
        }
        if now_ns < self.until_ns {
            return Ok(());
        }
        let seconds = SILENT_NS_MAX / 1_000_000_000;
        Err(Gone(format!("the other side lives but was silent for {seconds} s")))
    }
}

/// Reports, when it is dropped, that the thread has ended, also if it panics.
pub(super) struct SaysEnd(pub(super) Arc<AtomicBool>);

impl Drop for SaysEnd {
    fn drop(&mut self) {
        // Release: as in `is_over`.
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A poll that finds nothing. Then the other side sends its last message and ends, before
    /// anything checks whether it runs.
    fn last_words(
        ended: &AtomicBool,
        at: u32,
        speaks: bool,
    ) -> impl FnMut() -> Option<&'static str> {
        let mut looks = 0;
        move || {
            looks += 1;
            if looks == at {
                ended.store(true, Ordering::Release);
            }
            (speaks && looks > at).then_some("last words")
        }
    }

    #[test]
    fn what_the_other_side_said_before_it_ended_is_heard() {
        for at in [1, POLLS_PER_LOOK - 1, POLLS_PER_LOOK, POLLS_PER_LOOK + 1] {
            let ended = Arc::new(AtomicBool::new(false));
            let life = Life::Thread(Arc::clone(&ended));
            assert_eq!(life.until(last_words(&ended, at, true)), Ok("last words"), "{at}");
            ended.store(false, Ordering::Release);
            life.until(last_words(&ended, at, false)).expect_err("it printed nothing");
        }
    }

    #[test]
    fn a_wait_ends_with_the_thread_that_it_waits_for() {
        let ended = Arc::new(AtomicBool::new(false));
        let life = Life::Thread(Arc::clone(&ended));
        std::thread::spawn(move || drop(SaysEnd(ended)));
        let found = life.until(|| None::<()>);
        assert_eq!(found, Err(Gone("the other side has ended".into())));
    }
}
