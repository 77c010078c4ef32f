//! A whole `sinew`, with kinds of our own besides those that come with it.

mod journal;
mod oven;
mod verdict;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut kinds = sinew::kinds();
    kinds.nodes.push(oven::NODE);
    kinds.services.push(journal::NODE);
    kinds.flows.push(verdict::NODE);
    sinew::main(&kinds)
}
