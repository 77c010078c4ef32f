//! `sinew replay`: feeds what a recorder has recorded back into the graph's core, in this process
//! and without realtime, and compares what comes out with what came out then, bit for bit.

mod ends;
mod files;
mod graphs;
mod pace;
mod part;
mod player;
mod recording;
mod show;
mod tally;
#[cfg(test)]
mod tests;
mod thread;

use std::io::{self, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use sinew_runtime::NodeEntry;

use self::graphs::Graphs;
use self::player::Player;
use self::recording::Recording;
use self::show::Outcome;
use crate::answer::{BAD_REQUEST, FAULTED, print};
use crate::duration::duration;
use crate::load::LoadError;

/// Replay a recording: is what this program computes what was computed then?
///
/// The core's nodes get the recorded inputs, cycle by cycle, in this process; no machine moves. All
/// parts of the recording that lie beside FILE are taken in order.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// A part of a recording, as 'kind: recorder' writes it
    file: PathBuf,
    /// Show the recording so many times as fast as it was, 1 as it was; max only compares
    #[arg(long, value_name = "X", default_value = "max", value_parser = speed)]
    speed: Speed,
    /// Stop after this cycle of the first timer-released thread, or after so long: 1200, 2.5s
    #[arg(long, value_name = "CYCLE|TIME", value_parser = until)]
    until: Option<Until>,
    /// Show the first cycle of each thread that differs, field by field, and how much differs later
    #[arg(long)]
    diff: bool,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Take the nodes' files from this folder, not from the recording
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Replay this graph, not the recorded one; its threads, nodes and ports are found by name
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Give a parameter another value than it had; may be repeated
    #[arg(long = "set", value_name = "NODE.PARAMETER=VALUE")]
    overrides: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  sinew replay recordings/robot-20260102T030405.678Z-0001.mcap
  sinew replay part.mcap --diff --set planner.speed_mm_per_s=100
  sinew replay part.mcap --speed 1 --until 2.5s

Exit status: 0 bit-identical, 1 something differs or is missing, 2 bad request, file or spec.";

/// How fast.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    /// As fast as the nodes are.
    Max,
    /// So many times as fast as it was.
    Times(f64),
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times = text.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
    times.map(Speed::Times).ok_or_else(|| "expected a number above 0, or max".into())
}

/// Where the replay ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Until {
    /// After this cycle of the first timer-released thread.
    Cycle(u64),
    /// So long after the first cycle.
    Time(Duration),
}

fn until(text: &str) -> Result<Until, String> {
    if let Ok(cycle) = text.parse() {
        return Ok(Until::Cycle(cycle));
    }
    let time = duration(text);
    time.map(Until::Time)
        .map_err(|error| format!("neither the number of a cycle nor a time: {error}"))
}

/// Carries out the command.
pub(crate) fn run(args: &ReplayArgs, nodes: &[NodeEntry]) -> ExitCode {
    match carry_out(args, nodes) {
        Ok(status) => status,
        Err(error) if args.json => {
            // Nobody reads it: then only the exit status tells.
            let _ = writeln!(stdout(), "{}", error.to_json());
            ExitCode::from(BAD_REQUEST)
        }
        Err(error) => error.report(),
    }
}

fn carry_out(args: &ReplayArgs, nodes: &[NodeEntry]) -> Result<ExitCode, LoadError> {
    let stop = catch_signals().map_err(|error| LoadError::Request(error.to_string()))?;
    let recording = Recording::open(&args.file).map_err(LoadError::Request)?;
    let mut notes = recording.notes.clone();
    let graphs = Graphs::make(args, &recording, nodes, &mut notes)?;
    let mut player = Player::new(&graphs, nodes, args.until, &stop);
    player.notes = notes;
    if player.threads.is_empty() {
        let graph = &recording.head().graph;
        let text = format!("graph '{graph}' is one of services: there is no core to be replayed");
        return Err(LoadError::Request(text));
    }
    let missing = recording.missing();
    if !missing.is_empty() {
        let missing: Vec<_> = missing.iter().map(u32::to_string).collect();
        let text = format!("part {} is not beside '{}'", missing.join(", "), args.file.display());
        player.stops.push(text);
    }
    if let Speed::Times(times) = args.speed {
        player.follow(times, args.json);
    }
    let begun = Instant::now();
    player.play(&recording).map_err(LoadError::Request)?;
    let taken_s = (args.speed == Speed::Max).then(|| begun.elapsed().as_secs_f64());
    let outcome = Outcome {
        file: args.file.display().to_string(),
        recording: &recording,
        player: &player,
        plan: &graphs.now,
        diff: args.diff,
        taken_s,
    };
    let status = if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    let text = match args.json {
        true => format!("{}\n", outcome.to_json()),
        false => outcome.to_text(),
    };
    Ok(print(&text, status))
}

/// Set by Ctrl-C and its like: then the replay ends with what it has.
fn catch_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A second one ends the program at once.
        flag::register_conditional_shutdown(signal, i32::from(FAULTED), Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}
