//! Counters and histograms of the cycles, as Prometheus reads them; those of the status stand in
//! `standing`.

mod standing;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, NativeHistogramConfig};
use prometheus_client::registry::{Registry, Unit};
use sinew_core::clock::Clock;
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Record, Tally, Totals};
use sinew_spec::plan::{Plan, Release};

pub(super) use self::standing::Standing;

/// Name and value each.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Upper ends of the classic buckets, s: 1, 2 and 5 of each decade, so that a bucket is no coarser
/// than half of its value, from the shortest node to a cycle that is lost.
const BUCKETS_S: [f64; 16] = [
    1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3,
    50e-3, 100e-3,
];
/// A native bucket is at most so many times as wide as the one before.
const NATIVE_FACTOR: f64 = 1.1;
/// Native buckets of one histogram; past it the resolution is halved. From 1 us to 1 s it takes 160
/// of them.
const NATIVE_BUCKETS_MAX: usize = 160;

/// A cycle, with the times that follow from its record.
#[derive(Clone, Copy)]
pub(super) struct Cycle<'a> {
    pub(super) record: &'a Record,
    /// What its thread has counted since the record before, cycles without a record among it.
    since: Totals,
    clock: Clock,
}

impl<'a> Cycle<'a> {
    /// Of this record; `before` is what the thread had counted in the same life at the one before.
    pub(super) fn new(record: &'a Record, before: Option<Totals>, clock: Clock) -> Cycle<'a> {
        let alone = || Totals {
            overruns: record.is_overrun().into(),
            skipped: record.skipped(),
            without_input: record.is_without_input().into(),
            without_feedback: record.is_feedback_missing().into(),
            ..Totals::default()
        };
        let since = before.map_or_else(alone, |before| record.totals().since(before));
        Cycle { record, since, clock }
    }

    fn latency_ns(&self) -> u64 {
        self.clock.ns(self.record.latency_ticks())
    }

    fn jitter_ns(&self) -> u64 {
        self.record.start_ns().saturating_sub(self.record.release_ns())
    }

    fn release_to_end_ns(&self) -> u64 {
        self.jitter_ns() + self.latency_ns()
    }

    fn execution_ns(&self, node: usize) -> u64 {
        self.clock.ns(self.record.execution_ticks(node))
    }

    /// Cycle latency.
    pub(super) fn latency_us(&self) -> f64 {
        self.latency_ns() as f64 / 1e3
    }

    /// Activation jitter.
    pub(super) fn jitter_us(&self) -> f64 {
        self.jitter_ns() as f64 / 1e3
    }

    /// From its planned start to its end.
    pub(super) fn release_to_end_us(&self) -> f64 {
        self.release_to_end_ns() as f64 / 1e3
    }

    /// Execution time of the node at this place in the thread.
    pub(super) fn execution_us(&self, node: usize) -> f64 {
        self.execution_ns(node) as f64 / 1e3
    }

    /// Since the record before.
    pub(super) fn overruns(&self) -> f64 {
        self.since.overruns as f64
    }

    /// Whole periods lost since the record before.
    pub(super) fn skipped(&self) -> f64 {
        self.since.skipped as f64
    }

    /// Cycles since the record before whose feedback did not come.
    pub(super) fn feedback_missing(&self) -> f64 {
        self.since.without_feedback as f64
    }

    /// Cycles since the record before whose input did not come.
    pub(super) fn without_input(&self) -> f64 {
        self.since.without_input as f64
    }
}

/// The figures of all threads of the core.
pub(super) struct Cycles(Vec<(ThreadId, Thread)>);

/// The figures of a thread.
struct Thread {
    tally: Tally,
    cycles: Counter,
    overruns: Counter,
    skipped: Counter,
    feedback_missing: Counter,
    without_input: Counter,
    lost: Counter,
    latency: Times,
    /// From its release, and until its end; only of a thread that the clock releases.
    planned: Option<[Times; 2]>,
    nodes: Vec<Times>,
    /// Of all nodes in order; empty if nobody asked for them.
    signals: Vec<Gauge<f64, AtomicU64>>,
}

/// A histogram, and the maximum that no histogram has.
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

impl Cycles {
    /// All at zero, for every realtime thread of the plan; with the signals of its nodes or not.
    pub(super) fn new(registry: &mut Registry, plan: &Plan, with_signals: bool) -> Cycles {
        let families = Families::new(registry);
        let signals = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        if with_signals {
            let doc = "A signal of a node, as of the last cycle that was looked at";
            registry.register("signal", doc, signals.clone());
        }
        let mut threads = Vec::new();
        for (domain, row) in plan.domains.iter().enumerate() {
            for (thread, placed) in row.threads().iter().enumerate() {
                let thread_labels =
                    vec![("domain", row.name.clone()), ("thread", thread.to_string())];
                let nodes = placed.nodes.iter().map(|&node| &plan.nodes[node]);
                let node_labels =
                    |name: &str| vec![("domain", row.name.clone()), ("node", name.to_owned())];
                let timed = placed.release == Release::Timer;
                let mut made = families.thread(&thread_labels, timed);
                made.nodes = nodes
                    .clone()
                    .map(|node| families.execution.times(&node_labels(&node.name)))
                    .collect();
                for signal in nodes.flat_map(|node| signal_labels(node, &node_labels(&node.name))) {
                    made.signals.extend(with_signals.then(|| gauge(&signals, &signal)));
                }
                threads.push((ThreadId { domain, thread }, made));
            }
        }
        Cycles(threads)
    }

