//! `sinew graph`: the plan as a picture: what will run where, and how each link crosses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use sinew_runtime::Kinds;
use sinew_spec::picture;
use sinew_view::{columns, is_plain};

use crate::answer::{BAD_REQUEST, print, refuse};
use crate::load::load;
use crate::machine::MachineArgs;
use crate::overwrite;
use crate::part::PartArgs;

/// Show the plan of a graph: domains, threads, nodes in order, and every link with its options.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GraphArgs {
    /// The spec of the graph.
    file: PathBuf,
    #[command(flatten)]
    part: PartArgs,
    /// Write the picture to this file; '-' is standard output.
    #[arg(long, value_name = "OUT.svg")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Print the plan as one JSON object.
    #[arg(long, conflicts_with = "svg")]
    json: bool,
    /// Print a header for C and C++ with the messages that cross the links.
    #[arg(long, conflicts_with_all = ["svg", "json"])]
    c: bool,
}

const EXAMPLES: &str = "Examples:
  sinew graph graphs/arm/arm.yaml
  sinew graph --svg arm.svg graphs/arm/arm.yaml
  sinew graph --json graphs/arm/arm.yaml | jq '.links[] | select(.fused | not)'
  sinew graph --c graphs/axis/axis.yaml > messages.h

Exit status: 0 good, 2 bad request or spec.";

/// Width of the picture in columns if there is no terminal.
const WIDTH: usize = 100;

/// Runs the command.
pub(crate) fn run(arguments: &GraphArgs, nodes: &Kinds) -> ExitCode {
    let loaded = arguments
        .machine
        .get()
        .and_then(|machine| load(&arguments.file, &arguments.part, nodes, &machine));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => return error.answer(arguments.json),
    };
    let plan = &loaded.plan;
    match &arguments.svg {
        Some(path) if path != Path::new("-") => {
            match overwrite::check("--svg", path, &arguments.file, &loaded) {
                Ok(()) => write(path, &picture::svg(plan)),
                Err(error) => error.report(),
            }
        }
        Some(_) => print(&picture::svg(plan), ExitCode::SUCCESS),
        None if arguments.c => print(&picture::c_header(plan), ExitCode::SUCCESS),
        None if arguments.json => print(&format!("{:#}\n", picture::json(plan)), ExitCode::SUCCESS),
        None if is_plain() => print(&picture::lines(plan), ExitCode::SUCCESS),
        None => print(&picture::text(plan, columns().unwrap_or(WIDTH)), ExitCode::SUCCESS),
    }
}

fn write(path: &Path, picture: &str) -> ExitCode {
    match fs::write(path, picture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let why = format!("cannot write {}: {error}; name another file", path.display());
            refuse(&why, BAD_REQUEST, false)
        }
    }
}
