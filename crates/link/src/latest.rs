//! Latest: the newest message, from one writer to one reader, wait-free on both sides.
//!
//! The four-slot mechanism of H. R. Simpson, "Four-slot fully asynchronous communication
//! mechanism", IEE Proceedings E 137(1), 1990: two pairs of two slots. The reader says which pair
//! it reads; the writer writes into the other one, into the slot that was not written last. Neither
//! waits, neither retries, and a writer killed in the middle leaves the last message in place.
//!
//! Each slot carries a sequence, by which the reader tells new from old.
//!
//! Saying which pair it reads costs the reader a fence that waits for a line from the writer's
//! core. So up to [`COPIED_FIRST_MAX`] a reader copies first and then looks whether the slot's
//! sequence is still the same, as with a sequence lock. Only if it was overtaken, which takes two
//! messages during one copy, does it say which pair it reads and copy again. The second copy cannot
//! fail. These payloads cross as relaxed atomic words, like those of
//! [`broadcast`](crate::broadcast).

use crate::cells::{At, Ordering, Region, Site, fence, fenced, ordered};
use crate::memory::Memory;
use crate::region::{End, Side};
use crate::wait::{MESSAGE, Os, Wait};
use crate::{Corrupt, RegionError, Shape};

/// The writer's: sequence and pair of the newest message.
pub(crate) const NEWEST: At = At::control(1, 0);
/// The writer's: for each pair, which of its slots was written last.
const LAST: [At; 2] = [At::control(1, 1), At::control(1, 2)];
/// The reader's: the pair that it reads.
const READING: At = At::control(2, 0);

/// Largest message that is copied first. Above it the copy in words costs more than the fence.
pub const COPIED_FIRST_MAX: u32 = if cfg!(all(test, loom)) { 8 } else { 1024 };

/// Sequence of a slot that is being written, or was never written.
const WRITING: u32 = 0;

/// What a read says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Nothing was ever written; the buffer is as it was.
    None,
    /// The same message as at the last read.
    Old,
    /// A message that was not read before.
    New,
}

/// The end that writes.
// Aligned to lines of its own: both ends may be next to each other in memory, and each is written
// at every message.
#[repr(align(128))]
pub struct Writer<M: Memory> {
    end: End<M>,
    /// Sequence of the last message, 31 bits; never 0, which stands for none.
    sequence: u32,
    last: [u32; 2],
    copied_first: bool,
}

impl<M: Memory> Writer<M> {
    /// Attaches to a region that [`create`](crate::create) made. There must be one writer only; a
    /// fresh one goes on where a killed or closed one ended.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Writer<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        // Relaxed: only writers write these, one after the other. A killed one may have named a
        // slot with the next sequence and not yet published it: skip that sequence.
        let sequence = following(region.word(NEWEST).load(Ordering::Relaxed) >> 1);
        let last = LAST.map(|at| region.word(at).load(Ordering::Relaxed) & 1);
        region.arm(MESSAGE);
        let copied_first = is_copied_first(shape);
        Ok(Writer { end: End::open(region, Side::Writer), sequence, last, copied_first })
    }

    /// Sends a message; never waits.
    ///
    /// # Panics
    /// If `message` is not as long as the shape says.
    #[inline]
    pub fn send(&mut self, message: &[u8]) {
        let region = &self.end.region;
        self.sequence = following(self.sequence);
        // Between our last store to `LAST` and the load of `READING`: a reader that missed the
        // store has said which pair it reads, and we see it. Acquire: its copies from the pair that
        // it left are done.
        fenced(Site::LatestFence, Ordering::SeqCst);
        let pair = !region.word(READING).load(Ordering::Acquire) & 1;
        let index = self.last[pair as usize] ^ 1;
        let slot = region.slot(pair << 1 | index);
        let sequence = region.word(region.sequence(pair << 1 | index));
        let release = ordered(Site::LatestPublish, Ordering::Release);
        if self.copied_first {
            sequence.store(WRITING, Ordering::Relaxed);
            // A reader that sees a word of this message sees, after its own fence, that the message
            // is being written.
            fenced(Site::LatestOvertaken, Ordering::Release);
            region.put_words(slot, message);
        } else {
            region.put(slot, message);
        }
        // Release: a reader that sees the sequence sees its payload.
        sequence.store(self.sequence, release);
        // Release: a reader that sees the slot named sees its payload.
        region.word(LAST[pair as usize]).store(index, release);
        self.last[pair as usize] = index;
        // Release: a reader that sees this message announced finds its slot named.
        region.word(NEWEST).store(self.sequence << 1 | pair, release);
        region.hand_over(region.slots(), slot);
    }

    /// Wakes a reader that waits for what was sent or for [`close`](Writer::close). Costs nothing
    /// in a region that does not park.
    #[inline]
    pub fn wake(&self, os: &impl Os) {
        self.end.region.ring(MESSAGE, os);
    }
}

