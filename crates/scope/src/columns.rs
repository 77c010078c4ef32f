//! A trace made small enough to be drawn, without a spike being lost.

use serde::Serialize;

use crate::series::Captured;

/// What a trace is within a column of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Where it comes in, and where it leaves.
    pub first: f64,
    /// As above.
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

/// A trace between two times in `count` columns. A value holds until the next cycle; `None`: no
/// finite value falls into the column, or cycles are missing there. However few are missing, a
/// column stays empty for them: what falls into it stands further on, by two columns at most.
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
    // Whether a gap is before the next value, which does not lag already by more than so many
    // columns.
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
