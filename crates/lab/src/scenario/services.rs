//! What services cost the core beside which they run, however badly they behave; how soon one is
//! back after a kill; and what the supervisor takes for itself.

mod driver;
mod kinds;
mod setup;
mod supervisor;
mod verdicts;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Machine;

use self::driver::Driver;
pub(super) use self::kinds::{NODE, SERVICE};
use self::setup::Beside;
pub(super) use self::setup::{CORE_DOMAINS, core};
use self::supervisor::{Idle, Whose};
use super::beside::{Evidence, Round};
use super::{Refusal, Request, Scenario};
use crate::graph::Files;
use crate::report::{Axis, Report, Row, Timer};
use crate::rounds::{Contender, Session, interleave};

/// Rounds, if nobody asks for another number.
const ROUNDS: u32 = 9;
/// What is measured of a row in each of them, and kills of services in it.
const SHARE: Duration = Duration::from_secs(5);
const KILLS: u32 = 12;
/// The same of the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_millis(1500);
const QUICK_KILLS: u32 = 8;
/// The supervisor is watched for so long, over all rounds.
const SUPERVISOR_TIME: Duration = Duration::from_secs(10);

const AXES: &[Axis] = &[
    Axis { name: "measured", values: &["core", "supervisor"] },
    Axis {
        name: "beside",
        values: &[
            "nothing",
            "idle",
            "crash_loop",
            "crash_loop_100ms",
            "burn",
            "flood",
            "killed",
            "services_alone",
            "arm_and_log",
        ],
    },
];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "services",
    about: "what services cost the core, however they behave; how soon one is back; what the \
            supervisor takes",
    axes: AXES,
    takes_rivals: false,
    run,
};

/// What all rows share.
struct Shared<'a> {
    session: &'a Session<'a>,
    cpus: Vec<u32>,
    /// What is measured of a row in a round.
    share: Duration,
    /// Kills in a round.
    kills: u32,
    /// What a row's medians do not tell of each round.
    rounds: RefCell<BTreeMap<&'static str, Vec<Round>>>,
}

fn run(request: &Request, session: &Session<'_>) -> Result<Report, Refusal> {
    let default = if request.quick { QUICK_ROUNDS } else { ROUNDS };
    let rounds = request.rounds.unwrap_or(default);
    let rows = request.only.pick(rows(), |row| &row.axes)?;
    let files = Files::write().map_err(Refusal)?;
    let shared = Shared {
        session,
        cpus: request.cpus.clone(),
        share: if request.quick { QUICK_SHARE } else { SHARE },
        kills: if request.quick { QUICK_KILLS } else { KILLS },
        rounds: RefCell::default(),
    };
    let (machine, timer) = (Machine::read(), Timer::measure(Clock::calibrate()));
    let contender = |row: Row| Ok((contender(&shared, &row, rounds)?, row));
    let contenders: Result<Vec<_>, String> = rows.into_iter().map(contender).collect();
    let contenders = contenders.map_err(Refusal)?.into_iter();
    let mut contenders: Vec<_> = contenders.map(|(contender, row)| (row, contender)).collect();
    let partial = interleave(&mut contenders, rounds, session);
    drop(files);
    let rows: Vec<Row> = contenders.into_iter().map(|(row, _)| row).collect();
    let of_rounds = shared.rounds.borrow();
    let evidence = Evidence { rows: &rows, rounds: &of_rounds, alone: Beside::Nothing.word() };
    let (tables, verdicts) = (vec![verdicts::ratios(&evidence)], verdicts::verdicts(&evidence));
    Ok(Report {
        scenario: SCENARIO.name.into(),
        machine,
        timer,
        quick: request.quick,
        partial,
        rounds,
        tables,
        verdicts,
        rows,
        notes: NOTES.map(Into::into).to_vec(),
    })
}

const NOTES: [&str; 4] = [
    "the core is the arm at 1 kHz in two realtime domains; crash_loop: one service panics 5 ms \
     after its start, one kills itself, one never gets ready, each back 10 ms after its end, or \
     100 ms, the shortest pause that a spec has without asking",
    "services stand on other CPUs than the core where there are others: with two CPUs and two \
     realtime domains there are none",
    "overruns on a virtual machine are mostly the host's: 'stolen_by_host' is what it took from \
     all CPUs meanwhile, in steps of 10 ms",
    "ready_again: from the kill until the supervisor knows it as ready, the policy's 10 ms taken \
     off",
];

fn rows() -> Vec<Row> {
    let row = |measured: &str, beside: &str| {
        let axes = [("measured", measured), ("beside", beside)];
        let axes = axes.map(|(axis, value)| (axis.into(), value.into())).to_vec();
        Row { axes, ..Row::default() }
    };
    let core = Beside::ALL.iter().map(|beside| row("core", beside.word()));
    let of_supervisor = ["services_alone", "arm_and_log"];
    core.chain(of_supervisor.map(|beside| row("supervisor", beside))).collect()
}

fn contender<'a>(
    shared: &'a Shared<'a>,
    row: &Row,
    rounds: u32,
) -> Result<Box<dyn Contender + 'a>, String> {
    let time = SUPERVISOR_TIME / rounds.max(1);
    Ok(match row.axis("beside").unwrap_or_default() {
        "services_alone" => Box::new(Idle::new(shared, Whose::Services, time)),
        "arm_and_log" => Box::new(Idle::new(shared, Whose::Program, time)),
        beside => Box::new(Driver::new(shared, beside.parse()?)?),
    })
}
