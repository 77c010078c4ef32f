//! Makes the rows, measures them in rounds, and makes the report.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use sinew_lab::Report;
use sinew_lab::harness::token::{self, Lines};
use sinew_lab::harness::{Cpus, Gone};
use sinew_lab::machine::Machine;
use sinew_lab::report::{Row, Timer};
use sinew_lab::rounds::{Contender, Progress, Session, interleave};
use sinew_runtime::clock::Clock;
use sinew_runtime::privileges;

use crate::measure::{Cell, Form, What};
use crate::table::{OURS, RIVALS, Rival};
use crate::verdicts;

/// What is asked for.
pub(crate) struct Asked {
    /// Fewer rounds and less time.
    pub(crate) quick: bool,
    /// If not the usual number.
    pub(crate) rounds: Option<u32>,
    /// Rivals by name; none means all.
    pub(crate) only: Vec<String>,
}

/// Rounds: with nine an interval leaves out the least and the greatest.
const ROUNDS: u32 = 9;
const QUICK_ROUNDS: u32 = 3;
/// How long a cell is measured in a round.
const BUDGET: Duration = Duration::from_millis(60);
const QUICK_BUDGET: Duration = Duration::from_millis(20);
/// How long the token is, before and after every row.
const TOKEN_BUDGET: Duration = Duration::from_millis(3);
/// To start threads or a process and to make links, about.
const START: Duration = Duration::from_millis(20);

/// Measures what is asked for.
///
/// # Errors
/// There is nothing to measure, or the machine cannot; a sentence that says what to change.
pub(crate) fn run(asked: &Asked, session: &Session<'_>) -> Result<Report, String> {
    let cpus = privileges::cpus().map_err(|error| format!("cannot ask for CPUs: {error}"))?;
    let (near, far) = match cpus[..] {
        [near, .., far] => (near, far),
        _ => {
            return Err("both sides of every rival spin: that needs two CPUs, and there is one; \
                         allow this process another CPU"
                .into());
        }
    };
    let clock = Clock::calibrate();
    let budget = if asked.quick { QUICK_BUDGET } else { BUDGET };
    let place = Place { cpus: Cpus { near, far }, clock, budget };
    let mut contenders = contenders(asked, place);
    let rounds = asked.rounds.unwrap_or(if asked.quick { QUICK_ROUNDS } else { ROUNDS });
    let machine = Machine::read();
    let partial = interleave(&mut contenders, rounds, session);
    session.progress.at("", Duration::ZERO, Duration::ZERO);
    let rows: Vec<Row> = contenders.into_iter().map(|(row, _)| row).collect();
    let verdicts = verdicts::of(&rows, asked.only.is_empty());
    Ok(Report {
        scenario: sinew_lab::rivals::SCENARIO.into(),
        machine,
        timer: Timer::measure(clock),
        quick: asked.quick,
        partial,
        rounds,
        rows,
        tables: vec![],
        verdicts,
        notes: vec![format!("near side on CPU {near}, far side on CPU {far}")],
    })
}

/// Where and how long.
#[derive(Clone, Copy)]
struct Place {
    cpus: Cpus,
    clock: Clock,
    budget: Duration,
}

fn contenders(asked: &Asked, place: Place) -> Vec<(Row, Box<dyn Contender>)> {
    let is_asked = |rival: &&Rival| {
        asked.only.is_empty() || rival.name == OURS || asked.only.iter().any(|n| n == rival.name)
    };
    let sizes = |rival: &'static Rival| rival.sizes.iter().map(move |&bytes| (rival, bytes));
    let contender = |(rival, bytes)| {
        let row = row(rival, bytes);
        (row, Box::new(Contestant { rival, bytes, place }) as Box<dyn Contender>)
    };
    RIVALS.iter().filter(is_asked).flat_map(sizes).map(contender).collect()
}

fn row(rival: &Rival, bytes: usize) -> Row {
    let axis = |name: &str, value: &str| (name.into(), value.into());
    let axes = vec![
        axis("rival", rival.name),
        axis("placement", rival.placement.name()),
        axis("access", rival.access.name()),
        axis("bytes", &bytes.to_string()),
    ];
    Row { axes, skipped: rival.measure.err().map(Into::into), ..Row::default() }
}

/// A rival with one size of messages.
struct Contestant {
    rival: &'static Rival,
    bytes: usize,
    place: Place,
}

impl Contestant {
    fn token(&self) -> Result<f64, Gone> {
        let Place { cpus, clock, .. } = self.place;
        let found = token::measure(Lines::One, cpus, clock, TOKEN_BUDGET)?;
        let median = found.quantile(0.5);
        median.map(|ns| ns as f64).ok_or_else(|| Gone("the token hardly moved".into()))
    }

    fn cell(&self, what: What) -> Cell {
        let Contestant { rival, bytes, place } = self;
        let capacity = rival.capacity.of(what, *bytes);
        let form = Form { access: rival.access, bytes: *bytes, capacity };
        let Place { cpus, clock, budget } = *place;
        Cell { what, form, cpus, clock, budget }
    }

    fn round(&self, row: &mut Row) -> Result<(), Gone> {
        let measure = self.rival.measure.map_err(|why| Gone(why.into()))?;
        let before_ns = self.token()?;
        let found =
            [What::RoundTrip, What::PerMessage].map(|what| (what, measure(&self.cell(what))));
        let token_ns = f64::midpoint(before_ns, self.token()?);
        for (what, found) in found {
            let found = found?;
            let measure = row.measure_mut(what.name());
            measure.distribution.merge(&found.distribution);
            measure.rounds.push(found.median_ns);
            measure.ratios.push(found.median_ns / token_ns);
        }
        Ok(())
    }
}

impl Contender for Contestant {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        Contestant::round(self, row).map_err(|Gone(why)| why)
    }

    fn takes(&self) -> Duration {
        2 * (self.place.budget + START + TOKEN_BUDGET)
    }
}

/// Progress as a line that is written over; only on a terminal.
pub(crate) struct Line;

impl Progress for Line {
    fn at(&self, row: &str, done: Duration, all: Duration) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let left = all.saturating_sub(done).as_secs();
            let text = if row.is_empty() { String::new() } else { format!("{left} s left  {row}") };
            // A terminal that takes no text shows no progress; nothing else follows from it.
            let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
        }
    }
}
