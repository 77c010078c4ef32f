//! How a machine stopped after a fault.

use serde::{Deserialize, Serialize};

use super::machine::Moment;
use super::table::Rule;

/// How a machine stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stop {
    /// From the fault to the start of the first cycle after which no actuator follows a command any
    /// more.
    pub safe_ns: Option<u64>,
    /// Cycles of the machine that began since the fault, up to and including that one.
    pub safe_cycles: Option<u64>,
    /// Periods that the kernel lost meanwhile: they are part of the time, but not of the cycles.
    pub held_up_periods: u64,
    /// From the fault until nothing moved and all brakes were closed.
    pub still_ns: Option<u64>,
    /// How far each axis moved from the fault on.
    pub moved_rad: Vec<f64>,
    /// Whether any actuator held a command when the fault came.
    #[serde(skip)]
    pub(super) followed: bool,
}

impl Stop {
    /// A part that is only late sends a command once more before its own fault stops it:
    /// `comes_back`.
    pub(super) fn of(moments: &[Moment], struck_ns: u64, comes_back: bool) -> Stop {
        let first = moments.partition_point(|moment| moment.start_ns <= struck_ns);
        let (before, after) = moments.split_at(first);
        // Safe means for good, until the end of the records.
        let obeyed = after.iter().rposition(|moment| moment.follows);
        let safe = Some(obeyed.map_or(0, |at| at + 1)).filter(|&at| at < after.len());
        let first = || after.iter().position(|moment| !moment.follows);
        let safe = safe.and_then(|at| if comes_back { first() } else { Some(at) });
        let held_up = |safe| after[..=safe].iter().map(|it: &Moment| it.skipped).sum();
        let since_ns = |moment: &Moment| moment.start_ns - struck_ns;
        // Still means for good.
        let moving = after.iter().rposition(|moment| !moment.is_still());
        let still = after.get(moving.map_or(0, |at| at + 1));
        let axes = moments.first().map_or(0, |moment| moment.position_rad.len());
        let path = before.last().into_iter().chain(after).collect::<Vec<_>>();
        let moved = |axis: usize| {
            let steps = path.windows(2);
            steps.map(|pair| (pair[1].position_rad[axis] - pair[0].position_rad[axis]).abs()).sum()
        };
        Stop {
            safe_ns: safe.map(|at| since_ns(&after[at])),
            safe_cycles: safe.map(|at| at as u64 + 1),
            held_up_periods: safe.map_or(0, held_up),
            still_ns: still.map(since_ns),
            moved_rad: (0..axes).map(moved).collect(),
            followed: before.last().is_some_and(|moment| moment.is_commanded),
        }
    }

    /// Adds another machine's stop; the worse value counts.
    pub(super) fn add(&mut self, other: &Stop) {
        self.safe_ns = self.safe_ns.max(other.safe_ns);
        self.safe_cycles = self.safe_cycles.max(other.safe_cycles);
        self.held_up_periods = self.held_up_periods.max(other.held_up_periods);
        self.still_ns = self.still_ns.max(other.still_ns);
        self.moved_rad.extend(&other.moved_rad);
    }

    /// The longest way of any axis.
    pub fn moved_rad_max(&self) -> Option<f64> {
        self.moved_rad.iter().copied().max_by(f64::total_cmp)
    }

    pub(super) fn failures(&self, rule: Rule) -> Vec<String> {
        let mut failures = vec![];
        match (self.safe_cycles, rule.cycles()) {
            (None, _) => failures.push("the machine never got its safe output".into()),
            (Some(cycles), Some(bar)) if cycles > bar => failures.push(format!(
                "safe output after {cycles} cycles of the machine; the bar is {bar}: {}",
                rule.words()
            )),
            _ => {}
        }
        if self.still_ns.is_none() {
            failures
                .push("it still moved, or a brake was open, when its last cycle was over".into());
        }
        failures
    }
}
