//! `sinew check`: is the graph good? The spec is compiled, then every node is made once, so that
//! the files it reads are checked too; nothing is run.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_runtime::NodeEntry;
use sinew_spec::{picture, schema};

use crate::cli::{BAD_REQUEST, print};
use crate::load::load_and_make;

/// Check a graph: its spec, its links and the files that its nodes read; run nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The spec of the graph.
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,
    /// Takes the place of a parameter in the spec; may stand more than once.
    #[arg(long, value_name = "NODE.PARAMETER=VALUE")]
    set: Vec<String>,
    /// Prints one JSON object: the errors, or the plan.
    #[arg(long)]
    json: bool,
    /// Prints the JSON schema of a spec, for editors, and checks nothing.
    #[arg(long, conflicts_with_all = ["file", "set", "json"])]
    schema: bool,
}

const EXAMPLES: &str = "Examples:
  sinew check graphs/arm/arm.yaml
  sinew check --set planner.path=plate.gcode graphs/arm/arm.yaml
  sinew check --schema > sinew.schema.json    # '# yaml-language-server: $schema=sinew.schema.json'

Exit status: 0 good, 2 bad request or spec.";

/// Runs the command.
pub(crate) fn run(arguments: &CheckArgs, nodes: &[NodeEntry]) -> ExitCode {
    let Some(file) = &arguments.file else {
        let kinds: Vec<_> = nodes.iter().map(|row| row.kind).collect();
        return print(&format!("{:#}\n", schema(&kinds)), ExitCode::SUCCESS);
    };
    match load_and_make(file, &arguments.set, nodes) {
        Err(error) if arguments.json => {
            print(&format!("{:#}\n", error.to_json()), ExitCode::from(BAD_REQUEST))
        }
        Err(error) => error.report(),
        Ok(loaded) => {
            let text = match arguments.json {
                true => {
                    let answer = json!({"errors": [], "plan": picture::json(&loaded.plan)});
                    format!("{answer:#}\n")
                }
                false => format!("{}no errors\n", picture::summary(&loaded.plan)),
            };
            print(&text, ExitCode::SUCCESS)
        }
    }
}
