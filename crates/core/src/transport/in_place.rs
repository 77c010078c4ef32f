//! Messages that are written and read where the link keeps them, part by part: for those so large
//! that a copy of the whole costs more than the rest of the link.
//!
//! Nobody gets a reference into the region, because a peer may write there at any time: parts are
//! copied in and out.

use sinew_link::queue;

use super::kernel::Kernel;
use crate::fault::Fault;
use crate::sys::Region;

/// The next place for a message, not yet sent; dropped without [`commit`](Claim::commit) nothing
/// is sent.
pub struct Claim<'a>(queue::Claim<'a, Region>);

impl<'a> Claim<'a> {
    pub(super) fn new(claim: queue::Claim<'a, Region>) -> Claim<'a> {
        Claim(claim)
    }

    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes a part of the message, `offset` bytes from its start. What no part covers is an
    /// earlier message, or anything.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn write_at(&mut self, offset: usize, part: &[u8]) {
        self.0.write_at(offset, part);
    }

    /// Sends the message and wakes a reader that sleeps.
    pub fn commit(self) {
        self.0.commit_and_wake(&Kernel);
    }
}

/// The next message, where it stands; dropped without [`release`](Peek::release) it stays the
/// next.
pub struct Peek<'a>(queue::Peek<'a, Region>);

impl<'a> Peek<'a> {
    pub(super) fn new(peek: queue::Peek<'a, Region>) -> Peek<'a> {
        Peek(peek)
    }

    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies a part of the message, which begins `offset` bytes from its start. A writer that
    /// breaks the rules can change it between two calls: check what was copied, not what stands
    /// there.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) {
        self.0.read_at(offset, into);
    }

    /// Frees the place of the message and wakes a writer that waits for room.
    pub fn release(self) {
        self.0.release_and_wake(&Kernel);
    }
}

/// What a link says that has no such places.
pub(super) fn unsupported() -> Fault {
    crate::fault!(
        "this link cannot be written or read in place; give it 'transport: shared_memory' (or \
         in_process), 'sync: lock_free' and 'delivery: queue'"
    )
}
