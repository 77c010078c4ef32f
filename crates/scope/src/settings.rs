//! What a scope is set to, and the limits of that.

use serde::{Deserialize, Serialize};

/// Most traces of one scope: more than sixteen lines on one picture nobody tells apart.
pub const TRACES_MAX: usize = 16;

/// Most cycles that a scope keeps of a thread; a trace then takes 2 MiB. A window may have half of
/// them, 13 s at 10 kHz and 131 s at 1 kHz; a longer one is refused.
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
    /// For the trigger; if that does not come, it goes on without.
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

/// At which way through its level a trace triggers.
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
    /// No way through it: whenever the trace is above.
    Above,
    /// Whenever it is below.
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
    /// Which trace, by its place.
    pub trace: usize,
    /// Which way.
    pub slope: Slope,
    /// Through this value, in the trace's unit. Finite.
    pub level: f64,
    /// After a trigger the trace must go back by so much before the next one. Finite, not below 0.
    pub hysteresis: f64,
}

/// What a scope is set to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScopeSettings {
    /// Time of a capture.
    pub window_ns: u64,
    /// Share of it before the trigger, 0 to 1.
    pub pre: f64,
    /// What a capture waits for.
    pub sweep: Sweep,
    /// What starts it; of no meaning for [`Sweep::Roll`].
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
    /// Looks whether a scope of so many traces, the fastest of whose threads has this period, can
    /// be set so.
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

    /// Time of a capture before the trigger, ns.
    pub fn before_ns(&self) -> u64 {
        (self.window_ns as f64 * self.pre) as u64
    }
}

/// The longest window at this period, ns: half of what is kept, so that threads that are read one
/// after the other, and one that is faster than planned, fit too.
pub fn longest_ns(period_ns: u64) -> u64 {
    period_ns.max(1).saturating_mul(POINTS_MAX as u64 / 2)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
