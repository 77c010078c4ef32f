//! `sinew reset`: starts the core of a run again, and waits until it runs.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_control::Request;
use sinew_control::status::{DomainRole, DomainState, EventKind, Phase, Status};

use super::{Done, Followed, SteerArgs, Steered};
use crate::reach::{Failure, Wanted, look};

/// Start the core of a run again after it stopped, and wait until it runs.
///
/// The graph must have 'hold: true', and its core must have stopped ('sinew halt' stops it). All
/// realtime domains start in new processes. Cycles are counted from 0 again.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("timeout", |it| it.help("Wait at most this long; after that the start still goes on"))
)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    run: Wanted,
    #[command(flatten)]
    steer: SteerArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew reset
  sinew reset robot
  sinew halt && sinew reset

Exit status: 0 the core runs, 1 it faulted or cannot be reset now, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &ResetArgs) -> ExitCode {
    args.steer.carry_out(args.run.reach(), |steered| {
        let cannot = format!("cannot reset the core of {}", steered.name);
        reset(steered).map_err(|why| Failure::run(format!("{cannot}: {why}")))
    })
}

/// Sends the request, then reads the log until the core runs.
fn reset(steered: &mut Steered) -> Result<Done, String> {
    let here = steered.run.found();
    let followed = steered.ask(&Request::Reset {}, |event| {
        let is_running = event.what == EventKind::Ready && look(&here).is_some_and(|it| runs(&it));
        (is_running || event.what == EventKind::Stopped).then(|| event.stop.clone())
    })?;
    let Steered { name, begun, timeout_s, .. } = steered;
    match followed {
        Followed::Seen(None) => Ok(Done::after(begun.elapsed(), |ms| {
            let text = format!("the core of {name} runs after {ms} ms");
            (text, json!({ "runs_after_ms": ms }))
        })),
        Followed::Seen(Some(stop)) => Err(format!("it has stopped again: {}", stop.reason)),
        Followed::Ended => Err("the run has ended".into()),
        Followed::TimedOut => Err(format!(
            "it did not run within {timeout_s} s; wait longer with --timeout, see 'sinew log'"
        )),
    }
}

/// Whether the whole core runs.
fn runs(status: &Status) -> bool {
    let mut core = status.domains.iter().filter(|domain| domain.role == DomainRole::Realtime);
    status.phase == Phase::Running && core.all(|domain| domain.state == DomainState::Running)
}
