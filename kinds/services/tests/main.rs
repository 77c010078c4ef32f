//! The services in graphs that really run. The domains are this program, started again.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

mod axis_log;
mod camera;
mod dashboard;
mod monitor;
mod recorder;
mod stage;

use std::panic::catch_unwind;
use std::process::ExitCode;

use sinew_robot::NODES;
use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_runtime::{Kinds, domain};
use sinew_services::SERVICES;

/// A test and its name.
type Test = (&'static str, fn());

/// All tests; `cargo test` filters them by name as usual.
const TESTS: [&[Test]; 5] =
    [axis_log::TESTS, camera::TESTS, dashboard::TESTS, monitor::TESTS, recorder::TESTS];

/// The kinds of Sinew, and those that these tests add.
fn all_kinds() -> Kinds {
    let nodes = [dashboard::kinds::PROBE, camera::kinds::JOINTS].into_iter();
    let nodes = nodes.chain(recorder::kinds::CORE).chain(NODES.iter().copied());
    let services = [dashboard::kinds::FILM].into_iter().chain(camera::kinds::SERVICES);
    Kinds {
        nodes: nodes.collect(),
        services: services.chain(SERVICES.iter().copied()).collect(),
        ..Kinds::default()
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return domain::main(descriptor.parse().expect("a number"), &all_kinds());
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let mut failed = 0;
    for (name, test) in TESTS.into_iter().flatten().filter(|(name, _)| chosen(name)) {
        let good = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += u32::from(!good);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
