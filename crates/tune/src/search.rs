//! The search for the best tuning, step by step. A candidate is taken only if it is faster beyond
//! doubt.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sinew_control::WrittenTuning;
use sinew_figures::Interval;
use sinew_plan::plan::{LinkClass, LinkTuning};

use crate::candidates::{fetch_ahead, hand_over, layouts_and_gaps, measured, usual};
use crate::sides::Gone;

/// Candidates of a step, from what was chosen before it.
type Candidates = fn(LinkClass, LinkTuning) -> Vec<LinkTuning>;

/// The steps in their order. Each starts from what was chosen before. To try all combinations would
/// take four times as many measurements.
pub(crate) const STEPS: [(&str, Candidates); 3] = [
    ("layouts, and how to poll", layouts_and_gaps),
    ("hand-over", hand_over),
    ("fetching ahead", fetch_ahead),
];

/// A candidate must be at least this many times as fast as the previous choice. A host may move the
/// CPUs of a virtual machine near to each other or far apart at any time. A candidate that wins a
/// little in one place may lose much in the other: between two CPUs of an AMD EPYC, a gap of 50 ns
/// from the start made a round trip 1.04 times as fast while they were far apart, and 0.71 times
/// while they were near.
pub(crate) const GAIN_MIN: f64 = 1.05;

/// If the upper end of an interval is more than this many times the lower end, the interval is too
/// wide to be used: the rounds contradict each other.
const WIDTH_MAX: f64 = 1.5;

/// How long messages of one size took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeOfSize {
    /// Bytes of a message.
    pub bytes: u32,
    /// ns, over rounds.
    #[serde(flatten)]
    pub ns: Interval,
}

/// A candidate and its measurements in one step. Rows of different steps were measured at different
/// times, so only their speeds can be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The step, from 1.
    pub step: u32,
    /// The candidate.
    #[serde(with = "WrittenTuning")]
    pub tuning: LinkTuning,
    /// A row for each size.
    pub times: Vec<TimeOfSize>,
    /// How many times as fast as the default: the geometric mean over sizes, for each round.
    pub speed: Interval,
}

/// What suits links of one class between two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suited {
    /// The choice.
    #[serde(with = "WrittenTuning")]
    pub chosen: LinkTuning,
    /// How many times as fast as the default, over all rounds of all steps that measured it.
    pub speed: Interval,
    /// All candidates, in each step the default first.
    pub tried: Vec<Tried>,
}

impl Suited {
    /// The slowest candidate.
    pub fn worst(&self) -> Option<&Tried> {
        self.tried.iter().min_by(|one, other| one.speed.median.total_cmp(&other.speed.median))
    }

    /// How many times as long the slowest candidate takes as the choice.
    pub fn worst_costs(&self) -> Option<f64> {
        Some(self.speed.median / self.worst()?.speed.median)
    }
}

/// A candidate in all steps.
struct Contender {
    tuning: LinkTuning,
    /// For each round the time of messages of each size. Empty for a round without this candidate.
    rounds: Vec<Vec<f64>>,
}

impl Contender {
    fn new(tuning: LinkTuning, rounds: usize) -> Contender {
        Contender { tuning, rounds: vec![vec![]; rounds * STEPS.len()] }
    }

    /// How many times as fast it is as `than`: at each size, for each of these rounds in which both
    /// were measured.
    fn ratios(&self, than: &Contender, rounds: impl Iterator<Item = usize>) -> Vec<Vec<f64>> {
        let both = rounds.map(|round| self.rounds[round].iter().zip(&than.rounds[round]));
        let ratios = both.map(|sizes| sizes.map(|(own, other)| other / own).collect::<Vec<_>>());
        ratios.filter(|sizes| !sizes.is_empty()).collect()
    }
}

/// How many times as fast, over rounds: the geometric mean over sizes. `None` without rounds.
fn speed(ratios: &[Vec<f64>]) -> Option<Interval> {
    let mean = |sizes: &Vec<f64>| {
        let logs: f64 = sizes.iter().map(|ratio| ratio.ln()).sum();
        (logs / sizes.len() as f64).exp()
    };
    Interval::of(&ratios.iter().map(mean).collect::<Vec<_>>())
}

