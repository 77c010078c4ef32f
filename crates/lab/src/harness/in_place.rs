//! A queue of ours as a side that works in its slots: messages are written and read, part by part,
//! where the queue keeps them. It waits as the runtime does.

use std::hint::black_box;

use sinew_core::sys::Region;
use sinew_core::transport::{Kernel, tuning};
use sinew_link::queue::{Reader, SendError, Writer};
use sinew_link::{Shape, Wait};

use super::{Gone, Life, Side, Waits};

/// Bytes that are written or read at once, from and to a cache that is near. Loads and stores of
/// smaller parts often agree in the lower 12 bits of their addresses, which makes loads wait:
/// 1 MiB there and back took 231 us in parts of 4 KiB and 192 us in parts of 16 KiB.
const PART_BYTES: usize = 16 << 10;

/// The ends of two queues; they spin, unless told to wait otherwise.
pub struct InPlace {
    writer: Writer<Region>,
    reader: Reader<Region>,
    bytes: usize,
    /// A part of a message, or all of a small one.
    part: Vec<u8>,
    wait: Wait,
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
            wait: Wait::Spin,
            waits: Waits::new(life),
        })
    }

    /// The same side with this wait strategy. A side that parks needs a region whose shape
    /// [parks](Shape::parking).
    pub fn waiting(self, wait: Wait) -> InPlace {
        InPlace { wait, ..self }
    }
}

impl Side for InPlace {
    #[inline(always)]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let InPlace { writer, bytes, part, wait, waits, .. } = self;
        part.as_chunks_mut().0.fill(word.to_ne_bytes());
        loop {
            match writer.claim() {
                Ok(mut claim) => {
                    for at in (0..*bytes).step_by(PART_BYTES) {
                        claim.write_at(at, &part[..PART_BYTES.min(*bytes - at)]);
                    }
                    claim.commit();
                    writer.wake(&Kernel);
                    return Ok(());
                }
                Err(SendError::Full) => {}
                Err(error) => return Err(Gone(error.to_string())),
            }
            waits.wait(|until_ns| writer.wait_room(*wait, Some(until_ns), &Kernel))?;
        }
    }

    #[inline(always)]
    fn receive(&mut self) -> Result<u64, Gone> {
        let InPlace { reader, bytes, part, wait, waits, .. } = self;
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
                reader.wake(&Kernel);
                return Ok(u64::from_ne_bytes(first));
            }
            waits.wait(|until_ns| reader.wait(*wait, Some(until_ns), &Kernel))?;
        }
    }
}

/// The sum of all words of a message.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum: u64, bytes| sum.wrapping_add(u64::from_ne_bytes(*bytes)))
}
