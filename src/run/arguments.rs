//! The arguments of `sinew run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::duration::duration;
use crate::machine::MachineArgs;
use crate::part::PartArgs;

/// Run a graph: a live view on a terminal, plain lines otherwise, then a report.
///
/// Ctrl-C stops the graph in order, actuators first. A second Ctrl-C kills it. The run also ends
/// when a node reports that the job is done, after --duration, and on any fault.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The graph's YAML file
    pub(super) file: PathBuf,
    /// Stop in order this long after the first cycle: 500ms, 10s, 5m, 2h
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    pub(super) duration: Option<Duration>,
    /// Print the report as one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(super) json: bool,
    /// Fault if the kernel refuses SCHED_FIFO, mlockall or a CPU. Exit with 1 if the run did not
    /// show that a requirement of the graph is kept
    #[arg(long)]
    pub(super) strict: bool,
    /// Write a row for every cycle of the first timer-released thread, times in ns. The rows of
    /// other threads go to files next to it, with the domain's name before the extension
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Copy the messages of every cycle into its record even if no node observes the run: 'sinew
    /// scope' then shows messages at ports, too. The copy takes time in every cycle
    #[arg(long)]
    pub(super) observe: bool,
    /// Watch the graph's file, and take over edits of its flows while the graph runs. A bad edit is
    /// reported and changes nothing
    #[arg(long)]
    pub(super) watch: bool,
    /// Write a CPU profile of each process with flows when it ends, for 'go tool pprof'
    #[arg(long, value_name = "FILE")]
    pub(super) profile: Option<PathBuf>,
    /// Stacks that a profile takes per second of CPU time
    #[arg(long, value_name = "HZ", default_value_t = 99, requires = "profile",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) profile_hz: u32,
    #[command(flatten)]
    pub(super) part: PartArgs,
    #[command(flatten)]
    pub(super) machine: MachineArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew run graphs/arm/arm.yaml
  sinew run graphs/arm/arm.yaml --duration 60s --json > report.json
  sinew run graphs/arm/arm.yaml --set planner.speed_mm_per_s=100 --csv run.csv
  sinew run graphs/http/ping.yaml --watch
  sinew run graphs/cell/cell.yaml --host cell
  sinew run graphs/http/ping.yaml --profile cpu.prof

Exit status: 0 the job is done or was stopped, 1 a fault, or a file that was asked for is
incomplete, 2 bad request or spec.";
