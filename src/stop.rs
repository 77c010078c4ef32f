//! `sinew stop`: stops a run in order, and waits until it is gone.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use sinew_runtime::control::{Answer, Request};

use crate::cli::{FAULTED, print};
use crate::duration::duration;
use crate::reach::{self, Ending, Failure, Reached};

/// Stop a run in order, actuators first, and wait until it is gone.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StopArgs {
    /// Process or graph of the run; may be left out if there is only one
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Wait so long at most; the run goes on stopping
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
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
            json!({ "graph": graph, "pid": pid, "outcome": outcome, "fault": fault }).to_string()
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
    let cannot = |error| Failure::run(format!("cannot stop {name}: {error}"));
    let after = match run.connection.ask(&Request::Stop {}).map_err(cannot)? {
        Answer::Done { newest, .. } => newest,
        other => return Err(Failure::run(format!("cannot stop {name}: it answers {other:?}"))),
    };
    let mut ending = Ending::default();
    // A run that has ended already closes the connection, as the reading will tell.
    let _ = run.connection.send(&Request::Log { after, follow: true });
    let has_closed = loop {
        match run.connection.next(Some(left())) {
            Ok(Some(Answer::Event(event))) => ending.take(&event, &run.status),
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(error) => break error.kind() != ErrorKind::TimedOut,
        }
    };
    // A process that cannot be seen from here counts as ended, but not one that still answers.
    if has_closed && run.connection.wait_for_end(left()) {
        return Ok(ending);
    }
    let (s, pid) = (timeout.as_secs_f64(), run.status.pid);
    Err(Failure::run(format!(
        "{name} has not stopped within {s} s; wait longer with --timeout, see 'sinew top', or end \
         it with 'kill -9 {pid}': then the machine's own watchdog must act"
    )))
}
