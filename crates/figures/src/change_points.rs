//! Where the level of a series changes: E-divisive means (Matteson and James, "A Nonparametric
//! Approach for Multiple Change Point Analysis of Multivariate Data", 2014) with Student's t-test
//! instead of permutations, over windows. Weak points are merged away again (Fleming et al.,
//! "Hunter: Using Change Point Detection to Hunt for Performance Regressions", 2023).
//!
//! It does what Apache Otava does; `tests/otava.rs` compares both. So the deviations in the t-test
//! have n in their denominator, as in Otava. In one thing it follows the paper instead: when a
//! point is merged away, both its neighbours are tested again, not only the later one.

use std::f64::consts::FRAC_2_PI;
use std::ops::Range;

use serde::Serialize;

/// Length of the window in values: in a longer window a short change is not seen. As in Otava.
const WINDOW: usize = 50;
/// A change is significant if chance alone would show one with at most this probability. As in
/// Otava.
pub const P_MAX: f64 = 0.001;
/// Factor on that limit for points that are only candidates. As in Otava.
const WEAK: f64 = 10.0;

/// Where a series changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub at: usize,
    /// Mean from the previous change or the beginning.
    pub before: f64,
    /// Mean until the next change, or the end.
    pub after: f64,
    /// The probability that chance alone shows such a difference.
    pub p: f64,
}

/// Where the level of `values` changes, first to last. All must be finite.
pub fn change_points(values: &[f64]) -> Vec<ChangePoint> {
    let points = weak_points(values);
    let mut points: Vec<_> = (0..points.len()).map(|at| tested(values, &points, at)).collect();
    // The weakest point is removed until all are significant. Its neighbours are then tested again,
    // with the values between them and it.
    while let Some(weakest) = (0..points.len()).max_by(|&a, &b| points[a].p.total_cmp(&points[b].p))
    {
        if points[weakest].p < P_MAX {
            break;
        }
        points.remove(weakest);
        let places: Vec<_> = points.iter().map(|point| point.at).collect();
        for beside in [weakest.checked_sub(1), Some(weakest)].into_iter().flatten() {
            if beside < points.len() {
                points[beside] = tested(values, &places, beside);
            }
        }
    }
    points
}

