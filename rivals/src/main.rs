//! Other queues and shared-memory links in the lab's harness, beside ours, in one run.
//!
//! ```text
//! cargo run --release --manifest-path rivals/Cargo.toml --target-dir target -- \
//!     [--quick] [--rounds N] [--only NAME,...] [--out FILE.json]
//! ```
//!
//! prints the table. `sinew lab link --rivals FILE.json` shows it beside its own rows. Every round
//! measures every contender in turn, and before and after each the token (the minimum that a round
//! trip can cost). Both sides of all contenders write and read every byte of every message, each on
//! a CPU of its own. The top of each rival's file says how it is used: [`rings`], [`iceoryx`],
//! [`tachyon`]; [`sinew`] is ours. Each polled contender is measured with both ways to [`poll`].

mod iceoryx;
mod measure;
mod poll;
mod rings;
mod run;
mod sinew;
mod table;
mod tachyon;
mod verdicts;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use signal_hook::consts::{SIGINT, SIGTERM};
use sinew_lab::harness::process::{self, FarSide};
use sinew_lab::rounds::Session;
use sinew_lab::show;

use self::run::Line;

/// The parts that far processes play.
const PARTS: &[FarSide] = &[
    FarSide { name: sinew::PART, run: sinew::far },
    FarSide { name: iceoryx::PART, run: iceoryx::far },
    #[cfg(feature = "tachyon")]
    FarSide { name: tachyon::PART, run: tachyon::far },
];

/// Most rounds that may be asked for: at ten seconds each, some hours.
const ROUNDS_MAX: i64 = 1000;

/// Measure other queues and shared-memory links beside ours.
#[derive(Parser)]
struct Arguments {
    /// Fewer rounds and less time; under a minute
    #[arg(long)]
    quick: bool,
    /// Measure every row so often
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=ROUNDS_MAX))]
    rounds: Option<u32>,
    /// Only these, and ours
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// Write the report for `sinew lab link --rivals`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(table::names())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(ended) = process::main(&arguments, PARTS) {
        return ended;
    }
    match run(&Arguments::parse()) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(why) => {
            // If standard error is closed, the error cannot be reported.
            let _ = writeln!(io::stderr(), "error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Measures, prints and writes. Returns whether it was interrupted.
fn run(arguments: &Arguments) -> Result<bool, String> {
    // Opened first, so that a file that cannot be written is reported before the minutes of
    // measuring.
    let out = match &arguments.out {
        Some(path) => {
            let refused = |error| format!("cannot write {}: {error}", path.display());
            Some((path, File::create(path).map_err(refused)?))
        }
        None => None,
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first signal ends the run after the current row, the second one ends it at once.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| format!("cannot be told of signal {signal}: {error}"))?;
    }
    let report = run::run(arguments, &Session { stop: &stop, progress: &Line })?;
    let text = show::to_text(&report);
    io::stdout().write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))?;
    if let Some((path, file)) = out {
        serde_json::to_writer(file, &report)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(report.partial)
}
