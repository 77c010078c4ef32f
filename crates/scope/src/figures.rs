//! Figures of a trace: extremes, mean, frequency; cursors; pairs for an XY picture.

use std::sync::Arc;

use serde::Serialize;

use crate::series::Captured;

/// Part of the range by which a trace must go back before the next turn counts.
const TURN_HYSTERESIS: f64 = 0.1;

/// Figures of a trace in a capture, in its unit; of finite values only.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TraceFigures {
    /// Cycles with a finite value.
    pub cycles: usize,
    /// Cycles that are missing, as far as is known.
    pub missing: u64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Root of the mean square.
    pub rms: f64,
    /// Greatest minus least.
    pub peak_to_peak: f64,
    /// Frequency of its turns through the middle between its extremes, from the first to the last.
    /// `None` with fewer than two rising turns.
    pub frequency_hz: Option<f64>,
}

/// The figures of a trace; `None` if it has no finite value.
pub fn figures(captured: &Captured) -> Option<TraceFigures> {
    let finite = || captured.values.iter().copied().filter(|value| value.is_finite());
    let cycles = finite().count();
    if cycles == 0 {
        return None;
    }
    let (min, max) = (finite().fold(f64::MAX, f64::min), finite().fold(f64::MIN, f64::max));
    Some(TraceFigures {
        cycles,
        missing: captured.times.lost(),
        min,
        max,
        mean: finite().sum::<f64>() / cycles as f64,
        rms: (finite().map(|value| value * value).sum::<f64>() / cycles as f64).sqrt(),
        peak_to_peak: max - min,
        frequency_hz: frequency_hz(captured, min, max),
    })
}

/// From the times at which the trace rises through its middle, on a straight line between cycles.
fn frequency_hz(captured: &Captured, min: f64, max: f64) -> Option<f64> {
    let (middle, least) = ((min + max) / 2.0, (max - min) * TURN_HYSTERESIS);
    if least <= 0.0 || !captured.times.is_whole() {
        return None;
    }
    let (mut was_below, mut before) = (false, None);
    let (mut first, mut last, mut turns) = (None, 0.0, 0);
    for (&at_s, &value) in captured.times.at_s.iter().zip(&captured.values) {
        if was_below
            && value >= middle
            && let Some((before_s, before_value)) = before
        {
            let part = (middle - before_value) / (value - before_value);
            last = before_s + part * (at_s - before_s);
            turns = first.map_or(0, |_| turns + 1);
            first.get_or_insert(last);
            was_below = false;
        }
        was_below |= value < middle - least;
        if value < middle {
            before = Some((at_s, value));
        }
    }
    (turns > 0).then(|| f64::from(turns) / (last - first.unwrap_or(last)))
}

/// What two cursors read.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cursors {
    /// Their positions, s after the capture's zero.
    pub at_s: [f64; 2],
    /// The values at these positions, if there are any.
    pub values: [Option<f64>; 2],
    /// The second value minus the first, if both exist.
    pub difference: Option<f64>,
    /// The second position minus the first.
    pub apart_s: f64,
    /// One divided by that. `None` if both positions are the same.
    pub apart_hz: Option<f64>,
}

/// The readings of cursors at these times.
pub fn cursors(captured: &Captured, at_s: [f64; 2]) -> Cursors {
    let values = at_s.map(|at_s| captured.value_at(at_s));
    let apart_s = at_s[1] - at_s[0];
    Cursors {
        at_s,
        values,
        difference: values[0].zip(values[1]).map(|(first, second)| second - first),
        apart_s,
        apart_hz: (apart_s != 0.0).then(|| 1.0 / apart_s.abs()),
    }
}

/// A pair for each cycle of the first trace. `None` if one of the two has no finite value, or if a
/// line from the previous pair would pass over missing cycles.
pub fn xy(x: &Captured, y: &Captured) -> Vec<Option<(f64, f64)>> {
    let is_one = Arc::ptr_eq(&x.times, &y.times);
    let mut pairs = Vec::with_capacity(x.values.len());
    for (at, (&x_value, &at_s)) in x.values.iter().zip(&x.times.at_s).enumerate() {
        if x.times.missing_before(at).is_some() {
            pairs.push(None);
        }
        let y_value = if is_one { Some(y.values[at]) } else { y.value_at(at_s) };
        let pair = y_value.map(|y_value| (x_value, y_value));
        pairs.push(pair.filter(|(x, y)| x.is_finite() && y.is_finite()));
    }
    pairs
}
