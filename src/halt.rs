//! `sinew halt`: stops the core of a run, and says how long that took.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use sinew_runtime::control::Request;
use sinew_runtime::status::{EventKind, Phase};

use crate::answer::{FAULTED, print};
use crate::duration::duration;
use crate::reach::follow::{Followed, follow, order};
use crate::reach::{self, Ending, Failure, Reached, look};

/// Stop the core of a run at its next cycle: safe outputs first, then to rest.
///
/// In a graph that says 'hold: true' the services stay, and 'sinew reset' starts the core again;
/// any other graph ends.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HaltArgs {
    /// Process or graph of the run; may be left out if there is only one
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Why, for those who read the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Wait so long at most; the core goes on stopping
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        value_parser = duration,
        allow_hyphen_values = true
    )]
    timeout: Duration,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew halt
  sinew halt robot --reason 'a hand in the cell'
  sinew halt 4711 --json | jq .stop.safe_output_us

Exit status: 0 the core has stopped, 1 it faulted or has not stopped in time, 2 no such run.";

/// Longest reason that is told, in characters: a longer one might not fit a request, and no stop
/// must fail for what is said of it.
const REASON_LEN_MAX: usize = 500;

/// Carries out the command.
pub(crate) fn run(args: &HaltArgs) -> ExitCode {
    let done = reach::choose(args.run.as_deref()).and_then(|mut run| {
        let (ending, is_held) = halt(&mut run, args)?;
        Ok((run, ending, is_held))
    });
    let (run, ending, is_held) = match done {
        Ok(done) => done,
        Err(failure) => return failure.report(args.json),
    };
    let status = if ending.fault.is_some() { ExitCode::from(FAULTED) } else { ExitCode::SUCCESS };
    let text = match args.json {
        true => {
            let (graph, pid) = (&run.status.graph, run.status.pid);
            let (outcome, fault) = (ending.outcome(), &ending.fault);
            json!({
                "graph": graph,
                "pid": pid,
                "outcome": outcome,
                "fault": fault,
                "held": is_held,
                "stop": ending.stop,
            })
            .to_string()
        }
        false => {
            let after = match is_held {
                true => "held, 'sinew reset' starts the core again",
                false => "the graph does not hold and ends",
            };
            format!("{}: {}; {after}", run.name(), ending.text())
        }
    };
    print(&format!("{text}\n"), status)
}

/// Asks, then reads the log until the core stands: how it ended, and whether it is held.
fn halt(run: &mut Reached, args: &HaltArgs) -> Result<(Ending, bool), Failure> {
    let mut ending = Ending::of(&run.status);
    if run.status.phase == Phase::Held {
        return Ok((ending, true));
    }
    let until = Instant::now() + args.timeout;
    let name = run.name();
    let request = Request::Halt { reason: args.reason.as_deref().map(cut) };
    let after = order(run, &request)
        .map_err(|why| Failure::run(format!("cannot halt the core of {name}: {why}")))?;
    let status = run.status.clone();
    let followed = follow(run, after, until, |event| {
        ending.take(event, &status);
        (event.what == EventKind::Stopped).then_some(())
    });
    if let Followed::TimedOut = followed {
        let s = args.timeout.as_secs_f64();
        return Err(Failure::run(format!(
            "the core of {name} has not stopped within {s} s; wait longer with --timeout, see \
             'sinew top'"
        )));
    }
    let is_held = look(&run.found()).is_some_and(|status| status.phase == Phase::Held);
    Ok((ending, is_held))
}

/// A reason that is not too long.
fn cut(reason: &str) -> String {
    match reason.char_indices().nth(REASON_LEN_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_any_length_fits_a_request() {
        assert_eq!(cut("a hand in the cell"), "a hand in the cell");
        for sign in ["x", "µ", "\u{1}", "🦾"] {
            let reason = cut(&sign.repeat(100_000));
            assert!(reason.starts_with(sign) && reason.ends_with('…'));
            // A request has 4096 bytes.
            assert!(json!(reason).to_string().len() < 4000, "{reason}");
        }
    }
}
