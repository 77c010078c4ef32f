//! Bytes of the carve-out that no link has: what a message refers to instead of carrying it.

use core::ops::Range;
use core::slice::from_raw_parts;
use core::sync::atomic::AtomicU32;

use sinew_carve_out::DATA;
use sinew_link::Memory;

use crate::{board, guest};

/// Words of the carve-out, shared with Linux. Who reads and writes them when, messages say.
#[derive(Clone, Copy)]
pub struct SharedBytes(&'static [AtomicU32]);

impl SharedBytes {
    /// `len` bytes, `offset` bytes from the start of the carve-out. `None` unless they lie behind
    /// its tables and inside it, and both are multiples of 4.
    pub fn at(offset: usize, len: usize) -> Option<SharedBytes> {
        let size = guest::get()?.carve_out.memory().len();
        let is_inside = offset >= DATA && offset.checked_add(len).is_some_and(|end| end <= size);
        if !is_inside || !(offset | len).is_multiple_of(4) {
            return None;
        }
        let first = (board::CARVE_OUT + offset) as *const AtomicU32;
        // SAFETY: inside the carve-out, as just looked, which is mapped for ever; aligned, and only
        // used as atomics.
        Some(SharedBytes(unsafe { from_raw_parts(first, len / 4) }))
    }

    /// The words.
    pub fn words(&self) -> &'static [AtomicU32] {
        self.0
    }

    /// To be called before these words are read: drops what caches of the guest hold of them.
    ///
    /// # Panics
    /// If they are not inside.
    pub fn before_read(&self, words: Range<usize>) {
        let words = &self.0[words];
        board::before_read(words.as_ptr().addr(), size_of_val(words));
    }

    /// To be called after these words were written: Linux sees them then.
    ///
    /// # Panics
    /// If they are not inside.
    pub fn after_write(&self, words: Range<usize>) {
        let words = &self.0[words];
        board::after_write(words.as_ptr().addr(), size_of_val(words));
    }
}
