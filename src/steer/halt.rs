//! `sinew halt`: stops the core of a run, and says how long the stop took.

use std::process::ExitCode;

use clap::Args;
use sinew_control::Request;
use sinew_control::status::{EventKind, Phase};

use super::{Done, Followed, SteerArgs, Steered};
use crate::reach::{Failure, Fate, Wanted, look};

/// Stop the core of a run at its next cycle: first safe outputs, then the actuators come to rest.
///
/// In a graph with 'hold: true' the services go on, and 'sinew reset' starts the core again. Any
/// other graph ends.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("timeout", |it| it.help("Wait at most this long; after that the core still stops"))
)]
pub(crate) struct HaltArgs {
    #[command(flatten)]
    run: Wanted,
    /// The reason, for the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    steer: SteerArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew halt
  sinew halt robot --reason 'a hand in the cell'
  sinew halt 4711 --json | jq .stop.safe_output_us

Exit status: 0 the core has stopped, 1 it faulted or did not stop in time, 2 no such run.";

/// Longest reason that is sent, in characters. A longer one might not fit a request, and a stop
/// must not fail because of its reason.
const REASON_LEN_MAX: usize = 500;

/// Carries out the command.
pub(crate) fn run(args: &HaltArgs) -> ExitCode {
    args.steer.carry_out(args.run.reach(), |steered| {
        let (fate, is_held) = halt(steered, args.reason.as_deref())?;
        let after = match is_held {
            true => "held, 'sinew reset' starts the core again",
            false => "the graph has no 'hold: true' and ends",
        };
        let text = format!("{}: {}; {after}", steered.name, fate.text());
        Ok(Done::stopped(&fate, Some(is_held), text))
    })
}

/// Sends the request, then reads the log until the core has stopped. Returns how it ended, and
/// whether it is held.
fn halt(steered: &mut Steered, reason: Option<&str>) -> Result<(Fate, bool), Failure> {
    let status = steered.run.status.clone();
    let mut fate = Fate::of(&status);
    if status.phase == Phase::Held {
        return Ok((fate, true));
    }
    let followed = steered.ask(&Request::Halt { reason: reason.map(cut) }, |event| {
        fate.take(event, &status);
        (event.what == EventKind::Stopped).then_some(())
    });
    let Steered { name, timeout_s, run, .. } = steered;
    match followed {
        Err(why) => Err(Failure::run(format!("cannot halt the core of {name}: {why}"))),
        Ok(Followed::TimedOut) => Err(Failure::run(format!(
            "the core of {name} has not stopped within {timeout_s} s; wait longer with --timeout, \
             see 'sinew top'"
        ))),
        Ok(_) => {
            let is_held = look(&run.found()).is_some_and(|status| status.phase == Phase::Held);
            Ok((fate, is_held))
        }
    }
}

/// The reason, cut if it is too long.
fn cut(reason: &str) -> String {
    match reason.char_indices().nth(REASON_LEN_MAX) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sinew_control::REQUEST_LEN_MAX;

    use super::*;

    #[test]
    fn a_reason_of_any_length_fits_a_request() {
        assert_eq!(cut("a hand in the cell"), "a hand in the cell");
        for sign in ["x", "µ", "\u{1}", "🦾"] {
            let reason = cut(&sign.repeat(100_000));
            assert!(reason.starts_with(sign) && reason.ends_with('…'));
            // The rest of the request takes less than 100 bytes.
            assert!(json!(reason).to_string().len() + 100 < REQUEST_LEN_MAX, "{reason}");
        }
    }
}
