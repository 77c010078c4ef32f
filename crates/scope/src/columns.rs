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
/// finite value falls into the column, or cycles are missing there.
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
    (0..count)
        .map(|column| {
            let (begin_s, end_s) = (begin_s(column), begin_s(column + 1));
            let held = captured.value_at(begin_s).filter(|value| value.is_finite());
            let mut seen = held.map(Column::of);
            while next < times.len() && times[next] < end_s {
                let value = captured.values[next];
                if value.is_finite() {
                    seen = Some(seen.map_or(Column::of(value), |seen| seen.with(value)));
                }
                next += 1;
            }
            seen
        })
        .collect()
}
