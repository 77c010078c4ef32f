//! Waits that a link does by itself, with a check from time to time whether the other side runs.

use sinew_core::clock::now_ns;

use super::{Gone, Life, Patience};

/// Longest wait of a link without a check whether the other side runs.
const WAIT_NS_MAX: u64 = 10_000_000;

/// Waits that a link does by itself until a deadline. At each deadline it checks whether the other
/// side runs.
#[derive(Debug)]
pub struct Waits {
    life: Life,
    /// The next deadline. It is used for many waits, so that a wait need not read the clock first.
    look_ns: u64,
}

impl Waits {
    /// Waits for the side with this life.
    pub fn new(life: Life) -> Waits {
        Waits { life, look_ns: 0 }
    }

    /// The state of one wait that polls.
    pub fn patience(&self) -> Patience<'_> {
        self.life.patience()
    }

    /// One wait, for a side that has polled and found nothing. `wait` gets the time at which it
    /// must return, and says whether another poll may find something.
    ///
    /// # Errors
    /// As for [`Patience::look`].
    #[inline(always)]
    pub fn wait(&mut self, mut wait: impl FnMut(u64) -> bool) -> Result<(), Gone> {
        // The state for a long wait is made only in `wait_on`: with it there would be a store to
        // the stack for each message, which takes a place among the stores that wait for the other
        // CPU's cache lines.
        if wait(self.look_ns) { Ok(()) } else { self.wait_on(wait) }
    }

    #[cold]
    fn wait_on(&mut self, mut wait: impl FnMut(u64) -> bool) -> Result<(), Gone> {
        let mut patience = self.life.patience();
        loop {
            patience.look()?;
            self.look_ns = now_ns() + WAIT_NS_MAX;
            if wait(self.look_ns) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_link_that_waits_by_itself_looks_at_the_life_at_each_deadline() {
        let ended = Arc::new(AtomicBool::new(false));
        let mut waits = Waits::new(Life::Thread(Arc::clone(&ended)));
        let mut polls = 0;
        let found = waits.wait(|_| {
            polls += 1;
            polls == 3
        });
        assert_eq!((found, polls), (Ok(()), 3));
        ended.store(true, Ordering::Release);
        assert_eq!(waits.wait(|_| false), Err(Gone("the other side has ended".into())));
    }
}
