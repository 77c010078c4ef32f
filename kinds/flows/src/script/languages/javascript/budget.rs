//! What a call of a script may take: its own limits, and the work of its flow.

use std::cell::Cell;
use std::time::Instant;

use super::Limits;

/// Instructions that count as one unit of a flow's work, as for Lua.
const INSTRUCTIONS_PER_WORK: u64 = 10;
/// The engine lets us look after so many turns of loops and calls. Each turn counts as an
/// instruction, or as many as fit into the time that it took, because a turn may be long.
const TURNS_PER_LOOK: u64 = 10_000;
/// A look counts at most so many times its turns, because others may have had the processor in
/// between.
const LONGER_MAX: u64 = 100;
/// What an instruction takes at most, in a release build.
const INSTRUCTION_NS: u64 = 10;

/// Which limit was met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ScriptStop {
    Time,
    Instructions,
    /// The flow has no work left.
    Work,
}

/// What is left of a call's time and instructions.
pub(super) struct ScriptBudget {
    pub(super) limits: Limits,
    begun: Cell<Instant>,
    looked: Cell<Instant>,
    left: Cell<u64>,
    owed: Cell<u64>,
    payable: Cell<u64>,
    stopped: Cell<Option<ScriptStop>>,
}

impl ScriptBudget {
    pub(super) fn new(limits: &Limits) -> ScriptBudget {
        let now = Instant::now();
        ScriptBudget {
            limits: *limits,
            begun: Cell::new(now),
            looked: Cell::new(now),
            left: Cell::new(u64::MAX),
            owed: Cell::default(),
            payable: Cell::new(u64::MAX),
            stopped: Cell::default(),
        }
    }

    /// A call begins, for a flow with so much work left.
    pub(super) fn begin(&self, work_left: u64) {
        let now = Instant::now();
        self.begun.set(now);
        self.looked.set(now);
        self.left.set(self.limits.instructions_max);
        self.owed.set(0);
        self.payable.set(work_left.saturating_mul(INSTRUCTIONS_PER_WORK));
        self.stopped.set(None);
    }

    /// The call has ended. Gives what the flow is charged for it. What ran since the last look was
    /// not counted, so it is charged by its time.
    pub(super) fn end(&self) -> u64 {
        let rest = self.since_look().min(10 * TURNS_PER_LOOK);
        let beyond = self.stopped.get() == Some(ScriptStop::Work);
        (self.owed.get() + rest) / INSTRUCTIONS_PER_WORK + u64::from(beyond)
    }

    /// The engine has run on. Gives whether it may go on.
    pub(super) fn look(&self) -> bool {
        let took = self.since_look().clamp(TURNS_PER_LOOK, LONGER_MAX * TURNS_PER_LOOK);
        let may = self.spend(took);
        self.looked.set(Instant::now());
        may
    }

    /// How many instructions fit into the time since the last look.
    fn since_look(&self) -> u64 {
        self.looked.get().elapsed().as_nanos() as u64 / INSTRUCTION_NS
    }

    /// The limit that was met.
    pub(super) fn stopped(&self) -> Option<ScriptStop> {
        self.stopped.get()
    }

    /// Spends work of the flow for something other than instructions of the script.
    pub(super) fn spend_work(&self, work: u64) -> bool {
        let instructions = work.saturating_mul(INSTRUCTIONS_PER_WORK);
        self.owed.set(self.owed.get().saturating_add(instructions));
        self.spend(0)
    }

    /// Spends instructions, or what takes as long; `false` once a limit is met.
    pub(super) fn spend(&self, instructions: u64) -> bool {
        let before = self.left.get();
        let left = before.saturating_sub(instructions);
        self.left.set(left);
        self.owed.set(self.owed.get().saturating_add(before - left));
        if self.stopped.get().is_none() {
            self.stopped.set(if left == 0 {
                Some(ScriptStop::Instructions)
            } else if self.begun.get().elapsed() > self.limits.time {
                Some(ScriptStop::Time)
            } else {
                (self.owed.get() > self.payable.get()).then_some(ScriptStop::Work)
            });
        }
        self.stopped.get().is_none()
    }
}
