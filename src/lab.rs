//! `sinew lab`: measures on this machine what links, services and flows cost, and shows it.

mod compare;
mod history;
pub(crate) mod output;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Subcommand, value_parser};
use serde_json::json;
use sinew_figures::Machine;
use sinew_lab::drill::table as with_drills;
use sinew_lab::graph::Files;
use sinew_lab::harness::process::{self, FarSide};
use sinew_lab::report::Build;
use sinew_lab::rounds::{Progress, Session};
use sinew_lab::scenario::{CannotRun, PARTS, ScenarioRequest, Selection, table};
use sinew_lab::{SCENARIOS, Scenario, ScenarioReport, rivals, show};
use sinew_runtime::Kinds;

use self::output::Outputs;
use crate::answer::{BAD_REQUEST, FAULTED, print, refuse, say};
use crate::progress::Bar;
use crate::signals::stop_on_signals;

/// Measure on this machine what links, waiting, services and flows cost.
///
/// Without SCENARIO, lists the scenarios, with the axes on which their rows differ. Each round
/// measures every row once, one after the other. Ctrl-C ends after the current row and shows the
/// results so far, marked as partial. A second Ctrl-C ends at once.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// What to measure
    scenario: Option<String>,
    /// The short form: fewer rows and less time for each; takes one or two minutes
    #[arg(long, requires = "scenario")]
    quick: bool,
    /// Measure every row this often, instead of the scenario's own number
    #[arg(long, requires = "scenario", value_parser = value_parser!(u32).range(1..=ROUNDS_MAX))]
    rounds: Option<u32>,
    /// Only rows with one of these values on this axis; may be given once for each axis. With
    /// --rivals
    /// there is one more axis, rival
    #[arg(long, requires = "scenario", value_name = "AXIS=VALUE[,VALUE]")]
    only: Vec<String>,
    /// Show the rows of rivals (other libraries) next to ours: a report made on this machine with
    /// cargo run --release --manifest-path rivals/Cargo.toml -- --out FILE
    #[arg(long, requires = "scenario", value_name = "FILE")]
    rivals: Option<PathBuf>,
    /// The image of the guest, instead of the scenario's own: 'trials' or 'player' in
    /// guest/target/armv7a-none-eabi/release
    #[arg(long, requires = "scenario", value_name = "FILE")]
    image: Option<PathBuf>,
    /// Print the report as one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Write the report as one page that needs no other file, with plots and the raw data
    #[arg(long, requires = "scenario", value_name = "OUT.html")]
    report: Option<PathBuf>,
    /// Write each plot as SVG to this folder; it is created if missing
    #[arg(long, requires = "scenario", value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// What is done with several programs or reports.
#[derive(Debug, Subcommand)]
enum Verb {
    Compare(compare::CompareArgs),
    History(history::HistoryArgs),
}

const EXAMPLES: &str = "\
Examples:
  sinew lab
  sinew lab pipeline --quick
  sinew lab link --quick --only transport=shared_memory --only bytes=8,64 --rounds 9
  sinew lab http --quick --only load=ping
  sinew lab link --rivals rivals.json --report link.html --svg plots --json > link.json
  sinew lab compare before/sinew target/release/sinew
  sinew lab history reports --report history.html

Exit status: 0 good, 1 the report is partial or could not be written, 2 bad request.";

/// More rounds take days and tell nothing more.
const ROUNDS_MAX: i64 = 10_000;

/// These kinds, and the kinds that the lab and the drill add.
pub(crate) fn with_kinds(nodes: &Kinds) -> Kinds {
    with_drills(&table(nodes))
}

/// Runs the far side of a link, if that is what this process was started for.
pub(crate) fn far_side(arguments: &[OsString], more: &[FarSide]) -> Option<ExitCode> {
    process::main(arguments, &[PARTS, more].concat())
}

/// Carries out the command.
pub(crate) fn run(args: &LabArgs, nodes: &Kinds) -> ExitCode {
    match &args.verb {
        Some(Verb::Compare(args)) => return compare::run(args),
        Some(Verb::History(args)) => return history::run(args),
        None => {}
    }
    let Some(name) = &args.scenario else { return list(args.json) };
    match prepare(args, name, nodes) {
        Ok(prepared) => prepared.carry_out(args.json),
        Err(why) => refuse(&why, BAD_REQUEST, args.json),
    }
}

