//! What follows from the figures of a row, round by round, of two programs. This module knows
//! neither programs nor files, so it can be tested with random figures.

use std::ops::Range;

use fastrand::Rng;
use serde::Serialize;
use sinew_figures::Interval;
use sinew_figures::units::counted;

/// How many times the rounds are dealt out anew. With this many, the quantile below moves little.
const DEALS: usize = 1000;
/// A difference that is beyond this quantile of the deals is no noise. ClickHouse's performance
/// test uses the same quantile.
const QUANTILE: f64 = 0.99;

/// With fewer rounds there is no interval of 95 %, and one in ten rows with enough noise would be
/// called slower by chance.
pub const ROUNDS_MIN: usize = 6;

/// The result for a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shift {
    /// The whole interval is beyond the threshold on the costly side.
    Slower,
    /// There is too little to tell.
    NotShown,
    /// Even one program alone differs from itself by more than the threshold.
    Unstable,
    /// The interval covers a limit of what counts as the same.
    NotDistinguishable,
    /// The whole interval is beyond the threshold on the cheaper side.
    Faster,
    /// The whole interval is within the threshold.
    Same,
}

impl Shift {
    /// All of them; what needs a look comes first.
    pub const ALL: [Shift; 6] = [
        Shift::Slower,
        Shift::NotShown,
        Shift::Unstable,
        Shift::NotDistinguishable,
        Shift::Faster,
        Shift::Same,
    ];

    /// In plain words.
    pub fn words(self) -> &'static str {
        match self {
            Shift::Slower => "slower",
            Shift::NotShown => "not shown",
            Shift::Unstable => "unstable",
            Shift::NotDistinguishable => "not distinguishable",
            Shift::Faster => "faster",
            Shift::Same => "the same",
        }
    }
}

/// What follows for a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlook {
    /// The result.
    pub change: Shift,
    /// New over old, round by round.
    pub ratio: Option<Interval>,
    /// By how much one program alone would differ from itself in one of a hundred comparisons, as
    /// a share.
    pub noise: Option<f64>,
    /// Why there is no result.
    pub why: Option<String>,
}

impl Outlook {
    pub(crate) fn not_shown(why: impl Into<String>) -> Outlook {
        Outlook { change: Shift::NotShown, ratio: None, noise: None, why: Some(why.into()) }
    }
}

/// Judges the figures of a row: `old` and `new` have one figure for each round, and figures of the
/// same round are pairs.
pub(super) fn judge(old: &[f64], new: &[f64], higher_is_better: bool, threshold: f64) -> Outlook {
    let rounds = old.len().min(new.len());
    let (old, new) = (&old[..rounds], &new[..rounds]);
    if rounds < ROUNDS_MIN {
        let why = format!("{} in both; expected {ROUNDS_MIN} at least", counted(rounds, "round"));
        return Outlook::not_shown(why);
    }
    let is_good = |figure: &f64| figure.is_finite() && *figure > 0.0;
    let ratios: Vec<_> = match old.iter().chain(new).all(is_good) {
        true => new.iter().zip(old).map(|(new, old)| new / old).collect(),
        // Zero over zero: a row that costs nothing in either program.
        false if old == new => vec![1.0; rounds],
        false => return Outlook::not_shown("a figure of 0 or less has no ratio"),
    };
    let ratio = Interval::of(&ratios).expect("six rounds at least");
    let noise = noise(old, new);
    let same = 1.0 - threshold..1.0 + threshold;
    // A difference counts as a change only if one program alone would not show it too.
    let is_change = (ratio.median - 1.0).abs() > noise;
    let change = match () {
        () if is_change && is_beyond(ratio, &same, higher_is_better) => Shift::Slower,
        () if is_change && is_beyond(ratio, &same, !higher_is_better) => Shift::Faster,
        () if noise > threshold => Shift::Unstable,
        () if ratio.low >= same.start && ratio.high <= same.end => Shift::Same,
        () => Shift::NotDistinguishable,
    };
    Outlook { change, ratio: Some(ratio), noise: Some(noise), why: None }
}

/// Whether all of the interval is below the range, or else above it.
fn is_beyond(ratio: Interval, same: &Range<f64>, below: bool) -> bool {
    if below { ratio.high < same.start } else { ratio.low > same.end }
}

