//! Counters and histograms of the cycles, as Prometheus reads them; those of the status are in
//! `standing`.

mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig};
use prometheus_client::registry::{Registry, Unit};
use sinew_core::catalogue::Signal;
use sinew_core::clock::Clock;
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Record, Tally, Totals};
use sinew_spec::plan::{Plan, Release};

pub(super) use self::standing::Standing;

/// Names and values.
pub(super) type Labels = Vec<(&'static str, String)>;

pub(super) type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Upper ends of the classic buckets, s: 1, 2 and 5 of each decade, so that the width of a bucket
/// is at most half of its value, from the shortest node to a cycle that is lost.
const BUCKETS_S: [f64; 16] = [
    1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3,
    50e-3, 100e-3,
];
/// A native bucket is at most this many times as wide as the one before.
const NATIVE_FACTOR: f64 = 1.1;
/// Most native buckets of one histogram; with more the resolution is halved. 1 us to 1 s takes 160
/// of them.
const NATIVE_BUCKETS_MAX: usize = 160;

/// A cycle, with the times that follow from its record.
#[derive(Clone, Copy)]
pub(super) struct Cycle<'a> {
    pub(super) record: &'a Record,
    /// What its thread has counted since the previous record, including cycles without a record.
    pub(super) since: Totals,
    pub(super) latency_ns: u64,
    /// From the planned start to the actual start, and to the end.
    pub(super) jitter_ns: u64,
    pub(super) release_to_end_ns: u64,
    clock: Clock,
}

impl<'a> Cycle<'a> {
    /// The cycle of this record; `before` is what the thread had counted at the previous record of
    /// the same life.
    pub(super) fn new(record: &'a Record, before: Option<Totals>, clock: Clock) -> Cycle<'a> {
        let alone = || Totals {
            overruns: record.is_overrun().into(),
            skipped: record.skipped(),
            without_input: record.is_without_input().into(),
            without_feedback: record.is_feedback_missing().into(),
            ..Totals::default()
        };
        let since = before.map_or_else(alone, |before| record.totals().since(before));
        let latency_ns = clock.ns(record.latency_ticks());
        let jitter_ns = record.start_ns().saturating_sub(record.release_ns());
        let release_to_end_ns = jitter_ns.saturating_add(latency_ns);
        Cycle { record, since, latency_ns, jitter_ns, release_to_end_ns, clock }
    }

    /// Execution time of the node number `node` in the thread.
    pub(super) fn execution_ns(&self, node: usize) -> u64 {
        self.clock.ns(self.record.execution_ticks(node))
    }
}

/// In us, the unit of rules.
pub(super) fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// What is counted of each thread: the thread counts all but the last, which the monitor counts.
const COUNTED: [(&str, &str); LOST + 1] = [
    ("cycles", "Cycles of a realtime thread"),
    ("overruns", "Cycles past their deadline or without their feedback"),
    ("skipped_periods", "Whole periods lost"),
    ("feedback_missing", "Cycles whose feedback did not come by the deadline"),
    ("cycles_without_input", "Cycles that ran because their input stayed away"),
    ("records_lost", "Cycles that the monitor was too slow for; the times are without them"),
];
const LOST: usize = 5;

const TIMES: [(&str, &str); 4] = [
    ("cycle_latency", "Start of the first node until the last feedback"),
    ("activation_jitter", "Actual start of a cycle minus its release"),
    ("release_to_end", "Release of a cycle until its end"),
    ("execution_time", "Execution time of a node in a cycle"),
];

/// The figures of all threads of the core.
pub(super) struct CycleFigures(BTreeMap<ThreadId, Thread>);

/// The figures of a thread.
struct Thread {
    tally: Tally,
    /// In the order of [`COUNTED`].
    counters: [Counter; COUNTED.len()],
    latency: Times,
    /// From its release to its start and to its end; only for a thread that the clock releases.
    planned: Option<[Times; 2]>,
    nodes: Vec<Times>,
    /// The signals of all nodes in order; empty if they were not asked for.
    signals: Vec<Gauge<f64, AtomicU64>>,
}

/// A histogram, and the maximum, which a histogram does not have.
struct Times {
    histogram: Histogram,
    max: Gauge<f64, AtomicU64>,
    max_ns: u64,
}

impl Times {
    fn observe(&mut self, ns: u64) {
        self.histogram.observe(ns as f64 / 1e9);
        if ns > self.max_ns {
            self.max_ns = ns;
            self.max.set(ns as f64 / 1e9);
        }
    }
}

impl CycleFigures {
    /// All zero, for every realtime thread of the plan; with or without the signals of its nodes.
    pub(super) fn new(registry: &mut Registry, plan: &Plan, with_signals: bool) -> CycleFigures {
        let counted = COUNTED.map(|(name, doc)| counters(registry, name, doc));
        let [latency, jitter, release_to_end, execution] =
            TIMES.map(|(name, doc)| TimesFamily::new(registry, name, doc));
        let doc = "A signal of a node, as of the last cycle that was looked at";
        let signals = with_signals.then(|| gauges(registry, "signal", doc, None));
        let mut threads = BTreeMap::new();
        for (domain, row) in plan.domains.iter().enumerate() {
            let labels =
                |name, value: &str| vec![("domain", row.name.clone()), (name, value.to_owned())];
            for (at, placed) in row.threads().iter().enumerate() {
                let of_thread = labels("thread", &at.to_string());
                let timed = placed.release == Release::Timer;
                let mut thread = Thread {
                    tally: Tally::default(),
                    counters: counted.each_ref().map(|it| it.get_or_create(&of_thread).clone()),
                    latency: latency.times(&of_thread),
                    planned: timed
                        .then(|| [&jitter, &release_to_end].map(|it| it.times(&of_thread))),
                    nodes: Vec::new(),
                    signals: Vec::new(),
                };
                for &node in &placed.nodes {
                    let of_node = labels("node", &plan.nodes[node].name);
                    thread.nodes.push(execution.times(&of_node));
                    let Some(signals) = &signals else { continue };
                    let elements = elements(plan.nodes[node].kind.signals);
                    thread.signals.extend(
                        elements.map(|own| {
                            gauge(signals, &of_node.iter().cloned().chain(own).collect())
                        }),
                    );
                }
                threads.insert(ThreadId { domain, thread: at }, thread);
            }
        }
        CycleFigures(threads)
    }

