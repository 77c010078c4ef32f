//! `sinew top`: the current state of a run: domains, threads, nodes, links, limits, and the last
//! events.

mod feed;

use std::io::{self, stdout};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_view::{Top, draws, to_text};

use self::feed::Feed;
use crate::answer::print;
use crate::reach::{Failure, Wanted};

/// Watch a run: domains, restarts and their reasons, cycles, links, privileges.
///
/// Keys: q quits; the arrow keys, Page Up and Page Down scroll.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    run: Wanted,
    /// Print the tables once, as without a terminal and with --plain
    #[arg(long)]
    once: bool,
    /// Print the tables as one JSON object
    #[arg(long, requires = "once")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew top
  sinew top arm
  sinew top 4711 --once --json | jq '.domains[] | {name, state, restarts}'

Exit status: 0 good, even if the run has stopped meanwhile; 1 the run faulted meanwhile or does not
answer; 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &TopArgs) -> ExitCode {
    match carry_out(args) {
        Ok(status) => status,
        Err(failure) => failure.report(args.json),
    }
}

fn carry_out(args: &TopArgs) -> Result<ExitCode, Failure> {
    let run = args.run.reach()?;
    if args.once || !draws(&stdout()) {
        let text = match args.json {
            true => format!("{}\n", json!(run.status)),
            false => to_text(&run.status),
        };
        return Ok(print(&text, ExitCode::SUCCESS));
    }
    let name = run.name();
    let mut feed = Feed::new(run);
    let cannot = |error| Failure::run(format!("cannot go on showing {name}: {error}"));
    match show(&mut feed).map_err(cannot)? {
        Closed::ByUser => Ok(ExitCode::SUCCESS),
        Closed::ByRun if feed.fate.fault.is_none() => {
            let text = format!("{name} has ended: {}\n", feed.fate.text());
            Ok(print(&text, ExitCode::SUCCESS))
        }
        Closed::ByRun => Err(Failure::run(format!("{name} has {}", feed.fate.text()))),
    }
}

/// Why the live view was closed.
enum Closed {
    /// The user pressed q.
    ByUser,
    /// The run has ended.
    ByRun,
}

/// Shows a run until it ends or somebody presses q.
fn show(feed: &mut Feed) -> io::Result<Closed> {
    let mut top = Top::open()?;
    while feed.refresh()? {
        if top.show(&feed.status, &feed.events)? {
            return Ok(Closed::ByUser);
        }
    }
    Ok(Closed::ByRun)
}
