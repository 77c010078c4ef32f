//! Words that two sides share besides links: states, tables, records.

use crate::cells::{AtomicU32, Ordering};
use crate::memory::Memory;

/// Bytes as words of 32 bits, each written by one side only.
#[derive(Clone, Debug)]
pub struct SharedWords<M>(M);

impl<M: Memory> SharedWords<M> {
    /// The words of these bytes.
    pub fn new(memory: M) -> SharedWords<M> {
        SharedWords(memory)
    }

    /// The memory that holds them.
    pub fn memory(&self) -> &M {
        &self.0
    }

    /// The word `at` bytes from the start. Acquire: a side that reads the word sees everything that
    /// its writer had written before.
    ///
    /// # Panics
    /// If `at` is not a multiple of 4, or outside.
    pub fn get(&self, at: usize) -> u32 {
        self.word(at).load(Ordering::Acquire)
    }

    /// Writes it. Release: pairs with [`SharedWords::get`].
    ///
    /// # Panics
    /// As for [`SharedWords::get`].
    pub fn set(&self, at: usize, value: u32) {
        self.word(at).store(value, Ordering::Release);
    }

    /// Copies bytes out, from a multiple of 4 on. Others may write meanwhile: each word is old or
    /// new.
    ///
    /// # Panics
    /// If `at` is not a multiple of 4, or the bytes are not all inside.
    pub fn read(&self, at: usize, bytes: &mut [u8]) {
        for (place, part) in bytes.chunks_mut(4).enumerate() {
            let word = self.get(at + place * 4).to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }

    /// Writes bytes, from a multiple of 4 on. Where they end within a word, the rest of that word
    /// is written again as it was.
    ///
    /// # Panics
    /// As for [`SharedWords::read`].
    pub fn write(&self, at: usize, bytes: &[u8]) {
        for (place, part) in bytes.chunks(4).enumerate() {
            let mut word = match part.len() {
                4 => [0; 4],
                _ => self.get(at + place * 4).to_le_bytes(),
            };
            word[..part.len()].copy_from_slice(part);
            self.set(at + place * 4, u32::from_le_bytes(word));
        }
    }

    #[cfg(all(test, loom))]
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        &self.0.cells().words[&at]
    }

    #[cfg(not(all(test, loom)))]
    pub(crate) fn word(&self, at: usize) -> &AtomicU32 {
        let is_inside = at.checked_add(4).is_some_and(|end| end <= self.0.len());
        assert!(at.is_multiple_of(4) && is_inside, "a word at {at} of {} bytes", self.0.len());
        // SAFETY: inside and aligned, as just checked; the bytes live as long as `self`, and nobody
        // refers to them except as atomics.
        unsafe { self.0.base().byte_add(at).cast::<AtomicU32>().as_ref() }
    }
}
