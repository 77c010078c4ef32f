//! Queue: every message, in order, from one writer to one reader.
//!
//! Positions are u32 that wrap; the slot of a position is its low bits. Both sides run without
//! waiting for each other, with loads and stores only. In the index layout the writer's tail says
//! what can be read; in the sequence layout each slot says it itself, in the cache line of the
//! payload, and the tail is only kept for a writer that comes after a killed one. In both the
//! reader's head says what is free, and the writer rereads it only when the queue looks full.
//!
//! A killed side leaves whole messages only. A message that a killed writer had not yet published
//! is not there; one that a killed reader had copied but not yet released is delivered again.

use core::fmt;
use core::ops::Range;

use crate::cells::{At, Ordering, Region, Site, Slots, ordered};
use crate::memory::Memory;
use crate::region::{End, HEAD, Side, TAIL, last_lap};
use crate::wait::{MESSAGE, Os, ROOM, Wait};
use crate::{Corrupt, RegionError, Shape};

/// Why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The reader has to make room first.
    Full,
    /// The reader wrote a position outside the queue.
    Corrupt,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Full => f.write_str("the queue is full; raise capacity or read faster"),
            SendError::Corrupt => Corrupt.fmt(f),
        }
    }
}

impl core::error::Error for SendError {}

/// The end that writes.
// Aligned to lines of its own: both ends may be next to each other in memory, and each is written
// at every message.
#[repr(align(128))]
pub struct Writer<M: Memory> {
    end: End<M>,
    tail: u32,
    /// The reader's head as last read.
    head: u32,
    /// The tail at which it last found no room.
    full_at: u32,
}

