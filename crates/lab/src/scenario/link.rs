//! What a link costs: round trip and throughput of every link that the runtime has, beside the
//! least time that two CPUs need to pass a word there and back.

mod case;
mod contender;
mod ends;
mod latest;
mod measure;
mod reference;
mod rivals;
mod verdicts;

use std::cell::Cell;
use std::time::Duration;

use sinew_core::clock::Clock;

pub(super) use self::case::Case;
use self::case::{AXES, CAPACITIES};
use self::contender::Contending;
pub(super) use self::ends::Ends;
use self::latest::Value;
pub(crate) use self::measure::PART;
pub(super) use self::measure::with_link;
use self::reference::{Lonely, choose};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::harness::Gone;
use crate::harness::reference::Reference;
use crate::harness::token::Lines;
use crate::report::{Row, ScenarioReport};
use crate::rivals::AXIS;
use crate::rounds::{Contender, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "link",
    about: "round trip and throughput of every link, next to one word that two CPUs write in turn",
    axes: AXES,
    takes_rivals: true,
    takes_image: false,
    run,
};

/// Rounds, if no other number is requested.
const ROUNDS: u32 = 5;
/// The same for the short form: enough for an interval that leaves the extremes out.
const QUICK_ROUNDS: u32 = 9;
/// What all rounds of all rows may take.
const RUN_TIME: Duration = Duration::from_secs(720);
/// The same for the short form, which should end within a minute.
const QUICK_TIME: Duration = Duration::from_secs(42);

/// A row, what measures it, and how many measurements a round of it has.
type Planned<'a> = (Row, Box<dyn Contender + 'a>, u32);

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let clock = Clock::calibrate();
    let chosen = choose(&request.cpus, clock).map_err(|Gone(why)| CannotRun(why))?;
    let references: Vec<_> =
        chosen.iter().map(|&(name, cpus)| (name, Reference::new(cpus, clock))).collect();
    let budget = Cell::new(Duration::ZERO);
    let planned = references.iter();
    let planned = planned.flat_map(|(name, reference)| plan(request, *name, reference, &budget));
    let mut theirs: Vec<Row> = request.rivals.iter().flat_map(|of| of.rows.clone()).collect();
    theirs.retain(|row| request.only.wants(&row.axes));
    let planned = match request.only.pick(planned.collect(), |(row, ..)| &row.axes) {
        Err(_) if !theirs.is_empty() => vec![],
        planned => planned?,
    };
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let measured = planned.iter().filter(|(row, ..)| row.skipped.is_none());
    let measures = measured.map(|(.., measures)| measures).sum();
    let all = if request.quick { QUICK_TIME } else { RUN_TIME };
    budget.set(contender::budget(all, rounds, measures));
    let contenders = planned.into_iter().map(|(row, contender, _)| (row, contender)).collect();
    let mut report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    report.verdicts = verdicts::of(&report.rows);
    let beside = |theirs: &ScenarioReport| rivals::bars(&report.rows, &theirs.rows);
    report.tables = request.rivals.iter().map(beside).collect();
    report.rows.extend(theirs);
    report.notes = notes(&references);
    Ok(report)
}

/// All rows on two CPUs, in the order of the table; a row is skipped if it cannot be measured
/// there. `budget` is the budget of each measurement, which is known only when all rows are
/// planned.
fn plan<'a>(
    request: &ScenarioRequest,
    cpus: Option<&'static str>,
    reference: &'a Reference,
    budget: &'a Cell<Duration>,
) -> Vec<Planned<'a>> {
    let (cases, sizes) = match request.quick {
        true => (case::quick(), &latest::SIZES[..3]),
        false => (case::all(), &latest::SIZES[..]),
    };
    let mut all: Vec<Planned<'a>> = vec![];
    let mut add = |row: Row, polls: bool, measures: usize, contender| {
        let mut row = row;
        let alone = polls && !reference.cpus.are_two();
        let why = || "both sides poll: that needs two CPUs, and there is one".into();
        row.skipped = alone.then(why);
        row.axes.extend(cpus.map(|name| ("cpus".into(), name.into())));
        if request.rivals.is_some() {
            row.axes.insert(0, (AXIS.name.into(), AXIS.values[0].into()));
        }
        all.push((row, contender, measures as u32));
    };
    for lines in [Lines::One, Lines::Two] {
        let contender = Lonely { reference, lines, budget };
        add(reference::row(lines), true, 1, Box::new(contender));
    }
    for case in cases {
        let contender = Contending { case, reference, budget, rounds: 0 };
        add(case.row(), case.polls(), case.measures().len(), Box::new(contender));
    }
    for (&bytes, &value) in
        sizes.iter().flat_map(|bytes| Value::ALL.iter().map(move |it| (bytes, it)))
    {
        let contender = latest::contender(value, bytes, reference, budget);
        add(latest::row(value, bytes), value.is_shared(), 3, contender);
    }
    all
}

fn notes(references: &[(Option<&str>, Reference)]) -> Vec<String> {
    let mut notes = vec![];
    for (name, Reference { cpus, .. }) in references {
        let name = name.map_or(String::new(), |name| format!("{name}: "));
        notes.push(format!(
            "{name}near side on CPU {}, far side on CPU {}, both kept there, no realtime priority",
            cpus.near, cpus.far
        ));
    }
    let ratios = match references.iter().all(|(_, reference)| reference.cpus.are_two()) {
        true => "ratios are to the token; those of reads are to a seqlock in the same round",
        false => {
            "one CPU only: both sides share it, and there is no token; only reads have a ratio, to \
             a seqlock in the same round"
        }
    };
    notes.push(ratios.into());
    notes.extend(references.iter().filter_map(|(_, reference)| reference.moved()));
    notes.push(CAPACITIES.into());
    notes.push(
        "per message is measured only on links that lose no message, so not on latest and \
         broadcast; each value is the mean of a burst, in whole nanoseconds; ratios use the exact \
         means"
            .into(),
    );
    notes
}

#[cfg(test)]
mod tests;