/// The scenarios, and what their rows differ in.
fn list(as_json: bool) -> ExitCode {
    let axes = |scenario: &Scenario| -> serde_json::Map<_, _> {
        scenario.axes.iter().map(|axis| (axis.name.to_string(), json!(axis.values))).collect()
    };
    let text = match as_json {
        true => {
            let row = |scenario: &Scenario| {
                let Scenario { name, about, .. } = scenario;
                json!({"name": name, "about": about, "axes": axes(scenario)})
            };
            let rows: Vec<_> = SCENARIOS.iter().map(row).collect();
            format!("{:#}\n", json!({ "scenarios": rows }))
        }
        false => SCENARIOS.iter().map(described).collect::<Vec<_>>().join("\n"),
    };
    print(&text, ExitCode::SUCCESS)
}

/// What the build script says about this program.
fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: option_env!("SINEW_COMMIT").map(Into::into),
        committed_s: option_env!("SINEW_COMMITTED_S").and_then(|text| text.parse().ok()),
        changed: option_env!("SINEW_CHANGED").is_some(),
    }
}

fn described(scenario: &Scenario) -> String {
    let mut text = format!("{}: {}\n", scenario.name, scenario.about);
    let width = scenario.axes.iter().map(|axis| axis.name.len()).max().unwrap_or_default();
    for axis in scenario.axes {
        text += &format!("  {:<width$}  {}\n", axis.name, axis.values.join(", "));
    }
    text
}

/// A request that is good as far as can be known before measuring.
struct Prepared {
    scenario: &'static Scenario,
    request: ScenarioRequest,
    outputs: Outputs,
    stop: Arc<AtomicBool>,
}

fn prepare(args: &LabArgs, name: &str, nodes: &Kinds) -> Result<Prepared, String> {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        format!("no scenario '{name}'; there are {}", names.join(", "))
    })?;
    let machine = Machine::read();
    let rivals = match &args.rivals {
        Some(_) if !scenario.takes_rivals => {
            return Err(format!("--rivals: '{name}' has no rivals; leave it out"));
        }
        Some(path) => Some(read_rivals(path, &machine)?),
        None => None,
    };
    if args.image.is_some() && !scenario.takes_image {
        return Err(format!("--image: '{name}' runs no guest; leave it out"));
    }
    let only = Selection::parse(scenario.axes, rivals.as_ref(), &args.only);
    let only = only.map_err(|CannotRun(why)| why)?;
    let outputs = Outputs::open(args.report.as_deref(), args.svg.as_deref())?;
    let cpus = machine.cpus_allowed;
    let (quick, rounds) = (args.quick, args.rounds);
    let kinds = table(nodes);
    let image = args.image.clone();
    let request = ScenarioRequest { quick, only, rounds, cpus, kinds, rivals, image };
    let stop = stop_on_signals(Files::remove)
        .map_err(|error| format!("cannot watch for signals: {error}"))?;
    Ok(Prepared { scenario, request, outputs, stop })
}

fn read_rivals(path: &Path, machine: &Machine) -> Result<ScenarioReport, String> {
    let name = path.display();
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| format!("--rivals: cannot read '{name}': {error}"))?;
    rivals::read(&text, machine).map_err(|why| format!("--rivals: '{name}' {why}"))
}

impl Progress for Bar {
    fn at(&self, row: &str, done: Duration, all: Duration) {
        self.reach_row(row, done, all);
    }
}

impl Prepared {
    fn carry_out(self, json: bool) -> ExitCode {
        let Prepared { scenario, request, outputs, stop } = self;
        let bar = Bar::rows();
        let answer = (scenario.run)(&request, &Session { stop: &stop, progress: &bar });
        drop(bar);
        let report = match answer {
            Ok(report) => ScenarioReport { build: Some(build()), ..report },
            Err(CannotRun(why)) => return refuse(&why, BAD_REQUEST, json),
        };
        let written = outputs.write(|| show::to_page(&report), || show::plots(&report));
        if let Err(why) = &written {
            say(&format!("error: {why}"));
        }
        let status = match written.is_ok() && !report.partial {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(FAULTED),
        };
        let text = if json { format!("{}\n", json!(report)) } else { show::to_text(&report) };
        print(&text, status)
    }
}
