//! Bytes of the carve-out that belong to no link: a message refers to them instead of carrying
//! them.

use core::ops::Range;
use core::slice::from_raw_parts;
use core::sync::atomic::AtomicU32;

use sinew_carve_out::DATA;
use sinew_link::Memory;

use crate::{board, guest};

/// Words of the carve-out, shared with Linux. Messages say which side reads or writes them when.
#[derive(Clone, Copy)]
pub struct SharedBytes(&'static [AtomicU32]);

impl SharedBytes {
    /// `len` bytes, `offset` bytes from the start of the carve-out. `None` unless they are after
    /// its tables and inside it, and both are multiples of 4.
    pub fn at(offset: usize, len: usize) -> Option<SharedBytes> {
        let size = guest::get()?.carve_out.memory().len();
        let is_inside = offset >= DATA && offset.checked_add(len).is_some_and(|end| end <= size);
        if !is_inside || !(offset | len).is_multiple_of(4) {
            return None;
        }
        let first = (board::CARVE_OUT + offset) as *const AtomicU32;
        // SAFETY: inside the carve-out, as just checked, which is mapped for ever; aligned, and
        // only used as atomics.
        Some(SharedBytes(unsafe { from_raw_parts(first, len / 4) }))
    }

    /// The words.
    pub fn words(&self) -> &'static [AtomicU32] {
        self.0
    }

    /// Must be called before these words are read: drops their copies in caches of the guest.
    ///
    /// # Panics
    /// They are not inside.
    pub fn before_read(&self, words: Range<usize>) {
        let words = &self.0[words];
        board::before_read(words.as_ptr().addr(), size_of_val(words));
    }

    /// Must be called after these words were written, so that Linux sees them.
    ///
    /// # Panics
    /// They are not inside.
    pub fn after_write(&self, words: Range<usize>) {
        let words = &self.0[words];
        board::after_write(words.as_ptr().addr(), size_of_val(words));
    }
}