/// The speed, if it is beyond doubt a gain of [`GAIN_MIN`], and at no size beyond doubt a loss.
fn gain(ratios: &[Vec<f64>]) -> Option<Interval> {
    let speed = speed(ratios)?;
    let of_size = |size: usize| ratios.iter().map(|sizes| sizes[size]).collect::<Vec<_>>();
    let loses = |size| Interval::of(&of_size(size)).is_some_and(|ratio| ratio.high < 1.0);
    let is_sure = speed.is_firm() && speed.high <= WIDTH_MAX * speed.low;
    (is_sure && speed.low > GAIN_MIN && !(0..ratios[0].len()).any(loses)).then_some(speed)
}

/// The choice of the steps, before it is compared with the default again.
pub(crate) struct Found {
    usual: Contender,
    chosen: Contender,
    tried: Vec<Tried>,
}

impl Found {
    /// Compares the choice with the default over all rounds that measured both: a gain in one step
    /// must be a gain over all steps. If the distance of the CPUs changed, `is_far` says in which
    /// rounds they were far apart. Then it must be a gain in those rounds and in the others.
    pub(crate) fn settle(self, is_far: Option<&[bool]>) -> Suited {
        let Found { usual, mut chosen, tried } = self;
        let all = || 0..usual.rounds.len();
        let at = |far: bool| {
            let rounds = all().filter(|&round| is_far.is_none_or(|is_far| is_far[round] == far));
            gain(&chosen.ratios(&usual, rounds)).is_some()
        };
        if !(at(true) && at(false)) {
            chosen = Contender { tuning: usual.tuning, rounds: usual.rounds.clone() };
        }
        let speed = speed(&chosen.ratios(&usual, all())).expect("there are rounds");
        Suited { chosen: chosen.tuning, speed, tried }
    }
}

/// Searches for the best tuning for links of this class. Each round starts with `begin`, whose
/// result is held until the round ends. It measures every candidate of its step once at every size.
/// The order differs in each round, so that disturbances by the host affect all candidates.
pub(crate) fn search<T>(
    class: LinkClass,
    rounds: usize,
    begin: impl Fn(usize) -> Result<T, Gone>,
    measure: impl Fn(&LinkTuning, u32) -> Result<f64, Gone>,
) -> Result<Found, Gone> {
    let (usual, sizes) = (usual(class), measured(class).sizes);
    // The default is the first.
    let mut all = vec![Contender::new(usual, rounds)];
    let (mut chosen, mut tried) = (0, Vec::new());
    // Any order is good if it differs in each round.
    let mut chance = fastrand::Rng::with_seed(1);
    for (step, (_, candidates)) in STEPS.into_iter().enumerate() {
        let mut contend = vec![0];
        let so_far = all[chosen].tuning;
        for tuning in [so_far].into_iter().chain(candidates(class, so_far)) {
            let at = all.iter().position(|it| it.tuning == tuning).unwrap_or(all.len());
            if at == all.len() {
                all.push(Contender::new(tuning, rounds));
            }
            if !contend.contains(&at) {
                contend.push(at);
            }
        }
        let mut turns: Vec<(usize, usize)> =
            contend.iter().flat_map(|&at| (0..sizes.len()).map(move |size| (at, size))).collect();
        let of_step = step * rounds..(step + 1) * rounds;
        for round in of_step.clone() {
            let _held = begin(round)?;
            contend.iter().for_each(|&at| all[at].rounds[round] = vec![0.0; sizes.len()]);
            chance.shuffle(&mut turns);
            for &(at, size) in &turns {
                all[at].rounds[round][size] = measure(&all[at].tuning, sizes[size])?;
            }
        }
        if let Some(faster) = wholly_faster(&all, &contend, chosen, of_step.clone()) {
            chosen = faster;
        }
        tried
            .extend(contend.iter().map(|&at| row(step, &all[at], &all[0], sizes, of_step.clone())));
    }
    let chosen = all.swap_remove(chosen);
    let usual = match all.into_iter().find(|it| it.tuning == usual) {
        Some(usual) => usual,
        None => Contender { tuning: usual, rounds: chosen.rounds.clone() },
    };
    Ok(Found { usual, chosen, tried })
}

