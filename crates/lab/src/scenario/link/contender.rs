//! A link as a row: one round of it, round trips and, where no message is lost, throughput.

use std::cell::Cell;
use std::time::Duration;

use super::case::Case;
use super::ends::Ends;
use super::measure::with_link;
use crate::harness::reference::{Reference, TOKEN};
use crate::harness::{Gone, other_pages, time};
use crate::report::Row;
use crate::rounds::Contender;

/// Time that a measurement takes in addition to its budget: opening, starting the far side,
/// warm-up, token.
const AROUND: Duration = Duration::from_millis(12).saturating_add(TOKEN);

/// A link that is measured.
pub(super) struct Contending<'a> {
    pub(super) case: Case,
    pub(super) reference: &'a Reference,
    /// The budget for each measure of a round.
    pub(super) budget: &'a Cell<Duration>,
    /// Rounds before this one.
    pub(super) rounds: usize,
}

impl Contender for Contending<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let Contending { case, reference, budget, rounds } = self;
        let _pages = other_pages(*rounds).map_err(|Gone(why)| why)?;
        *rounds += 1;
        for &what in case.measures() {
            let (clock, budget) = (reference.clock, budget.get());
            let capacity = case.shape(what).capacity;
            let time = |ends: &mut Ends| time(ends, what, capacity, clock, budget);
            let measure = || with_link(case, what, reference.cpus, time);
            let (found, token) = reference.around(measure).map_err(|Gone(why)| why)?;
            row.measure_mut(what.word()).add_round(&found.values, found.median_ns, token);
        }
        Ok(())
    }

    fn takes(&self) -> Duration {
        (self.budget.get() + AROUND) * self.case.measures().len() as u32
    }
}

/// The budget of a measure, if all rounds of this many measures are to end within `all`.
pub(super) fn budget(all: Duration, rounds: u32, measures: u32) -> Duration {
    /// Less would be only a few trips if the kernel takes part.
    const LEAST: Duration = Duration::from_millis(8);
    /// More time would show nothing more; more rounds would.
    const MOST: Duration = Duration::from_millis(200);
    let each = all / (rounds * measures).max(1);
    each.saturating_sub(AROUND).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_as_long_as_it_may() {
        let each = budget(Duration::from_secs(45), 9, 100) + AROUND;
        assert_eq!(each, Duration::from_millis(50));
        assert_eq!(budget(Duration::from_secs(1), 5, 1000), Duration::from_millis(8));
        assert_eq!(budget(Duration::from_secs(900), 5, 1), Duration::from_millis(200));
    }
}
