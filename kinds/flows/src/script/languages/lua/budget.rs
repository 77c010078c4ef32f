//! What a call of a script may take: its own limits, the work of its flow, and a slice of its
//! worker's time, after which it waits for its next turn.

use std::cell::Cell;
use std::time::{Duration, Instant};

use sinew_flow::SLICE;

use super::{INSTRUCTIONS_PER_LOOK, Limits, TEXTS_LEN_MAX};

/// Instructions that count as one unit of a flow's work.
pub(super) const INSTRUCTIONS_PER_WORK: u64 = 10;
/// Most instructions, or what counts as such, between two places where the script can wait for its
/// next turn. Lua cannot stop in the middle of a function of its library, so a longer one is an
/// error. They take some thirty milliseconds.
pub(super) const STRETCH_MAX: u64 = 3_000_000;
/// Bytes of text that count as one instruction.
const BYTES_PER_INSTRUCTION: usize = 16;

/// Which limit was met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    Time,
    Instructions,
    /// One function of the library, or what it calls.
    Stretch,
    /// The flow has no work left.
    Work,
}

/// What is left of a call's time and instructions.
pub(super) struct Budget {
    pub(super) limits: Limits,
    /// When this turn began.
    turned: Cell<Instant>,
    /// How long the turns before it took.
    ran: Cell<Duration>,
    left: Cell<u64>,
    /// Instructions of this turn that the flow has not been charged for yet, and the most that it
    /// can be charged for.
    owed: Cell<u64>,
    payable: Cell<u64>,
    /// Instructions since the script last could wait, or did not need to.
    stretch: Cell<u64>,
    stopped: Cell<Option<Stop>>,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Budget {
        Budget {
            limits: *limits,
            turned: Cell::new(Instant::now()),
            ran: Cell::default(),
            left: Cell::new(limits.instructions_max),
            owed: Cell::default(),
            payable: Cell::new(u64::MAX),
            stretch: Cell::default(),
            stopped: Cell::default(),
        }
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        self.left.set(self.limits.instructions_max);
        self.ran.set(Duration::ZERO);
        self.owed.set(0);
        self.stopped.set(None);
    }

    /// A turn begins, for a flow with so much work left.
    pub(super) fn begin_turn(&self, work_left: u64) {
        self.payable.set(work_left.saturating_mul(INSTRUCTIONS_PER_WORK));
        self.stretch.set(0);
        self.turned.set(Instant::now());
    }

    /// A turn has ended. Gives what the flow is charged for it.
    pub(super) fn end_turn(&self) -> u64 {
        self.ran.set(self.ran.get() + self.turned.get().elapsed());
        let owed = self.owed.get();
        self.owed.set(owed % INSTRUCTIONS_PER_WORK);
        let beyond = self.stopped.get() == Some(Stop::Work);
        owed / INSTRUCTIONS_PER_WORK + u64::from(beyond)
    }

    /// The limit that was met.
    pub(super) fn stopped(&self) -> Option<Stop> {
        self.stopped.get()
    }

    /// Spends what it takes to handle a text of `len` bytes in one call; more than
    /// [`TEXTS_LEN_MAX`] is always an error.
    pub(super) fn handle(&self, len: usize) -> mlua::Result<()> {
        if len > TEXTS_LEN_MAX {
            return Err(mlua::Error::runtime(format!(
                "{len} bytes of text in one call, at most {TEXTS_LEN_MAX}; take it apart"
            )));
        }
        self.spend((len / BYTES_PER_INSTRUCTION) as u64)
    }

    /// Spends work of the flow for something other than instructions of the script.
    pub(super) fn spend_work(&self, work: u64) -> mlua::Result<()> {
        self.owe(work.saturating_mul(INSTRUCTIONS_PER_WORK));
        self.spend(0)
    }

    /// Spends instructions, or what takes as long. Once a limit is met this fails for good.
    pub(super) fn spend(&self, instructions: u64) -> mlua::Result<()> {
        let before = self.left.get();
        let left = before.saturating_sub(instructions);
        self.left.set(left);
        self.owe(before - left);
        self.stretch.set(self.stretch.get() + instructions);
        let look = u64::from(INSTRUCTIONS_PER_LOOK);
        if self.stopped.get().is_none() {
            let has_time = before / look == left / look || self.time() <= self.limits.time;
            self.stopped.set(if left == 0 {
                Some(Stop::Instructions)
            } else if !has_time {
                Some(Stop::Time)
            } else if self.owed.get() > self.payable.get() {
                Some(Stop::Work)
            } else {
                (self.stretch.get() > STRETCH_MAX).then_some(Stop::Stretch)
            });
        }
        match self.stopped.get() {
            Some(_) => Err(mlua::Error::runtime("the code is stopped at a limit")),
            None => Ok(()),
        }
    }

    /// Whether it is another flow's turn. Where the script cannot wait it goes on, but not for
    /// ever.
    pub(super) fn is_due(&self) -> bool {
        let is_due = self.turned.get().elapsed() > SLICE;
        if !is_due {
            self.stretch.set(0);
        }
        is_due
    }

    fn owe(&self, instructions: u64) {
        self.owed.set(self.owed.get().saturating_add(instructions));
    }

    fn time(&self) -> Duration {
        self.ran.get() + self.turned.get().elapsed()
    }
}
