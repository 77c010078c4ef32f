//! Latency, jitter and overruns of the cycles that go around the whole loop.

use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_figures::Distribution;

use crate::report::Row;

/// What was seen of these cycles.
#[derive(Default)]
pub(crate) struct Cycles {
    pub(crate) latency: Distribution,
    pub(crate) jitter: Distribution,
    /// Cycles past their deadline, and periods lost.
    pub(crate) overruns: u64,
    pub(crate) skipped: u64,
    /// The step of the clock that took the times, ns.
    step_ns: f64,
}

impl Cycles {
    pub(crate) fn take(&mut self, record: &Record, clock: Clock) {
        self.latency.add(clock.ns(record.latency_ticks()));
        self.jitter.add(record.start_ns().saturating_sub(record.release_ns()));
        self.overruns += u64::from(record.is_overrun()) + record.skipped();
        self.skipped += record.skipped();
        self.step_ns = clock.step_ns();
    }

    pub(crate) fn merge(&mut self, other: &Cycles) {
        self.latency.merge(&other.latency);
        self.jitter.merge(&other.jitter);
        self.overruns += other.overruns;
        self.skipped += other.skipped;
        self.step_ns = self.step_ns.max(other.step_ns);
    }

    /// Adds the cycles as a round to a row's measures: latency, compared with the reference if
    /// there is one, and jitter if the cycles have a period.
    pub(crate) fn add_to(&self, row: &mut Row, reference_ns: Option<f64>, has_period: bool) {
        let mut add = |name, times: &Distribution, reference_ns| {
            let measure = row.measure_mut(name);
            match times.median_of_steps(self.step_ns) {
                Some(median) => measure.add_round(times, median, reference_ns),
                None => measure.distribution.merge(times),
            }
        };
        add("cycle_latency", &self.latency, reference_ns);
        if has_period {
            add("activation_jitter", &self.jitter, None);
        }
    }
}
