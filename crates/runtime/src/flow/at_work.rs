//! Which node of a worker has the packet, for whoever finds that the worker hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// No node has a packet, or one that the crew has no name for.
pub(crate) const NOBODY: u32 = u32::MAX;

/// The node of a worker that has the packet now: its index in the plan of the start.
#[derive(Clone)]
pub(crate) struct AtWork(Arc<Line>);

/// On lines of its own: it is stored for every packet and node, and the next worker's must not lie
/// beside it.
#[repr(align(128))]
struct Line(AtomicU32);

impl AtWork {
    /// Nobody yet.
    pub(crate) fn new() -> AtWork {
        AtWork(Arc::new(Line(AtomicU32::new(NOBODY))))
    }

    /// From now on it is this one. Relaxed: a hint, and nothing that goes with it.
    #[inline]
    pub(super) fn begin(&self, node: u32) {
        self.0.0.store(node, Ordering::Relaxed);
    }

    /// From now on it is nobody.
    #[inline]
    pub(super) fn end(&self) {
        self.begin(NOBODY);
    }

    /// Who it is, for the crew. Relaxed: as above.
    pub(super) fn node(&self) -> u32 {
        self.0.0.load(Ordering::Relaxed)
    }
}