/// How far apart two equal programs would seem. The rounds of both, each divided by the median of
/// its own program, are dealt out to two hands again and again, and the medians of the hands are
/// compared. ClickHouse's performance test deals the rounds as they are. But then a clear change
/// makes the noise look as large as the change itself.
fn noise(old: &[f64], new: &[f64]) -> f64 {
    let mut all: Vec<f64> = vec![];
    for figures in [old, new] {
        let middle = median(&mut figures.to_vec());
        all.extend(figures.iter().map(|figure| if middle > 0.0 { figure / middle } else { 1.0 }));
    }
    // The same rounds must give the same noise, so the seed is fixed.
    let mut random = Rng::with_seed(1);
    let mut deal = || {
        random.shuffle(&mut all);
        let mut hands = all.clone();
        let (one, other) = hands.split_at_mut(old.len());
        (median(one) / median(other) - 1.0).abs()
    };
    let mut apart: Vec<f64> = (0..DEALS).map(|_| deal()).collect();
    apart.sort_by(f64::total_cmp);
    apart[(DEALS as f64 * QUANTILE) as usize]
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    let last = figures.len() - 1;
    f64::midpoint(figures[last / 2], figures[figures.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: f64 = 0.05;
    const COMPARISONS: usize = 400;

    /// Rounds around a level, with normal noise.
    fn rounds(level: f64, noise: f64, count: usize, random: &mut Rng) -> Vec<f64> {
        // The sum of twelve uniform random numbers is nearly normal.
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        (0..count).map(|_| level * (1.0 + noise * normal())).collect()
    }

    /// The verdicts of `count` comparisons.
    fn verdicts(new: f64, noise: f64, count: usize, higher_is_better: bool) -> Vec<Shift> {
        let mut random = Rng::with_seed(7);
        let mut one = |_| {
            let old = rounds(100.0, noise, count, &mut random);
            let new = rounds(new, noise, count, &mut random);
            judge(&old, &new, higher_is_better, THRESHOLD).change
        };
        (0..COMPARISONS).map(&mut one).collect()
    }

    fn count(verdicts: &[Shift], what: Shift) -> usize {
        verdicts.iter().filter(|it| **it == what).count()
    }

    #[test]
    fn a_planted_tenth_is_found_and_read_the_right_way_round() {
        use Shift::{Faster, Slower};
        // (new level, more is better, what it is)
        for (new, higher_is_better, is, is_not) in [
            (110.0, false, Slower, Faster),
            (90.0, false, Faster, Slower),
            (110.0, true, Faster, Slower),
            (90.0, true, Slower, Faster),
        ] {
            let verdicts = verdicts(new, 0.01, 6, higher_is_better);
            let found = count(&verdicts, is);
            assert!(found > 380, "{new}, {higher_is_better}: {found} of 400 are {is:?}");
            assert_eq!(count(&verdicts, is_not), 0, "{new}, {higher_is_better}");
        }
    }

    #[test]
    fn the_same_program_twice_is_seldom_called_slower() {
        // (noise, rounds, most alarms of either sort): when written, of 1000 they were 0, 0, 1, 3,
        // 12, 0, 0, 9
        for (noise, rounds, most) in [
            (0.01, 6, 0),
            (0.02, 6, 1),
            (0.05, 6, 3),
            (0.1, 6, 5),
            (0.3, 6, 12),
            (0.01, 9, 0),
            (0.05, 9, 3),
            (0.3, 9, 10),
        ] {
            let verdicts = verdicts(100.0, noise, rounds, false);
            let alarms = count(&verdicts, Shift::Slower) + count(&verdicts, Shift::Faster);
            assert!(alarms <= most, "noise {noise}, {rounds} rounds: {alarms} of 400");
        }
    }

    #[test]
    fn a_quiet_row_is_the_same_and_a_noisy_one_unstable() {
        assert!(count(&verdicts(100.0, 0.01, 6, false), Shift::Same) > 395);
        assert!(count(&verdicts(100.0, 0.1, 6, false), Shift::Unstable) > 360);
        // A change that noise would hide is not called the same.
        assert!(count(&verdicts(106.0, 0.1, 6, false), Shift::Same) < 5);
        // A change that is larger than all noise is still reported.
        assert!(count(&verdicts(300.0, 0.1, 6, false), Shift::Slower) > 395);
    }

    #[test]
    fn what_lies_across_the_threshold_is_not_distinguishable() {
        let old = [100.0; 6];
        let new = [104.0, 104.5, 105.0, 105.5, 106.0, 104.0];
        assert_eq!(judge(&old, &new, false, 0.05).change, Shift::NotDistinguishable);
        assert_eq!(judge(&old, &new, false, 0.1).change, Shift::Same);
        assert_eq!(judge(&old, &new, false, 0.01).change, Shift::Slower);
    }

    #[test]
    fn too_little_is_not_shown() {
        let why = |old: &[f64], new: &[f64]| judge(old, new, false, THRESHOLD).why;
        let few = why(&[1.0; 5], &[1.0; 9]);
        assert_eq!(few.as_deref(), Some("5 rounds in both; expected 6 at least"));
        assert!(why(&[], &[]).is_some() && why(&[0.0; 6], &[1.0; 6]).is_some());
        assert!(why(&[f64::NAN; 6], &[1.0; 6]).is_some());
        assert_eq!(judge(&[0.0; 6], &[0.0; 6], false, THRESHOLD).change, Shift::Same);
    }
}
