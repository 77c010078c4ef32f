//! A trace reduced to a size that can be drawn, without losing a spike.

use serde::Serialize;

use crate::series::Captured;

/// The values of a trace within one column of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// The value at the start of the column.
    pub first: f64,
    /// The value at its end.
    pub last: f64,
}

impl Column {
    fn of(value: f64) -> Column {
        Column { min: value, max: value, first: value, last: value }
    }

    fn with(self, value: f64) -> Column {
        let (min, max) = (self.min.min(value), self.max.max(value));
        Column { min, max, last: value, ..self }
    }
}

/// A trace between two times, in `count` columns. A value holds until the next cycle. `None`: no
/// finite value falls into the column, or cycles are missing there. Even one missing cycle leaves a
/// column empty: the values that fall into it are moved to later columns, by two columns at most.
pub fn columns(
    captured: &Captured,
    from_s: f64,
    until_s: f64,
    count: usize,
) -> Vec<Option<Column>> {
    let times = &captured.times.at_s;
    let width_s = (until_s - from_s) / count as f64;
    let begin_s = |column: usize| from_s + width_s * column as f64;
    let mut next = times.partition_point(|time| *time < from_s);
    let mut follows = false;
    // Whether a gap is before the next value, and that value is not moved by more columns than
    // allowed already.
    let is_apart = |next: usize, begin_s: f64| {
        captured.times.missing_before(next).is_some() && times[next] >= begin_s
    };
    (0..count)
        .map(|column| {
            let end_s = begin_s(column + 1);
            let has_next = |next: usize| next < times.len() && times[next] < end_s;
            let is_last = column + 1 == count;
            if follows && !is_last && has_next(next) && is_apart(next, begin_s(column) - width_s) {
                follows = false;
                return None;
            }
            let lags = next < times.len() && times[next] < begin_s(column);
            let held = captured.value_at(begin_s(column)).filter(|it| it.is_finite() && !lags);
            let mut seen = held.map(Column::of);
            while has_next(next) {
                if seen.is_some() && !is_last && is_apart(next, begin_s(column)) {
                    break;
                }
                let value = captured.values[next];
                if value.is_finite() {
                    seen = Some(seen.map_or(Column::of(value), |seen| seen.with(value)));
                }
                next += 1;
            }
            follows = seen.is_some();
            seen
        })
        .collect()
}
