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
    #[inline(always)]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let InPlace { writer, bytes, part, waits, .. } = self;
        part.as_chunks_mut().0.fill(word.to_ne_bytes());
        loop {
            match writer.claim() {
                Ok(mut claim) => {
                    for at in (0..*bytes).step_by(PART_BYTES) {
                        claim.write_at(at, &part[..PART_BYTES.min(*bytes - at)]);
                    }
                    claim.commit();
                    return Ok(());
                }
                Err(SendError::Full) => {}
                Err(error) => return Err(Gone(error.to_string())),
            }
            waits.wait(|until_ns| writer.wait_room(Wait::Spin, Some(until_ns), &Kernel))?;
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u64, Gone> {
        let InPlace { reader, bytes, part, waits, .. } = self;
        loop {
            if let Some(peek) = reader.peek().map_err(|corrupt| Gone(corrupt.to_string()))? {
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
                return Ok(u64::from_ne_bytes(first));
            }
            waits.wait(|until_ns| reader.wait(Wait::Spin, Some(until_ns), &Kernel))?;
        }
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

    /// One wait, for a side that has looked and found nothing. `wait` gets the time at which it has
    /// to come back, and says whether a look may find something.
    ///
    /// # Errors
    /// As for [`Patience::look`].
    #[inline(always)]
    pub fn wait(&mut self, mut wait: impl FnMut(u64) -> bool) -> Result<(), Gone> {
        // What more a wait needs is made only for a long one: a store to the stack for each message
        // takes a place among the stores that wait for the other CPU's lines.
        if wait(self.look_ns) { Ok(()) } else { self.wait_on(wait) }
    }

    #[cold]
    fn wait_on(&mut self, mut wait: impl FnMut(u64) -> bool) -> Result<(), Gone> {
        let mut patience = self.life.patience();
        loop {
            patience.look()?;
            self.look_ns = now_ns() + WAIT_NS_MAX;
            if wait(self.look_ns) {
                return Ok(());
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
        let found = waits.wait(|_| {
            polls += 1;
            polls == 3
        });
        assert_eq!((found, polls), (Ok(()), 3));
        ended.store(true, Ordering::Release);
        assert_eq!(waits.wait(|_| false), Err(Gone("the other side has ended".into())));
    }
}
