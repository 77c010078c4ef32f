//! Broadcast: one writer that never waits, any number of readers, each of which knows what it
//! lost.
//!
//! Every slot carries a sequence that says which message is in it and whether it is complete. A
//! reader copies, then looks whether the sequence is still the same; if not, it was overtaken and
//! counts the message as lost. Payloads cross as relaxed atomic words, so a copy that is overtaken
//! is not a data race; it is only thrown away (H.-J. Boehm, "Can seqlocks get along with
//! programming language memory models?", MSPC 2012). Readers write nothing into the region, unless
//! they park.

use crate::cells::{Ordering, Region, Site, fenced, ordered};
use crate::memory::Memory;
use crate::region::{End, Side, TAIL, writing};
use crate::wait::{MESSAGE, Os, Wait};
use crate::{Corrupt, RegionError, Shape};

/// Messages that one [`Reader::receive`] steps over before it gives up until the next call: past it
/// the writer is faster than this reader can look.
const STEPS_MAX: u32 = 16;

/// Sequence of a slot whose message `position` is complete. Positions differ by less than 2^31
/// wherever sequences are compared, so losing the top bit is harmless.
const fn complete(position: u32) -> u32 {
    position.wrapping_mul(2).wrapping_add(2)
}

/// The end that writes.
// Aligned to lines of its own: both ends may be next to each other in memory, and each is written
// at every message.
#[repr(align(128))]
pub struct Writer<M: Memory> {
    end: End<M>,
    tail: u32,
}

impl<M: Memory> Writer<M> {
    /// Attaches to a region that [`create`](crate::create) made. There must be one writer only; a
    /// fresh one goes on where a killed or closed one ended.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Writer<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        // Relaxed: only writers write these, one after the other.
        let mut tail = region.word(TAIL).load(Ordering::Relaxed);
        if region.word(region.sequence(tail)).load(Ordering::Relaxed) == complete(tail) {
            // The writer before was killed between the last two stores of `send`.
            tail = tail.wrapping_add(1);
            region.word(TAIL).store(tail, Ordering::Release);
        }
        region.arm(MESSAGE);
        Ok(Writer { end: End::open(region, Side::Writer), tail })
    }

    /// Sends a message; never waits.
    ///
    /// # Panics
    /// If `message` is not as long as the shape says.
    #[inline]
    pub fn send(&mut self, message: &[u8]) {
        let region = &self.end.region;
        let sequence = region.word(region.sequence(self.tail));
        sequence.store(writing(self.tail), Ordering::Relaxed);
        // A reader that sees a word of this message sees, after its own fence, that the message is
        // being written.
        fenced(Site::BroadcastFence, Ordering::Release);
        region.put_words(region.slot(self.tail), message);
        // Release: a reader that sees the message complete sees all its words.
        let release = ordered(Site::BroadcastPublish, Ordering::Release);
        sequence.store(complete(self.tail), release);
        let written = self.tail;
        self.tail = written.wrapping_add(1);
        // Release: a reader that sees a position sees that the message before it is complete.
        region.word(TAIL).store(self.tail, Ordering::Release);
        region.hand_over(region.slots(), region.slot(written));
        region.warm_ahead(region.slots(), written);
    }

    /// Wakes readers that wait for what was sent or for [`close`](Writer::close). Costs nothing in
    /// a region that does not park.
    #[inline]
    pub fn wake(&self, os: &impl Os) {
        self.end.region.ring(MESSAGE, os);
    }

    /// Tells the readers that the writer is gone, as dropping it does. To end their waits at once,
    /// call [`wake`](Writer::wake) after it.
    pub fn close(&mut self) {
        self.end.close();
    }
}

/// A message has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Messages that were overwritten since the one received before; before the first one, only
    /// those that were written after the reader had attached.
    pub lost: u32,
}

/// An end that reads.
#[repr(align(128))]
pub struct Reader<M: Memory> {
    end: End<M>,
    head: u32,
    lost: u32,
    first: First,
}

/// What a reader knows until it has received something: messages written before it attached do not
/// count as lost. Read only when something is lost.
struct First {
    /// The reader's position if it has received nothing; `None` once it is known that it has.
    at: Option<u32>,
    /// The first message that was written after it had attached.
    own: u32,
}

