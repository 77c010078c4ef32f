//! An onlooker: what a third party can learn about a link without writing to it.

use crate::cells::{Ordering, Region};
use crate::latest::NEWEST;
use crate::memory::Memory;
use crate::region::{HEAD, TAIL};
use crate::shape::Delivery;
use crate::{RegionError, Shape};

/// What an onlooker saw of a link, at about the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Messages that were written, modulo 2^32 (latest: 2^31, and each writer that takes the place
    /// of another one counts as a message).
    pub written: u32,
    /// Messages in a queue that wait to be read, never more than its capacity; 0 for the other
    /// deliveries, where nothing waits.
    pub fill: u32,
}

/// Looks at a link. If a side lies, the answer is wrong too, but stays within its limits.
///
/// # Errors
/// The region is not of this shape (any more).
pub fn look<M: Memory>(memory: M, shape: &Shape) -> Result<Seen, RegionError> {
    let region = Region::attach(memory, shape)?;
    // Relaxed: figures for people; no other read depends on them.
    let word = |at| region.word(at).load(Ordering::Relaxed);
    Ok(match shape.delivery {
        Delivery::Queue => {
            let (head, tail) = (word(HEAD), word(TAIL));
            let fill = tail.wrapping_sub(head);
            // In the sequence layout the tail may lag behind what was already read.
            let fill = if fill > u32::MAX / 2 { 0 } else { fill.min(shape.capacity) };
            Seen { written: tail, fill }
        }
        // A writer skips one sequence when it attaches.
        Delivery::Latest => Seen { written: (word(NEWEST) >> 1).saturating_sub(1), fill: 0 },
        Delivery::Broadcast | Delivery::Counters => Seen { written: word(TAIL), fill: 0 },
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::{broadcast, latest, queue};

    #[test]
    fn an_onlooker_sees_what_was_written_and_what_waits() {
        let shape = Shape::queue(8, 7, 4);
        let memory = Heap::made(&shape, 0);
        let mut writer = queue::Writer::attach(memory.clone(), &shape).expect("the same shape");
        let mut reader = queue::Reader::attach(memory.clone(), &shape).expect("the same shape");
        (0..3).for_each(|_| writer.try_send(&[0; 8]).expect("room"));
        assert!(reader.try_receive(&mut [0; 8]).expect("no lie"));
        assert_eq!(look(memory.clone(), &shape), Ok(Seen { written: 3, fill: 2 }));
        assert!(look(memory, &Shape::queue(8, 8, 4)).is_err());
    }

    #[test]
    fn nothing_waits_in_latest_and_broadcast() {
        let shape = Shape::latest(8, 7);
        let memory = Heap::made(&shape, 0);
        let mut writer = latest::Writer::attach(memory.clone(), &shape).expect("the same shape");
        (0..5).for_each(|_| writer.send(&[0; 8]));
        assert_eq!(look(memory, &shape), Ok(Seen { written: 5, fill: 0 }));
        let shape = Shape::broadcast(8, 7, 4);
        let memory = Heap::made(&shape, 0);
        let mut writer = broadcast::Writer::attach(memory.clone(), &shape).expect("the same shape");
        (0..9).for_each(|_| writer.send(&[0; 8]));
        assert_eq!(look(memory, &shape), Ok(Seen { written: 9, fill: 0 }));
    }
}
