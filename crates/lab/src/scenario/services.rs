//! What services cost the core beside which they run, however badly they behave; how soon a killed
//! service is back; and what the supervisor itself costs.

mod company;
mod kinds;
mod setup;
mod supervisor;
mod verdicts;

use std::cell::RefCell;
use std::time::Duration;

use sinew_runtime::Kinds;

use self::company::PlainServices;
pub(super) use self::kinds::{NODE, SERVICE};
pub(super) use self::setup::{CORE_DOMAINS, core};
use self::setup::{Company, services_alone};
use self::supervisor::Idle;
use super::beside::{Bench, CoreRun};
use super::{CannotRun, Scenario, ScenarioRequest, table};
use crate::graph::Files;
use crate::report::{Axis, Row, ScenarioReport};
use crate::rounds::{Contender, Session};

/// Rounds, if no other number is requested.
const ROUNDS: u32 = 9;
/// How long a row is measured in each round, and how many services are killed in that time.
const SHARE: Duration = Duration::from_secs(5);
const KILLS: u32 = 12;
/// The same of the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_millis(1500);
const QUICK_KILLS: u32 = 8;
/// Cycles after each start that do not count: the start of the drives is among them.
const WARM_UP: u64 = 200;
/// About how long starting and stopping a graph takes.
const START: Duration = Duration::from_millis(500);
/// How long the supervisor is watched, over all rounds.
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
    about: "what services cost the core, also when they misbehave; how soon a killed one is back; \
            what the supervisor uses",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let rows = request.only.pick(rows(), |row| &row.axes)?;
    let _files = Files::write().map_err(CannotRun)?;
    let (share, kills) = if request.quick { (QUICK_SHARE, QUICK_KILLS) } else { (SHARE, KILLS) };
    let bench = Bench {
        file: "lab services",
        session,
        cpus: &request.cpus,
        warm_up: WARM_UP,
        share,
        start: START,
        rounds: RefCell::default(),
    };
    let contender = |row: Row| Ok((contender(&bench, &row, rounds, kills)?, row));
    let contenders: Result<Vec<_>, String> = rows.into_iter().map(contender).collect();
    let contenders = contenders.map_err(CannotRun)?.into_iter();
    let contenders = contenders.map(|(contender, row)| (row, contender)).collect();
    let form = (request.quick, rounds);
    let report = bench.report(&SCENARIO, form, contenders, Company::WORDS, verdicts::verdicts);
    Ok(ScenarioReport { notes: NOTES.map(Into::into).to_vec(), ..report })
}

const NOTES: [&str; 4] = [
    "the core is the arm at 1 kHz in two realtime domains; crash_loop: one service panics 5 ms \
     after its start, one kills itself, one never gets ready; each starts again 10 ms after its \
     end, or 100 ms, the shortest pause by default",
    "services run on other CPUs than the core if there are any: with two CPUs and two realtime \
     domains there are none",
    "on a virtual machine most overruns come from the host: 'stolen_by_host' is the time that it \
     took from all CPUs meanwhile, in steps of 10 ms",
    "ready_again: from the kill until the supervisor knows that the service is ready, without the \
     policy's pause of 10 ms",
];

fn rows() -> Vec<Row> {
    let row = |measured, beside: &str| Row::of(&[("measured", measured), ("beside", beside)]);
    let core = Company::WORDS.iter().map(|beside| row("core", beside));
    let of_supervisor = ["services_alone", "arm_and_log"];
    core.chain(of_supervisor.map(|beside| row("supervisor", beside))).collect()
}

fn contender<'a>(
    bench: &'a Bench<'a>,
    row: &Row,
    rounds: u32,
    kills: u32,
) -> Result<Box<dyn Contender + 'a>, String> {
    let time = SUPERVISOR_TIME / rounds.max(1);
    let kinds = table(&Kinds::default()).catalogue();
    Ok(match row.axis("beside").unwrap_or_default() {
        "services_alone" => {
            let request = bench.request(services_alone(), &kinds)?;
            Box::new(Idle::new(Some(request), time))
        }
        "arm_and_log" => Box::new(Idle::new(None, time)),
        beside => {
            let company: Company = beside.parse()?;
            let kills_max = if company == Company::Killed { kills } else { 0 };
            let request = bench.request(company.text(), &kinds)?;
            Box::new(CoreRun::new(bench, company.word(), PlainServices::new(kills_max), request))
        }
    })
}
