//! `sinew check`: is the graph good? It compiles the spec, then makes every node once, so that the
//! files that nodes read are checked too. It runs nothing. It shows the firewall of the core, and
//! the longest chain of nodes in a cycle.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_report::{Chained, Earlier};
use sinew_runtime::Kinds;
use sinew_spec::firewall::Firewall;
use sinew_spec::plan::Plan;
use sinew_spec::{picture, schema};

use crate::advise::changed;
use crate::answer::{FAULTED, print, refuse};
use crate::load::{LoadError, Loaded, kinds_of, load_and_make};
use crate::machine::MachineArgs;
use crate::part::PartArgs;

/// Check a graph without running it: its spec, its links and the files that its nodes read.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// The spec of the graph.
    #[arg(required_unless_present = "schema")]
    file: Option<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
    /// Show the longest chain with the execution times in this report of 'sinew run --json'.
    #[arg(long, value_name = "RUN.json")]
    report: Option<PathBuf>,
    /// Fail if the machine or the graph has changed since 'sinew advise' wrote this receipt.
    #[arg(long, value_name = "RECEIPT.json", conflicts_with = "schema")]
    receipt: Option<PathBuf>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Print one JSON object: the errors, or the plan, its firewall and its longest chain.
    #[arg(long)]
    json: bool,
    /// Print the JSON schema of a spec, for editors, and check nothing. With FILE the schema also
    /// has the kinds in the images of its guests.
    #[arg(long, conflicts_with_all = ["set", "json", "report", "profile_machine"])]
    schema: bool,
}

const EXAMPLES: &str = "Examples:
  sinew check graphs/arm/arm.yaml
  sinew check --set planner.path=plate.gcode graphs/arm/arm.yaml
  sinew run --json --duration 60s graphs/arm/arm.yaml > run.json
  sinew check --report run.json graphs/arm/arm.yaml
  sinew check --receipt advice.json graphs/arm/arm.yaml
  sinew check --schema > sinew.schema.json    # '# yaml-language-server: $schema=sinew.schema.json'
  sinew check --schema graphs/dual_os/arm.yaml > dual_os.json    # with the kinds in its images

Exit status: 0 good, 1 the receipt does not hold, 2 bad request or spec.";

/// Runs the command.
pub(crate) fn run(arguments: &CheckArgs, nodes: &Kinds) -> ExitCode {
    let Some(file) = arguments.file.as_ref().filter(|_| !arguments.schema) else {
        let kinds = arguments.file.as_ref().map(|file| kinds_of(file, nodes));
        return match kinds.unwrap_or_else(|| Ok(nodes.catalogue())) {
            Ok(kinds) => print(&format!("{:#}\n", schema(&kinds)), ExitCode::SUCCESS),
            Err(error) => error.answer(false),
        };
    };
    let loaded = arguments
        .machine
        .get()
        .and_then(|machine| load_and_make(file, &arguments.part, nodes, &machine));
    let shown = loaded.and_then(|loaded| {
        Ok((show(&loaded, arguments)?, changed(arguments.receipt.as_deref(), &loaded)?))
    });
    match shown {
        Ok((_, changes)) if !changes.is_empty() => {
            refuse(&changes.join("; "), FAULTED, arguments.json)
        }
        Ok((text, _)) => print(&text, ExitCode::SUCCESS),
        Err(error) => error.answer(arguments.json),
    }
}

/// What there is to say about a good graph.
fn show(loaded: &Loaded, arguments: &CheckArgs) -> Result<String, LoadError> {
    let plan = &loaded.plan;
    let report = arguments.report.as_ref().map(|path| Earlier::read(path, plan)).transpose();
    let report = report.map_err(LoadError::Request)?;
    // The plan of all hosts has no machine. The rules of each part were proved on one that has
    // room.
    let firewall = (!plan.is_whole()).then(|| Firewall::of(plan, &loaded.spec.machine));
    let chained = Chained::new(plan, report.as_ref());
    if arguments.json {
        let answer = json!({
            "errors": [],
            "plan": picture::json(plan),
            "firewall": firewall.map(|it| it.json(plan)),
            "longest_chain": chained.to_json(),
        });
        return Ok(format!("{answer:#}\n"));
    }
    let firewall = firewall.map_or_else(|| for_each_host(plan), |it| it.text(plan));
    let parts = [picture::summary(plan), firewall, chained.text()];
    Ok(format!("{}no errors\n", parts.concat()))
}

/// What is said instead of the firewall in a graph with several hosts.
fn for_each_host(plan: &Plan) -> String {
    let hosts = plan.hosts.all.iter().map(|host| format!("'sinew check --host {}'", host.name));
    let hosts: Vec<String> = hosts.collect();
    format!("firewall: holds in the part of each host; shown there by {}\n", hosts.join(", "))
}
