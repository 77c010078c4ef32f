//! What a ratio should be, and whether it is.

use std::fmt;

use serde::{Deserialize, Serialize};
use sinew_figures::Interval;

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
    /// As near to one as this: 0.05 means from 0.95 to 1.05.
    Within(f64),
}

impl Bar {
    /// Whether the ratio reaches the bar: only if the whole interval is on the good side, and firm.
    pub fn holds(self, ratio: Interval) -> Holds {
        let (reached, missed) = match self {
            Bar::AtLeast(bar) => (ratio.low >= bar, ratio.high < bar),
            Bar::AtMost(bar) => (ratio.high <= bar, ratio.low > bar),
            Bar::Within(share) => {
                let (low, high) = (1.0 - share, 1.0 + share);
                let outside = ratio.high < low || ratio.low > high;
                (ratio.low >= low && ratio.high <= high, outside)
            }
        };
        let holds = match (reached, missed) {
            (true, _) => Holds::Yes,
            (_, true) => Holds::No,
            _ => Holds::NotDistinguishable,
        };
        holds.if_firm(&[ratio])
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bar::AtLeast(bar) => write!(f, ">= {bar:.2}"),
            Bar::AtMost(bar) => write!(f, "<= {bar:.2}"),
            Bar::Within(share) => write!(f, "within {:.0} %", share * 100.0),
        }
    }
}

/// Whether a claim holds on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// It does.
    Yes,
    /// Its direction holds but its figures do not, or only part of it was seen.
    Partly,
    /// It does not.
    No,
    /// The noise is larger than the difference.
    NotDistinguishable,
    /// Nothing that was measured here says anything about it.
    NotMeasured,
}

impl Holds {
    /// For a claim about several things, from what holds for each. It holds partly if it holds for
    /// some of them. It does not hold if it holds for none and at least one result is known.
    pub fn of_all(all: &[Holds]) -> Holds {
        let is = |what| move |holds: &Holds| *holds == what;
        match all {
            [] => Holds::NotMeasured,
            _ if all.iter().all(is(Holds::Yes)) => Holds::Yes,
            _ if all.iter().any(is(Holds::Yes)) => Holds::Partly,
            _ if all.iter().any(is(Holds::No)) => Holds::No,
            _ => Holds::NotDistinguishable,
        }
    }

    /// This result, if all ratios that it follows from are firm.
    pub fn if_firm(self, of: &[Interval]) -> Holds {
        if of.iter().all(Interval::is_firm) { self } else { Holds::NotDistinguishable }
    }

    /// In plain words.
    pub fn words(self) -> &'static str {
        match self {
            Holds::Yes => "holds",
            Holds::Partly => "holds in part",
            Holds::No => "does not hold",
            Holds::NotDistinguishable => "not distinguishable",
            Holds::NotMeasured => "not measured",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_inside_the_interval_is_neither_reached_nor_missed() {
        let ratio = |low, high| {
            let median = f64::midpoint(low, high);
            Interval { median, low, high, rounds: 3 }
        };
        assert_eq!(Bar::AtLeast(1.0).holds(ratio(0.9, 1.1)), Holds::NotDistinguishable);
        assert_eq!(Bar::AtMost(0.9).holds(ratio(0.8, 0.85)), Holds::Yes);
        assert_eq!(Bar::AtMost(0.9).holds(ratio(0.95, 1.0)), Holds::No);
        assert_eq!(Bar::Within(0.05).holds(ratio(0.9, 1.0)), Holds::NotDistinguishable);
        assert_eq!(Bar::Within(0.05).holds(ratio(0.9, 0.94)), Holds::No);
        assert_eq!(
            format!("{} {}", Bar::AtMost(0.9), ratio(0.8, 1.0)),
            "<= 0.90 0.90 (0.80 to 1.00)"
        );
    }

    #[test]
    fn what_holds_of_some_holds_in_part() {
        use Holds::{No, NotDistinguishable, NotMeasured, Partly, Yes};
        assert_eq!(Holds::of_all(&[Yes, Yes]), Yes);
        assert_eq!(Holds::of_all(&[Yes, No]), Partly);
        assert_eq!(Holds::of_all(&[Yes, NotDistinguishable]), Partly);
        assert_eq!(Holds::of_all(&[NotDistinguishable, No]), No);
        assert_eq!(Holds::of_all(&[NotDistinguishable]), NotDistinguishable);
        assert_eq!(Holds::of_all(&[]), NotMeasured);
    }

    #[test]
    fn no_bar_is_reached_in_fewer_than_three_rounds() {
        let of = |values: &[f64]| Interval::of(values).expect("values");
        for few in [&[5.0][..], &[5.0, 5.1]] {
            assert_eq!(Bar::AtLeast(1.0).holds(of(few)), Holds::NotDistinguishable);
        }
        assert_eq!(Bar::AtLeast(1.0).holds(of(&[5.0; 3])), Holds::Yes);
    }
}
