//! Commands that steer a run: `sinew halt`, `reset`, `restart`, `set` and `stop`. Each sends one
//! request, reads the log until the requested thing has happened, and reports the result.

pub(crate) mod halt;
pub(crate) mod reset;
pub(crate) mod restart;
pub(crate) mod set;
pub(crate) mod stop;

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use sinew_control::status::Event;
use sinew_control::{Answer, Request};

use crate::answer::{FAULTED, print};
use crate::duration::duration;
use crate::reach::{Failure, Fate, Reached};

/// Arguments of all these commands.
#[derive(Args, Debug)]
pub(crate) struct SteerArgs {
    /// Wait at most this long
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        value_parser = duration,
        allow_hyphen_values = true
    )]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The result of a command.
struct Done {
    /// As text.
    text: String,
    /// As JSON, besides the graph and its process.
    fields: Value,
    /// Whether it went well.
    is_good: bool,
}

impl Done {
    /// The requested thing has happened, after this time.
    fn after(took: Duration, text: impl FnOnce(f64) -> (String, Value)) -> Done {
        let (text, fields) = text((took.as_secs_f64() * 1e4).round() / 10.0);
        Done { text, fields, is_good: true }
    }

    /// The core has stopped. `is_held` is given if it is of interest.
    fn stopped(fate: &Fate, is_held: Option<bool>, text: String) -> Done {
        let Fate { fault, stop, .. } = fate;
        let mut fields = json!({ "outcome": fate.outcome(), "fault": fault });
        is_held.iter().for_each(|is_held| fields["held"] = json!(is_held));
        fields["stop"] = json!(stop);
        Done { text, fields, is_good: fault.is_none() }
    }
}

impl SteerArgs {
    /// Lets `steer` work on the run until the timeout, and prints the result. Returns the exit
    /// status that goes with it.
    fn carry_out(
        &self,
        reached: Result<Reached, Failure>,
        steer: impl FnOnce(&mut Steered) -> Result<Done, Failure>,
    ) -> ExitCode {
        let done = reached.and_then(|run| {
            let begun = Instant::now();
            let until = begun + self.timeout;
            let (name, timeout_s) = (run.name(), self.timeout.as_secs_f64());
            let mut steered = Steered { run, name, begun, until, timeout_s };
            let done = steer(&mut steered)?;
            Ok((steered.run.status, done))
        });
        let (status, done) = match done {
            Ok(done) => done,
            Err(failure) => return failure.report(self.json),
        };
        let mut object = json!({ "graph": status.graph, "pid": status.pid });
        if let (Value::Object(object), Value::Object(fields)) = (&mut object, done.fields) {
            object.extend(fields);
        }
        let text = if self.json { object.to_string() } else { done.text };
        let status = if done.is_good { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
        print(&format!("{text}\n"), status)
    }
}

/// The run that a command steers.
struct Steered {
    run: Reached,
    /// The name that is shown to people.
    name: String,
    begun: Instant,
    until: Instant,
    /// The time from `begun` to `until`.
    timeout_s: f64,
}

/// The result of waiting for something in the log.
enum Followed<T> {
    /// The awaited event came.
    Seen(T),
    /// The run closed the connection: it has ended.
    Ended,
    /// The timeout came first. The run goes on.
    TimedOut,
}

impl Steered {
    /// Sends a request, then reads the log that follows until `look` finds what it wants.
    ///
    /// # Errors
    /// Why the request is not carried out.
    fn ask<T>(
        &mut self,
        request: &Request,
        look: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Followed<T>, String> {
        let (_, after) = self.order(request)?;
        self.follow(after, look)
    }

    /// Sends a request. Returns what the run does, and the number of the newest event before that.
    ///
    /// # Errors
    /// Why the request is not carried out.
    fn order(&mut self, request: &Request) -> Result<(String, u64), String> {
        match self.run.connection.ask(request).map_err(|error| error.to_string())? {
            Answer::Done { text, newest } => Ok((text, newest)),
            Answer::Error(text) => Err(text),
            other => Err(format!("it answers {other:?}")),
        }
    }

    /// Reads the log after event `after` until `look` finds what it wants.
    fn follow<T>(
        &mut self,
        after: u64,
        mut look: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Followed<T>, String> {
        let connection = &mut self.run.connection;
        // A run that has ended already closes the connection; reading will show that.
        let _ = connection.send(&Request::Log { after, follow: true });
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            match connection.next(Some(left)) {
                Ok(Some(Answer::Event(event))) => {
                    if let Some(seen) = look(&event) {
                        return Ok(Followed::Seen(seen));
                    }
                }
                Ok(Some(_)) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return Ok(Followed::TimedOut);
                }
                Ok(None) | Err(_) => return Ok(Followed::Ended),
            }
        }
    }
}