    /// Publishes what a thread has counted itself.
    pub(super) fn totals(&mut self, thread: ThreadId, life: u32, totals: Totals) {
        let Some(it) = self.0.get_mut(&thread) else { return };
        it.tally.take(life, totals);
        let all = it.tally.total();
        let counted =
            [all.cycles, all.overruns, all.skipped, all.without_feedback, all.without_input];
        it.counters.iter().zip(counted).for_each(|(counter, count)| set(counter, count));
    }

    /// Adds the times and signals of a cycle.
    pub(super) fn observe(&mut self, thread: ThreadId, cycle: &Cycle<'_>) {
        let Some(it) = self.0.get_mut(&thread) else { return };
        let record = cycle.record;
        it.latency.observe(cycle.latency_ns);
        if let Some([jitter, release_to_end]) = &mut it.planned {
            jitter.observe(cycle.jitter_ns);
            release_to_end.observe(cycle.release_to_end_ns);
        }
        for (at, times) in it.nodes.iter_mut().enumerate() {
            times.observe(cycle.execution_ns(at));
        }
        for (gauge, value) in it.signals.iter().zip(record.signals()) {
            gauge.set(value);
        }
    }

    /// Sets how many cycles of a thread were overwritten before they were read, in total.
    pub(super) fn lost(&self, thread: ThreadId, lost: u64) {
        self.0.get(&thread).into_iter().for_each(|it| set(&it.counters[LOST], lost));
    }
}

struct TimesFamily {
    histograms: Family<Labels, Histogram, fn() -> Histogram>,
    max: Gauges,
}

impl TimesFamily {
    fn new(registry: &mut Registry, name: &str, doc: &str) -> TimesFamily {
        let histograms: Family<_, _, fn() -> _> = Family::new_with_constructor(histogram);
        registry.register_with_unit(name, doc, Unit::Seconds, histograms.clone());
        let (name, doc) = (format!("{name}_max"), format!("{doc}: the longest that was seen"));
        TimesFamily { histograms, max: gauges(registry, &name, &doc, Some(Unit::Seconds)) }
    }

    fn times(&self, labels: &Labels) -> Times {
        let histogram = self.histograms.get_or_create(labels).clone();
        Times { histogram, max: gauge(&self.max, labels), max_ns: 0 }
    }
}

/// A native histogram, with classic buckets for readers that do not know native ones.
fn histogram() -> Histogram {
    let native = NativeHistogramConfig::new(NATIVE_FACTOR).max_buckets(NATIVE_BUCKETS_MAX);
    Histogram::new_classic_and_native(BUCKETS_S, native)
}

/// Labels of each element of each signal.
fn elements(signals: &[Signal]) -> impl Iterator<Item = [(&'static str, String); 2]> {
    signals.iter().flat_map(|signal| {
        let name = || signal.name.to_owned();
        (0..signal.count).map(move |at| [("signal", name()), ("element", at.to_string())])
    })
}

/// Registers counters; the encoder adds `_total` to the name.
pub(super) fn counters(registry: &mut Registry, name: &str, doc: &str) -> Family<Labels, Counter> {
    let family = Family::default();
    registry.register(name, doc, Family::clone(&family));
    family
}

/// Registers gauges.
pub(super) fn gauges(registry: &mut Registry, name: &str, doc: &str, unit: Option<Unit>) -> Gauges {
    let family = Gauges::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, doc, unit, family.clone()),
        None => registry.register(name, doc, family.clone()),
    }
    family
}

fn gauge(family: &Gauges, labels: &Labels) -> Gauge<f64, AtomicU64> {
    family.get_or_create(labels).clone()
}

/// For a value that is counted elsewhere; nothing else writes this counter.
fn set(counter: &Counter, value: u64) {
    counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
}
