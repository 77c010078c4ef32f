//! The `main` of test programs whose graphs are run for real: the domains are the program itself,
//! started again.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

use std::panic::catch_unwind;
use std::process::ExitCode;

use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_runtime::{Kinds, domain};

/// Is a domain of a graph with these nodes, if it was started as one; else carries out the tests,
/// which `cargo test` filters by name as usual.
pub(crate) fn carry_out(tests: &[(&str, fn())], kinds: &Kinds) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return domain::main(descriptor.parse().expect("a number"), kinds);
    }
    let filter = arguments.iter().skip(1).find(|argument| !argument.starts_with('-'));
    let chosen = |name: &str| filter.is_none_or(|filter| name.contains(filter.as_str()));
    let mut failed = 0;
    for (name, test) in tests.iter().filter(|(name, _)| chosen(name)) {
        let good = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if good { "ok" } else { "FAILED" });
        failed += u32::from(!good);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
