//! `sinew stop`: stops a run in order, and waits until its process is gone.

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use sinew_control::Request;

use super::{Done, Followed, SteerArgs, Steered};
use crate::reach::{Failure, Fate, Wanted};

/// Stop a run in order, actuators first, and wait until it has ended.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("timeout", |it| it.help("Wait at most this long; after that the run still stops"))
)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    run: Wanted,
    #[command(flatten)]
    steer: SteerArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew stop
  sinew stop arm
  sinew stop 4711 --timeout 5s

Exit status: 0 the run has stopped, 1 it faulted or did not stop in time, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &StopArgs) -> ExitCode {
    args.steer.carry_out(args.run.reach(), |steered| {
        let fate = stop(steered)?;
        Ok(Done::stopped(&fate, None, format!("{}: {}", steered.name, fate.text())))
    })
}

/// Sends the request, then reads the log until it ends with the run.
fn stop(steered: &mut Steered) -> Result<Fate, Failure> {
    let status = steered.run.status.clone();
    let mut fate = Fate::of(&status);
    let followed = steered.ask(&Request::Stop {}, |event| {
        fate.take(event, &status);
        None::<()>
    });
    let Steered { run, name, until, timeout_s, .. } = steered;
    let followed = followed.map_err(|why| Failure::run(format!("cannot stop {name}: {why}")))?;
    let left = until.saturating_duration_since(Instant::now());
    // A process that cannot be seen from here counts as ended, unless it still answers.
    if matches!(followed, Followed::Ended) && run.connection.wait_for_end(left) {
        return Ok(fate);
    }
    let pid = status.pid;
    Err(Failure::run(format!(
        "{name} has not stopped within {timeout_s} s; wait longer with --timeout, see 'sinew top', \
         or end it with 'kill -9 {pid}': then the machine's own watchdog must act"
    )))
}
