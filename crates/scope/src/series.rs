//! A capture: the numbers of a time window, trace by trace, and where cycles are missing.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::trace::Trace;

/// Why a figure is not shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NotShown(pub String);

impl fmt::Display for NotShown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not shown: {}", self.0)
    }
}

impl NotShown {
    pub(crate) fn because<T>(why: impl Into<String>) -> Result<T, NotShown> {
        Err(NotShown(why.into()))
    }
}

/// Cycles that were overwritten before they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// They are missing before this point of the series.
    pub before: usize,
    /// How many. If the core was restarted there, only those of its new life: how many more the old
    /// life had is unknown.
    pub cycles: u64,
}

/// The times of a thread's cycles in a capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Start of each cycle, s after the capture's zero.
    pub at_s: Vec<f64>,
    /// The cycle's place on the thread's grid of periods: one more than the previous cycle's place,
    /// and one more for each period that was skipped.
    pub slots: Vec<u64>,
    /// The life of the core in which the cycle was: how often the core had been restarted.
    pub lives: Vec<u32>,
    /// The thread's nominal period, s.
    pub period_s: f64,
    /// Where cycles are missing, in their order.
    pub missing: Vec<Missing>,
}

impl Times {
    /// Cycles that are missing, as far as is known.
    pub fn lost(&self) -> u64 {
        self.missing.iter().fold(0, |sum, missing| sum.saturating_add(missing.cycles))
    }

    /// How often the core was restarted between two of these cycles.
    pub fn resets(&self) -> u32 {
        let ends = self.lives.first().zip(self.lives.last());
        ends.map_or(0, |(first, last)| last.saturating_sub(*first))
    }

    /// Whether each cycle follows the one before it. Cycles missing before the first do not matter.
    pub(crate) fn is_whole(&self) -> bool {
        self.missing.iter().all(|missing| missing.before == 0)
    }

    /// An error if cycles of the trace with this name are missing.
    pub(crate) fn whole(&self, name: &str) -> Result<(), NotShown> {
        if self.is_whole() {
            return Ok(());
        }
        let lost = self.lost();
        NotShown::because(match self.resets() {
            0 => format!("{lost} cycles of '{name}' are missing in the capture; take another one"),
            _ => "the core was started again during the capture; take another one".into(),
        })
    }

    /// The number of cycles missing before point `at`, if any. 0 if the number is unknown.
    pub(crate) fn missing_before(&self, at: usize) -> Option<u64> {
        let found = self.missing.binary_search_by_key(&at, |missing| missing.before);
        found.ok().map(|place| self.missing[place].cycles)
    }
}

/// A trace in a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Captured {
    /// The trace.
    pub trace: Trace,
    /// The times of its values. Traces of one thread share them.
    pub times: Arc<Times>,
    /// One value for each time. NaN until the first message.
    pub values: Vec<f64>,
}

impl Captured {
    /// The value at a time: that of the last cycle that had begun then. `None` before the first
    /// cycle, more than two periods after the last, and between cycles if some are missing there.
    pub fn value_at(&self, at_s: f64) -> Option<f64> {
        let times = &*self.times;
        let at = times.at_s.partition_point(|time| *time <= at_s);
        let since_s = at_s - times.at_s[at.checked_sub(1)?];
        let is_over = at == self.values.len() && since_s > 2.0 * times.period_s;
        let is_missing = times.missing_before(at).is_some();
        (!(is_over || is_missing && since_s > 0.0)).then(|| self.values[at - 1])
    }

    /// The values on the even grid of the thread's periods, as transforms need them. In a period
    /// that the thread skipped, its last value is repeated. Returns the values and the number of
    /// such periods.
    ///
    /// # Errors
    /// Cycles are missing, or have no value, or more than a twentieth of the periods were skipped.
    pub fn even(&self) -> Result<(Vec<f64>, usize), NotShown> {
        let (slots, name) = (&self.times.slots, &self.trace.name);
        self.times.whole(name)?;
        if self.values.len() < 2 {
            return NotShown::because(format!("'{name}' has {} cycles here", self.values.len()));
        }
        if let Some(at) = self.values.iter().position(|value| !value.is_finite()) {
            return NotShown::because(format!("cycle {at} of '{name}' has no finite value"));
        }
        // The places come from the core's memory and may be wrong.
        let len = slots[slots.len() - 1].saturating_sub(slots[0]).saturating_add(1) as usize;
        let skipped = len.saturating_sub(self.values.len());
        if skipped > len / 20 {
            return NotShown::because(format!(
                "{skipped} of {len} periods of '{name}' were skipped; the machine is too busy"
            ));
        }
        let mut even = Vec::with_capacity(len);
        for (at, value) in self.values.iter().enumerate() {
            let until = slots.get(at + 1).copied().unwrap_or(slots[at] + 1);
            even.extend((slots[at]..until).map(|_| *value));
        }
        Ok((even, skipped))
    }
}

/// A time window of all traces.
#[derive(Clone, Debug, PartialEq)]
pub struct Capture {
    /// How many captures came before it.
    pub number: u64,
    /// Its zero on the machine's monotonic clock, ns: the time of the trigger, or its beginning if
    /// there was none.
    pub zero_ns: u64,
    /// Whether a trigger started it.
    pub triggered: bool,
    /// Its beginning, s after its zero.
    pub from_s: f64,
    /// Its end, s after its zero.
    pub until_s: f64,
    /// The traces, in the order in which they were chosen.
    pub traces: Vec<Captured>,
}

impl Capture {
    /// Its length.
    pub fn window_s(&self) -> f64 {
        self.until_s - self.from_s
    }

    /// How often the core was restarted in it.
    pub fn resets(&self) -> u32 {
        self.traces.iter().map(|captured| captured.times.resets()).max().unwrap_or(0)
    }

    /// Whether no trace has a value in it.
    pub fn is_empty(&self) -> bool {
        self.traces.iter().all(|captured| captured.values.is_empty())
    }
}
