//! A link as a row: one round of it, round trips and, where no message is lost, throughput.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sinew_runtime::sys::Region;

use super::case::{Case, Purpose};
use super::ends::Ends;
use super::measure::with_link;
use super::reference::{Reference, TOKEN};
use crate::distribution::Distribution;
use crate::harness::{time_round_trips, time_stream};
use crate::report::Row;
use crate::rounds::Contender;

/// What a measurement takes beside its budget: opening, starting the far side, warm-up, token.
const AROUND: Duration = Duration::from_millis(12).saturating_add(TOKEN);

/// A link that is measured.
pub(super) struct Contending<'a> {
    pub(super) case: Case,
    pub(super) reference: &'a Reference,
    /// For each measure of a round.
    pub(super) budget: Duration,
    /// Rounds before this one.
    pub(super) rounds: usize,
}

/// Takes some pages, so that the links of each round lie on others: how far a line is from both
/// CPUs depends on its address, and the kernel gives out first what was last given back.
fn other_pages(rounds: usize) -> Result<Region, String> {
    const PAGE: usize = 4096;
    let region = Region::anonymous(PAGE * (1 + rounds % 16));
    let region = region.map_err(|error| format!("no memory: {error}"))?;
    // A page is there once it is written.
    region.words().iter().step_by(PAGE / 4).for_each(|word| word.store(1, Ordering::Relaxed));
    Ok(region)
}

impl Contender for Contending<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let Contending { case, reference, budget, rounds } = self;
        let _pages = other_pages(*rounds)?;
        *rounds += 1;
        let (clock, cpus, budget) = (reference.clock, reference.cpus, *budget);
        let time = |ends: &mut Ends| time_round_trips(ends, clock, budget);
        let (found, token) =
            reference.around(|| with_link(case, Purpose::RoundTrip, cpus, time))?;
        let median = found.quantile(0.5).ok_or("fewer than 20 round trips")?;
        row.measure_mut(Purpose::RoundTrip.word()).add_round(&found, median as f64, token);
        if case.has_throughput() {
            let time = |ends: &mut Ends| time_stream(ends, clock, budget);
            let (found, token) =
                reference.around(|| with_link(case, Purpose::PerMessage, cpus, time))?;
            let (values, median) = of_batches(found);
            row.measure_mut(Purpose::PerMessage.word()).add_round(&values, median, token);
        }
        Ok(())
    }

    fn takes(&self) -> Duration {
        (self.budget + AROUND) * if self.case.has_throughput() { 2 } else { 1 }
    }
}

/// The batches of a round as values, to the nanosecond, and their exact median.
pub(super) fn of_batches(mut found: Vec<f64>) -> (Distribution, f64) {
    found.sort_by(f64::total_cmp);
    let mut values = Distribution::new();
    found.iter().for_each(|&ns| values.add(ns.round() as u64));
    let median = f64::midpoint(found[(found.len() - 1) / 2], found[found.len() / 2]);
    (values, median)
}

/// The budget of a measure, if all rounds of so many measures are to end within `all`.
pub(super) fn budget(all: Duration, rounds: u32, measures: u32) -> Duration {
    /// Less would be a handful of trips where the kernel takes part.
    const LEAST: Duration = Duration::from_millis(8);
    /// More tells nothing more: then rounds are worth more.
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

    #[test]
    fn the_median_of_batches_keeps_its_fractions() {
        let (values, median) = of_batches(vec![17.5, 17.25, 90.0]);
        assert_eq!((values.n(), values.max(), median), (3, Some(90), 17.5));
    }
}
