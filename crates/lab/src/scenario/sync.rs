//! What every primitive costs by which threads hand something over: locks, wake-ups of sleepers,
//! atomics, yields; compared with an article's tables of costs.

mod alarms;
mod case;
mod contended;
mod place;
mod short;
mod verdicts;
mod wakes;

use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::{Distribution, Interval};

use self::alarms::alarm;
use self::case::{AXES, CpuCount, SleeperCpu, SyncCase, SyncOperation, SyncScheduling};
use self::contended::contend;
use self::place::kept_awake;
use self::short::Batches;
use self::verdicts::THOUSAND_OPERATIONS;
use self::wakes::Sleepers;
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::harness::{Cpus, Found, Gone, THOUSAND};
use crate::report::{Figure, Row, ScenarioReport};
use crate::rounds::{Contender, Contenders, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "sync",
    about: "what locks, wake-ups, atomics and yields cost, next to an article's tables",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

/// Rounds, if no other number is requested.
const ROUNDS: u32 = 15;
/// The same of the short form.
const QUICK_ROUNDS: u32 = 7;
/// How long a row is measured in a round: enough for some hundred wake-ups, each after 1 ms of
/// sleep.
const SHARE: Duration = Duration::from_millis(250);
/// The same for the short form, whose 61 rows should take half a minute.
const QUICK_SHARE: Duration = Duration::from_millis(50);
/// Rows that do not sleep in between need less time, by this factor.
const LESS: u32 = 4;
/// About how much time a round needs in addition: threads to start and to place.
const START: Duration = Duration::from_millis(5);

/// The note for a row with a round in which threads hardly ever met.
const FEW_TAKEN: &str = "in at least one round fewer than 20 locks found the mutex taken, too few \
                         for a median of that round";

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let cpus = Cpus::ends(&request.cpus).ok_or_else(|| CannotRun("there is no CPU".into()))?;
    let share = if request.quick { QUICK_SHARE } else { SHARE };
    let bench = Bench { cpus, clock: Clock::calibrate(), share };
    let rows: Vec<_> = SyncCase::all().into_iter().map(|case| (case.row(), case)).collect();
    let rows = request.only.pick(rows, |(row, _)| &row.axes)?;
    let no_fifo = SyncScheduling::Fifo.refused();
    let mut contenders: Contenders<'_> = Vec::new();
    for (mut row, case) in rows {
        row.skipped = match case {
            SyncCase { cpus: CpuCount::Two, .. } if !cpus.are_two() => {
                Some("its threads have a CPU each: that needs two CPUs, and there is one".into())
            }
            SyncCase { scheduling: SyncScheduling::Fifo, .. } => no_fifo.clone(),
            _ => None,
        };
        contenders.push((row, Box::new(SyncRun { bench: &bench, case })));
    }
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    let (tables, verdicts) = (verdicts::tables(&report.rows), verdicts::of(&report.rows));
    Ok(ScenarioReport { tables, verdicts, notes: notes(cpus), ..report })
}

fn notes(cpus: Cpus) -> Vec<String> {
    let Cpus { near, far } = cpus;
    [
        &format!("one CPU: CPU {near}; two: every other thread on CPU {far}"),
        "thousand operations: in batches of some 200 us, the mean of each batch; the loop itself \
         is the operation 'nothing' and is not subtracted; 'each' is the median of one operation",
        "lock: the time to lock, write 256 B and unlock, each timed on its own, of all threads, \
         also of those that lost their CPU meanwhile; found taken: the locks that found the mutex \
         taken",
        "call: the time that the waker spends; wake up: from before the call until the sleeper \
         runs; each after 1 ms of sleep, and only when the kernel reports that the sleeper sleeps",
        "target: the state of the sleeper's CPU at the wake-up; idle: no other thread uses it; \
         busy: a SCHED_IDLE thread spins there, or the waker runs on it",
        "message: mutex, number, notification and wake-up: half of a round trip; round trips \
         follow each other without a rest",
    ]
    .map(Into::into)
    .to_vec()
}

/// What all rows share.
struct Bench {
    cpus: Cpus,
    clock: Clock,
    share: Duration,
}

struct SyncRun<'a> {
    bench: &'a Bench,
    case: SyncCase,
}

