//! Curves at the same place: the later one would hide the earlier one.

use super::super::svg::Point;

/// Two curves that are closer than this look like one, px.
const NEAR: f64 = 2.5;
/// A curve hides an earlier one if this share of its points is near that one.
const SHARE: f64 = 0.5;

/// The curves that have been drawn so far.
#[derive(Default)]
pub(super) struct Curves(Vec<Vec<Point>>);

impl Curves {
    /// Whether this curve would cover an earlier one; its points go from left to right.
    pub(super) fn covers(&mut self, curve: &[Point]) -> bool {
        let covers = |earlier: &Vec<Point>| {
            let is_near =
                |&&(x, y): &&Point| height(earlier, x).is_some_and(|h| (h - y).abs() < NEAR);
            curve.iter().filter(is_near).count() as f64 > SHARE * curve.len() as f64
        };
        let covers = self.0.iter().any(covers);
        self.0.push(curve.to_vec());
        covers
    }
}

/// The height of a curve at `x`; `None` beyond its ends.
fn height(curve: &[Point], x: f64) -> Option<f64> {
    let right = curve.iter().position(|point| point.0 >= x)?;
    let ((x1, y1), (x0, y0)) = (curve[right], curve[right.saturating_sub(1)]);
    match x1 > x0 {
        true => Some(y0 + (y1 - y0) * (x - x0) / (x1 - x0)),
        false => (x1 == x).then_some(y1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_on_another_is_told_from_one_that_crosses_it() {
        let mut seen = Curves::default();
        assert!(!seen.covers(&[(0.0, 0.0), (50.0, 50.0), (100.0, 100.0)]));
        assert!(!seen.covers(&[(0.0, 100.0), (50.0, 50.0), (100.0, 0.0)]));
        assert!(seen.covers(&[(0.0, 1.0), (25.0, 26.0), (80.0, 80.0), (100.0, 70.0)]));
        assert!(!seen.covers(&[]));
    }
}
