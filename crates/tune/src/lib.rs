//! Finds by measuring which layout and which way to poll suit the links between two CPUs of this
//! machine. This is what `sinew tune` does. The result is the *machine profile*.
//!
//! The same links as in a run are measured, in turns with the default. A candidate replaces the
//! default only if it is faster beyond doubt. The profile is JSON ([`MachineProfile`]). A plan
//! takes its tuning of links from it. A profile of another machine is refused.

mod candidates;
mod measure;
mod profile;
mod search;
mod show;
pub mod sides;
mod store;

use std::cell::{Cell, RefCell};
use std::time::Duration;

pub use profile::{MachineProfile, MeasuredPair, NotMeasured, PAIRS_MAX};
pub use search::{Suited, Tried};
pub use show::to_text;
use sinew_core::clock::{Clock, measure_pause_ns};
use sinew_figures::{Interval, Machine};
use sinew_plan::plan::LinkClass;
pub use store::{cached, check_named, check_place, read, write};

use crate::measure::Between;
use crate::profile::line_of;
use crate::search::{Found, STEPS, search};
use crate::sides::token::{self, Lines, MOVED};
use crate::sides::{Cpus, Gone, on_thread, other_pages};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often each candidate is measured.
    rounds: usize,
    /// How long one measurement is, at each size.
    each: Duration,
}

/// How long the token and the pair are measured in each round.
const TOKEN: Duration = Duration::from_micros(500);

impl Effort {
    /// For a first look: about two seconds for each pair.
    pub const QUICK: Effort = Effort { rounds: 9, each: Duration::from_micros(800) };
    /// For a profile that is kept: about eight seconds for each pair.
    pub const WHOLE: Effort = Effort { rounds: 21, each: Duration::from_micros(4_000) };

    /// Rounds of a pair. Each is reported as progress.
    pub fn rounds_of_a_pair(&self) -> usize {
        self.rounds * STEPS.len() * LinkClass::ALL.len()
    }
}

/// Measures these pairs of CPUs. Each pair names the lower CPU first. A pair that cannot be
/// measured is in the profile with the reason. `time` is the current time, in words. `progress` is
/// called with the number of finished rounds.
pub fn tune(
    pairs: &[[u32; 2]],
    effort: Effort,
    time: String,
    progress: &dyn Fn(usize),
) -> MachineProfile {
    let clock = Clock::calibrate();
    let mut profile = MachineProfile::new(time, Machine::read());
    for (number, &cpus) in pairs.iter().enumerate() {
        let begun = number * effort.rounds_of_a_pair();
        match pair(cpus, effort, clock, &|done| progress(begun + done)) {
            Ok(pair) => profile.pairs.push(pair),
            Err(Gone(why)) => {
                profile.not_measured.push(NotMeasured { cpus, why: line_of(&why) });
            }
        }
    }
    profile
}

fn pair(
    cpus: [u32; 2],
    effort: Effort,
    clock: Clock,
    progress: &dyn Fn(usize),
) -> Result<MeasuredPair, Gone> {
    let [near, far] = cpus;
    let sides = Cpus { near, far };
    let pause = |cpu| on_thread(cpu, || Ok(measure_pause_ns()));
    let pause_ns = [pause(near)?, pause(far)?];
    let (done, tokens) = (Cell::new(0), RefCell::new([Vec::new(), Vec::new()]));
    let begin = |round: usize| {
        progress(done.replace(done.get() + 1));
        for (lines, seen) in [Lines::One, Lines::Two].into_iter().zip(&mut *tokens.borrow_mut()) {
            let means = token::means(lines, sides, clock, TOKEN)?;
            let few =
                || Gone("the token made too few trips; measure when the CPUs are less busy".into());
            seen.push(Interval::of(&means).ok_or_else(few)?.median);
        }
        // Held for the whole round, so that its links are on other pages.
        other_pages(round)
    };
    let between = Between { cpus: sides, clock, each: effort.each };
    let searched = |&(class, _): &(LinkClass, _)| {
        search(class, effort.rounds, begin, |tuning, bytes| between.ns(class, tuning, bytes))
    };
    let found: Vec<_> = LinkClass::ALL.iter().map(searched).collect::<Result<_, _>>()?;
    let tokens = tokens.into_inner();
    let token_range_ns = range(&tokens[0]);
    let [near_ns, far_ns] = token_range_ns;
    let distance_changed = far_ns / near_ns >= MOVED;
    let middle_ns = (near_ns * far_ns).sqrt();
    let is_far: Vec<_> = tokens[0].iter().map(|&ns| ns > middle_ns).collect();
    let of_classes = is_far.chunks(is_far.len() / LinkClass::ALL.len());
    let settle = |(found, is_far): (Found, _)| found.settle(distance_changed.then_some(is_far));
    let mut settled = found.into_iter().zip(of_classes).map(settle);
    let mut next = || settled.next().expect("there is one for each class");
    let [token_ns, pair_ns] = tokens.map(|seen| Interval::of(&seen).expect("there are rounds"));
    Ok(MeasuredPair {
        cpus,
        pause_ns,
        token_ns,
        token_range_ns,
        distance_changed,
        pair_ns,
        small: next(),
        short: next(),
        long: next(),
    })
}

/// From the 10 % to the 90 % quantile: this leaves out a few rounds that something else disturbed.
fn range(values: &[f64]) -> [f64; 2] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let outside = sorted.len() / 10;
    [sorted[outside], sorted[sorted.len() - 1 - outside]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_leaves_a_tenth_out_at_either_end() {
        let values: Vec<f64> = (0..20).map(f64::from).rev().collect();
        assert_eq!(range(&values), [2.0, 17.0]);
        assert_eq!(range(&[5.0]), [5.0, 5.0]);
    }
}