impl Contender for SyncRun<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let added = match self.case {
            SyncCase { operation: SyncOperation::MutexLock, threads, .. } if threads != "1" => {
                self.contended(row)
            }
            SyncCase { target: SleeperCpu::None, .. } => self.short(row),
            _ => self.sleepers(row),
        };
        added.map_err(|Gone(why)| why)
    }

    fn takes(&self) -> Duration {
        START + self.share()
    }
}

impl SyncRun<'_> {
    fn share(&self) -> Duration {
        let is_short = self.case.target == SleeperCpu::None;
        self.bench.share / if is_short { LESS } else { 1 }
    }

    /// The CPUs on which it runs.
    fn cpus(&self) -> Cpus {
        let Cpus { near, far } = self.bench.cpus;
        Cpus { near, far: if self.case.cpus == CpuCount::One { near } else { far } }
    }

    fn short(&self, row: &mut Row) -> Result<(), Gone> {
        let SyncCase { operation, scheduling, threads, .. } = self.case;
        let batches = Batches { clock: self.bench.clock, share: self.share() };
        let cpu = self.cpus().near;
        let (found, turns) = match threads {
            "1" => (batches.alone(operation, scheduling, cpu)?, None),
            _ => {
                let (found, turns) = batches.yields_beside(scheduling, cpu)?;
                (found, Some(turns))
            }
        };
        let Found { values, median_ns } = found;
        let measure = row.measure_mut(THOUSAND_OPERATIONS);
        measure.add_round(&values, median_ns, None);
        let each = |spread: Interval| Figure::of("each", "ns", spread.median / THOUSAND);
        row.figures = measure.spread().map(each).into_iter().collect();
        row.figures.extend(turns.map(|turns| Figure::of("turns_of_the_other", "", turns)));
        Ok(())
    }

    fn contended(&self, row: &mut Row) -> Result<(), Gone> {
        let SyncCase { scheduling, .. } = self.case;
        let threads = self.case.threads();
        let clock = self.bench.clock;
        let locks = contend(self.cpus(), threads, scheduling, clock, self.share())?;
        self.add(row, "lock", &locks.all)?;
        if self.add(row, "found_taken", &locks.taken).is_err() {
            // Under FIFO on one CPU it may be that no thread met another; the values that exist
            // count all the same.
            if locks.taken.n() > 0 {
                row.measure_mut("found_taken").distribution.merge(&locks.taken);
            }
            if !row.notes.iter().any(|note| note == FEW_TAKEN) {
                row.notes.push(FEW_TAKEN.into());
            }
        }
        let n = |name| row.measure(name).map_or(0, |of| of.distribution.n());
        let share = n("found_taken") as f64 / n("lock").max(1) as f64;
        row.figures = vec![Figure::of("found_taken", "%", share * 100.0)];
        Ok(())
    }

    fn sleepers(&self, row: &mut Row) -> Result<(), Gone> {
        let SyncCase { operation, scheduling, cpus, target, .. } = self.case;
        let (clock, share) = (self.bench.clock, self.share());
        let sleepers = Sleepers { cpus: self.cpus(), scheduling, clock, share };
        let Cpus { near, far } = self.cpus();
        let awake = match (cpus, target, operation) {
            (CpuCount::Two, SleeperCpu::Busy, SyncOperation::Message) => vec![near, far],
            (CpuCount::Two, SleeperCpu::Busy, _) => vec![far],
            _ => vec![],
        };
        if operation == SyncOperation::Message {
            let halves = kept_awake(&awake, || sleepers.hand_over())?;
            return self.add(row, "message", &halves);
        }
        let alarm = alarm(operation)?;
        let woken = kept_awake(&awake, || sleepers.wake(&*alarm))?;
        self.add(row, "call", &woken.call)?;
        self.add(row, "wake_up", &woken.wake_up)
    }

    /// Adds a round of times that were measured one by one.
    fn add(&self, row: &mut Row, name: &str, times: &Distribution) -> Result<(), Gone> {
        let median = times.median_of_steps(self.bench.clock.step_ns());
        let median = median.ok_or_else(|| Gone("fewer than 20, too few for a median".into()))?;
        row.measure_mut(name).add_round(times, median, None);
        Ok(())
    }
}
