//! Which node of a worker has the packet, and how far the worker has come. By this the crew tells a
//! worker that hangs from one that has much to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No node has a packet, or the node that has it is unknown to the crew.
pub(crate) const NOBODY: u32 = u32::MAX;

/// One ended stretch of work. The upper half of the word counts these; the lower half is the node.
const STRETCH: u64 = 1 << 32;
const STRETCHES: u64 = !(STRETCH - 1);

/// The node of a worker that has the packet now, by its index in the plan of the start; and how
/// many stretches of work the worker has ended. Only the worker's thread writes it.
#[derive(Clone)]
pub(crate) struct AtWork(Arc<Line>);

/// On cache lines of its own: it is stored for every packet and node, and must not share a line
/// with the next worker's.
#[repr(align(128))]
struct Line(AtomicU64);

impl AtWork {
    /// No node has a packet yet.
    pub(crate) fn new() -> AtWork {
        AtWork(Arc::new(Line(AtomicU64::new(NOBODY.into()))))
    }

    /// From now on this node has the packet. Relaxed: it is a hint, and no other data goes with it.
    #[inline]
    pub(crate) fn begin(&self, node: u32) {
        let stretches = self.0.0.load(Ordering::Relaxed) & STRETCHES;
        self.0.0.store(stretches | u64::from(node), Ordering::Relaxed);
    }

    /// A stretch has ended: no node has a packet now, and the worker has given a sign of life.
    /// Relaxed: as in `begin`.
    #[inline]
    pub(crate) fn end(&self) {
        let stretches = self.0.0.load(Ordering::Relaxed) & STRETCHES;
        let ended = stretches.wrapping_add(STRETCH);
        self.0.0.store(ended | u64::from(NOBODY), Ordering::Relaxed);
    }

    /// How many stretches have ended, and which node has the packet, for the crew. Relaxed: as in
    /// `begin`.
    pub(crate) fn look(&self) -> (u32, u32) {
        let word = self.0.0.load(Ordering::Relaxed);
        ((word / STRETCH) as u32, (word % STRETCH) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_that_ends_is_a_sign_of_life_and_a_node_that_begins_is_none() {
        let at_work = AtWork::new();
        assert_eq!(at_work.look(), (0, NOBODY));
        at_work.begin(3);
        at_work.begin(4);
        assert_eq!(at_work.look(), (0, 4));
        at_work.end();
        assert_eq!(at_work.look(), (1, NOBODY));
        at_work.begin(5);
        assert_eq!(at_work.look(), (1, 5));
    }
}
