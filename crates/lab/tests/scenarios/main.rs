//! Scenarios that run whole graphs, run for real but for a short time, and far sides in processes
//! of their own. The domains and the far sides are this program, started again.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

mod far;
mod guest;
mod mistakes;
mod pipeline;
mod player;
mod pool;
mod robot;
mod services;
mod shared_size;
mod switch;
mod sync;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use sinew_core::privileges;
use sinew_flows::FLOWS;
use sinew_lab::harness::process;
use sinew_lab::rounds::{Progress, Session};
use sinew_lab::scenario::{CannotRun, PARTS, ScenarioRequest, Selection, table};
use sinew_lab::{SCENARIOS, ScenarioReport};
use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_runtime::{Kinds, domain};
use sinew_services::SERVICES;

/// Name and body of a test.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let parts = [PARTS, &[far::ECHO, far::FAIL]].concat();
    if let Some(status) = process::main(&std::env::args_os().collect::<Vec<_>>(), &parts) {
        return status;
    }
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return domain::main(
            descriptor.parse().expect("a number"),
            &table(&Kinds {
                services: SERVICES.to_vec(),
                flows: FLOWS.to_vec(),
                ..Kinds::default()
            }),
        );
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let tests = [
        far::TESTS,
        guest::TESTS,
        mistakes::TESTS,
        pipeline::TESTS,
        player::TESTS,
        pool::TESTS,
        robot::TESTS,
        services::TESTS,
        shared_size::TESTS,
        switch::TESTS,
        sync::TESTS,
    ]
    .concat();
    let mut failed = 0;
    for (name, test) in tests.into_iter().filter(|(name, _)| chosen(name)) {
        let good = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += u32::from(!good);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Runs these rows of a scenario.
fn run(
    name: &str,
    only: &[&str],
    request: ScenarioRequest,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<ScenarioReport, CannotRun> {
    let scenario = SCENARIOS.iter().find(|it| it.name == name).expect("it is in the table");
    let only: Vec<String> = only.iter().map(|&text| text.into()).collect();
    let only = Selection::parse(scenario.axes, None, &only).expect("the axes are good");
    (scenario.run)(&ScenarioRequest { only, ..request }, &Session { stop, progress })
}

/// The short form, one round, on all CPUs.
fn quick() -> ScenarioRequest {
    let cpus = privileges::cpus().expect("affinity");
    ScenarioRequest { quick: true, rounds: Some(1), cpus, ..ScenarioRequest::default() }
}
