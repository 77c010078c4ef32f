//! A queue of ours as a side that works in its slots: messages are written and read where the queue
//! keeps them, part by part, and waited for as the runtime does it.

use std::hint::black_box;

use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_core::transport::{Kernel, tuning};
use sinew_link::queue::{Reader, SendError, Writer};
use sinew_link::{Shape, Wait};

use super::{Gone, Life, Patience, Side};

/// Bytes that are written or read at once, from and to a cache that is near. Loads and stores of
/// smaller parts often agree in the lower 12 bits of their addresses, which makes loads wait:
/// 1 MiB there and back took 231 us in parts of 4 KiB and 192 us in parts of 16 KiB.
const PART_BYTES: usize = 16 << 10;

/// Longest wait of a link without a look at whether the other side lives.
const WAIT_NS_MAX: u64 = 10_000_000;

/// The ends of two queues; they spin.
pub struct InPlace {
    writer: Writer<Region>,
    reader: Reader<Region>,
    bytes: usize,
    /// A part of a message, or all of a small one.
    part: Vec<u8>,
    waits: Waits,
}

impl InPlace {
    /// Attaches to two regions that [`create`](sinew_link::create) made.
    ///
    /// # Errors
    /// A region is not of this shape.
    pub fn attach(shape: &Shape, out: Region, into: Region, life: Life) -> Result<InPlace, Gone> {
        let failed = |error| Gone(format!("cannot attach to the link: {error}"));
        let bytes = shape.message_size as usize;
        Ok(InPlace {
            writer: Writer::attach(out, shape).map_err(failed)?.tuned(tuning(shape)),
            reader: Reader::attach(into, shape).map_err(failed)?.tuned(tuning(shape)),
            bytes,
            part: vec![0; bytes.min(PART_BYTES)],
            waits: Waits::new(life),
        })
    }
}

impl Side for InPlace {
    #[inline]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let InPlace { writer, bytes, part, waits, .. } = self;
        part.as_chunks_mut().0.fill(word.to_ne_bytes());
        let write = |writer: &mut Writer<Region>| match writer.claim() {
            Ok(mut claim) => {
                for at in (0..*bytes).step_by(PART_BYTES) {
                    claim.write_at(at, &part[..PART_BYTES.min(*bytes - at)]);
                }
                claim.commit();
                Some(Ok(()))
            }
            Err(SendError::Full) => None,
            Err(error) => Some(Err(Gone(error.to_string()))),
        };
        waits.until(writer, write, |writer, until_ns| {
            writer.wait_room(Wait::Spin, Some(until_ns), &Kernel)
        })?
    }

    #[inline]
    fn receive(&mut self) -> Result<u64, Gone> {
        let InPlace { reader, bytes, part, waits, .. } = self;
        let read = |reader: &mut Reader<Region>| {
            let peek = match reader.peek() {
                Ok(peek) => peek?,
                Err(corrupt) => return Some(Err(Gone(corrupt.to_string()))),
            };
            let mut all = 0_u64;
            for at in (0..*bytes).step_by(PART_BYTES) {
                let part = &mut part[..PART_BYTES.min(*bytes - at)];
                peek.read_at(at, part);
                all = all.wrapping_add(sum(part));
            }
            black_box(all);
            let mut first = [0; 8];
            peek.read_at(0, &mut first);
            peek.release();
            Some(Ok(u64::from_ne_bytes(first)))
        };
        waits.until(reader, read, |reader, until_ns| {
            reader.wait(Wait::Spin, Some(until_ns), &Kernel)
        })?
    }
}

/// Waits that a link makes by itself until a deadline; each deadline is a look at the life.
#[derive(Debug)]
pub struct Waits {
    life: Life,
    /// The next deadline. It outlasts many waits, so that a wait need not ask for the time first.
    look_ns: u64,
}

impl Waits {
    /// Waits for that other side.
    pub fn new(life: Life) -> Waits {
        Waits { life, look_ns: 0 }
    }

    /// For one wait that polls.
    pub(crate) fn patience(&self) -> Patience<'_> {
        self.life.patience()
    }

    /// Has `wait` wait on `end` until `look` finds something there. `wait` gets the time at which
    /// it has to come back, and says whether a look may find something.
    ///
    /// # Errors
    /// As for [`Patience::look`].
    #[inline(always)]
    pub fn until<E, T>(
        &mut self,
        end: &mut E,
        mut look: impl FnMut(&mut E) -> Option<T>,
        wait: impl Fn(&mut E, u64) -> bool,
    ) -> Result<T, Gone> {
        // What a wait needs is made only for one: a store to the stack for each message takes a
        // place among the stores that wait for the other CPU's lines.
        match look(end) {
            Some(found) => Ok(found),
            None => self.wait_until(end, look, wait),
        }
    }

    #[inline(never)]
    fn wait_until<E, T>(
        &mut self,
        end: &mut E,
        mut look: impl FnMut(&mut E) -> Option<T>,
        wait: impl Fn(&mut E, u64) -> bool,
    ) -> Result<T, Gone> {
        let mut patience = self.life.patience();
        loop {
            if !wait(end, self.look_ns) {
                patience.look()?;
                self.look_ns = now_ns() + WAIT_NS_MAX;
            }
            if let Some(found) = look(end) {
                return Ok(found);
            }
        }
    }
}

/// The sum of all words of a message.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum: u64, bytes| sum.wrapping_add(u64::from_ne_bytes(*bytes)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_link_that_waits_by_itself_looks_at_the_life_at_each_deadline() {
        let ended = Arc::new(AtomicBool::new(false));
        let mut waits = Waits::new(Life::Thread(Arc::clone(&ended)));
        let mut polls = 0;
        let found = waits.until(
            &mut polls,
            |polls| (*polls == 3).then_some("it"),
            |polls, _| {
                *polls += 1;
                *polls == 2
            },
        );
        assert_eq!(found, Ok("it"));
        ended.store(true, Ordering::Release);
        let found = waits.until(&mut polls, |_| None::<()>, |_, _| false);
        assert_eq!(found, Err(Gone("the other side has ended".into())));
    }
}
