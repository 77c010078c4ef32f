//! The settings of a scope, and their limits.

use serde::{Deserialize, Serialize};

/// Most traces of one scope: nobody can distinguish more than sixteen lines in one picture.
pub const TRACES_MAX: usize = 16;

/// Most cycles that a scope keeps of a thread. A trace then takes 2 MiB. A window may have half of
/// them: 13 s at 10 kHz, 131 s at 1 kHz. A longer window is refused.
pub const POINTS_MAX: usize = 1 << 18;

/// Shortest window: at 10 kHz two cycles.
pub const WINDOW_NS_MIN: u64 = 200_000;

/// What a capture waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sweep {
    /// For nothing: the newest window, again and again.
    #[default]
    Roll,
    /// For the trigger. If it does not come, the capture is made without it.
    Auto,
    /// For the trigger.
    Normal,
    /// For the trigger, once.
    Single,
}

impl Sweep {
    /// All of them with their words.
    pub const ALL: [(Sweep, &'static str); 4] = [
        (Sweep::Roll, "roll"),
        (Sweep::Auto, "auto"),
        (Sweep::Normal, "normal"),
        (Sweep::Single, "single"),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Sweep::ALL[self as usize].1
    }
}

/// The way through its level at which a trace triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slope {
    /// From below to the level or above.
    #[default]
    Rising,
    /// From above to the level or below.
    Falling,
    /// Either.
    Either,
    /// Without crossing: whenever the trace is above the level.
    Above,
    /// Whenever the trace is below the level.
    Below,
}

impl Slope {
    /// All of them with their words.
    pub const ALL: [(Slope, &'static str); 5] = [
        (Slope::Rising, "rising"),
        (Slope::Falling, "falling"),
        (Slope::Either, "either"),
        (Slope::Above, "above"),
        (Slope::Below, "below"),
    ];

    /// Its word.
    pub fn word(self) -> &'static str {
        Slope::ALL[self as usize].1
    }
}

/// What starts a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The trace, by its place.
    pub trace: usize,
    /// The way.
    pub slope: Slope,
    /// The level, in the trace's unit. Finite.
    pub level: f64,
    /// After a trigger the trace must go back by this much before the next one. Finite, not below
    /// 0.
    pub hysteresis: f64,
}

/// The settings of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeSettings {
    /// Length of a capture.
    pub window_ns: u64,
    /// Part of the window before the trigger, 0 to 1.
    pub pre: f64,
    /// What a capture waits for.
    pub sweep: Sweep,
    /// What starts a capture. Ignored with [`Sweep::Roll`].
    pub trigger: Trigger,
}

impl Default for ScopeSettings {
    fn default() -> ScopeSettings {
        ScopeSettings {
            window_ns: 1_000_000_000,
            pre: 0.1,
            sweep: Sweep::Roll,
            trigger: Trigger::default(),
        }
    }
}

impl ScopeSettings {
    /// Checks whether a scope may have these settings, with this many traces. `period_ns` is the
    /// period of the fastest of their threads.
    ///
    /// # Errors
    /// What is wrong, what was expected, what to change.
    pub fn check(&self, traces: usize, period_ns: u64) -> Result<(), String> {
        let Trigger { trace, level, hysteresis, .. } = self.trigger;
        if traces == 0 || traces > TRACES_MAX {
            return Err(format!("{traces} traces; expected 1 to {TRACES_MAX}: leave some out"));
        }
        let longest_ns = longest_ns(period_ns);
        if !(WINDOW_NS_MIN..=longest_ns).contains(&self.window_ns) {
            return Err(format!(
                "a window of {} s; expected {} s to {} s, which is {} cycles of {} us: \
                 change the window",
                seconds(self.window_ns),
                seconds(WINDOW_NS_MIN),
                seconds(longest_ns),
                POINTS_MAX / 2,
                period_ns as f64 / 1e3
            ));
        }
        if !(0.0..=1.0).contains(&self.pre) {
            return Err(format!("a share of {} before the trigger; expected 0 to 1", self.pre));
        }
        if self.sweep == Sweep::Roll {
            return Ok(());
        }
        if trace >= traces {
            return Err(format!("the trigger is trace {trace}; there are {traces}"));
        }
        if !level.is_finite() {
            return Err(format!("the trigger's level is {level}; expected a finite number"));
        }
        if !hysteresis.is_finite() || hysteresis < 0.0 {
            return Err(format!(
                "the trigger's hysteresis is {hysteresis}; expected a finite number from 0 on"
            ));
        }
        Ok(())
    }

    /// Part of a capture before the trigger, ns.
    pub fn before_ns(&self) -> u64 {
        (self.window_ns as f64 * self.pre) as u64
    }
}

/// The longest window at this period, ns: half of what is kept. This leaves room for threads that
/// are read one after another, and for one that is faster than planned.
pub fn longest_ns(period_ns: u64) -> u64 {
    period_ns.max(1).saturating_mul(POINTS_MAX as u64 / 2)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