impl First {
    /// How many of `skipped` messages from `head` on count as lost.
    fn losses(&mut self, head: u32, skipped: u32) -> u32 {
        self.at = self.at.filter(|at| *at == head).map(|_| head.wrapping_add(skipped));
        // A difference past half of all positions means that `own` is behind `head`.
        let older = self.own.wrapping_sub(head);
        match self.at {
            Some(_) if older < u32::MAX / 2 => skipped.saturating_sub(older),
            _ => skipped,
        }
    }
}

impl<M: Memory> Reader<M> {
    /// Attaches to a region that [`create`](crate::create) made, and begins with the oldest message
    /// that is still there. Any number of readers may.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Reader<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        // Acquire: the messages before it are complete.
        let tail = region.word(TAIL).load(Ordering::Acquire);
        let mut head = tail.wrapping_sub(region.capacity());
        // Step over slots that nobody has written yet, or that are being overwritten.
        while head != tail
            && region.word(region.sequence(head)).load(Ordering::Relaxed) != complete(head)
        {
            head = head.wrapping_add(1);
        }
        let first = First { at: Some(head), own: tail };
        Ok(Reader { end: End::observe(region), head, lost: 0, first })
    }

    /// Receives the next message that is still there, without blocking. With `None` or an error
    /// `message` may hold pieces of messages. Losses are reported with the next message received.
    ///
    /// # Errors
    /// The writer wrote a position that is behind this reader.
    ///
    /// # Panics
    /// If there is a message and `message` is not as long as the shape says.
    #[inline]
    pub fn receive(&mut self, message: &mut [u8]) -> Result<Option<Arrived>, Corrupt> {
        for _ in 0..STEPS_MAX {
            let region = &self.end.region;
            let word = region.word(region.sequence(self.head));
            // Acquire: a reader that sees the message complete sees all its words.
            let sequence = word.load(ordered(Site::BroadcastPublish, Ordering::Acquire));
            if sequence == complete(self.head) {
                region.get_words(region.slot(self.head), message);
                // Acquire: if a word came from a later message, the load below sees that.
                fenced(Site::BroadcastFence, Ordering::Acquire);
                if word.load(Ordering::Relaxed) == sequence {
                    self.head = self.head.wrapping_add(1);
                    return Ok(Some(Arrived { lost: core::mem::take(&mut self.lost) }));
                }
            } else if is_to_come(sequence, self.head, region.capacity()) {
                return Ok(None);
            }
            self.step_over()?;
        }
        Ok(None)
    }

    /// Waits until there is a message, the writer has closed, or the deadline is over; returns
    /// whether [`receive`](Reader::receive) has something to look at.
    pub fn wait(&mut self, wait: Wait, deadline_ns: Option<u64>, os: &impl Os) -> bool {
        let head = self.head;
        let ready = |region: &Region<M>| {
            // Relaxed: a hint; `receive` looks again.
            let sequence = region.word(region.sequence(head)).load(Ordering::Relaxed);
            !is_to_come(sequence, head, region.capacity())
        };
        ready(&self.end.region) || self.end.wait(MESSAGE, wait, deadline_ns, os, ready)
    }

    /// Whether the writer was attached and has closed.
    pub fn is_peer_closed(&self) -> bool {
        self.end.is_peer_closed()
    }

    /// The message at `head` is overwritten: go to the oldest that the writer has not reached.
    #[cold]
    fn step_over(&mut self) -> Result<(), Corrupt> {
        let region = &self.end.region;
        // Acquire: the messages before it are complete.
        let tail = region.word(TAIL).load(Ordering::Acquire);
        let behind = tail.wrapping_sub(self.head);
        if behind > u32::MAX / 2 {
            return Err(Corrupt);
        }
        // At least one: the slot at `head` is already being reused.
        let skipped = behind.saturating_sub(region.capacity()).max(1);
        let lost = self.first.losses(self.head, skipped);
        self.head = self.head.wrapping_add(skipped);
        self.lost = self.lost.saturating_add(lost);
        Ok(())
    }
}

/// Whether the slot at `head` waits for its message: it holds the message from a lap ago, was never
/// written, or is being written now (a killed writer leaves it in that state).
#[inline(always)]
fn is_to_come(sequence: u32, head: u32, capacity: u32) -> bool {
    let before = head.wrapping_sub(capacity);
    sequence == writing(head) || sequence == complete(before) || sequence == writing(before)
}

crate::region::tuned_method!(Writer, Reader);

#[cfg(all(test, not(loom)))]
mod tests;
