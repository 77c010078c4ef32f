//! The wake-ups of the graph's CPUs, measured in rounds: by our threads and by cyclictest in turn,
//! so that whatever the machine does meanwhile affects both.

use std::io;
use std::time::Duration;

use sinew_core::privileges;
use sinew_figures::Distribution;
use sinew_figures::Interval;

use crate::cyclictest;
use crate::findings::{Aim, Stolen};
use crate::place::Place;
use crate::root::Root;
use crate::wakeups::{self, Round};

/// A round lasts about this long; a shorter measurement has one round.
const ROUND: Duration = Duration::from_secs(1);

/// How the time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// How many rounds.
    pub(crate) rounds: usize,
    /// Wake-ups of each thread in each round.
    pub(crate) count: usize,
}

impl Rounds {
    /// As many rounds as fit; `duration` holds at least one period.
    pub(crate) fn of(duration: Duration, period_ns: u64) -> Rounds {
        let rounds = (duration.as_secs_f64() / ROUND.as_secs_f64()).floor().max(1.0);
        let all = duration.as_nanos() as f64 / period_ns as f64;
        Rounds { rounds: rounds as usize, count: (all / rounds).floor().max(1.0) as usize }
    }
}

/// What one of the two saw: our threads, or cyclictest.
#[derive(Debug)]
pub(crate) struct Seen {
    /// On each CPU of the aim, all rounds.
    pub(crate) cpus: Vec<Distribution>,
    /// On all of them, all rounds.
    pub(crate) all: Distribution,
}

impl Seen {
    fn new(cpus: usize) -> Seen {
        Seen { cpus: vec![Distribution::new(); cpus], all: Distribution::new() }
    }

    /// Adds a round; returns the distribution of all its CPUs together.
    fn add(&mut self, round: &[Distribution]) -> Distribution {
        let mut all = Distribution::new();
        round.iter().for_each(|cpu| all.merge(cpu));
        self.cpus.iter_mut().zip(round).for_each(|(cpu, round)| cpu.merge(round));
        self.all.merge(&all);
        all
    }
}

/// What cyclictest saw.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Its version.
    pub(crate) version: String,
    pub(crate) seen: Seen,
    /// Our maximum over that of cyclictest, a value for each round in which cyclictest saw a
    /// microsecond or more.
    max_ratios: Vec<f64>,
    /// The same for the 99th percentiles, in rounds that have enough wake-ups for them.
    p99_ratios: Vec<f64>,
}