impl<M: Memory> Writer<M> {
    /// Attaches to a region that [`create`](crate::create) made. There must be one writer only; a
    /// fresh one goes on where a killed or closed one ended.
    ///
    /// # Errors
    /// The region is not of this shape, or its positions contradict each other.
    pub fn attach(memory: M, shape: &Shape) -> Result<Writer<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        // Acquire: a reader's copies come before its head, a killed writer's stores before ours.
        let mut tail = region.word(TAIL).load(Ordering::Acquire);
        let next = tail.wrapping_add(1);
        if region.sequenced && region.word(region.sequence(tail)).load(Ordering::Acquire) == next {
            // Killed between the two stores of `publish`.
            tail = next;
            region.word(TAIL).store(tail, Ordering::Relaxed);
        }
        let head = region.word(HEAD).load(Ordering::Acquire);
        if tail.wrapping_sub(head) > region.capacity() {
            return Err(RegionError::Positions { tail, head, capacity: region.capacity() });
        }
        region.arm(MESSAGE);
        Ok(Writer {
            end: End::open(region, Side::Writer),
            tail,
            head,
            full_at: tail.wrapping_sub(1),
        })
    }

    /// Sends a message, without blocking. An array as `message` is copied as a constant size.
    ///
    /// # Errors
    /// The queue is full or its reader lies; the message is not sent.
    ///
    /// # Panics
    /// If `message` is not as long as the shape says.
    #[inline(always)]
    pub fn try_send(&mut self, message: &[u8]) -> Result<(), SendError> {
        self.room()?;
        let region = &self.end.region;
        if region.sequenced {
            self.put(region.slots(), message);
        } else {
            self.put(region.index_slots(message.len()), message);
        }
        Ok(())
    }

    /// The next slot, to be written in place.
    ///
    /// # Errors
    /// As [`try_send`](Writer::try_send).
    #[inline]
    pub fn claim(&mut self) -> Result<Claim<'_, M>, SendError> {
        self.room()?;
        let at = self.end.region.slot(self.tail);
        Ok(Claim { writer: self, at })
    }

    /// Where in the region the message `ahead` messages after the next one will be: for a caller
    /// that fills several places at a time, through pointers. This place, and each one before it,
    /// is this side's until a [`Claim`] is committed for it.
    ///
    /// # Errors
    /// As [`try_send`](Writer::try_send); [`SendError::Full`] also past the capacity.
    pub fn place_ahead(&mut self, ahead: u32) -> Result<Range<usize>, SendError> {
        self.room_for(ahead)?;
        let Range { start, .. } = self.end.region.extent(self.tail.wrapping_add(ahead));
        Ok(start..start + self.end.region.message_size)
    }

    /// Messages that the queue holds.
    pub fn capacity(&self) -> u32 {
        self.end.region.capacity()
    }

    /// Where in the region the next message is written, with its sequence: for a caller that keeps
    /// caches coherent by hand.
    pub fn next_at(&self) -> Range<usize> {
        self.end.region.extent(self.tail)
    }

    /// Waits until there is room, the reader has closed, or the deadline is over; returns whether
    /// [`try_send`](Writer::try_send) has an answer other than full.
    // A writer seldom waits where speed matters, and the loop of the caller is faster when it is
    // small.
    #[inline(never)]
    pub fn wait_room(&mut self, wait: Wait, deadline_ns: Option<u64>, os: &impl Os) -> bool {
        let (tail, capacity) = (self.tail, self.end.region.capacity());
        // Relaxed: `room` looks again, with acquire.
        let has_room = |region: &Region<M>| {
            tail.wrapping_sub(region.word(HEAD).load(Ordering::Relaxed)) != capacity
        };
        let polls_on = self.full_at == tail && wait.polls();
        !polls_on && has_room(&self.end.region)
            || self.end.wait(ROOM, wait, deadline_ns, os, has_room)
    }

    /// Wakes a reader that waits for what was sent or for [`close`](Writer::close). Costs nothing
    /// in a region that does not park.
    #[inline]
    pub fn wake(&self, os: &impl Os) {
        self.end.region.ring(MESSAGE, os);
    }

    #[inline(always)]
    fn room(&mut self) -> Result<(), SendError> {
        self.room_for(0)
    }

    /// Whether there is room for a message, and for `ahead` messages before it.
    #[inline(always)]
    fn room_for(&mut self, ahead: u32) -> Result<(), SendError> {
        let region = &self.end.region;
        let capacity = region.capacity();
        let has_room = |fill: u32| fill < capacity && capacity - fill > ahead;
        if !has_room(self.tail.wrapping_sub(self.head)) {
            // Acquire: the reader's copies are done before we overwrite.
            self.head = region.word(HEAD).load(ordered(Site::QueueFree, Ordering::Acquire));
            let fill = self.tail.wrapping_sub(self.head);
            if !has_room(fill) {
                if fill >= capacity {
                    self.full_at = self.tail;
                }
                return Err(if fill <= capacity { SendError::Full } else { SendError::Corrupt });
            }
        }
        Ok(())
    }

    /// Writes and publishes the next message. It is compiled for each layout separately, so that
    /// for the index layout nothing depends on the layout or on an unknown length.
    #[inline(always)]
    fn put(&mut self, slots: Slots, message: &[u8]) {
        let at = slots.at(self.tail);
        self.end.region.put(at, message);
        self.publish(slots, at);
    }

    #[inline(always)]
    fn publish(&mut self, slots: Slots, at: At) {
        let region = &self.end.region;
        let next = self.tail.wrapping_add(1);
        // Release: a reader that sees the position sees the payload.
        let release = ordered(Site::QueuePublish, Ordering::Release);
        if region.sequenced {
            region.word(slots.sequence_of(at)).store(next, release);
            // Relaxed: for onlookers, and for the writer after us, which looks at the sequence too.
            region.word(TAIL).store(next, Ordering::Relaxed);
        } else {
            region.word(TAIL).store(next, release);
        }
        region.hand_over(slots, at);
        region.warm_ahead(slots, self.tail);
        self.tail = next;
    }
}

/// A slot to be written in place. If it is dropped without [`commit`](Claim::commit), nothing is
/// sent.
pub struct Claim<'a, M: Memory> {
    writer: &'a mut Writer<M>,
    at: At,
}

impl<M: Memory> Claim<'_, M> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.writer.end.region.message_size
    }

    /// Writes a part of the message, `offset` bytes from its start. Bytes that no part covers hold
    /// an earlier message, or anything.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    #[inline]
    pub fn write_at(&mut self, offset: usize, part: &[u8]) {
        self.writer.end.region.put_part(self.at, offset, part);
    }

    /// Sends the message.
    #[inline]
    pub fn commit(self) {
        let Claim { writer, at } = self;
        writer.publish(writer.end.region.slots(), at);
    }

    /// Sends the message, then wakes as [`Writer::wake`] does.
    #[inline]
    pub fn commit_and_wake(self, os: &impl Os) {
        let Claim { writer, at } = self;
        writer.publish(writer.end.region.slots(), at);
        writer.wake(os);
    }
}

