//! The command line: its commands, and the exit status that they share.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sinew_runtime::run::DOMAIN_COMMAND;
use sinew_runtime::{NodeEntry, domain};

use crate::{check, graph, run};

/// The graph faulted, or a gate failed.
pub(crate) const FAULTED: u8 = 1;
/// The request or the spec is bad; nothing was run.
pub(crate) const BAD_REQUEST: u8 = 2;

/// A dataflow runtime for machines: a fail-stop realtime core, services and links in one graph.
#[derive(Debug, Parser)]
#[command(name = "sinew", version, about, after_help = EXIT_STATUS)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_STATUS: &str =
    "Exit status: 0 good, 1 the graph faulted or a gate failed, 2 bad request or spec.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Check(check::CheckArgs),
    Graph(graph::GraphArgs),
}

/// Runs the command line of this process with these kinds of nodes.
///
/// The parent of a run starts this same program again for each domain; that second start ends up
/// here too, so a program with a `main` of its own must call this before anything else.
pub fn main(nodes: &[NodeEntry]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, descriptor] = arguments.as_slice()
        && command == DOMAIN_COMMAND
    {
        return match descriptor.parse() {
            Ok(descriptor) => domain::main(descriptor, nodes),
            Err(_) => ExitCode::from(BAD_REQUEST),
        };
    }
    match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments, nodes),
        Command::Check(arguments) => check::run(&arguments, nodes),
        Command::Graph(arguments) => graph::run(&arguments, nodes),
    }
}