impl Beside {
    /// How our figures compare with those of cyclictest, round by round.
    pub(crate) fn agreement(&self) -> [(&'static str, Option<Interval>); 2] {
        [("max", &self.max_ratios), ("P99", &self.p99_ratios)]
            .map(|(of, it)| (of, Interval::of(it)))
    }
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Latency {
    pub(crate) seen: Seen,
    /// What cyclictest saw, or why there is nothing to compare with.
    pub(crate) beside: Result<Beside, String>,
    pub(crate) rounds: Rounds,
    /// Whether all threads ran as SCHED_FIFO, each on its CPU.
    pub(crate) is_realtime: bool,
    /// What the threads lacked of what they asked for, in words.
    pub(crate) missing: Vec<String>,
    /// The share of the CPUs' time that the host took meanwhile, where the kernel says so.
    pub(crate) stolen_share: Option<f64>,
}

/// Measures. `progress` is called before every round with the round's number.
///
/// # Errors
/// If a thread cannot be started.
pub(crate) fn measure(aim: &Aim, rounds: Rounds, progress: &dyn Fn(usize)) -> io::Result<Latency> {
    privileges::lock_memory(&[]);
    let root = Root::here();
    let before = Stolen::read(&root);
    let mut both = Both::new(aim, rounds.count);
    for number in 0..rounds.rounds {
        progress(number);
        both.round(number)?;
    }
    let stolen_share = match (before, Stolen::read(&root)) {
        (Ok(before), Ok(after)) => share(before, after),
        _ => None,
    };
    let Both { ours, theirs, is_realtime, mut missing, .. } = both;
    missing.sort();
    missing.dedup();
    Ok(Latency { seen: ours, beside: theirs, rounds, is_realtime, missing, stolen_share })
}

fn share(before: Stolen, after: Stolen) -> Option<f64> {
    let all = after.all.checked_sub(before.all).filter(|&all| all > 0)?;
    Some(after.stolen.saturating_sub(before.stolen) as f64 / all as f64)
}

/// Our threads and cyclictest's, round by round.
struct Both<'a> {
    aim: &'a Aim,
    round: Round,
    ours: Seen,
    theirs: Result<Beside, String>,
    is_realtime: bool,
    is_locked: bool,
    missing: Vec<String>,
}

impl Both<'_> {
    fn new(aim: &Aim, count: usize) -> Both<'_> {
        let cpus = aim.cpus.len();
        Both {
            aim,
            round: Round { period_ns: aim.period_ns, count },
            ours: Seen::new(cpus),
            theirs: cyclictest::version(Place::read(&Root::here()).system).map(|version| Beside {
                version,
                seen: Seen::new(cpus),
                max_ratios: vec![],
                p99_ratios: vec![],
            }),
            is_realtime: true,
            is_locked: true,
            missing: vec![],
        }
    }

    /// In every second round cyclictest runs first.
    fn round(&mut self, number: usize) -> io::Result<()> {
        let (ours, theirs) = if number.is_multiple_of(2) {
            let ours = self.ours()?;
            (ours, self.theirs())
        } else {
            let theirs = self.theirs();
            (self.ours()?, theirs)
        };
        let (Some(theirs), Ok(beside)) = (theirs, &mut self.theirs) else { return Ok(()) };
        let ratio = |ours: Option<u64>, theirs: Option<u64>| {
            ours.zip(theirs.filter(|&ns| ns > 0)).map(|(ours, theirs)| ours as f64 / theirs as f64)
        };
        beside.max_ratios.extend(ratio(ours.max(), theirs.max()));
        beside.p99_ratios.extend(ratio(ours.quantile(0.99), theirs.quantile(0.99)));
        Ok(())
    }

    fn ours(&mut self) -> io::Result<Distribution> {
        let found = wakeups::measure(&self.aim.cpus, self.round)?;
        self.is_realtime &= found.iter().all(|thread| thread.is_realtime);
        self.is_locked = found.iter().all(|thread| thread.is_locked);
        let late: Vec<_> = found.iter().map(|thread| thread.late.clone()).collect();
        self.missing.extend(found.into_iter().flat_map(|thread| thread.missing));
        Ok(self.ours.add(&late))
    }

    /// Runs cyclictest no more once it has failed: figures of only some rounds would not be from
    /// the same time.
    fn theirs(&mut self) -> Option<Distribution> {
        let beside = self.theirs.as_mut().ok()?;
        match cyclictest::measure(&self.aim.cpus, self.round, self.is_locked) {
            Ok(found) => Some(beside.seen.add(&found)),
            Err(absent) => {
                self.theirs = Err(absent);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_parted_into_rounds_of_about_a_second() {
        let of = |ms, period_us: u64| {
            let Rounds { rounds, count } = Rounds::of(Duration::from_millis(ms), period_us * 1000);
            (rounds, count)
        };
        assert_eq!(of(6000, 1000), (6, 1000));
        assert_eq!(of(250, 1000), (1, 250));
        assert_eq!(of(2500, 1000), (2, 1250));
        assert_eq!(of(10_000, 1_000_000), (10, 1));
        assert_eq!(of(1, 1000), (1, 1));
    }

    #[test]
    fn the_host_took_what_was_stolen_since() {
        let at = |stolen, all| Stolen { stolen, all };
        assert_eq!(share(at(10, 1000), at(15, 2000)), Some(0.005));
        assert_eq!(share(at(10, 1000), at(10, 1000)), None);
        assert_eq!(share(at(10, 1000), at(9, 900)), None);
    }
}
