//! Counters: a directory of named u64 values that one party counts and anyone may read.
//!
//! Counting costs a store: no fence, no read-modify-write. A value is three words, high, low and
//! high again (L. Lamport, "Concurrent reading and writing", CACM 20(11), 1977): the writer stores
//! them from left to right, the reader loads them from right to left and accepts when both highs
//! agree. That is right because a counter never falls.
//!
//! ```text
//! a slot, 128 bytes:  high | low | high again | length of the name | name, 64 bytes | unused
//! ```

use crate::cells::{AtomicU32, Ordering, Region};
use crate::memory::Memory;
use crate::region::{End, Side};
use crate::shape::{Delivery, LINE, Layout};
use crate::{Corrupt, RegionError, Shape, create};

/// Longest name in bytes; a longer one is cut at a character boundary.
pub const NAME_LEN_MAX: usize = 64;
/// Attempts of a read before it calls the counter corrupt. A high word changes once in 2^32 counts,
/// so an honest writer never makes more than one attempt fail.
const LOOKS_MAX: u32 = 8;

/// The shape of a region for this many counters. `names_hash` tells directories of equal length
/// apart; what it is computed from is up to both sides.
pub const fn shape(counters: u32, names_hash: u32) -> Shape {
    Shape {
        delivery: Delivery::Counters,
        message_size: LINE as u32,
        type_hash: names_hash,
        // Past 2^31 the next power does not exist, and 0 is refused as a capacity.
        capacity: match counters.checked_next_power_of_two() {
            Some(capacity) => capacity,
            None => 0,
        },
        layout: Layout::Index,
        parks: false,
    }
}

/// The party that counts.
pub struct Writer<M: Memory> {
    end: End<M>,
}

impl<M: Memory> Writer<M> {
    /// Makes the region with all counters 0, and attaches to it.
    ///
    /// # Errors
    /// The memory is too short or not aligned.
    pub fn create(memory: M, names: &[&str], names_hash: u32) -> Result<Writer<M>, RegionError> {
        let shape = shape(u32::try_from(names.len()).unwrap_or(u32::MAX), names_hash);
        create(&memory, &shape)?;
        let region = Region::new(memory, &shape);
        let mut name_words = [0; NAME_LEN_MAX];
        for (i, slot) in (0..shape.capacity).enumerate() {
            let name = names.get(i).map_or(&b""[..], |name| {
                &name.as_bytes()[..name.floor_char_boundary(NAME_LEN_MAX)]
            });
            name_words.fill(0);
            name_words[..name.len()].copy_from_slice(name);
            let set = |word, value| entry(&region, slot, word).store(value, Ordering::Relaxed);
            set(3, name.len() as u32);
            for (n, chunk) in name_words.chunks_exact(4).enumerate() {
                set(4 + n, u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
            }
        }
        // The release of the epoch covers the names.
        Ok(Writer { end: End::open(region, Side::Writer) })
    }

    /// Attaches to counters that another party made, and goes on counting from their values.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Writer<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        for counter in 0..region.capacity() {
            let word = |word| entry(&region, counter, word);
            let high = word(0).load(Ordering::Relaxed);
            if high != word(2).load(Ordering::Relaxed) {
                // The writer was killed while the high word changed: the low word starts again at
                // 0.
                word(1).store(0, Ordering::Release);
                word(2).store(high, Ordering::Release);
            }
        }
        Ok(Writer { end: End::open(region, Side::Writer) })
    }

    /// Adds `n` to counter `counter`, its place among the names.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn add(&mut self, counter: u32, n: u64) {
        self.raise(counter, self.get(counter).wrapping_add(n));
    }

    /// Raises counter `counter` to `value`; for maxima, and for counts that are kept elsewhere. A
    /// lower value changes nothing.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn raise(&mut self, counter: u32, value: u64) {
        let before = self.get(counter);
        if value <= before {
            return;
        }
        let word = |word| entry(&self.end.region, counter, word);
        let (high, low) = ((value >> 32) as u32, value as u32);
        // From left to right, each a release: a reader that sees one word sees those before it.
        let crosses = high != (before >> 32) as u32;
        if crosses {
            word(0).store(high, Ordering::Release);
        }
        word(1).store(low, Ordering::Release);
        if crosses {
            word(2).store(high, Ordering::Release);
        }
    }

    /// The value of counter `counter`, as its only writer sees it.
    #[inline]
    fn get(&self, counter: u32) -> u64 {
        assert!(counter < self.end.region.capacity(), "there is no counter {counter}");
        // Relaxed: our own words.
        let word = |word| entry(&self.end.region, counter, word).load(Ordering::Relaxed);
        u64::from(word(2)) << 32 | u64::from(word(1))
    }
}

/// A party that reads.
pub struct Reader<M: Memory> {
    end: End<M>,
}

impl<M: Memory> Reader<M> {
    /// Attaches to counters. Any number of readers may.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Reader<M>, RegionError> {
        Ok(Reader { end: End::observe(Region::attach(memory, shape)?) })
    }

    /// The name of counter `counter`, written into `buffer`; empty if there is no such counter.
    ///
    /// # Errors
    /// The writer wrote a length or bytes that are not a valid name.
    pub fn name<'a>(
        &self,
        counter: u32,
        buffer: &'a mut [u8; NAME_LEN_MAX],
    ) -> Result<&'a str, Corrupt> {
        if counter >= self.end.region.capacity() {
            return Ok("");
        }
        // Relaxed: the names are written once, when the counters are created; a reader that
        // attaches during that may see a name in part.
        let word = |word| entry(&self.end.region, counter, word).load(Ordering::Relaxed);
        let len = word(3) as usize;
        for (n, chunk) in buffer.chunks_exact_mut(4).enumerate() {
            chunk.copy_from_slice(&word(4 + n).to_ne_bytes());
        }
        let name = buffer.get(..len).ok_or(Corrupt)?;
        core::str::from_utf8(name).map_err(|_| Corrupt)
    }

    /// The place of the counter with this name.
    pub fn find(&self, name: &str) -> Option<u32> {
        let mut buffer = [0; NAME_LEN_MAX];
        (0..self.end.region.capacity()).find(|&i| self.name(i, &mut buffer) == Ok(name))
    }

    /// The value of counter `counter`, its place among the names.
    ///
    /// # Errors
    /// There is no such counter, or its two high words keep differing: the writer lies or was
    /// killed between them.
    pub fn read(&self, counter: u32) -> Result<u64, Corrupt> {
        if counter >= self.end.region.capacity() {
            return Err(Corrupt);
        }
        for _ in 0..LOOKS_MAX {
            // From right to left, each an acquire: pairs with the releases in `raise`.
            let word = |word| entry(&self.end.region, counter, word).load(Ordering::Acquire);
            let (right, low, left) = (word(2), word(1), word(0));
            if left == right {
                return Ok(u64::from(left) << 32 | u64::from(low));
            }
            core::hint::spin_loop();
        }
        Err(Corrupt)
    }

    /// Whether the party that counts was attached and has closed.
    pub fn is_peer_closed(&self) -> bool {
        self.end.is_peer_closed()
    }
}

/// Word `word` of the slot of counter `counter`.
#[inline(always)]
fn entry<M: Memory>(region: &Region<M>, counter: u32, word: usize) -> &AtomicU32 {
    region.payload_word(region.slot(counter), word)
}

#[cfg(all(test, not(loom)))]
mod tests;
