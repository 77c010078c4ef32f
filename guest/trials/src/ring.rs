//! A raw ring: the minimum that carries messages from one writer to one reader, with two positions,
//! acquire and release, and nothing else. Links are compared with it. Both sides compile this file.
//!
//! Words are u32: tail | 31 unused | head | 31 unused | slots. It trusts its peer, does not know
//! whether the peer is there, cannot sleep, and cannot be attached to twice.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

/// Count of messages that it holds.
pub(crate) const SLOTS: u32 = 2;

/// Indices of the positions and of the first slot, in words.
const TAIL: usize = 0;
const HEAD: usize = 32;
const FIRST: usize = 64;

/// Length in bytes of a ring for messages of `size` bytes, a multiple of 4.
pub(crate) const fn ring_len(size: usize) -> usize {
    FIRST * 4 + SLOTS as usize * size
}

/// Keeps caches in step: called with the words before they are read and after they were written.
pub(crate) trait InStep {
    /// These words are read next.
    fn before_read(&self, words: Range<usize>);
    /// These words were written.
    fn after_write(&self, words: Range<usize>);
}

/// For coherent caches: nothing to do.
impl InStep for () {
    fn before_read(&self, _: Range<usize>) {}
    fn after_write(&self, _: Range<usize>) {}
}

/// One end. It only sends or only receives.
pub(crate) struct RingEnd<'a, S> {
    words: &'a [AtomicU32],
    /// Words of a message.
    size: usize,
    /// Position of this side.
    position: u32,
    in_step: S,
}

impl<'a, S: InStep> RingEnd<'a, S> {
    /// An end for messages of `size` bytes, after `position` messages. An unused ring is zero.
    pub(crate) fn resume(
        words: &'a [AtomicU32],
        size: usize,
        in_step: S,
        position: u32,
    ) -> RingEnd<'a, S> {
        RingEnd { words, size: size / 4, position, in_step }
    }

    fn slot(&self) -> Range<usize> {
        let start = FIRST + (self.position % SLOTS) as usize * self.size;
        start..start + self.size
    }

    fn publish(&mut self, place: usize) {
        self.position = self.position.wrapping_add(1);
        // Release: a side that sees the position sees the message, or that its slot is free.
        self.words[place].store(self.position, Ordering::Release);
        self.in_step.after_write(place..place + 1);
    }

    /// Sends a message. Returns whether there was room.
    pub(crate) fn send(&mut self, message: &[u8]) -> bool {
        self.in_step.before_read(HEAD..HEAD + 1);
        // Acquire: pairs with the reader's release, so the reader's copy is done.
        let head = self.words[HEAD].load(Ordering::Acquire);
        if self.position.wrapping_sub(head) == SLOTS {
            return false;
        }
        let slot = self.slot();
        let (parts, _) = message.as_chunks::<4>();
        for (word, part) in self.words[slot.clone()].iter().zip(parts) {
            // Relaxed: published below.
            word.store(u32::from_ne_bytes(*part), Ordering::Relaxed);
        }
        self.in_step.after_write(slot);
        self.publish(TAIL);
        true
    }

    /// Takes a message. Returns whether there was one.
    pub(crate) fn receive(&mut self, message: &mut [u8]) -> bool {
        self.in_step.before_read(TAIL..TAIL + 1);
        // Acquire: pairs with the writer's release, so the message is whole.
        if self.words[TAIL].load(Ordering::Acquire) == self.position {
            return false;
        }
        let slot = self.slot();
        self.in_step.before_read(slot.clone());
        let (parts, _) = message.as_chunks_mut::<4>();
        for (word, part) in self.words[slot].iter().zip(parts) {
            // Relaxed: ordered by the load above.
            *part = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        self.publish(HEAD);
        true
    }
}
