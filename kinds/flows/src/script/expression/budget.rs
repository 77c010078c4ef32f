//! What an evaluation may cost, on the thread that evaluates: functions of CEL see nothing but
//! their arguments.
//!
//! CEL always ends, but an end may be far: `l.map(a, l.map(b, l.map(c, 0)))` has a thousand million
//! steps with a list of a thousand, and `[t].map(a, a + a).map(b, b + b)` doubles a text each time.
//! So everything that is looked at has a price, and an evaluation has [`WORK_MAX`] to spend, or
//! what is left to its flow.

use std::cell::Cell;

/// Most work of one evaluation: values and parts of 16 bytes of text that it looks at, and what its
/// signs and functions cost, in units of 100 ns at most. Nobody can interrupt one, so this is also
/// the longest that one keeps its worker: ten milliseconds. Past it the evaluation is an error.
pub(crate) const WORK_MAX: u64 = 100_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static LEFT_TO_FLOW: Cell<u64> = const { Cell::new(0) };
}

/// One evaluation's work.
pub(super) struct Work {
    /// What its flow had.
    of_flow: u64,
    /// What it may look at.
    own: u64,
}

impl Work {
    /// Begins an evaluation for a flow with so much work left.
    pub(super) fn begin(of_flow: u64) -> Work {
        let own = of_flow.min(WORK_MAX);
        LEFT.set(own);
        LEFT_TO_FLOW.set(of_flow);
        Work { of_flow, own }
    }

    /// How much it has spent, more than the flow had if that was too little; and whether it was cut
    /// short.
    pub(super) fn end(self) -> (u64, bool) {
        let (left, of_flow) = (LEFT.get(), LEFT_TO_FLOW.get());
        let made = self.of_flow - of_flow;
        let is_beyond = of_flow == 0 || (left == 0 && self.own < WORK_MAX);
        let spent = self.own - left + made + u64::from(is_beyond);
        (spent, left == 0 || is_beyond)
    }
}

/// Takes the price of something; `false` if it is too high, and then nothing is left at all.
pub(super) fn charge(price: u64) -> bool {
    let left = LEFT.get().saturating_sub(price);
    LEFT.set(left);
    left > 0
}

/// Takes the price of what is made of a packet, such as the value of its body; `false` as there.
/// What one evaluation may look at says nothing of it, for whoever looks next has it for nothing.
pub(super) fn make(price: u64) -> bool {
    let left = LEFT_TO_FLOW.get().saturating_sub(price);
    LEFT_TO_FLOW.set(left);
    left > 0
}
