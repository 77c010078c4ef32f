//! Graphs with a node of ROS, run for real, and nodes of other implementations beside them: Cyclone
//! DDS by its Python package, ros2-client for services and parameters over DDS, and zenoh's Python
//! package in the way of rmw_zenoh. The domains are this program, started again. None of these
//! graphs is the arm.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

mod base;
mod calls;
mod inward;
mod kinds;
mod outward;
mod over_zenoh;
mod peer;
mod refused;
mod stage;
mod targets;

use std::panic::catch_unwind;
use std::process::ExitCode;

use sinew_ros2::SERVICES;
use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_runtime::{Kinds, domain};

/// A test and its name.
type Test = (&'static str, fn());

/// All tests; `cargo test` filters them by name as usual.
const TESTS: [&[Test]; 7] = [
    outward::TESTS,
    inward::TESTS,
    targets::TESTS,
    base::TESTS,
    calls::TESTS,
    refused::TESTS,
    over_zenoh::TESTS,
];

/// The kinds of this crate, and the machines of these tests.
fn all_kinds() -> Kinds {
    let services = [kinds::FILM].into_iter().chain(SERVICES.iter().copied());
    let nodes = [kinds::NODES, sinew_robot::NODES].concat();
    Kinds { nodes, services: services.collect(), ..Kinds::default() }
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
