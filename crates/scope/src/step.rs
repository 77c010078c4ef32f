//! The response to a step: rise time, overshoot, settling time.

use serde::Serialize;

use crate::series::{Captured, NotShown};

/// Default band that counts as settled: within 2 % of the step.
pub const WITHIN: f64 = 0.02;

/// Part of the time after the step that must be settled; its mean is the steady value.
const STEADY_PART: f64 = 0.1;

/// Fewest cycles after the step.
const CYCLES_MIN: usize = 20;

/// A step must be larger than the movement of the trace before it by this factor.
const ABOVE_NOISE: f64 = 5.0;

/// If an input takes more cycles than this from a tenth to nine tenths, it is no step.
const STEP_CYCLES_MAX: usize = 2;

/// The response of a trace to a step. Times in seconds, values in the trace's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StepResponse {
    /// When the step came, s after the capture's zero.
    pub begin_s: f64,
    /// Mean value before the step.
    pub initial: f64,
    /// Mean value in the last tenth of the capture.
    pub steady: f64,
    /// Time from 10 % to 90 % of the way, on a straight line between cycles.
    pub rise_s: f64,
    /// How far the peak is beyond the steady value, in percent of the way; 0 if it is not beyond.
    pub overshoot_percent: f64,
    /// The value furthest along the way.
    pub peak: f64,
    /// Time from the step to the peak.
    pub peak_s: f64,
    /// Time from the step until the trace stays within [`StepResponse::within`].
    pub settling_s: f64,
    /// Part of the way that counts as settled.
    pub within: f64,
}

/// When an input steps, s after the capture's zero.
///
/// # Errors
/// It does not step, or not at once, or more than once.
pub fn step_of(input: &Captured) -> Result<f64, NotShown> {
    whole(input)?;
    let name = &input.trace.name;
    let (Some(&first), Some(&last)) = (input.values.first(), input.values.last()) else {
        return NotShown::because(format!("'{name}' has no cycle here"));
    };
    let way = last - first;
    let part = |value: f64| (value - first) / way;
    if way == 0.0 {
        return NotShown::because(format!(
            "the input '{name}' ends where it began, at {first}; let the window hold one step"
        ));
    }
    let past = |share: f64| input.values.iter().position(|value| part(*value) >= share);
    let (Some(tenth), Some(half), Some(most)) = (past(0.1), past(0.5), past(0.9)) else {
        return NotShown::because(format!("the input '{name}' has no step"));
    };
    if most - tenth >= STEP_CYCLES_MAX {
        let s = input.times.at_s[most] - input.times.at_s[tenth];
        return NotShown::because(format!(
            "the input '{name}' takes {s:.4} s to move: it is not a step"
        ));
    }
    let strays = |values: &[f64], to: f64| values.iter().any(|it| (part(*it) - to).abs() > 0.1);
    if strays(&input.values[..tenth], 0.0) || strays(&input.values[most..], 1.0) {
        return NotShown::because(format!(
            "the input '{name}' moves more than once; let the window hold one step"
        ));
    }
    Ok(input.times.at_s[half])
}

