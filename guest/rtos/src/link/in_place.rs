//! Messages of queues in place: read part by part, or written directly by their maker. The port has
//! no copy of them.

use core::slice;

use sinew_link::queue::{self, SendError};
use sinew_link::{Corrupt, RawMemory};

use super::{End, LINE, Link, READERS, WRITERS, find, sign};
use crate::{Fault, board, fault};

/// Offset of the slots in a region; see `sinew_link`.
const SLOTS: usize = 640;

/// A message of an input in place, to be read part by part. A peer that breaks the rules can change
/// it between two reads, so check the copied bytes, not the bytes in place.
pub struct Peek<'a> {
    message: queue::Peek<'a, RawMemory>,
    /// Address of its first byte.
    start: usize,
}

impl Peek<'_> {
    /// Size of the message in bytes.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.message.len()
    }

    /// Copies a part of the message, which begins `offset` bytes from its start.
    ///
    /// # Panics
    /// The part reaches past the end of the message.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) {
        let is_inside = offset.checked_add(into.len()).is_some_and(|end| end <= self.len());
        // Checked before cache operations on these bytes.
        assert!(is_inside, "the part reaches past the end of the message");
        board::before_read(self.start + offset, into.len());
        self.message.read_at(offset, into);
    }
}

impl Link {
    /// Whether a queue that the guest reads has a message, within `polls` looks.
    pub(crate) fn has_message(&mut self, polls: u32) -> Result<bool, Fault> {
        let (base, layout) = (self.base(), self.layout);
        let End::QueueIn(reader) = &mut self.end else { return Err(self.no_places()) };
        find(reader, base, layout, polls).map_err(|error| self.bad(error))
    }

    /// Whether a queue that the guest writes has room, within `polls` looks.
    pub(crate) fn has_room(&mut self, polls: u32) -> Result<bool, Fault> {
        let base = self.base();
        let End::QueueOut(writer) = &mut self.end else { return Err(self.no_places()) };
        for _ in 0..polls {
            board::before_read(base + READERS, LINE);
            match writer.place_ahead(0) {
                Ok(_) => return Ok(true),
                Err(SendError::Full) => {}
                Err(SendError::Corrupt) => return Err(self.bad(Corrupt)),
            }
        }
        Ok(false)
    }

    /// Count of messages that wait in a queue that the guest reads.
    pub(crate) fn waiting(&mut self) -> Result<u32, Fault> {
        let (base, layout, capacity) = (self.base(), self.layout, self.row.link.capacity);
        let End::QueueIn(reader) = &mut self.end else { return Err(self.no_places()) };
        let next = reader.next_at();
        let first = (next.start - SLOTS) / next.len();
        for ahead in 0..capacity {
            let slot = SLOTS + (first + ahead as usize) % capacity as usize * next.len();
            let sign = sign(slot..slot + next.len(), layout);
            board::before_read(base + sign.start, sign.len());
            match reader.ahead(ahead) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(ahead),
                Err(error) => return Err(self.bad(error)),
            }
        }
        Ok(capacity)
    }

    /// Lets `read` read the next message of a queue in place, then frees its place; `None`: there
    /// is no message.
    pub(crate) fn read_in_place<T>(
        &mut self,
        read: impl FnOnce(&Peek<'_>) -> T,
    ) -> Result<Option<T>, Fault> {
        let (base, layout, bell) = (self.base(), self.layout, self.bell(0));
        let End::QueueIn(reader) = &mut self.end else { return Err(self.no_places()) };
        let start = base + reader.next_at().start;
        let is_there = find(reader, base, layout, 1);
        let message = match is_there.and_then(|_| reader.peek()) {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.bad(error)),
        };
        let peek = Peek { message, start };
        let done = read(&peek);
        peek.message.release();
        board::after_write(base + READERS, LINE);
        reader.wake(&bell);
        Ok(Some(done))
    }

    /// Lets `write` write the next message of a queue in place, and sends it. Returns whether it
    /// was sent. `write` returns how many bytes it has written; `None`: nothing is sent.
    pub(crate) fn write_in_place(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<bool, Fault> {
        let (base, layout, bell) = (self.base(), self.layout, self.bell(0));
        let End::QueueOut(writer) = &mut self.end else { return Err(self.no_places()) };
        board::before_read(base + READERS, LINE);
        let next = writer.next_at();
        let place = writer.place_ahead(0);
        let (place, claim) = match (place, writer.claim()) {
            (Ok(place), Ok(claim)) => (place, claim),
            (Err(SendError::Full), _) | (_, Err(SendError::Full)) => return Ok(false),
            _ => return Err(self.bad(Corrupt)),
        };
        let start = base + place.start;
        // SAFETY: the place is `place.len()` bytes inside the region, as `attach` has checked, and
        // the region is mapped for ever; any byte is a value. `RawMemory` is promised that all
        // references are to atomics. This reference is gone before the claim is committed, and
        // until then this side reaches the place in no other way: only the writer of a queue
        // touches its payloads, and `claim` borrows the writer. The words that are atomics are
        // before the slots or after the place. Linux must not touch the place before the commit
        // either. If it does so all the same, or gives two rows the same place, then only bytes
        // change that it has asked for itself: `write` must not decide anything by reading back,
        // and the one kind that writes in place does not (guest/player/src/jpeg.rs).
        let bytes = unsafe { slice::from_raw_parts_mut(start as *mut u8, place.len()) };
        let Some(written) = write(bytes) else { return Ok(false) };
        // The message must be in memory before Linux is told.
        board::after_write(start, written.min(place.len()));
        claim.commit();
        let sign = sign(next, layout);
        board::after_write(base + sign.start, sign.len());
        board::after_write(base + WRITERS, LINE);
        writer.wake(&bell);
        Ok(true)
    }

    fn no_places(&self) -> Fault {
        fault!(
            "link '{}' has no places to read or write in; give it delivery: queue",
            self.row.name
        )
    }
}
