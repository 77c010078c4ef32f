//! Makes the rows, measures them in rounds, and makes the report.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_core::privileges;
use sinew_lab::ScenarioReport;
use sinew_lab::harness::reference::{Reference, TOKEN};
use sinew_lab::harness::{Cpus, Gone, What};
use sinew_lab::report::Row;
use sinew_lab::rounds::{Contender, Contenders, Progress, Session, measure};

use crate::Arguments;
use crate::measure::{Cell, Form};
use crate::poll::Poll;
use crate::table::{OURS, RIVALS, Rival};
use crate::verdicts;

/// Rounds: with nine, an interval leaves out the least and the greatest.
const ROUNDS: u32 = 9;
const QUICK_ROUNDS: u32 = 3;
/// How long a cell is measured in a round.
const BUDGET: Duration = Duration::from_millis(60);
const QUICK_BUDGET: Duration = Duration::from_millis(20);
/// Estimated time to start threads or a process and to make links.
const START: Duration = Duration::from_millis(20);

/// Measures the contenders that are asked for.
pub(crate) fn run(asked: &Arguments, session: &Session<'_>) -> Result<ScenarioReport, String> {
    let cpus = privileges::cpus().map_err(|error| format!("cannot ask for CPUs: {error}"))?;
    let cpus = Cpus::ends(&cpus).filter(|cpus| cpus.are_two()).ok_or(
        "both sides of every rival spin: that needs two CPUs, and there is one; allow this \
         process another CPU",
    )?;
    let clock = Clock::calibrate();
    let budget = if asked.quick { QUICK_BUDGET } else { BUDGET };
    let reference = Reference::new(cpus, clock);
    let contenders = contenders(asked, &reference, budget);
    let rounds = asked.rounds.unwrap_or(if asked.quick { QUICK_ROUNDS } else { ROUNDS });
    let name = sinew_lab::rivals::SCENARIO;
    let mut report = measure(name, asked.quick, rounds, contenders, session);
    session.progress.at("", Duration::ZERO, Duration::ZERO);
    report.notes.push(format!("near side on CPU {}, far side on CPU {}", cpus.near, cpus.far));
    report.notes.extend(reference.moved());
    report.verdicts = verdicts::of(&report.rows, asked.only.is_empty());
    Ok(report)
}

fn contenders<'a>(asked: &Arguments, reference: &'a Reference, budget: Duration) -> Contenders<'a> {
    let is_asked = |rival: &&Rival| {
        asked.only.is_empty() || rival.name == OURS || asked.only.iter().any(|n| n == rival.name)
    };
    let each = |rival: &'static Rival| {
        let sizes = rival.sizes.iter();
        sizes.flat_map(move |&bytes| rival.polls.iter().map(move |&poll| (rival, bytes, poll)))
    };
    let contender = |(rival, bytes, poll)| {
        let contestant = Contestant { rival, bytes, poll, reference, budget };
        (row(rival, bytes, poll), Box::new(contestant) as Box<dyn Contender>)
    };
    RIVALS.iter().filter(is_asked).flat_map(each).map(contender).collect()
}

fn row(rival: &Rival, bytes: usize, poll: Poll) -> Row {
    let row = Row::of(&[
        ("rival", rival.name),
        ("placement", rival.placement.word()),
        ("access", rival.access.word()),
        ("poll", poll.word()),
        ("bytes", &bytes.to_string()),
    ]);
    Row { skipped: rival.measure.err().map(Into::into), ..row }
}

/// A rival with one size of messages and one way to wait.
struct Contestant<'a> {
    rival: &'static Rival,
    bytes: usize,
    poll: Poll,
    reference: &'a Reference,
    budget: Duration,
}

impl Contestant<'_> {
    fn cell(&self, what: What) -> Cell {
        let Contestant { rival, bytes, poll, reference, budget } = *self;
        let capacity = rival.capacity.of(what, bytes);
        let form = Form { what, access: rival.access, bytes, capacity, poll };
        Cell { form, cpus: reference.cpus, clock: reference.clock, budget }
    }
}

impl Contender for Contestant<'_> {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let measure = self.rival.measure?;
        for &what in What::ALL {
            let found = self.reference.around(|| measure(&self.cell(what)));
            let (found, token) = found.map_err(|Gone(why)| why)?;
            row.measure_mut(what.word()).add_round(&found.values, found.median_ns, token);
        }
        Ok(())
    }

    fn takes(&self) -> Duration {
        2 * (self.budget + START + TOKEN)
    }
}

/// Progress as a line that is overwritten; only on a terminal.
pub(crate) struct Line;

impl Progress for Line {
    fn at(&self, row: &str, done: Duration, all: Duration) {
        let mut stderr = io::stderr().lock();
        if stderr.is_terminal() {
            let left = all.saturating_sub(done).as_secs();
            let text = if row.is_empty() { String::new() } else { format!("{left} s left  {row}") };
            // A terminal that refuses text only shows no progress.
            let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
        }
    }
}
