//! `sinew stop`: stops a run in order, and waits until it is gone.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use sinew_runtime::control::Request;

use crate::answer::{FAULTED, print};
use crate::duration::duration;
use crate::reach::follow::{Followed, follow, order};
use crate::reach::{self, Ending, Failure, Reached};

/// Stop a run in order, actuators first, and wait until it is gone.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StopArgs {
    /// Process or graph of the run; may be left out if there is only one
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Wait so long at most; the run goes on stopping
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
  sinew stop
  sinew stop arm
  sinew stop 4711 --timeout 5s

Exit status: 0 it has stopped, 1 it faulted or has not stopped in time, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &StopArgs) -> ExitCode {
    let done = reach::choose(args.run.as_deref()).and_then(|mut run| {
        let ending = stop(&mut run, args.timeout)?;
        Ok((run, ending))
    });
    let (run, ending) = match done {
        Ok(done) => done,
        Err(failure) => return failure.report(args.json),
    };
    let status = match ending.fault {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(FAULTED),
    };
    let text = match args.json {
        true => {
            let (graph, pid) = (&run.status.graph, run.status.pid);
            let (outcome, fault) = (ending.outcome(), &ending.fault);
            let stop = &ending.stop;
            json!({ "graph": graph, "pid": pid, "outcome": outcome, "fault": fault, "stop": stop })
                .to_string()
        }
        false => format!("{}: {}", run.name(), ending.text()),
    };
    print(&format!("{text}\n"), status)
}

/// Asks, then reads the log until it ends with the run.
fn stop(run: &mut Reached, timeout: Duration) -> Result<Ending, Failure> {
    let until = Instant::now() + timeout;
    let left = || until.saturating_duration_since(Instant::now());
    let name = run.name();
    let cannot = |why| Failure::run(format!("cannot stop {name}: {why}"));
    let after = order(run, &Request::Stop {}).map_err(cannot)?;
    let (mut ending, status) = (Ending::of(&run.status), run.status.clone());
    let followed = follow(run, after, until, |event| {
        ending.take(event, &status);
        None::<()>
    });
    // A process that cannot be seen from here counts as ended, but not one that still answers.
    if matches!(followed, Followed::Ended) && run.connection.wait_for_end(left()) {
        return Ok(ending);
    }
    let (s, pid) = (timeout.as_secs_f64(), run.status.pid);
    Err(Failure::run(format!(
        "{name} has not stopped within {s} s; wait longer with --timeout, see 'sinew top', or end \
         it with 'kill -9 {pid}': then the machine's own watchdog must act"
    )))
}
