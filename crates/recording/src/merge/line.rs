//! What to add to one monotonic clock to get another, over time: knots with straight lines between.

use std::collections::BTreeMap;

use sinew_hosts::DRIFT_PPM;

/// Knots that are further apart than this belong to different starts of a machine.
const APART_NS: i64 = 1_000_000_000;

/// An estimate of what to add at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Knot {
    /// By the clock to which it is added, ns.
    pub(super) at_ns: i64,
    pub(super) add_ns: i64,
    /// The possible error of `add_ns`, in either direction.
    pub(super) uncertainty_ns: i64,
    /// Whether the estimate is in the recording of that clock's host, or in the other host's.
    pub(super) is_own: bool,
}

impl Knot {
    /// The least and the greatest possible value at another time.
    fn bounds(&self, at_ns: i64) -> (i64, i64) {
        let wrong_ns = self.uncertainty_ns.saturating_add(drift(self.at_ns, at_ns));
        (self.add_ns.saturating_sub(wrong_ns), self.add_ns.saturating_add(wrong_ns))
    }
}

fn drift(a_ns: i64, b_ns: i64) -> i64 {
    distance(a_ns, b_ns) / 1_000_000 * DRIFT_PPM as i64
}

fn distance(a: i64, b: i64) -> i64 {
    i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX)
}

/// The conversion from one clock to another.
#[derive(Debug)]
pub(super) struct Line {
    /// By time; never empty.
    knots: BTreeMap<i64, Knot>,
    /// Number of estimates that it is made of.
    pub(super) estimates: usize,
    /// Number of estimates that do not fit: one of the machines was restarted in between.
    pub(super) set_aside: usize,
}

impl Line {
    /// From the estimates of both sides. `None` if there are none.
    pub(super) fn of(mut knots: Vec<Knot>) -> Option<Line> {
        let all = knots.len();
        knots.sort_by_key(|knot| knot.add_ns);
        let groups = knots.chunk_by(|a, b| distance(a.add_ns, b.add_ns) <= APART_NS);
        // Estimates from both sides are from the same starts of both machines.
        let weight = |group: &&[Knot]| {
            let is_of_both =
                [true, false].iter().all(|own| group.iter().any(|it| it.is_own == *own));
            (is_of_both, group.len())
        };
        let mut group = groups.max_by_key(weight)?.to_vec();
        let estimates = group.len();
        group.sort_by_key(|knot| (knot.uncertainty_ns, knot.at_ns));
        let set_aside = all - estimates;
        let mut line = Line { knots: BTreeMap::new(), estimates, set_aside };
        for knot in group.into_iter().filter(|it| it.uncertainty_ns >= 0) {
            if line.around(knot.at_ns).into_iter().flatten().all(|other| goes_beside(other, knot)) {
                line.knots.insert(knot.at_ns, knot);
            }
        }
        (!line.knots.is_empty()).then_some(line)
    }

    /// The knots before and after a time.
    fn around(&self, at_ns: i64) -> [Option<Knot>; 2] {
        let before = self.knots.range(..=at_ns).next_back();
        let behind = self.knots.range(at_ns..).next();
        [before, behind].map(|it| it.map(|(_, knot)| *knot))
    }

    /// What to add at a time, and its possible error. A later time never becomes earlier than an
    /// earlier one.
    pub(super) fn at(&self, at_ns: i64) -> (i64, i64) {
        let (add_ns, (low_ns, high_ns)) = match self.around(at_ns) {
            [Some(a), Some(b)] if a.at_ns < b.at_ns => {
                let share = distance(a.at_ns, at_ns) as f64 / distance(a.at_ns, b.at_ns) as f64;
                let more_ns = (b.add_ns.saturating_sub(a.add_ns) as f64 * share) as i64;
                let [(low, high), (other_low, other_high)] = [a, b].map(|it| it.bounds(at_ns));
                (a.add_ns.saturating_add(more_ns), (low.max(other_low), high.min(other_high)))
            }
            [Some(knot), _] | [None, Some(knot)] => (knot.add_ns, knot.bounds(at_ns)),
            [None, None] => (0, (i64::MIN, i64::MAX)),
        };
        (add_ns, distance(high_ns, add_ns).max(distance(low_ns, add_ns)))
    }
}

/// Whether a knot adds information to a surer one, and time moves forward between them.
fn goes_beside(surer: Knot, knot: Knot) -> bool {
    let apart_ns = distance(surer.at_ns, knot.at_ns);
    let known_ns = surer.uncertainty_ns.saturating_add(drift(surer.at_ns, knot.at_ns));
    knot.uncertainty_ns < known_ns && distance(surer.add_ns, knot.add_ns) <= apart_ns / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn knot(at_ns: i64, add_ns: i64, uncertainty_ns: i64) -> Knot {
        Knot { at_ns, add_ns, uncertainty_ns, is_own: true }
    }

    #[test]
    fn between_knots_the_line_is_straight_and_beyond_them_it_grows_unsure() {
        let line = Line::of(vec![knot(10 * S, 200_000, 1000), knot(0, 100_000, 1000)]);
        let line = line.expect("knots");
        assert_eq!(line.at(0), (100_000, 1000));
        assert_eq!(line.at(5 * S).0, 150_000);
        assert_eq!(line.at(20 * S), (200_000, 1000 + 1_000_000));
        assert_eq!(line.at(-10 * S), (100_000, 1000 + 1_000_000));
        assert!(Line::of(vec![]).is_none());
    }

    #[test]
    fn what_an_unsure_knot_says_is_left_out_where_a_surer_one_says_it() {
        let line = Line::of(vec![knot(0, 0, 10_000), knot(S, 400_000, 500_000)]).expect("knots");
        assert_eq!(line.at(S), (0, 10_000 + 100_000));
    }

    #[test]
    fn knots_of_another_start_of_the_machine_are_set_aside() {
        let own = |at| knot(at * S, 5, 1000);
        let before = |at| Knot { is_own: false, ..knot(at * S, 900 * S, 1) };
        let theirs = Knot { is_own: false, ..own(3) };
        let line =
            Line::of(vec![own(1), own(2), theirs, before(1), before(2), before(3), before(4)]);
        let line = line.expect("knots");
        assert_eq!((line.estimates, line.set_aside, line.at(2 * S).0), (3, 4, 5));
    }

    /// Two clocks drift apart, and are seen through a network of any speed. The true value is
    /// always within the stated error, and the order of times is kept.
    #[test]
    fn the_truth_is_within_what_is_said_and_order_is_kept() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..200 {
            let drift_ppm = random.i64(-90..90);
            let truth = |at_ns: i64| 7 * S + at_ns / 1_000_000 * drift_ppm;
            let knots = (0..50).map(|at| {
                let (at_ns, wide) =
                    (at * S / 5 + random.i64(..S / 10), random.i64(1000..20_000_000));
                let wrong_ns = random.i64(-wide..=wide);
                Knot { is_own: random.bool(), ..knot(at_ns, truth(at_ns) + wrong_ns, wide) }
            });
            let line = Line::of(knots.collect()).expect("knots");
            let mut last_ns = i64::MIN;
            for at in 0..2000 {
                let at_ns = at * S / 100 - 5 * S;
                let (add_ns, uncertainty_ns) = line.at(at_ns);
                assert!(
                    (add_ns - truth(at_ns)).abs() <= uncertainty_ns + 1000,
                    "{at_ns}: {line:?}"
                );
                assert!(at_ns + add_ns >= last_ns);
                last_ns = at_ns + add_ns;
            }
        }
    }
}
