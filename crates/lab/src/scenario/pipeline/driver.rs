//! Runs a row as `sinew run` runs a graph, and adds up the records of its cycles.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use sinew_core::clock::{Clock, now_ns};
use sinew_core::trace::Record;
use sinew_core::{pace::Pace, trace::ThreadId};
use sinew_figures::process;
use sinew_runtime::Kinds;
use sinew_runtime::run::{Outcome, Run, RunRequest};
use sinew_spec::plan::Plan;

use super::setup::{Period, Setup};
use crate::graph::{compiled, faults, leader};
use crate::harness::Gone;
use crate::harness::reference::{Reference, TOKEN};
use crate::report::{Figure, Row};
use crate::rounds::{Contender, Session};
use crate::scenario::cycles::Cycles;
use crate::scenario::table;

/// The file name of the lab's spec in messages.
const FILE: &str = "lab pipeline";
/// Longest pause between two looks at a run: a domain that leaves no record for 2 s counts as hung.
const LOOK: Duration = Duration::from_millis(250);
/// Shortest pause between two looks at a run.
const LOOK_MIN: Duration = Duration::from_millis(1);
/// About how long starting and stopping a graph takes.
const START: Duration = Duration::from_millis(50);
/// Length of a burst of free cycles. It is shorter than a second, because in every second the
/// kernel takes 50 ms from threads that never sleep.
const BURST_NS: f64 = 200e6;
/// Cycles of the first burst, which shows how long a cycle takes.
const FIRST_BURST: u64 = 2000;

/// What all rows share.
pub(super) struct Shared<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) cpus: Vec<u32>,
    /// The token, measured before each row.
    pub(super) reference: Reference,
    /// What the kernel refused.
    pub(super) refused: RefCell<BTreeSet<String>>,
}

/// How much of a row is measured in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) time: Duration,
    /// Cycles after each start that do not count.
    pub(super) warm_up: u64,
}

/// A row that can be run.
pub(super) struct PipelineRun<'a> {
    shared: &'a Shared<'a>,
    setup: Setup,
    share: Share,
    graph: RunRequest,
    all: GraphSeen,
    /// How long a free cycle takes, if that is known.
    free_cycle_ns: Option<f64>,
}

