//! `sinew restart`: restarts a service, and waits until it is ready.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use sinew_runtime::control::Request;
use sinew_runtime::status::EventKind;

use crate::answer::print;
use crate::duration::duration;
use crate::reach::follow::{Followed, follow, order};
use crate::reach::{self, Failure, Reached};

/// Restart a service domain of a run, and wait until it is ready.
///
/// The core starts as a whole: a realtime domain is not restarted alone.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RestartArgs {
    /// The service domain
    domain: String,
    /// Process or graph of the run; may be left out if there is only one
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Wait so long at most; the restart goes on
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
  sinew restart camera
  sinew restart camera --run arm

Exit status: 0 it is ready again, 1 it is not or must not be restarted, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &RestartArgs) -> ExitCode {
    let done = reach::choose(args.run.as_deref()).and_then(|mut run| {
        let took = restart(&mut run, &args.domain, args.timeout)?;
        Ok((run, took))
    });
    let (run, took) = match done {
        Ok(done) => done,
        Err(failure) => return failure.report(args.json),
    };
    let took_ms = (took.as_secs_f64() * 1e4).round() / 10.0;
    let text = match args.json {
        true => {
            let (graph, pid, domain) = (&run.status.graph, run.status.pid, &args.domain);
            json!({ "graph": graph, "pid": pid, "domain": domain, "ready_after_ms": took_ms })
                .to_string()
        }
        false => format!("{} of {} is ready after {took_ms} ms", args.domain, run.name()),
    };
    print(&format!("{text}\n"), ExitCode::SUCCESS)
}

/// Asks, then reads the log until the domain is ready; how long that took.
fn restart(run: &mut Reached, domain: &str, timeout: Duration) -> Result<Duration, Failure> {
    let name = run.name();
    let cannot = |why: String| Failure::run(format!("cannot restart '{domain}' of {name}: {why}"));
    let begun = Instant::now();
    let request = Request::Restart { domain: domain.into() };
    let after = order(run, &request).map_err(cannot)?;
    let mut last = "nothing has happened yet".to_owned();
    let followed = follow(run, after, begun + timeout, |event| {
        if event.domain.as_deref() != Some(domain) {
            return None;
        }
        match event.what {
            EventKind::Ready => return Some(Ok(begun.elapsed())),
            EventKind::GivenUp => return Some(Err(event.text.clone())),
            what => last = format!("{what}: {}", event.text),
        }
        None
    });
    match followed {
        Followed::Seen(seen) => seen.map_err(cannot),
        Followed::Ended => Err(cannot("the run has ended".into())),
        Followed::TimedOut => {
            let s = timeout.as_secs_f64();
            Err(cannot(format!(
                "it was not ready within {s} s ({last}); wait longer with --timeout, see \
                 'sinew log'"
            )))
        }
    }
}
