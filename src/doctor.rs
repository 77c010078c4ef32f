//! `sinew doctor`: can this machine run a graph on time?

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use sinew_doctor::Question;

use crate::answer::{BAD_REQUEST, FAULTED, print, refuse};
use crate::duration::duration;
use crate::progress::Bar;

/// Check whether this machine can run a graph on time: its settings, its wake-ups, and what to
/// change.
///
/// Doctor changes nothing. It measures how late threads wake up, by the method of cyclictest, and
/// in turns with cyclictest if that is installed. The verdict follows from the latest wake-up.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Period of the graph
    #[arg(long, default_value = "1ms", value_parser = duration)]
    period: Duration,
    /// CPUs that the graph would use, such as 2-3,6. Default: the isolated CPUs, or all
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// How long to measure; cyclictest takes the same time again
    #[arg(long, default_value = "6s", value_parser = duration)]
    duration: Duration,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sinew doctor
  sinew doctor --period 500us --cpus 2-3
  sinew doctor --duration 1h --json > doctor.json    # under the load of normal operation

Exit status: 0 this machine can run the graph on time, 1 it cannot, 2 bad request.";

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArgs) -> ExitCode {
    let DoctorArgs { period, duration, json, .. } = *arguments;
    let answer = Question::new(period, duration, arguments.cpus.as_deref()).and_then(|question| {
        let bar = Bar::rounds(question.rounds());
        let answer = question.answer(&|number| bar.reach(number));
        answer.map_err(|error| format!("cannot start a thread on each of the CPUs: {error}"))
    });
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return refuse(&why, BAD_REQUEST, json),
    };
    let status = if answer.is_yes() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    let text = if json { format!("{:#}\n", answer.to_json()) } else { answer.to_text() };
    print(&text, status)
}
