//! The memory of a thread: one place for each message, all in one allocation that is made before
//! the first cycle. A stamp in front of each message says when the message was written, so that a
//! port needs to look at one place only.

use std::ops::Range;

use zerocopy::IntoBytes;

use crate::message::Message;

/// What a read says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Nothing was ever written; the value is all zero bytes.
    None,
    /// Written in an earlier cycle.
    Old,
    /// Written since the last cycle.
    New,
    /// Commands stayed away too long (or the graph stops): this is the port's safe value.
    Safe,
}

/// The place of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Index of the stamp; the message follows.
    at: u32,
    /// Bytes of the message.
    len: u32,
}

impl Slot {
    /// Words of the message.
    #[inline]
    fn words(self) -> usize {
        self.len.div_ceil(8) as usize
    }

    /// The message's bytes among those of all slots.
    #[inline]
    fn range(self) -> Range<usize> {
        let start = (self.at as usize + 1) * 8;
        start..start + self.len as usize
    }
}

/// Set in the stamp of a safe value that took the place of a command.
const SAFE: u64 = 1 << 63;

/// All slots of a thread. A stamp is the number of the cycle of the last write, plus one.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    words: Vec<u64>,
}

impl Slots {
    /// Adds a slot of `len` bytes, aligned to 8, zeroed.
    ///
    /// # Panics
    /// Past 32 GiB.
    pub(crate) fn add(&mut self, len: u32) -> Slot {
        let (at, words) = (self.words.len(), len.div_ceil(8));
        self.words.resize(at + 1 + words as usize, 0);
        Slot { at: u32::try_from(at).expect("the slots of a thread fit in memory"), len }
    }

    /// Adds a slot for a message with a word in front of it: returns the slot of both, whose bytes
    /// cross a link, and the slot of the message in it. The stamp of the second slot *is* that
    /// word.
    pub(crate) fn add_stamped(&mut self, len: u32) -> (Slot, Slot) {
        let whole = self.add(8 + len);
        (whole, Slot { at: whole.at + 1, len })
    }

    /// The word in front of the message of [`Slots::add_stamped`].
    #[inline]
    pub(crate) fn word_before(&self, message: Slot) -> u64 {
        self.words[message.at as usize]
    }

    /// The message as words; bytes past its length in the last word are zero.
    #[inline]
    pub(crate) fn words(&self, slot: Slot) -> &[u64] {
        &self.words[slot.at as usize + 1..][..slot.words()]
    }

    #[inline]
    pub(crate) fn bytes(&self, slot: Slot) -> &[u8] {
        &self.words.as_bytes()[slot.range()]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        &mut self.words.as_mut_bytes()[slot.range()]
    }

    /// The message as a value. `None` if `T` is not of the slot's size.
    #[inline]
    pub(crate) fn value<T: Message>(&self, slot: Slot) -> Option<&T> {
        T::ref_from_bytes(self.bytes(slot)).ok()
    }

    /// The message to be written in cycle `cycle`. `None` if `T` is not of the slot's size.
    #[inline]
    pub(crate) fn write<T: Message>(&mut self, slot: Slot, cycle: u64) -> Option<&mut T> {
        self.mark_new(slot, cycle);
        T::mut_from_bytes(self.bytes_mut(slot)).ok()
    }

    /// Says that the slot was written in cycle `cycle`.
    #[inline]
    pub(crate) fn mark_new(&mut self, slot: Slot, cycle: u64) {
        self.words[slot.at as usize] = cycle + 1;
    }

    /// Says that the slot holds a safe value now.
    #[inline]
    pub(crate) fn mark_safe(&mut self, slot: Slot) {
        self.words[slot.at as usize] |= SAFE;
    }

    /// Whether the slot holds a message (not a safe value) that was written in cycle `cycle`.
    #[inline]
    pub(crate) fn is_new(&self, slot: Slot, cycle: u64) -> bool {
        self.words[slot.at as usize] == cycle + 1
    }

    /// What a reader in cycle `cycle` is to know of the slot.
    #[inline]
    pub(crate) fn fresh(&self, slot: Slot, cycle: u64) -> Fresh {
        match self.words[slot.at as usize] {
            stamp if stamp & SAFE != 0 => Fresh::Safe,
            0 => Fresh::None,
            stamp if stamp == cycle + 1 => Fresh::New,
            _ => Fresh::Old,
        }
    }

    /// Copies a message to a slot of the same size.
    #[inline]
    pub(crate) fn copy(&mut self, from: Slot, to: Slot) {
        let start = from.at as usize + 1;
        self.words.copy_within(start..start + from.words(), to.at as usize + 1);
    }
}
