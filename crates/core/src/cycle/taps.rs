//! The messages of a cycle, on their way into its record.

use super::step::{Input, Step};
use crate::slots::{Slot, Slots};
use crate::trace::Record;

/// Where the messages of a thread's taps are; none if nobody observes the run.
pub(crate) struct Taps {
    slots: Vec<Slot>,
    /// Number of the cycle after the last one that was taken.
    next: u64,
}

impl Taps {
    /// The slot of each tap, in the order of [`taps`](crate::trace::taps).
    pub(crate) fn new(slots: impl Iterator<Item = Slot>) -> Taps {
        Taps { slots: slots.collect(), next: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Copies the messages of cycle `cycle`, before later messages take their places. Done once in
    /// a cycle: a cycle that fails does it when its outputs are safe.
    // Not inlined: the cycle's code is faster when it is small.
    #[inline(never)]
    pub(crate) fn take(&mut self, record: &mut Record, slots: &Slots, steps: &[Step], cycle: u64) {
        if self.next == cycle + 1 {
            return;
        }
        self.next = cycle + 1;
        for (at, &slot) in self.slots.iter().enumerate() {
            let message = slots.is_new(slot, cycle).then(|| slots.words(slot));
            let is_closed = |input: &Input| input.closed && input.slot == slot;
            let closed = steps.iter().any(|step| step.inputs.iter().any(is_closed));
            record.tapped(at, message, closed);
        }
    }
}
