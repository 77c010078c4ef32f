//! How a side waits when it finds nothing. The rate of its looks decides much of the cost of a
//! queue, as each look takes the cache line from the core that is about to write it. A reader that
//! has caught up with a writer and looks at once does so for every message.
//!
//! So every rival that is polled from here is measured with both ways of polling, and judged by the
//! better one. Ours waits by its own `wait`, whose gaps are those of [`Poll::Gap`].

use std::hint::spin_loop;

use sinew_core::transport::tuning;
use sinew_lab::harness::{Gone, Life, Patience, Waits};
use sinew_lab::words;
use sinew_link::Shape;

use crate::measure::Form;

words! {
    /// What a side does between two looks.
    pub(crate) enum Poll {
        /// One `spin_loop` hint, as in the documentation of most rivals.
        Pause = "pause",
        /// The gap of our own wait after its first polls: 50 ns in a short queue, ten times that in
        /// a longer one.
        Gap = "gap",
        /// The rival waits by itself.
        Own = "-",
    }
}

impl Poll {
    /// Both ways, for a rival that is polled from here.
    pub(crate) const BOTH: &'static [Poll] = &[Poll::Pause, Poll::Gap];
}

/// Looks at the queue between two checks of the other side's life.
const LOOKS_PER_LIFE: u32 = 1 << 16;

/// All waits of one side.
pub(crate) struct Waiting<'a> {
    life: &'a Life,
    /// Patience of the current wait; set when the wait has become long.
    patience: Patience<'a>,
    /// Count of hints between two looks.
    pauses: u32,
    /// The waits of a link that waits by itself.
    pub(crate) own: Waits,
}

impl<'a> Waiting<'a> {
    /// Waits in the way that the form gives.
    pub(crate) fn new(form: &Form, life: &'a Life) -> Waiting<'a> {
        let pauses = match form.poll {
            Poll::Gap => tuning(&Shape::queue(form.bytes as u32, 0, form.capacity as u32)).pauses,
            Poll::Pause | Poll::Own => 1,
        };
        Waiting { life, patience: life.patience(), pauses, own: Waits::new(life.clone()) }
    }

    /// Pauses once after a look that found nothing; `looks` counts the looks of this wait.
    #[inline(always)]
    pub(crate) fn pause(&mut self, looks: &mut u32) -> Result<(), Gone> {
        (0..self.pauses).for_each(|_| spin_loop());
        *looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS_PER_LIFE) {
            // Only now, as for ours, so that there is no store to the stack for each message.
            return self.look_at_life(*looks == LOOKS_PER_LIFE);
        }
        Ok(())
    }

    /// Polls until `look` finds something.
    #[inline(always)]
    pub(crate) fn until<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Result<T, Gone> {
        let mut looks = 0;
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            self.pause(&mut looks)?;
        }
    }

    #[cold]
    fn look_at_life(&mut self, is_first: bool) -> Result<(), Gone> {
        if is_first {
            self.patience = self.life.patience();
        }
        self.patience.look()
    }
}