impl<'a> PipelineRun<'a> {
    /// Compiles the row's spec.
    pub(super) fn new(
        shared: &'a Shared<'a>,
        setup: Setup,
        share: Share,
    ) -> Result<PipelineRun<'a>, String> {
        let (text, kinds) = (setup.text(), table(&Kinds::default()).catalogue());
        let graph = compiled(FILE, text, Vec::new(), &kinds, &shared.cpus)?;
        let all = GraphSeen::new(&graph.plan, share.warm_up, u64::MAX);
        Ok(PipelineRun { shared, setup, share, graph, all, free_cycle_ns: None })
    }

    /// Where the plan differs from what the row asks for.
    pub(super) fn departures(&self) -> Vec<String> {
        let wait = self.setup.crossing.map(|crossing| crossing.wait);
        let mut crossing = self.graph.plan.links.iter().filter(|link| !link.fused);
        let changed = crossing.any(|link| Some(link.wait) != wait);
        if changed { self.graph.plan.notes.clone() } else { Vec::new() }
    }

    fn planned(&self) -> Result<GraphSeen, String> {
        let period_ns = self.setup.period.ms() * 1_000_000;
        let cycles = (self.share.time.as_nanos() as u64 / period_ns).max(1);
        let seen = GraphSeen::new(&self.graph.plan, self.share.warm_up, cycles);
        self.run(Pace::AsPlanned, seen)
    }

    /// Runs as many bursts as the time holds.
    fn free(&mut self) -> Result<GraphSeen, String> {
        let mut round = GraphSeen::new(&self.graph.plan, self.share.warm_up, u64::MAX);
        let share_ns = self.share.time.as_nanos() as f64;
        let mut spent_ns = 0.0;
        while spent_ns < share_ns && !self.shared.session.is_stopped() {
            let fitting = |cycle_ns: f64| (BURST_NS.min(share_ns) / cycle_ns) as u64;
            let cycles = self.free_cycle_ns.map_or(FIRST_BURST, fitting).max(FIRST_BURST / 10);
            let cycles = cycles.min(Pace::FREE_CYCLES_MAX - self.share.warm_up);
            let seen = GraphSeen::new(&self.graph.plan, self.share.warm_up, u64::MAX);
            let pace = Pace::Free { cycles: self.share.warm_up + cycles };
            let seen = self.run(pace, seen)?;
            let burst_ns = seen.last_start_ns.saturating_sub(seen.first_start_ns) as f64;
            self.free_cycle_ns = Some(burst_ns / seen.n().max(1) as f64);
            spent_ns += burst_ns.max(1.0);
            round.merge(&seen);
        }
        Ok(round)
    }

    /// Runs the graph once, from start to end.
    fn run(&self, pace: Pace, mut seen: GraphSeen) -> Result<GraphSeen, String> {
        let run = Run::start(RunRequest { pace, ..self.graph.clone() });
        let mut run = run.map_err(|error| format!("the graph cannot be started: {error}"))?;
        let (clock, processes) = (run.clock(), run.processes());
        let mut before = None;
        let mut look = LOOK_MIN;
        while run.poll(look, &mut |id, record| seen.take(id, record, clock)) {
            let done = seen.is_full() || self.shared.session.is_stopped();
            if seen.n() > 0 && before.is_none() {
                before = Some((now_ns(), cpu_ns(&processes)));
            }
            if done {
                if let Some((at_ns, used_ns)) = before.filter(|_| pace == Pace::AsPlanned) {
                    seen.wall_ns += now_ns().saturating_sub(at_ns);
                    seen.cpu_ns += cpu_ns(&processes).saturating_sub(used_ns);
                    before = None;
                }
                run.stop();
            }
            look = if done { LOOK_MIN } else { self.pause(&run, &seen) };
        }
        self.notice(&run);
        if run.outcome() == Outcome::Faulted {
            return Err(faults(&run));
        }
        seen.unread += run.records_lost();
        Ok(seen)
    }

    /// How long to wait for the next event: the first cycle that counts, or the last one.
    fn pause(&self, run: &Run, seen: &GraphSeen) -> Duration {
        let period_ns = self.setup.period.ms() * 1_000_000;
        if run.started_ns() == u64::MAX {
            return LOOK_MIN;
        }
        let cycles = match seen.n() {
            0 => self.share.warm_up,
            _ => self.share.warm_up.saturating_add(seen.cycles_max),
        };
        let due_ns = run.started_ns().saturating_add(cycles.saturating_mul(period_ns));
        let left = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
        left.clamp(LOOK_MIN, LOOK)
    }

    fn notice(&self, run: &Run) {
        // Before its first release a thread has not reported which privileges it got.
        if run.started_ns() != u64::MAX {
            let missing = run.privileges().into_iter();
            let missing = missing.flat_map(|(_, asked, obtained)| obtained.missing(&asked));
            self.shared.refused.borrow_mut().extend(missing);
        }
    }

    /// Adds a round to the row.
    fn add(&mut self, row: &mut Row, round: &GraphSeen, token_ns: Option<f64>) {
        let is_free = self.setup.period == Period::Free;
        round.cycles.add_to(row, token_ns, !is_free);
        self.all.merge(round);
        row.figures = self.all.figures(if is_free { None } else { Some(self.setup.period.ms()) });
        for (n, note) in [(self.all.feedback_missing, NO_FEEDBACK), (self.all.unread, UNREAD)] {
            if n > 0 && row.notes.iter().all(|there| there != note) {
                row.notes.push(note.into());
            }
        }
    }
}

const NO_FEEDBACK: &str = "feedback missing: the number of cycles without feedback by the \
                           deadline; their latency is the time that they waited for it";
const UNREAD: &str = "unread: the number of cycles that were not read in time; they are left out";

impl Contender for PipelineRun<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let token = self.shared.reference.now();
        let token_ns = token.map_err(|Gone(why)| format!("the token: {why}"))?;
        let round = match self.setup.period {
            Period::Free => self.free()?,
            _ => self.planned()?,
        };
        self.add(row, &round, token_ns);
        Ok(())
    }

    fn takes(&self) -> Duration {
        let warm_up = match self.setup.period {
            Period::Free => Duration::ZERO,
            period => Duration::from_millis(self.share.warm_up * period.ms()),
        };
        START + TOKEN + warm_up + self.share.time
    }
}

