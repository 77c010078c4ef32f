//! The search for what suits: step by step, and only what is wholly faster is taken.

use serde::{Deserialize, Serialize};
use sinew_control::WrittenTuning;
use sinew_figures::Interval;
use sinew_plan::plan::LinkTuning;

use crate::candidates::{Length, fetch_ahead, hand_over, layouts_and_gaps};
use crate::sides::Gone;

/// What is tried in turn, each from what was chosen before: all at once would be four times as
/// many.
pub(crate) const STEPS: [fn(Length, LinkTuning) -> Vec<LinkTuning>; 3] =
    [layouts_and_gaps, hand_over, fetch_ahead];

/// What is chosen is at least so many times as fast as what was chosen before. A host may move the
/// CPUs of a virtual machine near to each other or far apart at any time, and what wins a little in
/// one place may lose much in the other: between two CPUs of an AMD EPYC a gap of 50 ns from the
/// start made a round trip 1.04 times as fast while they were far, and 0.71 times while near.
pub(crate) const GAIN_MIN: f64 = 1.05;

/// How long messages of one size took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeOfSize {
    /// Bytes of a message.
    pub bytes: u32,
    /// ns, over rounds.
    #[serde(flatten)]
    pub ns: Interval,
}

/// A candidate and what was measured of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// What was tried.
    #[serde(with = "WrittenTuning")]
    pub tuning: LinkTuning,
    /// A row for each size.
    pub times: Vec<TimeOfSize>,
    /// How many times as fast as the default: the geometric mean over sizes, of each round.
    pub speed: Interval,
}

/// What suits links of one length between two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suited {
    /// What to take.
    #[serde(with = "WrittenTuning")]
    pub chosen: LinkTuning,
    /// All that was tried, the default first.
    pub tried: Vec<Tried>,
}

impl Suited {
    /// The figures of what was chosen.
    pub fn best(&self) -> Option<&Tried> {
        self.tried.iter().find(|row| row.tuning == self.chosen)
    }

    /// The slowest of all that was tried.
    pub fn worst(&self) -> Option<&Tried> {
        self.tried.iter().min_by(|one, other| one.speed.median.total_cmp(&other.speed.median))
    }

    /// How many times as long the worst takes as what was chosen.
    pub fn worst_costs(&self) -> Option<f64> {
        Some(self.best()?.speed.median / self.worst()?.speed.median)
    }
}

/// Times of one candidate: for each size those of all rounds.
type Times = Vec<Vec<f64>>;

/// Searches for what suits links of this length. Each round begins with `begin`, whose answer is
/// held until it ends, and measures every candidate once at every size, in an order of its own:
/// what the host does meanwhile hits all of them.
pub(crate) fn search<T>(
    length: Length,
    rounds: usize,
    begin: impl Fn(usize) -> Result<T, Gone>,
    measure: impl Fn(&LinkTuning, u32) -> Result<f64, Gone>,
) -> Result<Suited, Gone> {
    let (usual, sizes) = (length.usual(), length.sizes());
    let mut suited = Suited { chosen: usual, tried: Vec::new() };
    // Any order will do that is another one in each round.
    let mut chance = fastrand::Rng::with_seed(1);
    for step in STEPS {
        let mut contenders = vec![usual];
        for tuning in [suited.chosen].into_iter().chain(step(length, suited.chosen)) {
            if !contenders.contains(&tuning) {
                contenders.push(tuning);
            }
        }
        let mut turns: Vec<(usize, usize)> = (0..contenders.len())
            .flat_map(|contender| (0..sizes.len()).map(move |size| (contender, size)))
            .collect();
        let mut times: Vec<Times> = vec![vec![vec![]; sizes.len()]; contenders.len()];
        for round in 0..rounds {
            let _held = begin(round)?;
            chance.shuffle(&mut turns);
            for &(contender, size) in &turns {
                times[contender][size].push(measure(&contenders[contender], sizes[size])?);
            }
        }
        let so_far = contenders.iter().position(|it| *it == suited.chosen).expect("it contends");
        if let Some(faster) = wholly_faster(&times, so_far) {
            suited.chosen = contenders[faster];
        }
        for (tuning, own) in contenders.into_iter().zip(&times) {
            if suited.tried.iter().all(|row| row.tuning != tuning) {
                suited.tried.push(tried(tuning, sizes, own, &times[0]));
            }
        }
    }
    Ok(suited)
}

