//! Counters: a row of u64 that one party counts and anyone may read.
//!
//! Counting costs a store: no fence, no read-modify-write. A value is three words, high, low and
//! high again (L. Lamport, "Concurrent reading and writing", CACM 20(11), 1977): the writer stores
//! them from left to right, the reader loads them from right to left and accepts when both highs
//! agree. That is right because a counter never falls.
//!
//! ```text
//! a slot, 128 bytes:  high | low | high again | unused
//! ```

use crate::cells::{AtomicU32, Ordering, Region};
use crate::memory::Memory;
use crate::region::{End, Side};
use crate::shape::{Delivery, LINE, Layout};
use crate::{Corrupt, RegionError, Shape};

/// Looks that a read takes before it calls the counter corrupt: a high word changes once in 2^32,
/// so an honest writer never costs more than one.
const LOOKS_MAX: u32 = 8;

/// The shape of a region for so many counters. `type_hash` tells rows of equal length apart; what
/// it is computed from is up to both sides.
pub const fn shape(counters: u32, type_hash: u32) -> Shape {
    Shape {
        delivery: Delivery::Counters,
        message_size: LINE as u32,
        type_hash,
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
    /// Attaches to a region that [`create`](crate::create) made, and goes on counting from the
    /// values that are there.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Writer<M>, RegionError> {
        let region = Region::attach(memory, shape)?;
        for counter in 0..region.capacity() {
            let word = |word| entry(&region, counter, word);
            let high = word(0).load(Ordering::Relaxed);
            if high != word(2).load(Ordering::Relaxed) {
                // Killed while the high word changed: the low one has just begun anew.
                word(1).store(0, Ordering::Release);
                word(2).store(high, Ordering::Release);
            }
        }
        Ok(Writer { end: End::open(region, Side::Writer) })
    }

    /// Adds `n` to counter `counter`, its place in the row.
    ///
    /// # Panics
    /// If there is no such counter.
    #[inline]
    pub fn add(&mut self, counter: u32, n: u64) {
        self.raise(counter, self.get(counter).wrapping_add(n));
    }

    /// Raises counter `counter` to `value`. A lower value changes nothing.
    #[inline]
    fn raise(&mut self, counter: u32, value: u64) {
        let before = self.get(counter);
        if value <= before {
            return;
        }
        let word = |word| entry(&self.end.region, counter, word);
        let (high, low) = ((value >> 32) as u32, value as u32);
        // From left to right, each a release: who sees one sees those before it.
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
pub struct Reader<M: Memory>(Region<M>);

impl<M: Memory> Reader<M> {
    /// Attaches to counters. Any number may.
    ///
    /// # Errors
    /// The region is not of this shape.
    pub fn attach(memory: M, shape: &Shape) -> Result<Reader<M>, RegionError> {
        Region::attach(memory, shape).map(Reader)
    }

    /// The value of counter `counter`, its place in the row.
    ///
    /// # Errors
    /// There is no such counter, or its words stay apart: the writer lies or was killed between
    /// them.
    pub fn read(&self, counter: u32) -> Result<u64, Corrupt> {
        if counter >= self.0.capacity() {
            return Err(Corrupt);
        }
        for _ in 0..LOOKS_MAX {
            // From right to left, each an acquire: pairs with the releases in `raise`.
            let word = |word| entry(&self.0, counter, word).load(Ordering::Acquire);
            let (right, low, left) = (word(2), word(1), word(0));
            if left == right {
                return Ok(u64::from(left) << 32 | u64::from(low));
            }
            core::hint::spin_loop();
        }
        Err(Corrupt)
    }
}

/// Word `word` of the slot of counter `counter`.
#[inline(always)]
fn entry<M: Memory>(region: &Region<M>, counter: u32, word: usize) -> &AtomicU32 {
    region.payload_word(region.slot(counter), word)
}

#[cfg(all(test, not(loom)))]
mod tests;
