//! What an evaluation may cost. It is kept in variables of the thread that evaluates, because
//! functions of CEL see only their arguments.
//!
//! An expression of CEL always ends, but it may take very long: `l.map(a, l.map(b, l.map(c, 0)))`
//! has a thousand million steps with a list of a thousand, and `[t].map(a, a + a).map(b, b + b)`
//! doubles a text each time. So everything that is looked at has a price, and an evaluation may
//! spend [`WORK_MAX`], or what is left to its flow if that is less.

use std::cell::Cell;

/// Most work of one evaluation: values and parts of 16 bytes of text that it looks at, and what its
/// operators and functions cost, in units of 100 ns at most. An evaluation cannot be interrupted,
/// so this is also the longest that it keeps its worker: ten milliseconds. One that costs more is
/// an error.
pub(crate) const WORK_MAX: u64 = 100_000;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(0) };
    static LEFT_TO_FLOW: Cell<u64> = const { Cell::new(0) };
}

/// One evaluation's work.
pub(super) struct Work {
    /// The work that its flow had left.
    of_flow: u64,
    /// The most that it may spend on what it looks at.
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

    /// How much it has spent, and whether it was cut short. If the flow had too little, the first
    /// is more than the flow had.
    pub(super) fn end(self) -> (u64, bool) {
        let (left, of_flow) = (LEFT.get(), LEFT_TO_FLOW.get());
        let made = self.of_flow - of_flow;
        let is_beyond = of_flow == 0 || (left == 0 && self.own < WORK_MAX);
        let spent = self.own - left + made + u64::from(is_beyond);
        (spent, left == 0 || is_beyond)
    }
}

/// Charges the price of something; `false` if it is too high, and then nothing is left.
pub(super) fn charge(price: u64) -> bool {
    let left = LEFT.get().saturating_sub(price);
    LEFT.set(left);
    left > 0
}

/// Charges the price of what is made of a packet, such as the value of its body; `false` as for
/// `charge`. It does not count as what the evaluation looks at, because the next one gets the same
/// value for nothing.
pub(super) fn make(price: u64) -> bool {
    let left = LEFT_TO_FLOW.get().saturating_sub(price);
    LEFT_TO_FLOW.set(left);
    left > 0
}
