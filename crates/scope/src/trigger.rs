//! Whether a value starts a capture.

use crate::settings::{Slope, Trigger};

/// A trigger and what it has seen.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    trigger: Trigger,
    /// The trace was far enough below the level to rise through it, or far enough above to fall.
    was_below: bool,
    was_above: bool,
}

impl Watched {
    pub(crate) fn new(trigger: Trigger) -> Watched {
        Watched { trigger, was_below: false, was_above: false }
    }

    /// Whether this value triggers. A value that is not finite never does.
    pub(crate) fn takes(&mut self, value: f64) -> bool {
        if !value.is_finite() {
            return false;
        }
        let Trigger { slope, level, hysteresis, .. } = self.trigger;
        let (rises, falls) = (self.was_below && value >= level, self.was_above && value <= level);
        self.was_below = (self.was_below && !rises) || value < level - hysteresis;
        self.was_above = (self.was_above && !falls) || value > level + hysteresis;
        match slope {
            Slope::Rising => rises,
            Slope::Falling => falls,
            Slope::Either => rises || falls,
            Slope::Above => value > level,
            Slope::Below => value < level,
        }
    }

    /// Cycles are missing: what the trace did meanwhile is unknown.
    pub(crate) fn forget(&mut self) {
        (self.was_below, self.was_above) = (false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fired(slope: Slope, hysteresis: f64, values: &[f64]) -> Vec<usize> {
        let trigger = Trigger { trace: 0, slope, level: 1.0, hysteresis };
        let mut watched = Watched::new(trigger);
        let fires = values.iter().enumerate().filter(|(_, value)| watched.takes(**value));
        fires.map(|(at, _)| at).collect()
    }

    #[test]
    fn a_slope_counts_only_after_the_trace_was_on_its_other_side() {
        let values = [2.0, 0.0, 1.0, 2.0, 0.5, f64::NAN, 3.0];
        assert_eq!(fired(Slope::Rising, 0.0, &values), [2, 6]);
        assert_eq!(fired(Slope::Falling, 0.0, &values), [1, 4]);
        assert_eq!(fired(Slope::Either, 0.0, &values), [1, 2, 4, 6]);
        assert_eq!(fired(Slope::Above, 0.0, &values), [0, 3, 6]);
        assert_eq!(fired(Slope::Below, 0.0, &values), [1, 4]);
    }

    #[test]
    fn noise_within_the_hysteresis_triggers_once() {
        let values = [0.0, 1.1, 0.9, 1.1, 0.9, 1.1, 0.4, 1.1];
        assert_eq!(fired(Slope::Rising, 0.0, &values), [1, 3, 5, 7]);
        assert_eq!(fired(Slope::Rising, 0.5, &values), [1, 7]);
    }
}
