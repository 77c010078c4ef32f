//! What the services that people see cost the core beside which they run, with one who looks on and
//! with many; what each of them takes; and whether the recorder has all.

mod cost;
mod driver;
mod setup;
mod verdicts;
mod viewers;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Machine;

use self::driver::Driver;
use self::setup::{Beside, SERVICES};
use super::beside::{Evidence, Round};
use super::{Refusal, Request, Scenario};
use crate::graph::Files;
use crate::report::{Axis, Report, Row, Timer};
use crate::rounds::{Contender, Session, interleave};

/// Rounds, if nobody asks for another number, and what is measured of a row in each of them.
const ROUNDS: u32 = 9;
const SHARE: Duration = Duration::from_secs(10);
/// The same of the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_millis(2500);

const AXES: &[Axis] =
    &[Axis { name: "beside", values: &["nothing", "services", "services_and_50_viewers"] }];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "robot",
    about: "what camera, dashboard, recorder and monitor cost the core and take for themselves, \
            with one viewer and with 50",
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
    /// What a row's medians do not tell of each round.
    rounds: RefCell<BTreeMap<&'static str, Vec<Round>>>,
}

fn run(request: &Request, session: &Session<'_>) -> Result<Report, Refusal> {
    let has = |name: &&&str| !request.kinds.iter().any(|kind| kind.name == **name);
    if let Some(missing) = SERVICES.iter().find(has) {
        let why = format!("this program has no kind '{missing}'; give the lab its services' nodes");
        return Err(Refusal(why));
    }
    let default = if request.quick { QUICK_ROUNDS } else { ROUNDS };
    let rounds = request.rounds.unwrap_or(default);
    let rows = Beside::ALL.iter().map(|beside| Row {
        axes: vec![("beside".into(), beside.word().into())],
        ..Row::default()
    });
    let rows = request.only.pick(rows.collect(), |row| &row.axes)?;
    let files = Files::write().map_err(Refusal)?;
    let shared = Shared {
        session,
        cpus: request.cpus.clone(),
        share: if request.quick { QUICK_SHARE } else { SHARE },
        rounds: RefCell::default(),
    };
    let (machine, timer) = (Machine::read(), Timer::measure(Clock::calibrate()));
    let contender = |row: Row| {
        let beside = row.axis("beside").unwrap_or_default().parse()?;
        let driver = Driver::new(&shared, beside, &request.kinds)?;
        Ok((row, Box::new(driver) as Box<dyn Contender>))
    };
    let contenders: Result<Vec<_>, String> = rows.into_iter().map(contender).collect();
    let mut contenders = contenders.map_err(Refusal)?;
    let partial = interleave(&mut contenders, rounds, session);
    drop(files);
    let rows: Vec<Row> = contenders.into_iter().map(|(row, _)| row).collect();
    let of_rounds = shared.rounds.borrow();
    let alone = Beside::Nothing.word();
    let evidence = Evidence { rows: &rows, rounds: &of_rounds, alone };
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
    "the core is the arm at 1 kHz in two realtime domains; services stand on other CPUs than it \
     where there are others: with two CPUs and two realtime domains there are none, and they keep \
     to that of the drives",
    "viewers are connections of this program that take what the page takes, pictures of the camera \
     among them, and draw nothing; one thread looks after all of them 100 times a second, for they \
     use the CPUs of the services, which real ones do not",
    "CPU is that of a service's process by the kernel's count, 100 % is one core; frames_least: \
     motions a second of the viewer who got the fewest, in the worst round",
    "cycles_recorded: counted in the finished files, by a reader that is not ours; cycles: what \
     the core has done, starts and stops among them",
];
