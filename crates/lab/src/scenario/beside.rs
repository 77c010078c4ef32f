//! A core with something beside it, compared with the same core alone: how a row of that sort is
//! run, and what is measured of its cycles.

mod evidence;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use sinew_core::catalogue::Kind;
use sinew_core::clock::{Clock, now_ns};
use sinew_core::trace::{Record, ThreadId};
use sinew_runtime::run::{self, Outcome, Run};

pub(super) use self::evidence::{BesideEvidence, Judged, not_greater};
use super::Scenario;
use super::cycles::Cycles;
use crate::graph::compiled;
use crate::report::{Figure, Row, ScenarioReport, Verdict};
use crate::rounds::{Contender, Contenders, Session, measure};

/// The thread whose cycles go around the whole loop: the first thread of the domain with a period.
const LEADER: ThreadId = ThreadId { domain: 0, thread: 0 };
/// Longest sleep of the supervisor: a row ends at most this much late.
const LOOK: Duration = Duration::from_millis(100);

/// What all rows of a scenario share.
pub(super) struct Bench<'a> {
    /// The file name of its specs in messages.
    pub(super) file: &'static str,
    pub(super) session: &'a Session<'a>,
    pub(super) cpus: &'a [u32],
    /// Cycles after each start that do not count, at 1 kHz.
    pub(super) warm_up: u64,
    /// How long a row is measured in a round.
    pub(super) share: Duration,
    /// About how long starting and stopping a graph takes.
    pub(super) start: Duration,
    /// The figures of each round that are not among a row's medians.
    pub(super) rounds: RefCell<BTreeMap<&'static str, Vec<RoundTails>>>,
}

/// Figures of one round of a row, to compare with another row in the same round.
pub(super) struct RoundTails {
    latency_p99_ns: Option<u64>,
    jitter_p99_ns: Option<u64>,
    overruns: u64,
}

impl Bench<'_> {
    /// Measures the contenders; each of `words` is compared with the first of them, the core alone.
    pub(super) fn report(
        &self,
        scenario: &Scenario,
        (quick, rounds): (bool, u32),
        contenders: Contenders<'_>,
        words: &[&'static str],
        verdicts: fn(&BesideEvidence<'_>) -> Vec<Verdict>,
    ) -> ScenarioReport {
        let report = measure(scenario.name, quick, rounds, contenders, self.session);
        let rounds = &self.rounds.borrow();
        let evidence = BesideEvidence { rows: &report.rows, rounds, alone: words[0] };
        let (tables, verdicts) = (vec![evidence.ratios(&words[1..])], verdicts(&evidence));
        ScenarioReport { tables, verdicts, ..report }
    }

    /// The request to run a graph of the lab.
    pub(super) fn request(
        &self,
        text: String,
        kinds: &[&'static Kind],
    ) -> Result<run::RunRequest, String> {
        compiled(self.file, text, Vec::new(), kinds, self.cpus)
    }
}

/// What runs beside a core.
pub(super) trait Beside {
    /// Called when a round begins.
    fn begin(&mut self);

    /// Looks at it while the core runs. `counts` says whether the core's cycles are counted yet.
    /// Returns whether the round may end as far as this part is concerned.
    fn look(&mut self, run: &Run, counts: bool) -> Result<bool, String>;

    /// Looks at it for the last time: the graph is about to be stopped.
    fn end(&mut self, run: &Run) -> Result<(), String>;

    /// Adds its results to the row, when a run with this many cycles is over.
    fn add_to(&mut self, row: &mut Row, run: &Run, cycles: u64) -> Result<(), String>;

    /// Its single figures, for all rounds.
    fn figures(&self) -> Vec<Figure>;
}

/// A row: a core with something beside it.
pub(super) struct CoreRun<'a, B> {
    bench: &'a Bench<'a>,
    /// The word for what runs beside the core, and the part that does it.
    word: &'static str,
    beside: B,
    request: run::RunRequest,
    all: CoreSeen,
}

impl<'a, B: Beside> CoreRun<'a, B> {
    /// A row with this graph.
    pub(super) fn new(
        bench: &'a Bench<'a>,
        word: &'static str,
        beside: B,
        request: run::RunRequest,
    ) -> CoreRun<'a, B> {
        CoreRun { bench, word, beside, request, all: CoreSeen::default() }
    }

    /// Runs it once; returns the run, and what was seen of the core.
    fn run(&mut self) -> Result<(Run, CoreSeen), String> {
        self.beside.begin();
        let mut run = Run::start(self.request.clone())
            .map_err(|error| format!("the graph cannot be started: {error}"))?;
        let (clock, mut seen, mut failed) = (run.clock(), CoreSeen::default(), None);
        let (mut is_over, mut counts_from_ns, mut stolen_before) = (false, u64::MAX, None);
        let warm_up = self.bench.warm_up;
        let share_ns = self.bench.share.as_nanos() as u64;
        while run.poll(LOOK, &mut |id, record| seen.take(id, record, clock, warm_up, is_over)) {
            if counts_from_ns == u64::MAX && run.started_ns() != u64::MAX {
                counts_from_ns = run.started_ns() + warm_up * 1_000_000;
                stolen_before = stolen_ns();
            }
            if is_over {
                continue;
            }
            let looked = self.beside.look(&run, now_ns() >= counts_from_ns);
            let is_done = now_ns() >= counts_from_ns.saturating_add(share_ns);
            is_over = looked.as_ref().is_ok_and(|may_end| *may_end && is_done)
                || looked.is_err()
                || self.bench.session.is_stopped();
            if is_over {
                failed = looked.err().or(self.beside.end(&run).err());
                run.stop();
            }
        }
        check(&run)?;
        let stolen = stolen_ns().zip(stolen_before);
        seen.stolen_ns = stolen.map_or(0, |(now, before)| now.saturating_sub(before));
        failed.map_or(Ok((run, seen)), Err)
    }
}

