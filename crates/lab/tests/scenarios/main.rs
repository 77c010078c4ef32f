//! Scenarios that run whole graphs, run for real but shortly. The domains are this program, started
//! again.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

mod pipeline;
mod robot;
mod services;

use std::panic::catch_unwind;
use std::process::ExitCode;

use sinew_lab::scenario::table;
use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_runtime::{Kinds, domain};
use sinew_services::SERVICES;

/// Name and body.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return domain::main(
            descriptor.parse().expect("a number"),
            &table(&Kinds { services: SERVICES.to_vec(), ..Kinds::default() }),
        );
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let tests = [pipeline::TESTS, services::TESTS, robot::TESTS].concat();
    let mut failed = 0;
    for (name, test) in tests.into_iter().filter(|(name, _)| chosen(name)) {
        let good = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += u32::from(!good);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
