//! What an article's checklist for lock-free links and its table of mistakes are worth here: each
//! mistake is made, next to the right way, and its errors are counted or its cost is timed.

mod allocation;
mod case;
mod races;
mod ring;
mod verdicts;

use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Distribution;

use self::case::{AXES, Mistake, MistakeCase, MistakeCpus};
use self::races::{Raced, Two};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::harness::{Cpus, Found, Gone};
use crate::report::{Figure, Row, ScenarioReport};
use crate::rounds::{Contender, Contenders, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "mistakes",
    about: "an article's checklist for lock-free links: errors and costs if it is not followed",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

/// Rounds, if no other number is requested.
const ROUNDS: u32 = 15;
/// The same of the short form.
const QUICK_ROUNDS: u32 = 9;
/// How long a row is measured in a round.
const SHARE: Duration = Duration::from_millis(150);
/// The same for the short form, whose 24 rows should take about twenty seconds.
const QUICK_SHARE: Duration = Duration::from_millis(40);
/// About how much time a round needs in addition: threads to start, and what does not count.
const START: Duration = Duration::from_millis(3);

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let cpus = Cpus::ends(&request.cpus).ok_or_else(|| CannotRun("there is no CPU".into()))?;
    let share = if request.quick { QUICK_SHARE } else { SHARE };
    let two = Two { cpus, clock: Clock::calibrate(), share };
    let rows: Vec<_> = MistakeCase::all().into_iter().map(|case| (case.row(), case)).collect();
    let rows = request.only.pick(rows, |(row, _)| &row.axes)?;
    let mut contenders: Contenders<'_> = Vec::new();
    for (mut row, case) in rows {
        row.skipped = case.obstacle(cpus.are_two());
        contenders.push((row, Box::new(MistakeRun { two, case })));
    }
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    let (tables, verdicts) = (verdicts::tables(&report.rows), verdicts::of(&report.rows));
    Ok(ScenarioReport { tables, verdicts, notes: notes(cpus), ..report })
}

fn notes(cpus: Cpus) -> Vec<String> {
    let Cpus { near, far } = cpus;
    vec![
        format!("near side on CPU {near}, far side on CPU {far}, no realtime priority"),
        "thousand operations: additions, reads of the value, or reads of flag and word, of the \
         near side, in batches; the number of errors is a figure of the row, over all rounds"
            .into(),
        "thousand messages: of 8 B through a small ring made for this, in bursts; on one CPU one \
         thread writes and then reads each; poll: when a side polls a full or empty ring again, at \
         once or 500 ns later"
            .into(),
        "message, round trip: 256 B through a queue of the standard library, each timed on its \
         own; the P99 is that of each round"
            .into(),
    ]
}

struct MistakeRun {
    two: Two,
    case: MistakeCase,
}

impl Contender for MistakeRun {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let MistakeRun { two, case: MistakeCase { mistake, form, cpus, poll } } = *self;
        let is_alone = cpus == MistakeCpus::One;
        let added = match mistake {
            Mistake::Count => two.count(form).map(|raced| add_race(row, "lost", &raced)),
            Mistake::Value => two.value(form).map(|raced| add_race(row, "torn", &raced)),
            Mistake::Order => two.order(form).map(|raced| add_race(row, "stale", &raced)),
            Mistake::Lines | Mistake::Capacity if is_alone => {
                two.there_and_out(form).map(|found| add(row, "thousand_messages", &found))
            }
            Mistake::Lines | Mistake::Capacity => {
                two.stream(form, poll).map(|found| add(row, "thousand_messages", &found))
            }
            Mistake::Allocation if is_alone => {
                two.carried(form).and_then(|times| self.add_times(row, "message", &times))
            }
            Mistake::Allocation => two
                .carried_there_and_back(form)
                .and_then(|times| self.add_times(row, "round_trip", &times)),
        };
        added.map_err(|Gone(why)| why)
    }

    fn takes(&self) -> Duration {
        START + self.two.share
    }
}

impl MistakeRun {
    /// Adds a round, with its P99 as a separate measure.
    fn add_times(&self, row: &mut Row, name: &str, times: &Distribution) -> Result<(), Gone> {
        let few = || Gone("too few messages for a P99; measure when the CPUs are less busy".into());
        let median = times.median_of_steps(self.two.clock.step_ns()).ok_or_else(few)?;
        let p99 = times.quantile(0.99).ok_or_else(few)?;
        let mut tail = Distribution::new();
        tail.add(p99);
        row.measure_mut(name).add_round(times, median, None);
        row.measure_mut(&format!("{name}_p99")).add_round(&tail, p99 as f64, None);
        Ok(())
    }
}

fn add(row: &mut Row, name: &str, found: &Found) {
    row.measure_mut(name).add_round(&found.values, found.median_ns, None);
}

/// Adds a round, and adds its errors to those of earlier rounds.
fn add_race(row: &mut Row, wrong: &str, raced: &Raced) {
    add(row, "thousand_operations", &raced.found);
    for (name, more) in [("done", raced.done), (wrong, raced.wrong), ("refused", raced.refused)] {
        let before = row.figure(name).unwrap_or(0.0);
        row.figures.retain(|figure| figure.name != name);
        row.figures.push(Figure::of(name, "", before + more as f64));
    }
}
