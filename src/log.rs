//! `sinew log`: what has happened in a run, and what happens now.

use std::io::{self, Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use sinew_control::client::Connection;
use sinew_control::status::Event;
use sinew_control::{Answer, Request};
use sinew_view::printable;

use crate::answer::{FAULTED, is_quiet, say};
use crate::reach::{Failure, Reached, Wanted};

/// Show the events of a run: starts, restarts, faults, lines that services print and nodes log.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    run: Wanted,
    /// Also print new events, until the run ends or Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Print each event as one JSON object on a separate line
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew log
  sinew log arm --follow
  sinew log 4711 --json | jq 'select(.what == \"restarting\")'
  sinew log --json | jq 'select(.logged.node == \"pid\") | {cycle: .logged.cycle, text}'

A run keeps its last 1000 events; the log says how many earlier ones are missing. Times are UTC.
Exit status: 0 good, 1 the run does not answer, 2 no such run.";

/// The end of the year 9999, beyond which no date can be written.
const UNIX_MS_MAX: u64 = 253_402_300_799_999;

/// Carries out the command.
pub(crate) fn run(args: &LogArgs) -> ExitCode {
    let mut run = match args.run.reach() {
        Ok(run) => run,
        Err(failure) => return failure.report(args.json),
    };
    match show(&mut run, args) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => failure.report(args.json),
        Err(error) => match is_quiet(Err(error)) {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(FAULTED),
        },
    }
}

/// Prints lines until the log ends. The outer error is an error of standard output.
fn show(run: &mut Reached, args: &LogArgs) -> io::Result<Result<(), Failure>> {
    let (name, socket) = (run.name(), run.socket.clone());
    let mut after = 0;
    loop {
        let asked = run.connection.send(&Request::Log { after, follow: args.follow });
        while asked.is_ok() {
            let answer = match run.connection.next(limit(args)) {
                Ok(Some(answer)) => answer,
                Ok(None) => break,
                Err(error) => {
                    return Ok(Err(Failure::run(format!("{name} does not answer: {error}"))));
                }
            };
            match answer {
                Answer::Event(event) => {
                    print_event(&event, args.json)?;
                    after = event.number;
                }
                Answer::Missed(count) => {
                    print_missed(count, args.json)?;
                    after += count;
                }
                Answer::End(_) => return Ok(Ok(())),
                other => return Ok(Err(Failure::run(format!("{name} answers {other:?}")))),
            }
        }
        // The run has ended, or has closed this connection because it was not read for too long.
        match Connection::open(&socket) {
            Ok(connection) => run.connection = connection,
            Err(_) => {
                say(&format!("{name} has ended"));
                return Ok(Ok(()));
            }
        }
    }
}

/// How long to wait for an answer. There is no limit while the log is followed: nothing may happen
/// for a long time.
fn limit(args: &LogArgs) -> Option<Duration> {
    (!args.follow).then_some(sinew_control::client::ANSWER_WITHIN)
}

fn print_event(event: &Event, json: bool) -> io::Result<()> {
    let mut out = stdout().lock();
    match json {
        true => writeln!(out, "{}", json!(event))?,
        false => writeln!(out, "{}", to_line(event))?,
    }
    out.flush()
}

fn print_missed(count: u64, json: bool) -> io::Result<()> {
    let mut out = stdout().lock();
    match json {
        true => writeln!(out, "{}", json!({ "missed": count }))?,
        false => writeln!(out, "({count} earlier events are no longer kept)")?,
    }
    out.flush()
}

fn to_line(event: &Event) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(event.unix_ms.min(UNIX_MS_MAX));
    let time = humantime::format_rfc3339_millis(time);
    let domain = event.domain.as_deref().unwrap_or("-");
    let text = printable(&event.text);
    format!("{time}  {domain:<10}  {:<10}  {text}", event.what)
}

#[cfg(test)]
mod tests {
    use sinew_control::status::EventKind;

    use super::*;

    #[test]
    fn a_line_says_when_where_and_what() {
        let event = Event {
            number: 7,
            time_ns: 1,
            unix_ms: 1_795_315_280_490,
            domain: Some("camera".into()),
            what: EventKind::Output,
            text: "a\x1b[31mb".into(),
            stop: None,
            logged: None,
        };
        let expected = "2026-11-22T02:41:20.490Z  camera      output      a\u{fffd}[31mb";
        assert_eq!(to_line(&event), expected);
    }
}