/// The end that reads.
#[repr(align(128))]
pub struct Reader<M: Memory> {
    end: End<M>,
    head: u32,
    /// Messages are known to be there up to this position.
    tail: u32,
    /// The head at which it last found no message.
    empty_at: u32,
}

impl<M: Memory> Reader<M> {
    /// Attaches to a region that [`create`](crate::create) made. There must be one reader only; a
    /// fresh one goes on where a killed or closed one ended.
    ///
    /// # Errors
    /// The region is not of this shape, or its positions contradict each other.
    pub fn attach(memory: M, shape: &Shape) -> Result<Reader<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        // Acquire: what a reader before us freed stays freed.
        let head = region.word(HEAD).load(Ordering::Acquire);
        let tail = region.word(TAIL).load(Ordering::Acquire);
        // In the sequence layout a writer may not have stored the tail for a message that was
        // already read.
        let ahead = head == tail.wrapping_add(1) && region.sequenced;
        if tail.wrapping_sub(head) > region.capacity() && !ahead {
            return Err(RegionError::Positions { tail, head, capacity: region.capacity() });
        }
        region.arm(ROOM);
        let end = End::open(region, Side::Reader);
        Ok(Reader { end, head, tail: head, empty_at: head.wrapping_sub(1) })
    }

    /// Receives a message into `message`, without blocking; `false`: there is none.
    ///
    /// # Errors
    /// The writer wrote a position outside the queue.
    ///
    /// # Panics
    /// If there is a message and `message` is not as long as the shape says.
    #[inline(always)]
    pub fn try_receive(&mut self, message: &mut [u8]) -> Result<bool, Corrupt> {
        let ready = self.ready()?;
        if ready {
            let region = &self.end.region;
            if region.sequenced {
                region.get(region.slot(self.head), message);
            } else {
                let slots = region.index_slots(message.len());
                region.get(slots.at(self.head), message);
                region.warm_to_read(slots, self.head, self.tail);
            }
            self.release();
        }
        Ok(ready)
    }

    /// The next message, to be read in place.
    ///
    /// # Errors
    /// As [`try_receive`](Reader::try_receive).
    #[inline]
    pub fn peek(&mut self) -> Result<Option<Peek<'_, M>>, Corrupt> {
        let ready = self.ready()?;
        Ok(ready.then_some(Peek { reader: self }))
    }

    /// The message `ahead` messages after the next one, to be read in place before its turn;
    /// `None`: it is not there yet.
    ///
    /// # Errors
    /// As [`try_receive`](Reader::try_receive).
    pub fn ahead(&mut self, ahead: u32) -> Result<Option<Ahead<'_, M>>, Corrupt> {
        let is_there = self.ready_for(ahead)?;
        let at = self.end.region.slot(self.head.wrapping_add(ahead));
        Ok(is_there.then_some(Ahead { reader: self, at }))
    }

    /// Where in the region the next message is or will be, with its sequence: for a caller that
    /// keeps caches coherent by hand.
    pub fn next_at(&self) -> Range<usize> {
        self.end.region.extent(self.head)
    }

    /// Waits until there is a message, the writer has closed, or the deadline is over; returns
    /// whether [`try_receive`](Reader::try_receive) has an answer other than none.
    #[inline]
    pub fn wait(&mut self, wait: Wait, deadline_ns: Option<u64>, os: &impl Os) -> bool {
        let (region, head) = (&self.end.region, self.head);
        // In either layout one word says whether a message has come.
        let (word, none) = match region.sequenced {
            true => (region.sequence(head), last_lap(head, region.capacity())),
            false => (TAIL, head),
        };
        // Relaxed: `ready` looks again, with acquire.
        let has_come = |region: &Region<M>| region.word(word).load(Ordering::Relaxed) != none;
        // A look at once would find only the single message that has come since, again and again:
        // in a long queue of 48 B messages that took 18 ns a message instead of 11.
        let polls_on = self.empty_at == head && wait.polls();
        self.tail != head
            || !polls_on && has_come(region)
            || self.end.wait(MESSAGE, wait, deadline_ns, os, has_come)
    }

    /// Wakes a writer that waits for room. Costs nothing in a region that does not park.
    #[inline]
    pub fn wake(&self, os: &impl Os) {
        self.end.region.ring(ROOM, os);
    }

    /// Whether there is a message at `head`.
    #[inline(always)]
    fn ready(&mut self) -> Result<bool, Corrupt> {
        if self.tail != self.head {
            return Ok(true);
        }
        self.tail = self.look(self.head)?;
        if self.tail == self.head {
            self.empty_at = self.head;
        }
        Ok(self.tail != self.head)
    }

    /// Whether the message `ahead` messages after the one at `head` is there.
    fn ready_for(&mut self, ahead: u32) -> Result<bool, Corrupt> {
        if !self.ready()? || ahead >= self.end.region.capacity() {
            return Ok(false);
        }
        while self.tail.wrapping_sub(self.head) <= ahead {
            let seen = self.look(self.tail)?;
            if seen == self.tail {
                return Ok(false);
            }
            self.tail = seen;
        }
        Ok(true)
    }

    /// Messages are known to be there up to `position`; returns up to where they are now. The
    /// layouts differ only here, where no further message is known.
    #[inline(always)]
    fn look(&self, position: u32) -> Result<u32, Corrupt> {
        let region = &self.end.region;
        // Acquire: a reader that sees the position sees the payload.
        let acquire = ordered(Site::QueuePublish, Ordering::Acquire);
        let (seen, is_whole) = if region.sequenced {
            let sequence = region.word(region.sequence(position)).load(acquire);
            match sequence == last_lap(position, region.capacity()) {
                true => (position, true),
                false => (sequence, sequence == position.wrapping_add(1)),
            }
        } else {
            let tail = region.word(TAIL).load(acquire);
            let most = region.capacity() - position.wrapping_sub(self.head);
            (tail, tail.wrapping_sub(position) <= most)
        };
        if is_whole { Ok(seen) } else { Err(Corrupt) }
    }

    #[inline(always)]
    fn release(&mut self) {
        self.head = self.head.wrapping_add(1);
        // Release: the copy is done before the writer overwrites.
        let release = ordered(Site::QueueFree, Ordering::Release);
        self.end.region.word(HEAD).store(self.head, release);
    }
}