/// The candidates from all windows, which overlap by a half.
fn weak_points(values: &[f64]) -> Vec<usize> {
    let (mut all, mut start) = (vec![], 0);
    while start < values.len() {
        let end = values.len().min(start + WINDOW);
        let found = of_window(&values[start..end]);
        all.extend(found.iter().map(|at| start + at));
        let last = found.last().map_or(0, |at| start + at);
        start = last.max(start + WINDOW / 2);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Splits a window where the difference is greatest, again and again, as long as the split is
/// significant.
fn of_window(values: &[f64]) -> Vec<usize> {
    let mut points: Vec<usize> = vec![];
    loop {
        let splits = pieces(values.len(), &points).into_iter().filter_map(|piece| {
            let (at, energy) = best_split(&values[piece.clone()])?;
            Some((piece.start + at, energy))
        });
        // Of equals the first, as in Otava.
        let best = splits.reduce(|best, next| if next.1 > best.1 { next } else { best });
        let Some((at, _)) = best else { return points };
        let place = points.partition_point(|point| *point < at);
        points.insert(place, at);
        if tested(values, &points, place).p > WEAK * P_MAX {
            points.remove(place);
            return points;
        }
    }
}

/// The ranges between points.
fn pieces(len: usize, points: &[usize]) -> Vec<Range<usize>> {
    let starts = [0].into_iter().chain(points.iter().copied());
    let ends = points.iter().copied().chain([len]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
}

/// The first index of the part that differs most from everything before it; that part may end
/// before the values do. Also the energy statistic of both, q of the paper with alpha = 1.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let apart = |from: &[f64], value: f64| from.iter().map(|it| (it - value).abs()).sum::<f64>();
    let mut best: Option<(usize, f64)> = None;
    let mut within_left = 0.0;
    for at in 1..values.len() {
        let left = &values[..at];
        within_left += apart(&left[..at - 1], left[at - 1]);
        let (mut between, mut within_right) = (0.0, 0.0);
        for end in at + 1..=values.len() {
            let right = &values[at..end];
            let (last, others) = right.split_last().expect("it has one at least");
            between += apart(left, *last);
            within_right += apart(others, *last);
            let (n, m) = (left.len() as f64, right.len() as f64);
            // A single value has no distances.
            let mean = |sum: f64, count: f64| if count > 1.0 { sum / (count - 1.0) } else { 0.0 };
            let inner = m * mean(within_left, n) + n * mean(within_right, m);
            let energy = 2.0 / (n + m) * (between - inner);
            if best.is_none_or(|(_, most)| energy > most) {
                best = Some((at, energy));
            }
        }
    }
    best
}

/// The result of the t-test for the point at this place among `points`.
fn tested(values: &[f64], points: &[usize], place: usize) -> ChangePoint {
    let pieces = pieces(values.len(), points);
    let (left, right) = (&values[pieces[place].clone()], &values[pieces[place + 1].clone()]);
    let ((before, left_square), (after, right_square)) = (moments(left), moments(right));
    let (n, m) = (left.len() as f64, right.len() as f64);
    let freedom = left.len() + right.len() - 2;
    let p = match before == after || freedom == 0 {
        true => 1.0,
        false => {
            let pooled = ((n - 1.0) * left_square + (m - 1.0) * right_square) / freedom as f64;
            two_sided((after - before).abs() / (pooled * (1.0 / n + 1.0 / m)).sqrt(), freedom)
        }
    };
    ChangePoint { at: points[place], before, after, p }
}

/// Mean, and the mean of the squared distances from it.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / n)
}

/// The probability that |t| is larger than this, by Student's distribution with `freedom` degrees
/// of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4: a finite sum). Exact within 1e-13; smaller
/// values become zero.
fn two_sided(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let odd = freedom % 2 == 1;
    // Odd: cos + 2/3 cos^3 + ...; even: 1 + 1/2 cos^2 + ...
    let (mut term, mut sum) = (if odd { cosine } else { 1.0 }, 0.0);
    for count in 0..freedom / 2 {
        sum += term;
        let step = 2.0 * count as f64 + if odd { 2.0 } else { 1.0 };
        term *= cosine * cosine * step / (step + 1.0);
    }
    let inside = if odd { FRAC_2_PI * (angle + sine * sum) } else { sine * sum };
    (1.0 - inside).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values with these levels, and noise.
    fn series(levels: &[(f64, usize)], noise: f64, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut values = vec![];
        for &(level, count) in levels {
            // The sum of twelve uniform values is nearly normal.
            let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            values.extend((0..count).map(|_| level * (1.0 + noise * normal())));
        }
        values
    }

    #[test]
    fn student_s_distribution_is_the_one_of_the_tables() {
        // Two-sided 5 % and 0.1 %, from a table of t.
        for (freedom, five, thousandth) in
            [(1, 12.706, 636.619), (2, 4.3027, 31.599), (7, 2.3646, 5.4079), (30, 2.0423, 3.646)]
        {
            assert!((two_sided(five, freedom) - 0.05).abs() < 1e-5, "{freedom}");
            assert!((two_sided(thousandth, freedom) - 0.001).abs() < 1e-6, "{freedom}");
        }
        assert_eq!(two_sided(0.0, 5), 1.0);
        assert!(two_sided(f64::INFINITY, 5) < 1e-12);
    }

    #[test]
    fn a_planted_change_is_found_where_it_is() {
        for seed in 0..20 {
            let found = change_points(&series(&[(100.0, 20), (110.0, 20)], 0.02, seed));
            let near = |point: &&ChangePoint| (18..=22).contains(&point.at);
            let point = found.iter().find(near).unwrap_or_else(|| panic!("seed {seed}: {found:?}"));
            let share = point.after / point.before - 1.0;
            assert!((0.07..0.13).contains(&share), "seed {seed}: {point:?}");
        }
    }

    #[test]
    fn counts_that_never_move_change_nowhere_and_a_step_of_one_is_seen() {
        assert_eq!(change_points(&[7.0; 60]), []);
        let steps = [[1000.0; 6].as_slice(), &[1001.0; 6]].concat();
        let found = change_points(&steps);
        let places: Vec<_> = found.iter().map(|point| (point.at, point.before, point.p)).collect();
        assert_eq!(places, [(6, 1000.0, 0.0)]);
    }

    #[test]
    fn nothing_follows_from_too_few() {
        for few in [&[][..], &[1.0], &[1.0, 2.0], &[1.0, 1.0, 2.0]] {
            // With no deviation at all any difference is certain; otherwise three values are too
            // few.
            assert!(change_points(few).len() < 2, "{few:?}");
        }
        assert_eq!(change_points(&[100.0, 101.0, 110.0, 112.0]), []);
    }

    #[test]
    fn noise_alone_seldom_looks_like_a_change() {
        let sets = 300;
        let alarms = |seed: &u64| !change_points(&series(&[(100.0, 60)], 0.05, *seed)).is_empty();
        let found = (0..sets).filter(alarms).count();
        // A point is the best of many places, so it occurs more often than once in a thousand.
        assert!(found * 100 < sets as usize * 10, "{found} of {sets} series of 60");
    }
}
