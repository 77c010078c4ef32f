//! `sinew reset`: starts the core of a run again, and waits until it runs.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use sinew_runtime::control::Request;
use sinew_runtime::status::{DomainRole, DomainState, EventKind, Phase, Status};

use crate::answer::print;
use crate::duration::duration;
use crate::reach::follow::{Followed, follow, order};
use crate::reach::{self, Failure, Reached, look};

/// Start the core of a run again after it has stopped, and wait until it runs.
///
/// The graph must say 'hold: true', and its core must have stopped: 'sinew halt' stops it. All
/// realtime domains start, in new processes; cycles are counted from 0 again.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResetArgs {
    /// Process or graph of the run; may be left out if there is only one
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Wait so long at most; the start goes on
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
  sinew reset
  sinew reset robot
  sinew halt && sinew reset

Exit status: 0 the core runs, 1 it faulted or must not be reset now, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &ResetArgs) -> ExitCode {
    let done = reach::choose(args.run.as_deref()).and_then(|mut run| {
        let took = reset(&mut run, args.timeout)?;
        Ok((run, took))
    });
    let (run, took) = match done {
        Ok(done) => done,
        Err(failure) => return failure.report(args.json),
    };
    let took_ms = (took.as_secs_f64() * 1e4).round() / 10.0;
    let text = match args.json {
        true => {
            let (graph, pid) = (&run.status.graph, run.status.pid);
            json!({ "graph": graph, "pid": pid, "runs_after_ms": took_ms }).to_string()
        }
        false => format!("the core of {} runs after {took_ms} ms", run.name()),
    };
    print(&format!("{text}\n"), ExitCode::SUCCESS)
}

/// Asks, then reads the log until the core runs; how long that took.
fn reset(run: &mut Reached, timeout: Duration) -> Result<Duration, Failure> {
    let name = run.name();
    let cannot = |why: String| Failure::run(format!("cannot reset the core of {name}: {why}"));
    let begun = Instant::now();
    let after = order(run, &Request::Reset {}).map_err(cannot)?;
    let here = run.found();
    let followed = follow(run, after, begun + timeout, |event| {
        let is_running = event.what == EventKind::Ready && look(&here).is_some_and(|it| runs(&it));
        (is_running || event.what == EventKind::Stopped).then(|| event.stop.clone())
    });
    match followed {
        Followed::Seen(None) => Ok(begun.elapsed()),
        Followed::Seen(Some(stop)) => Err(cannot(format!("it has stopped again: {}", stop.reason))),
        Followed::Ended => Err(cannot("the run has ended".into())),
        Followed::TimedOut => {
            let s = timeout.as_secs_f64();
            Err(cannot(format!(
                "it did not run within {s} s; wait longer with --timeout, see 'sinew log'"
            )))
        }
    }
}

/// Whether the core runs, all of it.
fn runs(status: &Status) -> bool {
    let mut core = status.domains.iter().filter(|domain| domain.role == DomainRole::Realtime);
    status.phase == Phase::Running && core.all(|domain| domain.state == DomainState::Running)
}
