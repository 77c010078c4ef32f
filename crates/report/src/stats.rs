//! The sums and distributions that a run makes from the records of its cycles.

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;

use sinew_core::catalogue::Signal;
use sinew_core::clock::Clock;
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Record, Tally, Totals};
use sinew_spec::plan::{Plan, Release};

use sinew_figures::Distribution;

/// The signal whose greatest value is in the report.
const TRACKING_ERROR: &str = "tracking_error_m";

/// A record in nanoseconds. Created once, filled again for every cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Number of the cycle.
    pub cycle: u64,
    /// Life of the core.
    pub life: u32,
    /// What the thread has counted in this life.
    pub totals: Totals,
    /// The planned start, monotonic.
    pub release_ns: u64,
    /// The start, monotonic.
    pub start_ns: u64,
    /// From the start to the end.
    pub latency_ns: u64,
    /// Periods lost before it.
    pub skipped: u64,
    /// Whether it ended past its deadline.
    pub is_overrun: bool,
    /// Whether it belongs to a stop.
    pub is_stopping: bool,
    /// Whether feedback did not come by the deadline.
    pub is_feedback_missing: bool,
    /// One for each node of the thread.
    pub execution_ns: Vec<u64>,
    /// How often each node has allocated in this life. Empty if allocations are not counted.
    pub allocations: Vec<u64>,
    /// The signals of all nodes, in the order of the nodes.
    pub signals: Vec<f64>,
}

impl Observed {
    /// Fills it from the record of a thread with `nodes` nodes.
    pub fn read(&mut self, record: &Record, nodes: usize, clock: Clock) {
        self.cycle = record.number();
        (self.life, self.totals) = (record.life(), record.totals());
        self.release_ns = record.release_ns();
        self.start_ns = record.start_ns();
        self.latency_ns = clock.ns(record.latency_ticks());
        self.skipped = record.skipped();
        self.is_overrun = record.is_overrun();
        self.is_stopping = record.is_stopping();
        self.is_feedback_missing = record.is_feedback_missing();
        self.execution_ns.clear();
        self.execution_ns.extend((0..nodes).map(|node| clock.ns(record.execution_ticks(node))));
        self.allocations.clear();
        self.allocations.extend((0..nodes).map_while(|node| record.allocations(node)));
        self.signals.clear();
        self.signals.extend(record.signals());
    }

    /// When the cycle ended, monotonic.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.latency_ns)
    }

    /// The sum of the execution times of all nodes. A record may contain anything.
    pub(crate) fn nodes_ns(&self) -> u64 {
        self.execution_ns.iter().fold(0, |sum: u64, &ns| sum.saturating_add(ns))
    }

    /// From the planned start to the actual one.
    pub fn jitter_ns(&self) -> u64 {
        self.start_ns.saturating_sub(self.release_ns)
    }
}

/// Overruns, by the part that took the largest share of the cycle's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverrunsBy {
    /// From the release to the start: the kernel or the host woke the thread late.
    pub late_start: u64,
    /// Outside the nodes: mainly waiting for feedback, but also links and preemption.
    pub feedback: u64,
    /// In the nodes.
    pub nodes: u64,
}

impl OverrunsBy {
    fn add(&mut self, observed: &Observed) {
        let nodes_ns = observed.nodes_ns();
        let feedback_ns = observed.latency_ns.saturating_sub(nodes_ns);
        let late_ns = observed.jitter_ns();
        if late_ns >= feedback_ns.max(nodes_ns) {
            self.late_start += 1;
        } else if feedback_ns >= nodes_ns {
            self.feedback += 1;
        } else {
            self.nodes += 1;
        }
    }
}

/// A node's execution times.
#[derive(Debug)]
pub struct NodeStats {
    /// Its name.
    pub name: String,
    /// Execution times in ns.
    pub execution: Distribution,
    /// How often it has allocated in its cycles: in earlier lives of the core, and in this one.
    allocations: Option<[u64; 2]>,
}

impl NodeStats {
    /// How often it has allocated in its cycles. `None` if allocations are not counted.
    pub fn allocations(&self) -> Option<u64> {
        self.allocations.map(|[earlier, now]| earlier.saturating_add(now))
    }
}

/// Last value of one number of a signal, and its extremes before the graph began to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// The last value.
    pub last: f64,
    /// The least one.
    pub min: f64,
    /// The greatest one.
    pub max: f64,
}

/// A signal of a node.
#[derive(Debug)]
pub struct SignalStats {
    /// Name of the node.
    pub node: String,
    /// The signal's row.
    pub signal: &'static Signal,
    /// Empty until the first cycle.
    pub values: Vec<Extent>,
}

