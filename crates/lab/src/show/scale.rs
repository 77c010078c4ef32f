//! The place of a figure on an axis, and which figures are named there.

/// If a logarithmic axis of less than a decade has fewer 1-2-5 marks than this, it gets even steps.
const MARKS_MIN: usize = 4;
/// About how many even steps an axis gets.
const STEPS: f64 = 5.0;
/// With more decades than this, only whole decades are named.
const DECADES_MAX: f64 = 4.5;

/// An axis from one figure to another, and the places of both, px.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    from_px: f64,
    to_px: f64,
    is_log: bool,
}

impl Scale {
    /// A logarithmic axis, wide enough for all `values`, which must be over zero.
    pub(crate) fn log(values: impl Iterator<Item = f64>, px: (f64, f64)) -> Scale {
        let (low, high) = extent(values);
        // Neither the least nor the greatest value is at the rim.
        Scale { low: low / 1.12, high: high * 1.12, from_px: px.0, to_px: px.1, is_log: true }
    }

    /// A logarithmic axis with exactly these ends.
    pub(crate) fn log_between(low: f64, high: f64, px: (f64, f64)) -> Scale {
        Scale { low, high, from_px: px.0, to_px: px.1, is_log: true }
    }

    /// A linear axis from zero.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>, px: (f64, f64)) -> Scale {
        let high = extent(values).1 * 1.05;
        Scale { low: 0.0, high, from_px: px.0, to_px: px.1, is_log: false }
    }

    /// A linear axis with exactly these ends.
    pub(crate) fn between(low: f64, high: f64, px: (f64, f64)) -> Scale {
        Scale { low, high, from_px: px.0, to_px: px.1, is_log: false }
    }

    /// The place of a value; a value beyond an end is placed at that end.
    pub(crate) fn px(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = match self.is_log {
            true => (value / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        self.from_px + share * (self.to_px - self.from_px)
    }

    /// The places where it begins and ends.
    pub(crate) fn ends_px(&self) -> (f64, f64) {
        (self.from_px, self.to_px)
    }

    /// The figures to name: 1-2-5 or whole decades on a logarithmic axis, even steps elsewhere.
    pub(crate) fn marks(&self) -> Vec<f64> {
        if !self.is_log {
            return self.even();
        }
        let decades = (self.high / self.low).log10();
        let digits: &[f64] = if decades > DECADES_MAX { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last)
            .flat_map(|exponent| digits.iter().map(move |digit| digit * 10_f64.powi(exponent)));
        let marks: Vec<_> = all.filter(|mark| self.holds(*mark)).collect();
        if marks.len() < MARKS_MIN && decades < 1.0 { self.even() } else { marks }
    }

    fn even(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / STEPS;
        let decade = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * decade >= rough);
        let step = step.unwrap_or(10.0) * decade;
        let first = (self.low / step).ceil() as i64;
        let marks = (first..).map(|number| number as f64 * step);
        marks.take_while(|mark| *mark <= self.high).collect()
    }

    fn holds(&self, mark: f64) -> bool {
        (self.low..=self.high).contains(&mark)
    }
}

/// The least and the greatest value; they are made to differ, and to be over zero.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { (1.0, 10.0) } else { (low, high.max(low * 1.05)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_names_one_two_five_or_decades() {
        let marks = |low, high| Scale::log_between(low, high, (0.0, 1.0)).marks();
        assert_eq!(marks(90.0, 2500.0), [100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(marks(1.0, 1e5), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
        assert_eq!(marks(150.0, 5e6), [1e3, 1e4, 1e5, 1e6]);
        assert_eq!(marks(170.0, 9e4).len(), 8);
        assert_eq!(marks(130.0, 180.0), [130.0, 140.0, 150.0, 160.0, 170.0, 180.0]);
    }

    #[test]
    fn equal_ratios_stand_at_equal_distances() {
        let scale = Scale::log_between(1.0, 1000.0, (300.0, 0.0));
        let at = [1.0, 10.0, 100.0, 1000.0, 5000.0].map(|value| scale.px(value).round());
        assert_eq!(at, [300.0, 200.0, 100.0, 0.0, 0.0]);
    }

    #[test]
    fn an_axis_of_nothing_or_of_one_value_is_still_an_axis() {
        for values in [vec![], vec![7.0], vec![0.0], vec![f64::NAN, -1.0]] {
            for scale in [
                Scale::log(values.iter().copied(), (0.0, 100.0)),
                Scale::from_zero(values.iter().copied(), (0.0, 100.0)),
            ] {
                assert!(scale.px(7.0).is_finite() && scale.marks().len() > 1, "{scale:?}");
            }
        }
    }
}
