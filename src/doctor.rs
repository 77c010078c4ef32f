//! `sinew doctor`: can this machine do it? Reads how it is set, measures how late threads wake up,
//! and says what would mend it. It changes nothing itself.

mod cpus;
mod cyclictest;
mod findings;
mod latency;
mod place;
mod show;
mod verdict;
mod wakeups;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sinew_figures::Machine;
use sinew_runtime::privileges;
use sinew_spec::duration_text;

use self::findings::{Aim, examine, isolated_cpus, online};
use self::latency::Rounds;
use self::place::Place;
use self::show::Answer;
use self::verdict::Verdict;
use crate::cli::{BAD_REQUEST, FAULTED, print, refuse};
use crate::duration::duration;

/// Can this machine do it? What is set how, how late threads wake up, and what mends it.
///
/// Changes nothing itself. Wake-ups are measured after cyclictest's method, in turn with
/// cyclictest where that is installed; the verdict follows from the latest of them.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// How often the graph is to run
    #[arg(long, default_value = "1ms", value_parser = duration)]
    period: Duration,
    /// The CPUs that it would use, such as 2-3,6; by default the isolated ones, or all
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// How long to measure; so long again for cyclictest
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
  sinew doctor --duration 1h --json > doctor.json    # while the machine does what it will do

Exit status: 0 good, it can; 1 it cannot; 2 bad request.";

/// A thread that wakes up more often has no time to do anything else.
const PERIOD_MIN: Duration = Duration::from_micros(100);
/// A slower graph needs no such machine.
const PERIOD_MAX: Duration = Duration::from_secs(1);
/// A measurement of fewer wake-ups says nothing.
const WAKE_UPS_MIN: u32 = 10;

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArgs) -> ExitCode {
    let place = Place::here();
    let refuse = |why: &str| refuse(why, BAD_REQUEST, arguments.json);
    let (aim, rounds) = match aim(arguments, &place) {
        Ok(aim) => aim,
        Err(why) => return refuse(&why),
    };
    let found = examine(&place, &aim);
    let machine = Machine::read();
    let bar = Bar::new(rounds.rounds);
    let latency = latency::measure(&aim, rounds, &|number| bar.at(number));
    bar.end();
    let latency = match latency {
        Ok(latency) => latency,
        Err(error) => {
            return refuse(&format!("cannot start a thread on each of the CPUs: {error}"));
        }
    };
    let verdict = Verdict::of(&latency, aim.period_ns);
    let answer = Answer { machine, aim, found, latency, verdict };
    let status = if verdict.is_yes() { ExitCode::SUCCESS } else { ExitCode::from(FAULTED) };
    let text = match arguments.json {
        true => format!("{:#}\n", answer.to_json()),
        false => answer.to_text(),
    };
    print(&text, status)
}

/// What is asked, checked.
fn aim(arguments: &DoctorArgs, place: &Place) -> Result<(Aim, Rounds), String> {
    let DoctorArgs { period, duration, .. } = *arguments;
    let text = |time: Duration| duration_text(time.as_nanos() as u64);
    if !(PERIOD_MIN..=PERIOD_MAX).contains(&period) || period.subsec_nanos() % 1000 != 0 {
        return Err(format!(
            "--period {}: expected whole microseconds from {} to {}",
            text(period),
            text(PERIOD_MIN),
            text(PERIOD_MAX)
        ));
    }
    if duration < period * WAKE_UPS_MIN {
        let least = text(period * WAKE_UPS_MIN);
        return Err(format!(
            "--duration {} holds fewer than {WAKE_UPS_MIN} periods of {}; give {least} or more",
            text(duration),
            text(period)
        ));
    }
    let period_ns = period.as_nanos() as u64;
    let aim = Aim { cpus: aimed_cpus(arguments.cpus.as_deref(), place)?, period_ns };
    Ok((aim, Rounds::of(duration, period_ns)))
}

/// The CPUs that the graph would use.
fn aimed_cpus(asked: Option<&str>, place: &Place) -> Result<Vec<u32>, String> {
    let allowed =
        privileges::cpus().map_err(|error| format!("cannot ask for this process's CPUs: {error}"));
    let Some(text) = asked else {
        let isolated = isolated_cpus(place).unwrap_or_default();
        return if isolated.is_empty() { allowed } else { Ok(isolated) };
    };
    let there = online(place).or(allowed)?;
    let asked = cpus::parse(text)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| format!("--cpus '{text}': expected numbers and ranges, such as 2-3,6"))?;
    match asked.iter().find(|cpu| !there.contains(cpu)) {
        Some(cpu) => Err(format!("--cpus {text}: no CPU {cpu}; there are {}", cpus::write(&there))),
        None => Ok(asked),
    }
}

/// How many rounds are left, on standard error if that is a terminal; drawn between them only.
struct Bar(ProgressBar);

impl Bar {
    fn new(rounds: usize) -> Bar {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(Some(rounds as u64), target);
        let style = ProgressStyle::with_template("{wide_bar} {pos} of {len} rounds");
        bar.set_style(style.expect("a template that is tested"));
        Bar(bar)
    }

    fn at(&self, number: usize) {
        self.0.set_position(number as u64);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_to_whoever_watches() {
        let bar = Bar::new(6);
        bar.at(2);
        assert_eq!((bar.0.position(), bar.0.length()), (2, Some(6)));
        bar.end();
    }
}
