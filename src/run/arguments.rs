//! What `sinew run` may be told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::duration::duration;
use crate::machine::MachineArgs;
use crate::part::PartArgs;

/// Run a graph: a live view on a terminal, plain lines otherwise, then a report.
///
/// Ctrl-C stops in order, actuators first; a second one kills. The run also ends when a node says
/// that the job is done, after --duration, and on any fault.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// The graph's YAML file
    pub(super) file: PathBuf,
    /// Stop in order so long after the first cycle: 500ms, 10s, 5m, 2h
    #[arg(long, value_parser = duration, allow_hyphen_values = true)]
    pub(super) duration: Option<Duration>,
    /// Print the report as one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(super) json: bool,
    /// Make it a fault when the kernel refuses SCHED_FIFO, mlockall or a CPU, and a failure when a
    /// requirement of the graph is not shown to be kept
    #[arg(long)]
    pub(super) strict: bool,
    /// Write a row for every cycle of the first timer-released thread; those of other threads go to
    /// files beside it with the domain's name before the extension. Times in ns
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Leave the messages of every cycle in its record though no node observes the run: 'sinew
    /// scope' then shows what crosses ports, and not only signals. Copying them costs every cycle
    #[arg(long)]
    pub(super) observe: bool,
    /// Look at the graph's file, and swap in what is edited of its flows while it runs; a bad edit
    /// changes nothing and is told
    #[arg(long)]
    pub(super) watch: bool,
    /// Write CPU profiles of the processes with flows as they end, for 'go tool pprof'
    #[arg(long, value_name = "FILE")]
    pub(super) profile: Option<PathBuf>,
    /// How often a profile looks, in a second of CPU time
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

Exit status: 0 the job is done or was stopped, 1 a fault or a file that was asked for is incomplete,
2 bad request or spec.";