    /// Shows what a thread has counted itself.
    pub(super) fn totals(&mut self, thread: ThreadId, life: u32, totals: Totals) {
        let Some((_, it)) = self.0.iter_mut().find(|it| it.0 == thread) else { return };
        it.tally.take(life, totals);
        let all = it.tally.total();
        let counted = [
            (&it.cycles, all.cycles),
            (&it.overruns, all.overruns),
            (&it.skipped, all.skipped),
            (&it.feedback_missing, all.without_feedback),
            (&it.without_input, all.without_input),
        ];
        counted.into_iter().for_each(|(counter, count)| set(counter, count));
    }

    /// Adds the times and signals of a cycle.
    pub(super) fn observe(&mut self, thread: ThreadId, cycle: &Cycle<'_>) {
        let Some((_, it)) = self.0.iter_mut().find(|it| it.0 == thread) else { return };
        let record = cycle.record;
        it.latency.observe(cycle.latency_ns());
        if let Some([jitter, release_to_end]) = &mut it.planned {
            jitter.observe(cycle.jitter_ns());
            release_to_end.observe(cycle.release_to_end_ns());
        }
        for (at, times) in it.nodes.iter_mut().enumerate() {
            times.observe(cycle.execution_ns(at));
        }
        for (gauge, value) in it.signals.iter().zip(record.signals()) {
            gauge.set(value);
        }
    }

    /// Says how many cycles of a thread were gone before they were read, in all.
    pub(super) fn lost(&self, thread: ThreadId, lost: u64) {
        if let Some((_, it)) = self.0.iter().find(|it| it.0 == thread) {
            set(&it.lost, lost);
        }
    }
}

/// What the figures of threads belong to.
struct Families {
    counters: [Family<Labels, Counter>; 6],
    latency: TimesFamily,
    jitter: TimesFamily,
    release_to_end: TimesFamily,
    execution: TimesFamily,
}

impl Families {
    fn new(registry: &mut Registry) -> Families {
        let counters = [
            ("cycles", "Cycles of a realtime thread"),
            ("overruns", "Cycles past their deadline or without their feedback"),
            ("skipped_periods", "Whole periods lost"),
            ("feedback_missing", "Cycles whose feedback did not come by the deadline"),
            ("cycles_without_input", "Cycles that ran because their input stayed away"),
            ("records_lost", "Cycles that the monitor was too slow for; no time is of these"),
        ];
        let counters = counters.map(|(name, doc)| counters_of(registry, name, doc));
        let mut times = |name, doc| TimesFamily::new(registry, name, doc);
        Families {
            counters,
            latency: times("cycle_latency", "Start of the first node until the last feedback"),
            jitter: times("activation_jitter", "Actual start of a cycle minus its release"),
            release_to_end: times("release_to_end", "Release of a cycle until its end"),
            execution: times("execution_time", "Execution time of a node in a cycle"),
        }
    }

    fn thread(&self, labels: &Labels, timed: bool) -> Thread {
        let [cycles, overruns, skipped, feedback_missing, without_input, lost] =
            self.counters.each_ref().map(|family| family.get_or_create(labels).clone());
        let planned = timed.then_some([&self.jitter, &self.release_to_end]);
        Thread {
            tally: Tally::default(),
            cycles,
            overruns,
            skipped,
            feedback_missing,
            without_input,
            lost,
            latency: self.latency.times(labels),
            planned: planned.map(|families| families.map(|family| family.times(labels))),
            nodes: Vec::new(),
            signals: Vec::new(),
        }
    }
}

struct TimesFamily {
    histograms: Family<Labels, Histogram, fn() -> Histogram>,
    max: Family<Labels, Gauge<f64, AtomicU64>>,
}

impl TimesFamily {
    fn new(registry: &mut Registry, name: &str, doc: &str) -> TimesFamily {
        let made = TimesFamily {
            histograms: Family::new_with_constructor(histogram),
            max: Family::default(),
        };
        registry.register_with_unit(name, doc, Unit::Seconds, made.histograms.clone());
        let (name, doc) = (format!("{name}_max"), format!("{doc}: the longest that was seen"));
        registry.register_with_unit(name, doc, Unit::Seconds, made.max.clone());
        made
    }

    fn times(&self, labels: &Labels) -> Times {
        let histogram = self.histograms.get_or_create(labels).clone();
        Times { histogram, max: gauge(&self.max, labels), max_ns: 0 }
    }
}

/// Native, with classic buckets beside for who cannot read that.
fn histogram() -> Histogram {
    let native = NativeHistogramConfig::new(NATIVE_FACTOR).max_buckets(NATIVE_BUCKETS_MAX);
    Histogram::new_classic_and_native(BUCKETS_S, native)
}

/// Labels of each element of each signal of a node.
fn signal_labels(node: &sinew_spec::plan::Node, labels: &Labels) -> Vec<Labels> {
    let mut all = Vec::new();
    for signal in node.kind.signals {
        for element in 0..signal.count {
            let own = [("signal", signal.name.to_owned()), ("element", element.to_string())];
            all.push(labels.iter().cloned().chain(own).collect());
        }
    }
    all
}

/// Registers counters; the name gets its `_total` from the encoder.
fn counters_of(registry: &mut Registry, name: &str, doc: &str) -> Family<Labels, Counter> {
    let family = Family::default();
    registry.register(name, doc, Family::clone(&family));
    family
}

fn gauge(family: &Family<Labels, Gauge<f64, AtomicU64>>, labels: &Labels) -> Gauge<f64, AtomicU64> {
    family.get_or_create(labels).clone()
}

/// For what is counted elsewhere: nobody else writes this one.
fn set(counter: &Counter, value: u64) {
    counter.inner().store(value, std::sync::atomic::Ordering::Relaxed);
}