/// A message to be read in place. If it is dropped without [`release`](Peek::release), it stays the
/// next one.
pub struct Peek<'a, M: Memory> {
    reader: &'a mut Reader<M>,
}

impl<M: Memory> Peek<'_, M> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    #[inline]
    pub fn len(&self) -> usize {
        self.reader.end.region.message_size
    }

    /// Reads a part of the message, `offset` bytes from its start.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    #[inline]
    pub fn read_at(&self, offset: usize, part: &mut [u8]) {
        self.reader.end.region.get_part(self.at(), offset, part);
    }

    /// Frees the slot.
    #[inline]
    pub fn release(self) {
        self.reader.release();
    }

    /// Frees the slot, then wakes as [`Reader::wake`] does.
    #[inline]
    pub fn release_and_wake(self, os: &impl Os) {
        self.reader.release();
        self.reader.wake(os);
    }

    #[inline]
    fn at(&self) -> At {
        self.reader.end.region.slot(self.reader.head)
    }
}

/// A message that is read in place before its turn; it stays where it is.
pub struct Ahead<'a, M: Memory> {
    reader: &'a Reader<M>,
    at: At,
}

impl<M: Memory> Ahead<'_, M> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.reader.end.region.message_size
    }

    /// Reads a part of the message, `offset` bytes from its start.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn read_at(&self, offset: usize, part: &mut [u8]) {
        self.reader.end.region.get_part(self.at, offset, part);
    }
}

crate::region::peer_methods!(Writer, Reader);
crate::region::tuned_method!(Writer, Reader);

#[cfg(all(test, not(loom)))]
mod tests;
