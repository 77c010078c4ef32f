//! A queue of ours as a side that works in its slots: messages are written and read where the queue
//! keeps them, part by part.

use std::hint::black_box;

use sinew_link::Shape;
use sinew_link::queue::{Reader, SendError, Writer};
use sinew_runtime::sys::Region;

use super::{Gone, Life, Side};

/// Bytes that are written or read at once, from and to the nearest cache.
const PART_BYTES: usize = 512;

/// The ends of two queues; they poll.
pub struct InPlace {
    writer: Writer<Region>,
    reader: Reader<Region>,
    bytes: usize,
    life: Life,
}

impl InPlace {
    /// Attaches to two regions that [`create`](sinew_link::create) made.
    ///
    /// # Errors
    /// A region is not of this shape.
    pub fn attach(shape: &Shape, out: Region, into: Region, life: Life) -> Result<InPlace, Gone> {
        let failed = |error| Gone(format!("cannot attach to the link: {error}"));
        Ok(InPlace {
            writer: Writer::attach(out, shape).map_err(failed)?,
            reader: Reader::attach(into, shape).map_err(failed)?,
            bytes: shape.message_size as usize,
            life,
        })
    }
}

impl Side for InPlace {
    #[inline]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let mut part = [0; PART_BYTES];
        part.as_chunks_mut().0.fill(word.to_ne_bytes());
        let InPlace { writer, bytes, life, .. } = self;
        life.until(|| match writer.claim() {
            Ok(mut claim) => {
                for at in (0..*bytes).step_by(PART_BYTES) {
                    claim.write_at(at, &part[..PART_BYTES.min(*bytes - at)]);
                }
                claim.commit();
                Some(Ok(()))
            }
            Err(SendError::Full) => None,
            Err(error) => Some(Err(Gone(error.to_string()))),
        })?
    }

    #[inline]
    fn receive(&mut self) -> Result<u64, Gone> {
        let InPlace { reader, bytes, life, .. } = self;
        life.until(|| {
            let peek = match reader.peek() {
                Ok(peek) => peek?,
                Err(corrupt) => return Some(Err(Gone(corrupt.to_string()))),
            };
            let (mut part, mut all) = ([0; PART_BYTES], 0_u64);
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
        })?
    }
}

/// The sum of all words of a message.
#[inline]
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum: u64, bytes| sum.wrapping_add(u64::from_ne_bytes(*bytes)))
}
