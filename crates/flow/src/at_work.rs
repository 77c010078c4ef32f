//! Which node of a worker has the packet, and how far the worker has come: by it the crew tells a
//! worker that hangs from one that has much to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// No node has a packet, or one that the crew has no name for.
pub(crate) const NOBODY: u32 = u32::MAX;

/// A stretch that has ended, in the upper half of the word; the lower half is the node.
const STRETCH: u64 = 1 << 32;
const STRETCHES: u64 = !(STRETCH - 1);

/// The node of a worker that has the packet now, by its index in the plan of the start; and how
/// many stretches of work have ended there. The thread of the worker alone writes it.
#[derive(Clone)]
pub(crate) struct AtWork(Arc<Line>);

/// On lines of its own: it is stored for every packet and node, and the next worker's must not lie
/// beside it.
#[repr(align(128))]
struct Line(AtomicU64);

impl AtWork {
    /// Nobody yet.
    pub(crate) fn new() -> AtWork {
        AtWork(Arc::new(Line(AtomicU64::new(NOBODY.into()))))
    }

    /// From now on it is this one. Relaxed: a hint, and nothing that goes with it.
    #[inline]
    pub(crate) fn begin(&self, node: u32) {
        let stretches = self.0.0.load(Ordering::Relaxed) & STRETCHES;
        self.0.0.store(stretches | u64::from(node), Ordering::Relaxed);
    }

    /// A stretch has ended: from now on it is nobody, and the worker has given a sign of life.
    /// Relaxed: as above.
    #[inline]
    pub(crate) fn end(&self) {
        let stretches = self.0.0.load(Ordering::Relaxed) & STRETCHES;
        let ended = stretches.wrapping_add(STRETCH);
        self.0.0.store(ended | u64::from(NOBODY), Ordering::Relaxed);
    }

    /// How many stretches have ended, and who has the packet, for the crew. Relaxed: as above.
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
