//! `sinew replay`: feeds a recording back into the graph's core, in this process and without
//! realtime. It compares the output with the recorded output, bit for bit. It can also merge the
//! recordings of several hosts into one file.

mod pace;
mod page;
mod several;

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sinew_recording::recording::Recording;
use sinew_recording::replay::{Changes, Graphs, Player, Refused, ReplayReport, Until};
use sinew_runtime::Kinds;
use sinew_spec::decimal_comma;

use self::pace::Pace;
use self::page::Page;
use crate::answer::{BAD_REQUEST, FAULTED, print, say};
use crate::duration::duration;
use crate::load::{LoadError, folder_of, read, split};
use crate::signals::stop_on_signals;

/// Replay a recording, and check that the nodes compute the same values as in the run
///
/// The nodes of the core get the recorded inputs, cycle by cycle, in this process. No machine
/// moves. All parts of the recording in the folder of FILE are replayed in order.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// A file of a recording, from a node of the kind 'recorder'; with --merge one file of each
    /// host
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Merge the recordings of several hosts into this new file, on one clock, and print how
    /// certain the order is; replay nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = REPLAYING)]
    merge: Option<PathBuf>,
    /// Show the recording at this many times its speed; 1 is the original speed, max shows nothing
    /// and only compares
    #[arg(long, value_name = "X", default_value = "max", value_parser = speed)]
    speed: Speed,
    /// Also write the recording as a page: one HTML file that a browser opens from disk and plays.
    /// FILE must not exist yet
    #[arg(long, value_name = "FILE", conflicts_with_all = ["speed", "spec"])]
    page: Option<PathBuf>,
    /// Show this trace, such as pid.error, on the page's scope cycle by cycle; other traces have 30
    /// values per second. May be repeated, up to 8 times
    #[arg(long = "trace", value_name = "NAME", requires = "page")]
    traces: Vec<String>,
    /// Stop after this cycle of the first timer-released thread, or after this time: 1200, 2.5s
    #[arg(long, value_name = "CYCLE|TIME", value_parser = until)]
    until: Option<Until>,
    /// Show the first cycle that differs in each thread, field by field, and count later
    /// differences
    #[arg(long)]
    diff: bool,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Take the files of nodes from this folder, not from the recording
    #[arg(long, value_name = "DIR")]
    base: Option<PathBuf>,
    /// Replay this graph, not the recorded one; its threads, nodes and ports are found by name
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Replace the value that a parameter had in the run; may be repeated
    #[arg(long = "set", value_name = "NODE.PARAMETER=VALUE")]
    overrides: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  sinew replay recordings/robot-20260102T030405.678Z-0001.mcap
  sinew replay part.mcap --diff --set planner.speed_mm_per_s=100
  sinew replay part.mcap --speed 1 --until 2.5s
  sinew replay part.mcap --page run.html --trace pid.error --until 20s
  sinew replay cell.mcap office.mcap --merge both.mcap

Exit status: 0 bit-identical, or merged; 1 something differs or is missing, or a merged message was
received before it was sent; 2 bad request, file or spec.";

/// Options that have no meaning if nothing is replayed.
const REPLAYING: [&str; 7] = ["speed", "page", "until", "diff", "base", "spec", "overrides"];

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    /// As fast as the nodes compute.
    Max,
    /// This many times the original speed.
    Times(f64),
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times = text.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
    times.map(Speed::Times).ok_or_else(|| {
        decimal_comma(text, |point| speed(point).is_ok())
            .unwrap_or_else(|| "expected a number above 0, or max".into())
    })
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
pub(crate) fn run(args: &ReplayArgs, nodes: &Kinds) -> ExitCode {
    match carry_out(args, nodes) {
        Ok(status) => status,
        Err(error) if args.json => {
            // If nobody reads standard output, only the exit status tells.
            let _ = writeln!(stdout(), "{}", error.to_json());
            ExitCode::from(BAD_REQUEST)
        }
        Err(error) => error.report(),
    }
}

fn carry_out(args: &ReplayArgs, nodes: &Kinds) -> Result<ExitCode, LoadError> {
    // After a signal, what was done so far is still shown.
    let stop = stop_on_signals(|| ()).map_err(|error| LoadError::Request(error.to_string()))?;
    if let Some(to) = &args.merge {
        return several::merge_into(to, &args.files, args.json, nodes, &stop);
    }
    let [file] = &args.files[..] else {
        return Err(LoadError::Request(format!(
            "a replay takes one recording, and {} files are named; name one of them, or, to merge \
             the recordings of several hosts, add '--merge FILE'",
            args.files.len()
        )));
    };
    let recording = Recording::open(file).map_err(LoadError::Request)?;
    let graphs = Graphs::make(&recording, nodes, changes(args)?).map_err(refused)?;
    let player = Player::new(&recording, &graphs, nodes, args.until, &stop);
    let mut player = player.map_err(LoadError::Request)?;
    if let Speed::Times(times) = args.speed {
        let mut pace = Pace::new(&graphs.recorded, player.threads(), times, args.json);
        let stop = &stop;
        player.show(Box::new(move |at, thread| pace.follow(at, thread, stop)));
    }
    let page = args.page.as_deref().map(|to| Page::new(to, &recording, &graphs, &args.traces));
    let page = page.transpose().map_err(LoadError::Request)?;
    if let Some(page) = &page {
        player.show(page.onlooker(&graphs, player.threads()));
    }
    let begun = Instant::now();
    player.play().map_err(LoadError::Request)?;
    let page = page.map(Page::write).transpose().map_err(LoadError::Request)?;
    let taken_s = (args.speed == Speed::Max).then(|| begun.elapsed().as_secs_f64());
    let report = ReplayReport::new(&player, args.diff, taken_s);
    let status = if report.is_good() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    let text = match args.json {
        true => format!("{}\n", report.to_json()),
        false => report.to_text(),
    };
    // With --json, the JSON object is alone on standard output.
    if let Some(page) = page {
        say(&page);
    }
    Ok(print(&text, status))
}

fn refused(refused: Refused) -> LoadError {
    match refused {
        Refused::Words(text) => LoadError::Request(text),
        Refused::Spec(text, diagnostics) => LoadError::Spec(text, diagnostics, vec![]),
    }
}

fn changes(args: &ReplayArgs) -> Result<Changes, LoadError> {
    let spec = args.spec.as_deref().map(|path| {
        let file = path.display().to_string();
        let text = read(path).map_err(|text| LoadError::Request(format!("{file}: {text}")))?;
        Ok((file, text, folder_of(path)))
    });
    let overrides = args.overrides.iter().map(|text| split(text)).collect::<Result<_, _>>()?;
    Ok(Changes { overrides, spec: spec.transpose()?, base: args.base.clone() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_end_is_a_cycle_or_a_time_and_a_speed_is_above_nothing() {
        let ends = ["4", "4ms"].map(|text| until(text).expect("good"));
        assert_eq!(ends, [Until::Cycle(4), Until::Time(Duration::from_millis(4))]);
        assert!(until("4 parsecs").is_err());
        assert_eq!(["max", "0.5"].map(speed), [Ok(Speed::Max), Ok(Speed::Times(0.5))]);
        assert!(["0", "-1", "inf", "fast"].map(speed).iter().all(Result::is_err));
    }
}