impl SignalStats {
    /// Whether its numbers stand for words, and there are some already.
    pub fn is_state(&self) -> bool {
        !self.signal.labels.is_empty() && !self.values.is_empty()
    }

    /// The word for the last value of number `at`, if the signal is a state.
    pub fn label(&self, at: usize) -> Option<&'static str> {
        let value = self.values.get(at)?.last;
        let index = (value >= 0.0 && value.fract() == 0.0).then_some(value as usize)?;
        self.signal.labels.get(index).copied()
    }

    /// The numbers of a state as words, equal ones together: `1-5 enabled, 6 fault`.
    pub fn words(&self) -> String {
        let mut words: Vec<(&str, Vec<usize>)> = Vec::new();
        for at in 0..self.values.len() {
            let word = self.label(at).unwrap_or("unknown");
            match words.iter_mut().find(|row| row.0 == word) {
                Some(row) => row.1.push(at + 1),
                None => words.push((word, vec![at + 1])),
            }
        }
        match words.as_slice() {
            [] => "-".into(),
            [(word, numbers)] if numbers.len() == 1 => (*word).into(),
            [(word, _)] => format!("all {word}"),
            _ => {
                let each =
                    words.iter().map(|(word, numbers)| format!("{} {word}", ranges(numbers)));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Ascending numbers, consecutive ones shortened: `1-3+5`.
fn ranges(numbers: &[usize]) -> String {
    let rows = numbers.chunk_by(|a, b| a + 1 == *b).map(|row| match row {
        [one] => one.to_string(),
        _ => format!("{}-{}", row[0], row[row.len() - 1]),
    });
    rows.collect::<Vec<_>>().join("+")
}

/// A thread of the graph.
#[derive(Debug)]
pub struct ThreadStats {
    /// Its id.
    pub id: ThreadId,
    /// Name of its domain.
    pub domain: String,
    /// The planned period.
    pub period_ns: u64,
    /// The planned deadline.
    pub deadline_ns: u64,
    /// What releases its cycles.
    pub release: Release,
    /// What the thread itself has counted.
    tally: Tally,
    /// Cycles whose records were overwritten before they were read. They are in `tally`, but in no
    /// other figure.
    pub records_lost: u64,
    /// Counted from the records that were read.
    pub overruns_by: OverrunsBy,
    /// When its first cycle began, monotonic.
    pub first_start_ns: Option<u64>,
    life: u32,
    /// From start to end, ns.
    pub latency: Distribution,
    /// Jitter of timer-released threads. It is not defined for others.
    pub jitter: Distribution,
    /// From the planned start until the cycle's end: jitter and latency of the same cycle.
    pub response: Distribution,
    /// Its nodes, in order.
    pub nodes: Vec<NodeStats>,
    /// The signals of all its nodes.
    pub signals: Vec<SignalStats>,
}

impl ThreadStats {
    fn new(plan: &Plan, id: ThreadId) -> ThreadStats {
        let domain = &plan.domains[id.domain];
        let realtime = domain.realtime().expect("only realtime domains have threads of this sort");
        let thread = &realtime.threads[id.thread];
        let nodes = || thread.nodes.iter().map(|&node| &plan.nodes[node]);
        let execution = Distribution::new;
        let signals = nodes().flat_map(|node| {
            let signals = node.kind.signals.iter();
            signals.map(|signal| SignalStats { node: node.name.clone(), signal, values: vec![] })
        });
        ThreadStats {
            id,
            domain: domain.name.clone(),
            period_ns: realtime.period_ns,
            deadline_ns: realtime.deadline_ns,
            release: thread.release,
            tally: Tally::default(),
            records_lost: 0,
            overruns_by: OverrunsBy::default(),
            first_start_ns: None,
            life: 0,
            latency: Distribution::new(),
            jitter: Distribution::new(),
            response: Distribution::new(),
            signals: signals.collect(),
            nodes: nodes()
                .map(|node| {
                    let (name, execution) = (node.name.clone(), execution());
                    NodeStats { name, execution, allocations: None }
                })
                .collect(),
        }
    }

    /// What the thread has counted, in all lives of the core.
    pub fn totals(&self) -> Totals {
        self.tally.total()
    }

    /// Whether the clock releases it.
    pub fn is_timer_released(&self) -> bool {
        self.release == Release::Timer
    }

    /// Takes a record, which may contain anything: a domain that writes garbage must not end this
    /// process.
    fn add(&mut self, observed: &Observed) {
        self.first_start_ns.get_or_insert(observed.start_ns);
        if observed.life != self.life {
            // The nodes' counts of allocations start at zero again.
            self.life = observed.life;
            for node in &mut self.nodes {
                node.allocations = node.allocations().map(|count| [count, 0]);
            }
        }
        for (node, &count) in self.nodes.iter_mut().zip(&observed.allocations) {
            node.allocations.get_or_insert_default()[1] = count;
        }
        self.tally.take(observed.life, observed.totals);
        self.add_signals(observed);
        if observed.is_stopping {
            return;
        }
        if observed.is_overrun {
            self.overruns_by.add(observed);
        }
        self.latency.add(observed.latency_ns);
        self.response.add(observed.jitter_ns().saturating_add(observed.latency_ns));
        if self.is_timer_released() {
            self.jitter.add(observed.jitter_ns());
        }
        for (node, &ns) in self.nodes.iter_mut().zip(&observed.execution_ns) {
            node.execution.add(ns);
        }
    }

    fn add_signals(&mut self, observed: &Observed) {
        let mut values = observed.signals.iter();
        for signal in &mut self.signals {
            let values = values.by_ref().take(signal.signal.count);
            if signal.values.is_empty() {
                signal.values = values.map(|&v| Extent { last: v, min: v, max: v }).collect();
                continue;
            }
            for (extent, &value) in signal.values.iter_mut().zip(values) {
                extent.last = value;
                if !observed.is_stopping {
                    extent.min = extent.min.min(value);
                    extent.max = extent.max.max(value);
                }
            }
        }
    }
}

/// All threads of the graph.
#[derive(Debug)]
pub struct Stats {
    /// In the order in which they stop.
    pub threads: Vec<ThreadStats>,
    /// Index of the first timer-released thread. The head of the report describes this thread.
    /// `None` in a graph of services.
    control: Option<usize>,
}

impl Stats {
    /// For this plan, without any cycle.
    pub fn new(plan: &Plan) -> Stats {
        let threads = ThreadId::all(plan).map(|id| ThreadStats::new(plan, id));
        let threads: Vec<_> = threads.collect();
        let first = (!threads.is_empty()).then_some(0);
        let control = threads.iter().position(ThreadStats::is_timer_released).or(first);
        Stats { threads, control }
    }

    /// The control thread, if the graph has a core.
    pub fn control(&self) -> Option<&ThreadStats> {
        self.threads.get(self.control?)
    }

    /// The thread with this id.
    pub fn thread(&self, id: ThreadId) -> Option<&ThreadStats> {
        self.threads.iter().find(|thread| thread.id == id)
    }

    /// Takes a cycle of a thread.
    pub fn add(&mut self, id: ThreadId, observed: &Observed) {
        if let Some(thread) = self.threads.iter_mut().find(|thread| thread.id == id) {
            thread.add(observed);
        }
    }

    /// Reads how many records of each thread were overwritten before they were read.
    pub fn read_losses(&mut self, lost: impl Fn(ThreadId) -> u64) {
        for thread in &mut self.threads {
            thread.records_lost = lost(thread.id);
        }
    }

    /// The number of lost records of all threads.
    pub fn records_lost(&self) -> u64 {
        self.threads.iter().map(|thread| thread.records_lost).sum()
    }

    /// The signals of all nodes.
    pub fn signals(&self) -> impl Iterator<Item = &SignalStats> {
        self.threads.iter().flat_map(|thread| &thread.signals)
    }

    /// The last tracking error and its maximum. `None` if no node has one.
    pub fn tracking_error_m(&self) -> Option<Extent> {
        let signal = self.signals().find(|signal| signal.signal.name == TRACKING_ERROR)?;
        signal.values.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{self, CONTROL, PLANT};
    use super::*;

    #[test]
    fn an_overrun_belongs_to_where_most_of_its_time_went() {
        let mut stats = Stats::new(&fixture::plan());
        let mut add = |late_ns, latency_ns, nodes_ns| {
            let mut observed = fixture::observed(0);
            observed.start_ns = observed.release_ns + late_ns;
            (observed.latency_ns, observed.execution_ns) = (latency_ns, vec![nodes_ns]);
            observed.is_overrun = true;
            stats.add(CONTROL, &observed);
        };
        add(900_000, 200_000, 150_000);
        add(1_000, 1_100_000, 40_000);
        add(1_000, 1_100_000, 50_000);
        add(1_000, 1_100_000, 1_000_000);
        let expected = OverrunsBy { late_start: 1, feedback: 2, nodes: 1 };
        assert_eq!(stats.control().expect("a core").overruns_by, expected);
    }

    #[test]
    fn a_cycle_of_a_stop_is_in_no_figure_of_the_control_loop() {
        let mut stats = fixture::stats(10);
        let mut stopping = fixture::observed(10);
        (stopping.is_stopping, stopping.is_overrun) = (true, true);
        stopping.latency_ns = 5_000_000;
        stopping.signals[0] = 1.0;
        stats.add(CONTROL, &stopping);
        let control = stats.control().expect("a core");
        assert_eq!(control.overruns_by, OverrunsBy::default());
        assert_eq!((control.latency.n(), control.latency.max()), (10, Some(9_000)));
        let error = stats.tracking_error_m().expect("the planner has one");
        assert_eq!((error.last, error.max), (1.0, 0.001));
    }

    #[test]
    fn a_record_of_nonsense_is_no_panic() {
        let mut stats = fixture::stats(3);
        for (cycle, cycles) in [(u64::MAX, 1), (0, u64::MAX), (u64::MAX, u64::MAX)] {
            let mut nonsense = fixture::observed(0);
            (nonsense.cycle, nonsense.release_ns, nonsense.start_ns) = (cycle, 0, u64::MAX);
            (nonsense.latency_ns, nonsense.skipped) = (u64::MAX, u64::MAX);
            (nonsense.execution_ns, nonsense.is_overrun) = (vec![u64::MAX; 4], true);
            let (skipped, messages_lost) = (u64::MAX, u64::MAX);
            nonsense.totals = Totals { cycles, skipped, messages_lost, ..Totals::default() };
            nonsense.life = cycle as u32;
            nonsense.signals.clear();
            stats.add(CONTROL, &nonsense);
        }
        assert_eq!(stats.control().expect("a core").totals().skipped, u64::MAX);
    }

    #[test]
    fn figures_go_on_in_the_next_life_of_the_core() {
        let mut stats = Stats::new(&fixture::plan());
        // The records before the last cycle of each life were not read.
        for (life, cycle) in [(0, 0), (0, 2), (1, 1)] {
            let mut observed = fixture::observed(cycle);
            observed.life = life;
            (observed.totals.messages_lost, observed.totals.messages_dropped) = (cycle, 2 * cycle);
            stats.add(CONTROL, &observed);
        }
        let control = stats.control().expect("a core");
        let totals = control.totals();
        assert_eq!((totals.cycles, control.latency.n()), (5, 3));
        assert_eq!((totals.messages_lost, totals.messages_dropped), (3, 6));
    }

    #[test]
    fn the_control_thread_is_the_first_that_the_clock_releases() {
        let mut plan = fixture::plan();
        assert_eq!(Stats::new(&plan).control().expect("a core").id, CONTROL);
        plan.domains.reverse();
        let stats = Stats::new(&plan);
        assert_eq!(
            (stats.control().expect("a core").id, &*stats.control().expect("a core").domain),
            (PLANT, "control")
        );
    }

    #[test]
    fn every_signal_gets_its_own_numbers() {
        let stats = fixture::stats(3);
        let plant = stats.thread(PLANT).expect("a thread");
        assert_eq!(plant.signals[0].label(5), Some("fault"));
        assert_eq!(plant.signals[0].label(6), None);
        assert_eq!(plant.signals[2].values[4].last, 1.25);
        assert_eq!(plant.jitter.n(), 0, "an input-released thread starts when it is released");
        assert_eq!(stats.thread(ThreadId { domain: 7, thread: 0 }).map(|t| t.totals()), None);
    }

    #[test]
    fn equal_states_stand_together() {
        assert_eq!(ranges(&[1, 2, 3, 5, 8, 9]), "1-3+5+8-9");
        let stats = fixture::stats(1);
        let words: Vec<_> = stats.signals().map(SignalStats::words).collect();
        assert_eq!(words[2], "1-5 enabled, 6 fault");
        assert_eq!(words[3], "1-5 open, 6 closed");
    }

    #[test]
    fn a_state_that_is_no_word_has_no_label() {
        let mut stats = Stats::new(&fixture::plan());
        let mut observed = fixture::observed_plant(0);
        observed.signals[..4].copy_from_slice(&[-1.0, 0.5, f64::NAN, 1e300]);
        stats.add(PLANT, &observed);
        let signal = &stats.thread(PLANT).expect("a thread").signals[0];
        assert!((0..4).all(|at| signal.label(at).is_none()));
    }
}
