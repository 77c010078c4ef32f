//! Waits that a link makes by itself, with a look now and then at whether the other side lives.

use sinew_core::clock::now_ns;

use super::{Gone, Life, Patience};

/// Longest wait of a link without a look at whether the other side lives.
const WAIT_NS_MAX: u64 = 10_000_000;

/// Waits that a link makes by itself until a deadline; each deadline is a look at the life.
#[derive(Debug)]
pub struct Waits {
    life: Life,
    /// The next deadline. It outlasts many waits, so that a wait need not ask for the time first.
    look_ns: u64,
}

impl Waits {
    /// Waits for that other side.
    pub fn new(life: Life) -> Waits {
        Waits { life, look_ns: 0 }
    }

    /// For one wait that polls.
    pub fn patience(&self) -> Patience<'_> {
        self.life.patience()
    }

    /// One wait, for a side that has looked and found nothing. `wait` gets the time at which it has
    /// to come back, and says whether a look may find something.
    ///
    /// # Errors
    /// As for [`Patience::look`].
    #[inline(always)]
    pub fn wait(&mut self, mut wait: impl FnMut(u64) -> bool) -> Result<(), Gone> {
        // What more a wait needs is made only for a long one: a store to the stack for each message
        // takes a place among the stores that wait for the other CPU's lines.
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
