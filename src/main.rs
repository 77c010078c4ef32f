//! `sinew` with the nodes that come with it.

use std::process::ExitCode;

fn main() -> ExitCode {
    sinew::main(&sinew::kinds())
}