/// The fastest of those that beyond doubt are faster than one of them by [`GAIN_MIN`]; of several
/// that cannot be told apart the first: it differs the least from the default.
fn wholly_faster(times: &[Times], than: usize) -> Option<usize> {
    let speeds = times.iter().map(|own| speed(own, &times[than])).enumerate();
    let faster: Vec<_> =
        speeds.filter(|(_, speed)| speed.is_firm() && speed.low > GAIN_MIN).collect();
    let fastest = faster.iter().map(|(_, speed)| speed.median).max_by(f64::total_cmp)?;
    faster.iter().find(|(_, speed)| speed.high >= fastest).map(|(at, _)| *at)
}

/// How many times as fast as another: over rounds, the geometric mean over sizes.
fn speed(own: &Times, other: &Times) -> Interval {
    let ratio = |round: usize| {
        let logs = own.iter().zip(other).map(|(own, other)| (other[round] / own[round]).ln());
        (logs.sum::<f64>() / own.len() as f64).exp()
    };
    let ratios: Vec<f64> = (0..own[0].len()).map(ratio).collect();
    Interval::of(&ratios).expect("there are rounds")
}

fn tried(tuning: LinkTuning, sizes: &[u32], own: &Times, usual: &Times) -> Tried {
    let of_size = |(&bytes, ns): (&u32, &Vec<f64>)| TimeOfSize {
        bytes,
        ns: Interval::of(ns).expect("there are rounds"),
    };
    let times = sizes.iter().zip(own).map(of_size).collect();
    Tried { tuning, times, speed: speed(own, usual) }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use sinew_plan::plan::SlotLayout;

    use super::*;

    /// What is found if messages take so long.
    fn found(length: Length, ns: impl Fn(&LinkTuning, usize) -> f64) -> Suited {
        let round = Cell::new(0);
        let begin = |at| {
            round.set(at);
            Ok(())
        };
        let measure =
            |tuning: &LinkTuning, bytes: u32| Ok(ns(tuning, round.get()) * f64::from(bytes));
        search(length, 9, begin, measure).expect("nothing fails")
    }

    #[test]
    fn what_is_faster_in_every_step_is_found() {
        let ns = |tuning: &LinkTuning, _: usize| {
            let layout = if tuning.layout == SlotLayout::Sequence { 60.0 } else { 100.0 };
            let gap = if tuning.gap_ns == 0 { 0.0 } else { 20.0 };
            layout + gap + if tuning.hands_over { 9.0 } else { 0.0 }
        };
        for length in Length::ALL {
            let suited = found(length, ns);
            let LinkTuning { layout, gap_ns, hands_over, .. } = suited.chosen;
            assert_eq!((layout, gap_ns, hands_over), (SlotLayout::Sequence, 0, false));
            assert_eq!(suited.tried[0].tuning, length.usual());
            assert_eq!(suited.tried[0].speed.median, 1.0);
            assert_eq!(suited.best().expect("it was tried").times[0].ns.median % 60.0, 0.0);
            assert!(suited.worst_costs().expect("a worst") >= 2.0, "{suited:?}");
            let tunings: Vec<_> = suited.tried.iter().map(|row| row.tuning).collect();
            assert!((1..tunings.len()).all(|at| !tunings[..at].contains(&tunings[at])));
        }
    }

    #[test]
    fn what_is_faster_in_most_rounds_only_does_not_take_the_place_of_the_default() {
        // The host moves the CPUs: nine rounds of which three say the opposite.
        let ns = |tuning: &LinkTuning, round: usize| match tuning.layout {
            SlotLayout::Index => 100.0,
            SlotLayout::Sequence if round.is_multiple_of(3) => 130.0,
            SlotLayout::Sequence => 70.0,
        };
        let suited = found(Length::Short, ns);
        assert_eq!(suited.chosen, Length::Short.usual());
        let sequence = suited.tried.iter().find(|row| row.tuning.layout == SlotLayout::Sequence);
        assert!(sequence.expect("it was tried").speed.median > 1.4);
    }

    #[test]
    fn of_those_that_cannot_be_told_apart_the_least_other_one_is_chosen() {
        let ns = |tuning: &LinkTuning, round: usize| match tuning.layout {
            SlotLayout::Index => 100.0,
            SlotLayout::Sequence => 70.0 + (tuning.gap_ns as usize + 5 * round) as f64 % 7.0,
        };
        let usual = Length::Long.usual();
        let chosen = LinkTuning { layout: SlotLayout::Sequence, ..usual };
        assert_eq!(found(Length::Long, ns).chosen, chosen);
    }

    #[test]
    fn a_side_that_fails_ends_the_search() {
        let failing = |_: &LinkTuning, _| Err(Gone("it broke".into()));
        let error = search(Length::Long, 3, |_| Ok(()), failing).expect_err("it fails");
        assert_eq!(error, Gone("it broke".into()));
    }
}