impl<B: Beside> Contender for CoreRun<'_, B> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let (run, seen) = self.run()?;
        self.beside.add_to(row, &run, seen.all_cycles)?;
        seen.cycles.add_to(row, None, true);
        let round = RoundTails {
            latency_p99_ns: seen.cycles.latency.quantile(0.99),
            jitter_p99_ns: seen.cycles.jitter.quantile(0.99),
            overruns: seen.cycles.overruns,
        };
        self.bench.rounds.borrow_mut().entry(self.word).or_default().push(round);
        self.all.cycles.merge(&seen.cycles);
        self.all.stolen_ns += seen.stolen_ns;
        row.figures = vec![
            Figure::of("overruns", "", self.all.cycles.overruns as f64),
            Figure::of("skipped", "", self.all.cycles.skipped as f64),
            Figure::of("stolen_by_host", "ms", self.all.stolen_ns as f64 * 1e-6),
        ];
        row.figures.extend(self.beside.figures());
        Ok(())
    }

    fn takes(&self) -> Duration {
        self.bench.start + Duration::from_millis(self.bench.warm_up) + self.bench.share
    }
}

/// What was seen of a core.
#[derive(Default)]
struct CoreSeen {
    cycles: Cycles,
    /// The number of all cycles, with those that do not count.
    all_cycles: u64,
    /// The time that the host took meanwhile.
    stolen_ns: u64,
}

impl CoreSeen {
    fn take(&mut self, id: ThreadId, record: &Record, clock: Clock, warm_up: u64, is_over: bool) {
        self.all_cycles += u64::from(id == LEADER);
        let counts = id == LEADER && record.number() >= warm_up && !record.is_stopping();
        if counts && !is_over {
            self.cycles.take(record, clock);
        }
    }
}

/// An error if a run that has ended cannot be used, which says why.
fn check(run: &Run) -> Result<(), String> {
    if run.outcome() == Outcome::Faulted {
        let faults: Vec<_> = run.faults().iter().map(|(_, at)| at.fault.to_string()).collect();
        return Err(format!("the graph faulted: {}", faults.join("; ")));
    }
    match run.records_lost() {
        0 => Ok(()),
        lost => Err(format!("{lost} records were not read in time")),
    }
}

/// The time that the host has taken from all CPUs so far, if the kernel reports it.
fn stolen_ns() -> Option<u64> {
    /// The kernel counts in hundredths of a second (proc(5), USER_HZ).
    const UNIT_NS: u64 = 10_000_000;
    let text = fs::read_to_string("/proc/stat").ok()?;
    let steal = text.lines().next()?.split_whitespace().nth(8)?;
    Some(steal.parse::<u64>().ok()? * UNIT_NS)
}
