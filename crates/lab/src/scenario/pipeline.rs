//! Four stages in a ring, planner -> ik -> ethercat -> drives and back: what threads, processes,
//! transports, locks and waiting cost a control loop. Every row is a spec that is compiled and run
//! as by `sinew run`.

mod article;
mod claims;
mod driver;
mod setup;
mod stage;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_spec::plan::{Sync, Transport, Wait};

use self::claims::Evidence;
use self::driver::{PipelineRun, Share, Shared};
use self::setup::{Crossing, Layout, NO_VALUE, Period, Setup, Work};
pub(super) use self::stage::NODE;
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::graph::Files;
use crate::harness::Cpus;
use crate::harness::reference::Reference;
use crate::report::{Axis, ScenarioReport};
use crate::rounds::{Contenders, Session, measure};

/// Rounds, if no other number is requested.
const ROUNDS: u32 = 5;
/// How long a row is measured, over all rounds.
const ROW_TIME: Duration = Duration::from_secs(10);
/// Cycles after each start that do not count.
const WARM_UP: u64 = 100;
/// The same for the short form, whose 40 rows should take less than a minute.
const QUICK_ROUNDS: u32 = 3;
const QUICK_SHARE: Duration = Duration::from_millis(350);
const QUICK_FREE_SHARE: Duration = Duration::from_millis(60);
const QUICK_WARM_UP: u64 = 20;

const AXES: &[Axis] = &[
    Axis { name: "work", values: Work::WORDS },
    Axis { name: "placement", values: Layout::WORDS },
    Axis {
        name: "transport",
        values: &[NO_VALUE, "in_process", "shared_memory", "pipe", "unix", "tcp"],
    },
    Axis { name: "sync", values: &[NO_VALUE, "lock_free", "mutex"] },
    Axis { name: "wait", values: &[NO_VALUE, "spin", "yield", "park", "spin_then_park"] },
    Axis { name: "period", values: Period::WORDS },
];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "pipeline",
    about: "a control loop of four stages: the cost of threads, processes, transports, locks and \
            waiting",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    let setups = if request.quick { quick() } else { Setup::all() };
    let rows: Vec<_> = setups.into_iter().map(|setup| (setup.row(), setup)).collect();
    let rows = request.only.pick(rows, |(row, _)| &row.axes)?;
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let needs_files = rows.iter().any(|(_, setup)| setup.work == Work::Real);
    let _files = needs_files.then(Files::write).transpose().map_err(CannotRun)?;
    let shared = Shared {
        session,
        cpus: request.cpus.clone(),
        reference: Reference::new(last_two(&request.cpus)?, Clock::calibrate()),
        refused: RefCell::new(BTreeSet::new()),
    };
    let mut contenders: Contenders<'_> = Vec::new();
    for (mut row, setup) in rows {
        row.skipped = setup.obstacle(shared.cpus.len());
        let driver = PipelineRun::new(&shared, setup, share(request.quick, setup, rounds));
        let driver = driver.map_err(CannotRun)?;
        if row.skipped.is_none() {
            row.notes = driver.departures();
            row.notes.extend(setup.remark().map(Into::into));
        }
        contenders.push((row, Box::new(driver)));
    }
    let report = measure(SCENARIO.name, request.quick, rounds, contenders, session);
    let notes = notes(request.quick, &shared);
    let evidence = Evidence { rows: &report.rows, cpus: shared.cpus.len() };
    let tables = vec![article::table(&report.rows), claims::bars(&evidence)];
    let verdicts = claims::verdicts(&evidence);
    Ok(ScenarioReport { tables, verdicts, notes, ..report })
}

/// How much of a row is measured in a round.
fn share(quick: bool, setup: Setup, rounds: u32) -> Share {
    match (quick, setup.period) {
        (true, Period::Free) => Share { time: QUICK_FREE_SHARE, warm_up: WARM_UP },
        (true, _) => Share { time: QUICK_SHARE, warm_up: QUICK_WARM_UP },
        (false, _) => Share { time: ROW_TIME / rounds.max(1), warm_up: WARM_UP },
    }
}

/// The two CPUs between which the token is measured; the same CPU twice if there is only one.
fn last_two(cpus: &[u32]) -> Result<Cpus, CannotRun> {
    match *cpus {
        [.., near, far] => Ok(Cpus { near, far }),
        [only] => Ok(Cpus { near: only, far: only }),
        [] => Err(CannotRun("there is no CPU".into())),
    }
}

fn notes(quick: bool, shared: &Shared<'_>) -> Vec<String> {
    let refused = shared.refused.borrow();
    let mut notes: Vec<_> = refused.iter().map(|what| format!("the kernel: {what}")).collect();
    if let Some(token_ns) = shared.reference.median_ns() {
        notes.push(format!(
            "reference: the token, one word on one line that two threads write in turn; \
             {token_ns:.0} ns"
        ));
    }
    notes.extend(shared.reference.moved());
    if quick {
        notes.push(format!(
            "quick: {QUICK_WARM_UP} warm-up cycles after each start instead of {WARM_UP}, for rows \
             with a period"
        ));
    }
    notes
}

/// The rows of the short form: those of the article, their counterparts with a mutex, and those by
/// which the article's claims are judged on a machine with two CPUs.
fn quick() -> Vec<Setup> {
    let row = |placement, crossing, period| Setup { work: Work::None, placement, crossing, period };
    let crossing = |transport, sync, wait| Some(Crossing { transport, sync, wait });
    let lock_free = Some(Sync::LockFree);
    let mutex = Some(Sync::Mutex);
    let (in_process, shared) = (Transport::InProcess, Transport::SharedMemory);
    let pipe = crossing(Transport::Pipe, None, Wait::Park);
    let (threads, processes) = (Layout::FourThreads, Layout::FourProcesses);
    let article = [
        (threads, crossing(in_process, lock_free, Wait::Yield)),
        (threads, crossing(in_process, mutex, Wait::Park)),
        (processes, crossing(shared, lock_free, Wait::Yield)),
        (processes, crossing(shared, mutex, Wait::Park)),
        (processes, pipe),
    ];
    let two = Layout::TwoThreads;
    let beside = [
        (Layout::Fused, None),
        (two, crossing(in_process, lock_free, Wait::Spin)),
        (two, crossing(in_process, lock_free, Wait::Park)),
        (two, crossing(in_process, mutex, Wait::Spin)),
        (two, crossing(in_process, mutex, Wait::Park)),
        (Layout::TwoProcesses, crossing(shared, lock_free, Wait::Spin)),
        (Layout::TwoProcesses, crossing(shared, mutex, Wait::Park)),
        (Layout::TwoProcesses, pipe),
    ];
    let mut rows = Vec::new();
    for (placement, crossing) in article {
        let periods = [Period::Ms1, Period::Ms2, Period::Ms4, Period::Ms10];
        rows.extend(periods.map(|period| row(placement, crossing, period)));
    }
    for (placement, crossing) in beside.into_iter().chain([article[0], article[1]]) {
        rows.push(row(placement, crossing, Period::Free));
    }
    for (placement, crossing) in beside {
        rows.push(row(placement, crossing, Period::Ms1));
    }
    rows
}