/// CPU time that all threads of these processes have used, as far as the kernel says.
fn cpu_ns(processes: &[u32]) -> u64 {
    let used = processes.iter().filter_map(|&id| process::cpu(id).ok());
    used.sum::<Duration>().as_nanos() as u64
}

/// What was seen of a graph's cycles.
struct GraphSeen {
    /// The thread whose cycles go around the whole loop: the one that the clock releases.
    leader: ThreadId,
    /// Nodes of each thread of each domain.
    nodes: Vec<Vec<Vec<usize>>>,
    warm_up: u64,
    cycles_max: u64,
    cycles: Cycles,
    feedback_missing: u64,
    /// Cycles whose record was overwritten before it was read.
    unread: u64,
    first_start_ns: u64,
    last_start_ns: u64,
    /// For each node how often it was executed, and the total time.
    executions: Vec<(u64, f64)>,
    wall_ns: u64,
    cpu_ns: u64,
}

impl GraphSeen {
    fn new(plan: &Plan, warm_up: u64, cycles_max: u64) -> GraphSeen {
        let threads = |domain: &sinew_spec::plan::Domain| {
            domain.threads().iter().map(|thread| thread.nodes.clone()).collect()
        };
        GraphSeen {
            leader: leader(plan).expect("the spec has a domain with a period"),
            nodes: plan.domains.iter().map(threads).collect(),
            warm_up,
            cycles_max,
            cycles: Cycles::default(),
            feedback_missing: 0,
            unread: 0,
            first_start_ns: u64::MAX,
            last_start_ns: 0,
            executions: vec![(0, 0.0); plan.nodes.len()],
            wall_ns: 0,
            cpu_ns: 0,
        }
    }

    /// How many cycles count.
    fn n(&self) -> u64 {
        self.cycles.latency.n()
    }

    fn is_full(&self) -> bool {
        self.n() >= self.cycles_max
    }

    fn take(&mut self, id: ThreadId, record: &Record, clock: Clock) {
        if record.number() < self.warm_up || record.is_stopping() || record.is_without_input() {
            return;
        }
        if id == self.leader {
            if self.is_full() {
                return;
            }
            self.cycles.take(record, clock);
            self.feedback_missing += u64::from(record.is_feedback_missing());
            self.first_start_ns = self.first_start_ns.min(record.start_ns());
            self.last_start_ns = self.last_start_ns.max(record.start_ns());
        }
        for (at, &node) in self.nodes[id.domain][id.thread].iter().enumerate() {
            let (n, sum_ns) = &mut self.executions[node];
            *n += 1;
            *sum_ns += clock.ns(record.execution_ticks(at)) as f64;
        }
    }

    fn merge(&mut self, other: &GraphSeen) {
        self.cycles.merge(&other.cycles);
        self.feedback_missing += other.feedback_missing;
        self.unread += other.unread;
        for (all, more) in self.executions.iter_mut().zip(&other.executions) {
            *all = (all.0 + more.0, all.1 + more.1);
        }
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
    }

    /// The single figures; those of slack and of CPU time only with a period.
    fn figures(&self, period_ms: Option<u64>) -> Vec<Figure> {
        let mut figures = Vec::new();
        let mut push = |name, unit, value| figures.push(Figure::of(name, unit, value));
        let mean = |&(n, sum_ns): &(u64, f64)| if n == 0 { 0.0 } else { sum_ns / n as f64 };
        let compute_ns: f64 = self.executions.iter().map(mean).sum();
        let latency = &self.cycles.latency;
        if let Some(mean_ns) = latency.mean() {
            push("compute", "ns", compute_ns);
            push("communication", "ns", mean_ns - compute_ns);
        }
        push("feedback_missing", "", self.feedback_missing as f64);
        push("unread", "", self.unread as f64);
        let Some(period_ms) = period_ms else { return figures };
        let period_ns = (period_ms * 1_000_000) as f64;
        if let (Some(mean_ns), Some(max_ns)) = (latency.mean(), latency.max()) {
            push("slack_mean", "ns", period_ns - mean_ns);
            push("slack_min", "ns", period_ns - max_ns as f64);
        }
        push("overruns", "", self.cycles.overruns as f64);
        push("skipped", "", self.cycles.skipped as f64);
        if self.wall_ns > 0 {
            push("cpu", "%", self.cpu_ns as f64 / self.wall_ns as f64 * 100.0);
        }
        figures
    }
}