fn is_copied_first(shape: &Shape) -> bool {
    shape.message_size <= COPIED_FIRST_MAX
}

/// The sequence after `sequence`.
#[inline(always)]
fn following(sequence: u32) -> u32 {
    ((sequence + 1) & (u32::MAX >> 1)).max(1)
}

/// The end that reads. If it misses a multiple of 2^31 - 1 messages, it takes the next one for old.
#[repr(align(128))]
pub struct Reader<M: Memory> {
    end: End<M>,
    /// The writer's `NEWEST` when last taken.
    seen: u32,
    /// The slot read last. If it was taken, the writer keeps off it until we take another.
    slot: At,
    /// Sequence of the message in it; 0 if there is none.
    sequence: u32,
    copied_first: bool,
}

impl<M: Memory> Reader<M> {
    /// Attaches to a region that [`create`](crate::create) made. There must be one reader only; to
    /// a fresh one the message that is there is new.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Reader<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        let (slot, copied_first) = (region.slot(0), is_copied_first(shape));
        let end = End::open(region, Side::Reader);
        Ok(Reader { end, seen: 0, slot, sequence: 0, copied_first })
    }

    /// Reads the newest message into `into`; never waits. If it is old, `into` gets it again.
    ///
    /// # Errors
    /// The writer named a slot that does not exist; the message read last stays in place.
    ///
    /// # Panics
    /// If there is a message and `into` is not as long as the shape says.
    #[inline(always)]
    pub fn read(&mut self, into: &mut [u8]) -> Result<Fresh, Corrupt> {
        let region = &self.end.region;
        // Acquire: pairs with the announcement in `send`.
        let newest = region.word(NEWEST).load(ordered(Site::LatestPublish, Ordering::Acquire));
        if !self.copied_first {
            return self.read_large(newest, into);
        }
        if newest == self.seen {
            if self.sequence == 0 {
                return Ok(Fresh::None);
            }
            if self.copy(self.slot, self.sequence, into) {
                return Ok(Fresh::Old);
            }
        } else {
            // The core runs on to here before the announcement has arrived, so the fetch of what
            // the writer wrote starts early too. The writer uses the slots of one pair in turn as
            // long as the reader does not take that pair.
            let pair = self.seen & 1;
            [0, 1].into_iter().for_each(|index| region.warm_to_copy(pair << 1 | index));
            let (slot, sequence) = (self.named(newest & 1)?, newest >> 1);
            if self.copy(slot, sequence, into) {
                (self.seen, self.slot) = (newest, slot);
                return Ok(self.freshness(sequence));
            }
        }
        self.read_taken(into)
    }

    /// Whether something was published since the last read.
    #[inline]
    pub fn has_new(&self) -> bool {
        // Relaxed: a hint; `take` looks again.
        self.end.region.word(NEWEST).load(Ordering::Relaxed) != self.seen
    }

    /// Waits until something is published, the writer has closed, or the deadline is over; returns
    /// whether there is something new.
    pub fn wait(&mut self, wait: Wait, deadline_ns: Option<u64>, os: &impl Os) -> bool {
        let seen = self.seen;
        // Relaxed: a hint; `take` looks again.
        let ready = |region: &Region<M>| region.word(NEWEST).load(Ordering::Relaxed) != seen;
        ready(&self.end.region) || self.end.wait(MESSAGE, wait, deadline_ns, os, ready)
    }

    /// Copies the message with this sequence, which was complete when it was announced; returns
    /// whether the slot still holds it. A later message that may be there by now does not count:
    /// the message announced next could then be an older one.
    #[inline(always)]
    fn copy(&self, slot: At, sequence: u32, into: &mut [u8]) -> bool {
        let region = &self.end.region;
        region.get_words(slot, into);
        // Acquire: if a word came from a later message, the load below sees that.
        fenced(Site::LatestOvertaken, Ordering::Acquire);
        region.word(region.sequence_of(slot)).load(Ordering::Relaxed) == sequence
    }

    /// For a writer that is too fast for `copy`: copies from a slot that the writer stays away
    /// from.
    #[cold]
    #[inline(never)]
    fn read_taken(&mut self, into: &mut [u8]) -> Result<Fresh, Corrupt> {
        // Acquire, with the fence at the start of `send`: a writer that was seen to overwrite the
        // slot had announced a message before that. (The exception is a writer that follows one
        // killed just before it announced a message; then the named slot holds that message.)
        fence(Ordering::Acquire);
        // Acquire: pairs with the announcement in `send`.
        let newest = self.end.region.word(NEWEST).load(Ordering::Acquire);
        let fresh = self.take(newest)?;
        self.end.region.get_words(self.slot, into);
        Ok(fresh)
    }

    // Kept apart from the code for small messages, which is inlined.
    #[inline(never)]
    fn read_large(&mut self, newest: u32, into: &mut [u8]) -> Result<Fresh, Corrupt> {
        let fresh = match newest == self.seen {
            true if self.sequence == 0 => return Ok(Fresh::None),
            true => Fresh::Old,
            false => self.take(newest)?,
        };
        self.end.region.get(self.slot, into);
        Ok(fresh)
    }

    /// Takes the slot of the newest message.
    #[inline(always)]
    fn take(&mut self, newest: u32) -> Result<Fresh, Corrupt> {
        self.seen = newest;
        let pair = newest & 1;
        // Release: our copies from the other pair are done before the writer goes there.
        self.end.region.word(READING).store(pair, Ordering::Release);
        // Either we see what the writer named last in this pair, or it sees that we are here.
        fenced(Site::LatestFence, Ordering::SeqCst);
        self.slot = self.named(pair)?;
        let region = &self.end.region;
        // Relaxed: published together with the payload.
        let sequence = region.word(region.sequence_of(self.slot)).load(Ordering::Relaxed);
        Ok(self.freshness(sequence))
    }

    /// The slot of the pair that was written last.
    #[inline(always)]
    fn named(&self, pair: u32) -> Result<At, Corrupt> {
        let region = &self.end.region;
        // Acquire: the payload of the slot that is named.
        let acquire = ordered(Site::LatestPublish, Ordering::Acquire);
        let index = region.word(LAST[pair as usize]).load(acquire);
        if index > 1 { Err(Corrupt) } else { Ok(region.slot(pair << 1 | index)) }
    }

    /// A message may be read before it is announced; then it counts as old once it is announced.
    #[inline(always)]
    fn freshness(&mut self, sequence: u32) -> Fresh {
        let fresh = if sequence == self.sequence { Fresh::Old } else { Fresh::New };
        self.sequence = sequence;
        fresh
    }
}

crate::region::peer_methods!(Writer, Reader);
crate::region::tuned_method!(Writer, Reader);

#[cfg(all(test, not(loom)))]
mod tests;
