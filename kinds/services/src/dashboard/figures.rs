//! The cost of the cycles, summed up from their records.

use sinew_control::status::LinkStatus;
use sinew_core::clock::Clock;
use sinew_core::trace::{Record, Totals};
use sinew_figures::Distribution;

use super::protocol::{Histogram, HistogramInfo, LinkFigures, ThreadFigures, TimeFigures};

/// Seven decades from 0.1 us, and one bucket each for shorter and longer times.
pub(super) const BUCKETS: HistogramInfo =
    HistogramInfo { lowest_us: 0.1, per_decade: 20, count: 7 * 20 + 2 };

/// The figures of a thread in this life of the core: its own counts, and the times of the cycles
/// that were seen.
pub(super) struct ThreadCosts {
    pub(super) totals: Totals,
    latency: Distribution,
    /// Only for a thread that the clock releases; others have no planned start.
    jitter: Option<Distribution>,
    /// Execution times, in the order of its nodes.
    nodes: Vec<Distribution>,
}

impl ThreadCosts {
    /// For a thread with this many nodes; `timed` says whether the clock releases it.
    pub(super) fn new(nodes: usize, timed: bool) -> ThreadCosts {
        ThreadCosts {
            totals: Totals::default(),
            latency: Distribution::new(),
            jitter: timed.then(Distribution::new),
            nodes: vec![Distribution::new(); nodes],
        }
    }

    /// Adds a cycle. Cycles of a stop do not belong to the control loop, so their times are left
    /// out.
    pub(super) fn add(&mut self, record: &Record, clock: Clock) {
        self.totals = record.totals();
        if record.is_stopping() {
            return;
        }
        self.latency.add(latency_ns(record, clock));
        if let Some(jitter) = &mut self.jitter {
            jitter.add(jitter_ns(record));
        }
        for (at, times) in self.nodes.iter_mut().enumerate() {
            times.add(clock.ns(record.execution_ticks(at)));
        }
    }

    /// The figures in the form that the page gets.
    pub(super) fn figures(&self, lost: u64) -> ThreadFigures {
        let Totals { cycles, overruns, skipped, .. } = self.totals;
        let (latency, jitter) = (histogram(&self.latency), self.jitter.as_ref().map(histogram));
        ThreadFigures { cycles, overruns, skipped, lost, latency, jitter }
    }

    /// Execution times of a node.
    pub(super) fn node(&self, at: usize) -> TimeFigures {
        times(&self.nodes[at])
    }
}

/// Cycle latency.
pub(super) fn latency_ns(record: &Record, clock: Clock) -> u64 {
    clock.ns(record.latency_ticks())
}

/// Activation jitter: from the planned start to the actual one.
pub(super) fn jitter_ns(record: &Record) -> u64 {
    record.start_ns().saturating_sub(record.release_ns())
}

/// The histogram in the form that the page draws.
fn histogram(values: &Distribution) -> Histogram {
    let mut counts = vec![0; BUCKETS.count];
    values.buckets().for_each(|(ns, count)| counts[bucket(ns)] += count);
    Histogram { times: times(values), counts }
}

/// The bucket of a value.
fn bucket(ns: u64) -> usize {
    let factor = ns as f64 / (BUCKETS.lowest_us * 1000.0);
    if factor < 1.0 {
        return 0;
    }
    let bucket = 1 + (factor.log10() * f64::from(BUCKETS.per_decade)) as usize;
    bucket.min(BUCKETS.count - 1)
}

fn times(values: &Distribution) -> TimeFigures {
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1000.0);
    TimeFigures {
        count: values.n(),
        max_us: us(values.max()),
        p50_us: us(values.quantile(0.5)),
        p99_us: us(values.quantile(0.99)),
        p99_9_us: us(values.quantile(0.999)),
    }
}

/// Shortest time over which messages of links are counted: polls may follow each other quickly.
const COUNTED_NS_MIN: u64 = 400_000_000;

/// The rates at which links are written.
#[derive(Default)]
pub(super) struct Rates {
    /// Start of the current count.
    since_ns: Option<u64>,
    /// Messages written until then, for the links for which that is known.
    written: Vec<Option<u64>>,
    /// The results of the last count.
    per_s: Vec<Option<f64>>,
}

impl Rates {
    /// The figures of all links at a moment. `seen` are the messages that the records of the core
    /// show, for links with a writer in the core.
    pub(super) fn figures(
        &mut self,
        now_ns: u64,
        links: &[LinkStatus],
        seen: &[Option<u64>],
    ) -> Vec<LinkFigures> {
        let written =
            |(at, link): (usize, &LinkStatus)| seen.get(at).copied().flatten().or(link.written);
        self.count(now_ns, links.iter().enumerate().map(written).collect());
        let row = |(at, link): (usize, &LinkStatus)| LinkFigures {
            rate_per_s: self.per_s.get(at).copied().flatten(),
            fill: link.fill.map(|fill| f64::from(fill) / f64::from(link.capacity.max(1))),
            lost: sum(link.lost, link.dropped),
            broken: link.broken,
        };
        links.iter().enumerate().map(row).collect()
    }

    fn count(&mut self, now_ns: u64, written: Vec<Option<u64>>) {
        let passed_ns = self.since_ns.map(|since_ns| now_ns.saturating_sub(since_ns));
        if passed_ns.is_some_and(|passed_ns| passed_ns < COUNTED_NS_MIN) {
            return;
        }
        let rate = |(before, now): (&Option<u64>, &Option<u64>)| {
            let messages = now.as_ref()?.saturating_sub(*before.as_ref()?);
            Some(messages as f64 / (passed_ns? as f64 / 1e9))
        };
        self.per_s = self.written.iter().zip(&written).map(rate).collect();
        (self.since_ns, self.written) = (Some(now_ns), written);
    }
}

/// The sum of the known values. Both are read from memory in which a core may have written
/// anything.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_apart_up_to_an_hour() {
        let mut values = Distribution::new();
        (1..=1000).for_each(|us| values.add(us * 1000));
        values.add(2_000_000_000);
        let Histogram { times, counts } = histogram(&values);
        assert_eq!((counts.iter().sum(), counts.iter().rposition(|&n| n > 0)), (1001, Some(141)));
        assert_eq!(times.count, 1001);
        assert!(times.p50_us.is_some_and(|us| (495.0..505.0).contains(&us)), "{:?}", times.p50_us);
        assert!(times.max_us.is_some_and(|us| us > 1.99e6), "{:?}", times.max_us);
        assert_eq!(times.p99_9_us, None);
    }

    #[test]
    fn counts_of_nonsense_are_no_panic() {
        assert_eq!(sum(Some(u64::MAX), Some(1)), Some(u64::MAX));
        assert_eq!([sum(None, Some(2)), sum(None, None)], [Some(2), None]);
    }

    #[test]
    fn a_rate_is_counted_over_a_while() {
        let mut rates = Rates::default();
        rates.count(0, vec![Some(0), None]);
        rates.count(500_000_000, vec![Some(500), None]);
        assert_eq!(rates.per_s, [Some(1000.0), None]);
        // A count shortly after another one gives nothing new.
        rates.count(501_000_000, vec![Some(550), Some(1)]);
        assert_eq!(rates.per_s, [Some(1000.0), None]);
        rates.count(1_500_000_000, vec![Some(1500), Some(3)]);
        assert_eq!(rates.per_s, [Some(1000.0), None]);
    }
}
