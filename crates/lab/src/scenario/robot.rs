//! What the services with a user interface cost the core beside which they run, with one viewer and
//! with many; what each of them takes; and whether the recorder has all cycles.

mod cost;
mod services;
mod setup;
mod verdicts;
mod viewers;

use std::cell::RefCell;
use std::time::Duration;

use self::services::WatchedServices;
use self::setup::{Audience, SERVICES};
use super::beside::{Bench, CoreRun};
use super::{CannotRun, Scenario, ScenarioRequest};
use crate::graph::Files;
use crate::report::{Axis, Row, ScenarioReport};
use crate::rounds::{Contender, Session};

/// Rounds, if no other number is requested, and how long a row is measured in each of them.
const ROUNDS: u32 = 9;
const SHARE: Duration = Duration::from_secs(10);
/// The same for the short form.
const QUICK_ROUNDS: u32 = 5;
const QUICK_SHARE: Duration = Duration::from_millis(2500);

/// Cycles after each start that do not count: among them are the starts of the drives and of the
/// viewers.
const WARM_UP: u64 = 1500;
/// About how long starting and stopping a graph takes.
const START: Duration = Duration::from_millis(1000);

const AXES: &[Axis] = &[Axis { name: "beside", values: Audience::WORDS }];

/// The scenario's row in the table.
pub(super) const SCENARIO: Scenario = Scenario {
    name: "robot",
    about: "what camera, dashboard, recorder and monitor cost the core, and what they use, with \
            one viewer and with 50",
    axes: AXES,
    takes_rivals: false,
    takes_image: false,
    run,
};

fn run(request: &ScenarioRequest, session: &Session<'_>) -> Result<ScenarioReport, CannotRun> {
    request.needs(&SERVICES, "its services' nodes")?;
    let rounds = request.rounds_or(ROUNDS, QUICK_ROUNDS);
    let row = |&audience: &Audience| (audience, Row::of(&[("beside", audience.word())]));
    let rows = Audience::ALL.iter().map(row).collect();
    let rows = request.only.pick(rows, |(_, row)| &row.axes)?;
    let _files = Files::write().map_err(CannotRun)?;
    let bench = Bench {
        file: "lab robot",
        session,
        cpus: &request.cpus,
        warm_up: WARM_UP,
        share: if request.quick { QUICK_SHARE } else { SHARE },
        start: START,
        rounds: RefCell::default(),
    };
    let kinds = request.kinds.catalogue();
    let contender = |(audience, row): (Audience, Row)| {
        let graph = bench.request(audience.text(), &kinds)?;
        let services = WatchedServices::new(session, audience);
        let run = CoreRun::new(&bench, audience.word(), services, graph);
        Ok((row, Box::new(run) as Box<dyn Contender>))
    };
    let contenders: Result<_, String> = rows.into_iter().map(contender).collect();
    let contenders = contenders.map_err(CannotRun)?;
    let form = (request.quick, rounds);
    let report = bench.report(&SCENARIO, form, contenders, Audience::WORDS, verdicts::verdicts);
    Ok(ScenarioReport { notes: NOTES.map(Into::into).to_vec(), ..report })
}

const NOTES: [&str; 4] = [
    "the core is the arm at 1 kHz in two realtime domains; services run on other CPUs than the \
     core if there are any: with two CPUs and two realtime domains there are none, and services \
     run on the CPU of the drives",
    "viewers are connections of this program; they read what the page reads, including the \
     camera's pictures, and draw nothing; one thread serves all of them 100 times a second, \
     because they use the CPUs of the services, which real viewers do not",
    "CPU is that of a service's process by the kernel's count, 100 % is one core; frames_least: \
     motions a second of the viewer that got the fewest, in the worst round",
    "cycles_recorded: counted in the finished files by an independent reader; cycles: all cycles \
     of the core, including starts and stops",
];
