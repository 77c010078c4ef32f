//! How certain a figure is that was measured in several rounds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Shown when there are fewer than [`Interval::ROUNDS_MIN`] rounds, so that nothing follows.
pub const NEEDS_ROUNDS: &str = "needs three rounds";

/// The median over rounds, and the range that contains the true median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The middle value; with an even count the mean of the two in the middle.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The number of rounds.
    pub rounds: usize,
}

impl Interval {
    /// With fewer rounds nothing follows: one round says nothing about the noise, and two may agree
    /// by chance.
    pub const ROUNDS_MIN: usize = 3;

    /// The narrowest interval of order statistics that covers the true median with 95 %, whatever
    /// the distribution (W. J. Conover, "Practical Nonparametric Statistics", 3.2). With fewer than
    /// six rounds there is none; then it extends from the least to the greatest value. `None`
    /// without values.
    pub fn of(values: &[f64]) -> Option<Interval> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (n, last) = (sorted.len(), sorted.len().checked_sub(1)?);
        let cut = cut(n);
        let median = f64::midpoint(sorted[last / 2], sorted[n / 2]);
        Some(Interval { median, low: sorted[cut], high: sorted[last - cut], rounds: n })
    }

    /// Whether there are enough rounds to conclude anything.
    pub fn is_firm(&self) -> bool {
        self.rounds >= Interval::ROUNDS_MIN
    }

    /// Whether a ratio differs from one: 1.0 is outside the interval.
    pub fn differs_from_one(&self) -> bool {
        self.is_firm() && (self.low > 1.0 || self.high < 1.0)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { median, low, high, rounds } = self;
        let digits = f.precision().unwrap_or(2);
        write!(f, "{median:.digits$} ({low:.digits$} to {high:.digits$}")?;
        match self.is_firm() {
            true => f.write_str(")"),
            false => write!(f, ", rounds: {rounds}, {NEEDS_ROUNDS})"),
        }
    }
}

/// How many values to leave out at either end of `n`: the greatest number for which a fair coin
/// shows heads as rarely as allowed.
fn cut(n: usize) -> usize {
    const OUTSIDE_MAX: f64 = 0.05;
    let mut chance = 0.5_f64.powi(n as i32);
    let (mut below, mut cut) = (0.0, 0);
    for heads in 0..n / 2 {
        below += chance;
        if 2.0 * below > OUTSIDE_MAX {
            break;
        }
        cut = heads;
        chance *= (n - heads) as f64 / (heads + 1) as f64;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_the_one_of_the_tables() {
        // Conover, table A3: ranks of a 95 % interval for the median.
        for (n, expected) in [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (12, 2), (20, 5), (50, 17)] {
            assert_eq!(cut(n), expected, "{n} values");
        }
    }

    #[test]
    fn a_few_rounds_span_all_that_was_seen() {
        let interval = Interval::of(&[3.0, 1.0, 2.0, 10.0]).expect("four");
        assert_eq!(interval, Interval { median: 2.5, low: 1.0, high: 10.0, rounds: 4 });
        assert_eq!(Interval::of(&[]), None);
    }

    #[test]
    fn a_ratio_around_one_is_no_difference() {
        let of = |values: &[f64]| Interval::of(values).expect("values").differs_from_one();
        assert!(!of(&[0.9, 1.1, 1.2]));
        assert!(of(&[1.1, 1.1, 1.2]));
        assert!(of(&[0.7, 0.9, 0.8]));
    }

    #[test]
    fn nothing_follows_from_fewer_than_three_rounds() {
        let of = |values: &[f64]| Interval::of(values).expect("values");
        for few in [&[5.0][..], &[5.0, 5.1]] {
            assert!(!of(few).differs_from_one());
        }
        assert!(of(&[5.0; 3]).differs_from_one());
        assert_eq!(of(&[5.0]).to_string(), "5.00 (5.00 to 5.00, rounds: 1, needs three rounds)");
        assert_eq!(format!("{:.0}", of(&[5.0; 3])), "5 (5 to 5)");
    }
}
