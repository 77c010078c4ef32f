//! The token, with which everything is compared. It is measured directly before and after each
//! measurement, because the host of a virtual machine may move its CPUs apart or together at any
//! time.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use sinew_core::clock::{Clock, now_ns};
use sinew_figures::Interval;

pub use super::token::MOVED;
use super::token::{self, Lines};
use super::{Cpus, Gone};

/// How long a token is measured: about ten thousand trips.
pub const TOKEN: Duration = Duration::from_millis(3);

/// A token that was measured within this time counts as measured directly before the next
/// measurement.
const RECENT_NS: u64 = 2_000_000;

/// Two CPUs, the token between them, and how it changed.
pub struct Reference {
    /// The CPUs.
    pub cpus: Cpus,
    /// The clock that takes the times.
    pub clock: Clock,
    /// When the last token was measured, and its median.
    last: Cell<Option<(u64, f64)>>,
    seen: RefCell<Vec<f64>>,
}

impl Reference {
    /// A reference without any token measured yet.
    pub fn new(cpus: Cpus, clock: Clock) -> Reference {
        Reference { cpus, clock, last: Cell::new(None), seen: RefCell::default() }
    }

    /// The median of a token measured now, ns. `None` with one CPU only.
    ///
    /// # Errors
    /// As for [`token::measure`].
    pub fn now(&self) -> Result<Option<f64>, Gone> {
        if !self.cpus.are_two() {
            return Ok(None);
        }
        let found = token::measure(Lines::One, self.cpus, self.clock, TOKEN)?;
        let median = found.median_of_steps(self.clock.step_ns());
        let few = || {
            Gone("the token made fewer than 20 trips; measure when the CPUs are less busy".into())
        };
        let median = median.ok_or_else(few)?;
        self.last.set(Some((now_ns(), median)));
        self.seen.borrow_mut().push(median);
        Ok(Some(median))
    }

    /// The same, unless a token was measured directly before.
    fn before(&self) -> Result<Option<f64>, Gone> {
        match self.last.get() {
            Some((at_ns, median)) if now_ns() - at_ns < RECENT_NS => Ok(Some(median)),
            _ => self.now(),
        }
    }

    /// Measures something; also returns the mean of the tokens before and after it.
    ///
    /// # Errors
    /// The error of `measure`, or as for [`Reference::now`].
    pub fn around<T>(
        &self,
        measure: impl FnOnce() -> Result<T, Gone>,
    ) -> Result<(T, Option<f64>), Gone> {
        let before = self.before()?;
        let found = measure()?;
        let after = self.now()?;
        Ok((found, before.zip(after).map(|(before, after)| f64::midpoint(before, after))))
    }

    /// The median of all tokens, ns; `None` if there was none.
    pub fn median_ns(&self) -> Option<f64> {
        Interval::of(&self.seen.borrow()).map(|tokens| tokens.median)
    }

    /// A note if the distance between the CPUs changed.
    pub fn moved(&self) -> Option<String> {
        moved(self.cpus, &self.seen.borrow())
    }
}

fn moved(cpus: Cpus, seen: &[f64]) -> Option<String> {
    let least = seen.iter().copied().min_by(f64::total_cmp)?;
    let most = seen.iter().copied().max_by(f64::total_cmp)?;
    if most / least < MOVED {
        return None;
    }
    let middle = (least * most).sqrt();
    let near = seen.iter().filter(|&&token| token < middle).count();
    let Cpus { near: one, far: other } = cpus;
    Some(format!(
        "the distance between CPUs {one} and {other} changed while this ran: tokens from \
         {least:.0} to {most:.0} ns, {near} of {} below {middle:.0} ns; ratios are to the token \
         beside each row, times are a mixture",
        seen.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_moved_apart_are_told_with_the_split() {
        let cpus = Cpus { near: 0, far: 1 };
        assert_eq!(moved(cpus, &[130.0, 140.0, 190.0]), None);
        let text = moved(cpus, &[130.0, 300.0, 131.0, 310.0, 129.0]).expect("they moved");
        assert!(text.contains("tokens from 129 to 310 ns, 3 of 5 below 200 ns"), "{text}");
        assert_eq!(moved(cpus, &[]), None);
    }

    #[test]
    fn with_one_cpu_there_is_no_token() {
        let reference = Reference::new(Cpus { near: 0, far: 0 }, Clock::from_rate(0.0));
        assert_eq!(reference.around(|| Ok(1)), Ok((1, None)));
        assert_eq!((reference.median_ns(), reference.moved()), (None, None));
    }
}