/// The fastest of the candidates that are beyond doubt faster than one of them. Among several that
/// cannot be distinguished, the first: it differs least from the default.
fn wholly_faster(
    all: &[Contender],
    contend: &[usize],
    than: usize,
    rounds: Range<usize>,
) -> Option<usize> {
    let gain = |&at: &usize| Some((at, gain(&all[at].ratios(&all[than], rounds.clone()))?));
    let faster: Vec<_> = contend.iter().filter_map(gain).collect();
    let fastest = faster.iter().map(|(_, speed)| speed.median).max_by(f64::total_cmp)?;
    faster.iter().find(|(_, speed)| speed.high >= fastest).map(|(at, _)| *at)
}

/// The measurements of a candidate in a step.
fn row(
    step: usize,
    own: &Contender,
    usual: &Contender,
    sizes: &[u32],
    rounds: Range<usize>,
) -> Tried {
    let of_size = |(size, &bytes): (usize, &u32)| {
        let ns: Vec<f64> = own.rounds[rounds.clone()].iter().map(|sizes| sizes[size]).collect();
        TimeOfSize { bytes, ns: Interval::of(&ns).expect("there are rounds") }
    };
    let times = sizes.iter().enumerate().map(of_size).collect();
    let speed = speed(&own.ratios(usual, rounds.clone())).expect("there are rounds");
    Tried { step: step as u32 + 1, tuning: own.tuning, times, speed }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use sinew_plan::plan::SlotLayout;

    use super::*;

    /// The result if messages take this long.
    fn found(class: LinkClass, ns: impl Fn(&LinkTuning, usize) -> f64) -> Suited {
        searched(class, |tuning, round, _| ns(tuning, round)).settle(None)
    }

    fn searched(class: LinkClass, ns: impl Fn(&LinkTuning, usize, u32) -> f64) -> Found {
        let round = Cell::new(0);
        let begin = |at| {
            round.set(at);
            Ok(())
        };
        let measure =
            |tuning: &LinkTuning, bytes: u32| Ok(ns(tuning, round.get(), bytes) * f64::from(bytes));
        search(class, 9, begin, measure).expect("nothing fails")
    }

    #[test]
    fn what_is_faster_in_every_step_is_found() {
        let ns = |tuning: &LinkTuning, _: usize| {
            let layout = if tuning.layout == SlotLayout::Sequence { 60.0 } else { 100.0 };
            let gap = if tuning.gap_ns == 0 { 0.0 } else { 20.0 };
            layout + gap + if tuning.hands_over { 9.0 } else { 0.0 }
        };
        for &(class, _) in LinkClass::ALL {
            let suited = found(class, ns);
            let LinkTuning { layout, gap_ns, hands_over, .. } = suited.chosen;
            assert_eq!((layout, gap_ns, hands_over), (SlotLayout::Sequence, 0, false));
            assert_eq!(suited.tried[0].tuning, usual(class));
            assert_eq!(suited.tried[0].speed.median, 1.0);
            let best = suited.tried.iter().rfind(|row| row.tuning == suited.chosen);
            assert_eq!(best.expect("it was tried").times[0].ns.median % 60.0, 0.0);
            assert!(suited.worst_costs().expect("a worst") >= 2.0, "{suited:?}");
            // In each step each candidate occurs once, the default first.
            let rows: Vec<_> = suited.tried.iter().map(|row| (row.step, row.tuning)).collect();
            assert!((1..rows.len()).all(|at| !rows[..at].contains(&rows[at])));
            assert!((1..=3).all(|step| rows.contains(&(step, usual(class)))));
            assert!(rows.is_sorted_by_key(|(step, _)| *step));
        }
    }

    #[test]
    fn what_is_faster_in_most_rounds_only_does_not_take_the_place_of_the_default() {
        // The host moves the CPUs: of nine rounds, three show the opposite.
        let ns = |tuning: &LinkTuning, round: usize| match tuning.layout {
            SlotLayout::Index => 100.0,
            SlotLayout::Sequence if round.is_multiple_of(3) => 130.0,
            SlotLayout::Sequence => 70.0,
        };
        let suited = found(LinkClass::Short, ns);
        assert_eq!(suited.chosen, usual(LinkClass::Short));
        let sequence = suited.tried.iter().find(|row| row.tuning.layout == SlotLayout::Sequence);
        assert!(sequence.expect("it was tried").speed.median > 1.4);
    }

    #[test]
    fn of_those_that_cannot_be_told_apart_the_least_other_one_is_chosen() {
        let ns = |tuning: &LinkTuning, round: usize| match tuning.layout {
            SlotLayout::Index => 100.0,
            SlotLayout::Sequence => 70.0 + (tuning.gap_ns as usize + 5 * round) as f64 % 7.0,
        };
        let usual = usual(LinkClass::Long);
        let chosen = LinkTuning { layout: SlotLayout::Sequence, ..usual };
        assert_eq!(found(LinkClass::Long, ns).chosen, chosen);
    }

    #[test]
    fn a_side_that_fails_ends_the_search() {
        let failing = |_: &LinkTuning, _| Err(Gone("it broke".into()));
        let found = search(LinkClass::Long, 3, |_| Ok(()), failing);
        assert_eq!(found.err(), Some(Gone("it broke".into())));
    }

    fn is_sequence(tuning: &LinkTuning) -> bool {
        tuning.layout == SlotLayout::Sequence
    }

    #[test]
    fn a_gain_of_one_step_that_is_none_in_the_others_is_not_taken() {
        // It is faster in the first step of nine rounds, and later it is not.
        let ns = |tuning: &LinkTuning, round: usize| match is_sequence(tuning) {
            true if round < 9 => 70.0,
            _ => 100.0,
        };
        let suited = found(LinkClass::Short, ns);
        assert_eq!((suited.chosen, suited.speed.median), (usual(LinkClass::Short), 1.0));
        let of_step = |step| {
            let of = |row: &&Tried| row.step == step && is_sequence(&row.tuning);
            suited.tried.iter().find(of).expect("it was tried").speed.median
        };
        assert!(of_step(1) > 1.4 && of_step(2) == 1.0, "{suited:?}");
    }

    #[test]
    fn a_gain_that_is_a_loss_at_one_size_is_not_taken() {
        let at_64 = |loss: f64| {
            let ns = move |tuning: &LinkTuning, _, bytes| match (is_sequence(tuning), bytes) {
                (true, 64) => 100.0 * loss,
                (true, _) => 60.0,
                _ => 100.0,
            };
            searched(LinkClass::Short, ns).settle(None).chosen
        };
        assert_eq!(at_64(1.2), usual(LinkClass::Short));
        assert!(is_sequence(&at_64(1.0)));
    }

    #[test]
    fn a_gain_of_which_rounds_say_this_and_that_is_not_taken() {
        let ns = |spread: usize| {
            let ns = move |tuning: &LinkTuning, round: usize| match is_sequence(tuning) {
                true => [80.0, 60.0, 80.0 - spread as f64][round % 3],
                false => 100.0,
            };
            found(LinkClass::Long, ns).chosen
        };
        assert_eq!(ns(60), usual(LinkClass::Long));
        assert!(is_sequence(&ns(20)));
    }

    #[test]
    fn a_gain_is_taken_only_if_it_holds_at_every_distance_that_was_seen() {
        // A sequence is faster while the CPUs are far apart, which is in the first half of each
        // step.
        let is_far: Vec<_> = (0..27).map(|round| round % 9 < 5).collect();
        let chosen = |near_ns: f64, is_far: Option<&[bool]>| {
            let ns = |tuning: &LinkTuning, round: usize, _| match is_sequence(tuning) {
                true if round % 9 < 5 => 70.0,
                true => near_ns,
                false => 100.0,
            };
            searched(LinkClass::Long, ns).settle(is_far).chosen
        };
        assert!(is_sequence(&chosen(80.0, Some(&is_far))));
        assert!(is_sequence(&chosen(93.0, None)));
        assert_eq!(chosen(96.0, Some(&is_far)), usual(LinkClass::Long));
        // Everything was measured while they were far apart, so the result for near is unknown.
        assert_eq!(chosen(80.0, Some(&[true; 27])), usual(LinkClass::Long));
    }
}
