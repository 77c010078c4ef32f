//! Whether the other side still lives, and how long to wait for it: no side waits for ever.

use std::hint::spin_loop;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sinew_core::clock::now_ns;

use super::Gone;

/// A side that says nothing for so long hangs: far more than the slowest message takes on a busy
/// machine, and short enough for who sits before it.
pub const SILENT_NS_MAX: u64 = 10_000_000_000;

/// Polls between two looks at whether the other side lives; a look may cost a system call.
const POLLS_PER_LOOK: u32 = 1 << 16;

/// The life of the other side.
#[derive(Clone, Debug)]
pub enum Life {
    /// A thread; true once it has ended.
    Thread(Arc<AtomicBool>),
    /// A process, by its pidfd.
    Process(Arc<OwnedFd>),
    /// The process that started this one, with which this one ends.
    Parent,
}

impl Life {
    /// Whether the other side has ended. May be a system call.
    pub fn is_over(&self) -> bool {
        match self {
            // Acquire: what the thread did last is seen before its end.
            Life::Thread(ended) => ended.load(Ordering::Acquire),
            Life::Process(pidfd) => {
                let mut ended = [PollFd::new(pidfd.as_ref(), PollFlags::IN)];
                // An error cannot come from this descriptor; then the silence counts.
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

    /// For one wait that polls.
    #[inline]
    pub fn patience(&self) -> Patience<'_> {
        Patience { life: self, polls: 0, until_ns: u64::MAX, is_over: false }
    }
}

/// One wait that polls.
pub struct Patience<'a> {
    life: &'a Life,
    polls: u32,
    until_ns: u64,
    /// The other side has ended: what it sent before is there now, for one more poll.
    is_over: bool,
}

impl Patience<'_> {
    /// To be called after each poll that found nothing; gives the CPU's hint that this is a wait.
    ///
    /// # Errors
    /// The other side has ended, or has been silent for [`SILENT_NS_MAX`]. Whether it has ended is
    /// known only after a poll, and it may have sent its last message in between: so it is an error
    /// only if the poll after that found nothing either.
    #[inline(always)]
    pub fn poll(&mut self) -> Result<(), Gone> {
        spin_loop();
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_LOOK) { self.look() } else { Ok(()) }
    }

    /// The same for a wait that looks seldom: after a yield or a sleep.
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
            // The next poll is the last one, whoever counts them.
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

/// Says when it is dropped that the thread has ended, also if it panics.
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

    /// A look that finds nothing, whereupon the other side sends its last message and ends: before
    /// anybody asks whether it lives.
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
