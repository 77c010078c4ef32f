//! `sinew restart`: restarts a service, and waits until it is ready.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sinew_control::Request;
use sinew_control::status::EventKind;

use super::{Done, Followed, SteerArgs, Steered};
use crate::reach::{Failure, choose};

/// Restart a service domain of a run, and wait until it is ready.
///
/// A realtime domain cannot be restarted alone: the core starts as a whole, see 'sinew reset'.
#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("timeout", |it| it.help("Wait at most this long; after that the restart still goes on"))
)]
pub(crate) struct RestartArgs {
    /// The service domain
    domain: String,
    /// Process number or graph of the run. May be left out if there is only one run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    #[command(flatten)]
    steer: SteerArgs,
}

const EXAMPLES: &str = "\
Examples:
  sinew restart camera
  sinew restart camera --run arm

Exit status: 0 the domain is ready again, 1 it is not, or cannot be restarted, 2 no such run.";

/// Carries out the command.
pub(crate) fn run(args: &RestartArgs) -> ExitCode {
    args.steer.carry_out(choose(args.run.as_deref()), |steered| {
        let cannot = format!("cannot restart '{}' of {}", args.domain, steered.name);
        restart(steered, &args.domain).map_err(|why| Failure::run(format!("{cannot}: {why}")))
    })
}

/// Sends the request, then reads the log until the domain is ready.
fn restart(steered: &mut Steered, domain: &str) -> Result<Done, String> {
    let mut last = "nothing has happened yet".to_owned();
    let followed = steered.ask(&Request::Restart { domain: domain.into() }, |event| {
        if event.domain.as_deref() != Some(domain) {
            return None;
        }
        match event.what {
            EventKind::Ready => return Some(Ok(())),
            EventKind::GivenUp => return Some(Err(event.text.clone())),
            what => last = format!("{what}: {}", event.text),
        }
        None
    })?;
    let Steered { name, begun, timeout_s, .. } = steered;
    match followed {
        Followed::Seen(seen) => seen.map(|()| {
            Done::after(begun.elapsed(), |ms| {
                let text = format!("{domain} of {name} is ready after {ms} ms");
                (text, json!({ "domain": domain, "ready_after_ms": ms }))
            })
        }),
        Followed::Ended => Err("the run has ended".into()),
        Followed::TimedOut => Err(format!(
            "it was not ready within {timeout_s} s ({last}); wait longer with --timeout, see \
             'sinew log'"
        )),
    }
}
