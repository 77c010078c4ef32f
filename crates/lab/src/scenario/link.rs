//! What a link costs: round trip and throughput of every link that the runtime has, beside the
//! least that two CPUs need to pass a word to and fro.

mod case;
mod contender;
mod ends;
mod latest;
mod measure;
mod reference;
mod rivals;
mod verdicts;

use std::time::Duration;

use sinew_core::clock::Clock;

use self::case::{AXES, CAPACITIES, Case};
use self::contender::{Contending, budget};
use self::latest::Value;
pub(crate) use self::measure::PART;
use self::reference::{Lonely, choose};
use super::{Refusal, Request, Scenario};
use crate::harness::Gone;
use crate::harness::reference::Reference;
use crate::harness::token::Lines;
use crate::report::{Report, Row};
use crate::rivals::AXIS;
use crate::rounds::{Contender, Contenders, Session, measure};

/// The row of the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "link",
    about: "round trip and throughput of every link, beside a bare word that two CPUs pass to and \
            fro",
    axes: AXES,
    takes_rivals: true,
    run,
};

/// Rounds, if nobody asks for another number.
const ROUNDS: u32 = 5;
/// The same of the short form: enough for an interval that leaves the extremes out.
const QUICK_ROUNDS: u32 = 9;
/// What all rounds of all rows may take.
const RUN_TIME: Duration = Duration::from_secs(720);
/// The same of the short form, which is to end within a minute.
const QUICK_TIME: Duration = Duration::from_secs(42);

/// What is measured in a row.
#[derive(Clone, Copy)]
enum Measured {
    Lines(Lines),
    Link(Case),
    Read { value: Value, bytes: u32 },
}

/// A row and what it is to be measured with.
struct Planned<'a> {
    row: Row,
    what: Measured,
    reference: &'a Reference,
}

fn run(request: &Request, session: &Session<'_>) -> Result<Report, Refusal> {
    let clock = Clock::calibrate();
    let chosen = choose(&request.cpus, clock).map_err(|Gone(why)| Refusal(why))?;
    let references: Vec<_> =
        chosen.iter().map(|&(name, cpus)| (name, Reference::new(cpus, clock))).collect();
    let planned = references.iter().flat_map(|(name, reference)| plan(request, *name, reference));
    let mut theirs: Vec<Row> = request.rivals.iter().flat_map(|of| of.rows.clone()).collect();
    theirs.retain(|row| request.only.wants(&row.axes));
    let planned = match request.only.pick(planned.collect(), |planned| &planned.row.axes) {
        Err(_) if !theirs.is_empty() => vec![],
        planned => planned?,
    };
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let contenders = contenders(planned, request.quick, rounds);
    let mut report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    report.verdicts = verdicts::of(&report.rows);
    let beside = |theirs: &Report| rivals::bars(&report.rows, &theirs.rows);
    report.tables = request.rivals.iter().map(beside).collect();
    report.rows.extend(theirs);
    report.notes = notes(&references);
    Ok(report)
}

/// All rows on two CPUs, in the order of the table.
fn plan<'a>(
    request: &Request,
    cpus: Option<&'static str>,
    reference: &'a Reference,
) -> Vec<Planned<'a>> {
    let (cases, sizes) = match request.quick {
        true => (case::quick(), &latest::SIZES[..3]),
        false => (case::all(), &latest::SIZES[..]),
    };
    let lines = [Lines::One, Lines::Two].map(Measured::Lines);
    let reads = sizes
        .iter()
        .flat_map(|&bytes| Value::ALL.iter().map(move |&value| Measured::Read { value, bytes }));
    let all = lines.into_iter().chain(cases.into_iter().map(Measured::Link)).chain(reads);
    let planned = |what: Measured| {
        let mut row = what.row(reference);
        row.axes.extend(cpus.map(|name| ("cpus".into(), name.into())));
        if request.rivals.is_some() {
            row.axes.insert(0, (AXIS.name.into(), AXIS.values[0].into()));
        }
        Planned { row, what, reference }
    };
    all.map(planned).collect()
}

impl Measured {
    /// The row before the first round; skipped if it cannot be measured on these CPUs.
    fn row(&self, reference: &Reference) -> Row {
        let (row, polls) = match self {
            Measured::Lines(lines) => (reference::row(*lines), true),
            Measured::Link(case) => (case.row(), case.polls()),
            Measured::Read { value, bytes } => (latest::row(*value, *bytes), value.is_shared()),
        };
        let alone = polls && !reference.cpus.are_two();
        let why = || "both sides poll: that needs two CPUs, and there is one".into();
        Row { skipped: alone.then(why), ..row }
    }

    /// How many measurements a round of it has.
    fn measures(&self) -> u32 {
        match self {
            Measured::Link(case) => case.measures().len() as u32,
            Measured::Lines(_) => 1,
            Measured::Read { .. } => 3,
        }
    }

    fn contender<'a>(&self, reference: &'a Reference, budget: Duration) -> Box<dyn Contender + 'a> {
        match *self {
            Measured::Lines(lines) => Box::new(Lonely { reference, lines, budget }),
            Measured::Link(case) => Box::new(Contending { case, reference, budget, rounds: 0 }),
            Measured::Read { value, bytes } => latest::contender(value, bytes, reference, budget),
        }
    }
}

fn contenders<'a>(planned: Vec<Planned<'a>>, quick: bool, rounds: u32) -> Contenders<'a> {
    let measures = |of: &Planned<'_>| if of.row.skipped.is_none() { of.what.measures() } else { 0 };
    let all = if quick { QUICK_TIME } else { RUN_TIME };
    let budget = budget(all, rounds, planned.iter().map(measures).sum());
    let contender = |of: Planned<'a>| (of.row, of.what.contender(of.reference, budget));
    planned.into_iter().map(contender).collect()
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
        true => "ratios are to the token; of reads to a seqlock in the same round",
        false => {
            "one CPU only: both sides share it, and there is no token; only reads have a ratio, to \
             a seqlock in the same round"
        }
    };
    notes.push(ratios.into());
    notes.extend(references.iter().filter_map(|(_, reference)| reference.moved()));
    notes.push(CAPACITIES.into());
    notes.push(
        "per message is measured where no message is lost: latest and broadcast have none; each \
         value is the mean of a burst, in whole nanoseconds, and ratios are from means with their \
         fractions"
            .into(),
    );
    notes
}

#[cfg(test)]
mod tests;
