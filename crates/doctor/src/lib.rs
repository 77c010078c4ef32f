//! Can this machine run a realtime graph? Reads how the machine is set, measures how late threads
//! wake up, and says what would mend it. It changes nothing itself.

pub mod cpus;
mod cyclictest;
mod findings;
mod latency;
mod neighbours;
mod place;
mod root;
mod show;
mod verdict;
mod wakeups;

use std::io;
use std::time::Duration;

use sinew_core::privileges;
use sinew_figures::Machine;
use sinew_spec::duration_text;

use crate::findings::{Aim, examine, isolated_cpus, online};
use crate::latency::Rounds;
pub use crate::neighbours::Neighbours;
use crate::place::Place;
use crate::root::Root;
pub use crate::show::Examination;
use crate::verdict::Verdict;

/// A thread that wakes up more often has no time to do anything else.
const PERIOD_MIN: Duration = Duration::from_micros(100);
/// A slower graph does not need a realtime machine.
const PERIOD_MAX: Duration = Duration::from_secs(1);
/// A measurement of fewer wake-ups says nothing.
const WAKE_UPS_MIN: u32 = 10;

/// A question that has been checked.
#[derive(Clone, Debug)]
pub struct Question {
    aim: Aim,
    rounds: Rounds,
}

impl Question {
    /// Asks whether this machine can run a graph every `period` on `cpus`, a list such as `2-3,6`.
    /// Without a list, the CPUs are the isolated ones, or all if none is isolated. The measurement
    /// takes `duration`.
    ///
    /// # Errors
    /// Which value cannot be accepted, by the name of the command's option.
    pub fn new(period: Duration, duration: Duration, cpus: Option<&str>) -> Result<Self, String> {
        let text = |time: Duration| duration_text(time.as_nanos() as u64);
        if !(PERIOD_MIN..=PERIOD_MAX).contains(&period)
            || !period.subsec_nanos().is_multiple_of(1000)
        {
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
        let aim = Aim { cpus: aimed_cpus(cpus, &Root::here())?, period_ns };
        Ok(Question { aim, rounds: Rounds::of(duration, period_ns) })
    }

    /// How many rounds the measurement has.
    pub fn rounds(&self) -> usize {
        self.rounds.rounds
    }

    /// Examines everything, then measures; blocks until both are done. `progress` is called before
    /// every round with the round's number.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn answer(self, progress: &dyn Fn(usize)) -> io::Result<Examination> {
        let Question { aim, rounds } = self;
        let root = Root::here();
        let (found, machine, place) = (examine(&root, &aim), Machine::read(), Place::read(&root));
        let latency = latency::measure(&aim, rounds, progress)?;
        let verdict = Verdict::of(&latency, aim.period_ns);
        Ok(Examination { machine, aim, place, found, latency, verdict })
    }
}

/// The CPUs that the graph would use.
fn aimed_cpus(asked: Option<&str>, root: &Root) -> Result<Vec<u32>, String> {
    let allowed =
        privileges::cpus().map_err(|error| format!("cannot ask for this process's CPUs: {error}"));
    let Some(text) = asked else {
        let isolated = isolated_cpus(root).unwrap_or_default();
        return if isolated.is_empty() { allowed } else { Ok(isolated) };
    };
    let there = online(root).or(allowed)?;
    let asked = cpus::parse(text)
        .filter(|cpus| !cpus.is_empty())
        .ok_or_else(|| format!("--cpus '{text}': expected numbers and ranges, such as 2-3,6"))?;
    match asked.iter().find(|cpu| !there.contains(cpu)) {
        Some(cpu) => Err(format!("--cpus {text}: no CPU {cpu}; there are {}", cpus::write(&there))),
        None => Ok(asked),
    }
}