/// The response of a trace to a step at `begin_s`. It counts as settled within `within` of the way,
/// such as [`WITHIN`].
///
/// # Errors
/// Why there is no response: no step, not at rest before, not settled in the capture, cycles
/// missing.
pub fn step_response(
    response: &Captured,
    begin_s: f64,
    within: f64,
) -> Result<StepResponse, NotShown> {
    whole(response)?;
    let name = &response.trace.name;
    if !(within > 0.0 && within < 0.5) {
        return NotShown::because(format!("settled within {within}; expected above 0, below 0.5"));
    }
    let times = &response.times.at_s;
    let begin = times.partition_point(|time| *time < begin_s);
    let (before, after) = response.values.split_at(begin);
    if before.is_empty() {
        return NotShown::because(format!(
            "no cycle of '{name}' is before the step; raise the share before the trigger"
        ));
    }
    if after.len() < CYCLES_MIN {
        return NotShown::because(format!(
            "{} cycles of '{name}' are after the step, expected {CYCLES_MIN}; widen the window",
            after.len()
        ));
    }
    let steady_cycles = ((after.len() as f64 * STEADY_PART) as usize).max(2);
    let initial = mean(before);
    let steady = mean(&after[after.len() - steady_cycles..]);
    let (way, moved) = (steady - initial, extent(before));
    if way == 0.0 || way.abs() <= ABOVE_NOISE * moved {
        return NotShown::because(format!(
            "'{name}' has no step: it changes by {way}, and moved by {moved} before"
        ));
    }
    let path = Path { response, begin, before: initial, begin_s, initial, way };
    let steady_from = after.len() - steady_cycles;
    let unsettled = (0..after.len()).rev().find(|at| (path.part(*at) - 1.0).abs() > within);
    let unsettled = unsettled.unwrap_or(0);
    if unsettled >= steady_from {
        return NotShown::because(format!(
            "'{name}' has not settled: {} s after the step it is still more than {} % off; widen \
             the window",
            times[begin + unsettled] - begin_s,
            within * 100.0
        ));
    }
    let crossing = |share| path.crossing(share).unwrap_or(f64::NAN);
    let peak = (0..after.len()).max_by(|a, b| path.part(*a).total_cmp(&path.part(*b)));
    let peak = peak.unwrap_or(0);
    Ok(StepResponse {
        begin_s,
        initial,
        steady,
        rise_s: crossing(0.9) - crossing(0.1),
        overshoot_percent: ((path.part(peak) - 1.0) * 100.0).max(0.0),
        peak: after[peak],
        peak_s: times[begin + peak] - begin_s,
        settling_s: path.settled_s(unsettled, within),
        within,
    })
}

/// The way of a trace after a step.
struct Path<'a> {
    response: &'a Captured,
    begin: usize,
    before: f64,
    begin_s: f64,
    initial: f64,
    way: f64,
}

impl Path<'_> {
    /// The part of the way reached after `at` cycles.
    fn part(&self, at: usize) -> f64 {
        (self.response.values[self.begin + at] - self.initial) / self.way
    }

    /// Time after the step, and part of the way, for the previous cycle.
    fn earlier(&self, at: usize) -> (f64, f64) {
        match at {
            0 => (0.0, (self.before - self.initial) / self.way),
            _ => (self.after_s(at - 1), self.part(at - 1)),
        }
    }

    fn after_s(&self, at: usize) -> f64 {
        self.response.times.at_s[self.begin + at] - self.begin_s
    }

    /// When it reaches this share of the way for the first time, after the step.
    fn crossing(&self, share: f64) -> Option<f64> {
        let count = self.response.values.len() - self.begin;
        let at = (0..count).find(|at| self.part(*at) >= share)?;
        Some(self.between(at, share))
    }

    /// When it was at `share` between the cycle before `at` and cycle `at`.
    fn between(&self, at: usize, share: f64) -> f64 {
        let ((from_s, from), (until_s, until)) =
            (self.earlier(at), (self.after_s(at), self.part(at)));
        if until == from {
            until_s
        } else {
            from_s + (share - from) / (until - from) * (until_s - from_s)
        }
    }

    /// When it was within the band for good, given that it was not in cycle `unsettled`.
    fn settled_s(&self, unsettled: usize, within: f64) -> f64 {
        let part = self.part(unsettled);
        if (part - 1.0).abs() <= within {
            return 0.0;
        }
        self.between(unsettled + 1, if part > 1.0 { 1.0 + within } else { 1.0 - within })
    }
}

fn whole(captured: &Captured) -> Result<(), NotShown> {
    let name = &captured.trace.name;
    captured.times.whole(name)?;
    match captured.values.iter().position(|value| !value.is_finite()) {
        Some(at) => NotShown::because(format!("cycle {at} of '{name}' has no finite value")),
        None => Ok(()),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn extent(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    values.iter().copied().fold(f64::MIN, f64::max) - least
}
