//! Regions: what they contain at the start, and which sides are attached.

use crate::cells::{At, Ordering, Region};
use crate::memory::Memory;
use crate::shape::{Delivery, LINE, Layout, RegionError, SLOTS, Shape};

/// Makes a region: writes the header and every word that the link begins with. To be called
/// before anyone attaches.
///
/// # Errors
/// The shape is out of range, or the memory too short or not aligned.
pub fn create<M: Memory>(memory: &M, shape: &Shape) -> Result<(), RegionError> {
    create_at(memory, shape, 0)
}

/// As [`create`], with positions that begin at `start`: for the tests of wrap-around.
pub(crate) fn create_at<M: Memory>(
    memory: &M,
    shape: &Shape,
    start: u32,
) -> Result<(), RegionError> {
    shape.check(memory)?;
    let region = Region::new(memory, shape);
    // Relaxed below: the release of the magic covers them all.
    let set = |at, value| region.word(at).store(value, Ordering::Relaxed);
    for line in 1..SLOTS / LINE {
        (0..3).for_each(|word| set(At::control(line, word), 0));
    }
    if matches!(shape.delivery, Delivery::Queue | Delivery::Broadcast) {
        set(TAIL, start);
        set(HEAD, start);
    }
    for i in 0..shape.capacity {
        let position = start.wrapping_add(i);
        match (shape.delivery, shape.layout) {
            (Delivery::Queue, Layout::Sequence) => {
                set(region.sequence(position), last_lap(position, shape.capacity));
            }
            (Delivery::Latest, _) => set(region.sequence(position), 0),
            (Delivery::Broadcast, _) => {
                set(region.sequence(position), writing(position.wrapping_sub(shape.capacity)))
            }
            (Delivery::Counters, _) => {
                let word = |n| region.payload_word(region.slot(i), n);
                (0..3).for_each(|n| word(n).store(0, Ordering::Relaxed));
            }
            (Delivery::Queue, Layout::Index) => {}
        }
    }
    let header = shape.header();
    for (word, &(_, value)) in header.iter().enumerate().skip(1) {
        set(At::control(0, word), value);
    }
    // Release: a side that sees the magic sees the rest.
    region.word(At::control(0, 0)).store(header[0].1, Ordering::Release);
    Ok(())
}

/// Sequence that says: the slot for `position` was last written one lap ago.
pub(crate) const fn last_lap(position: u32, capacity: u32) -> u32 {
    position.wrapping_add(1).wrapping_sub(capacity)
}

/// Sequence of a broadcast's slot whose message `position` is being written.
pub(crate) const fn writing(position: u32) -> u32 {
    position.wrapping_mul(2).wrapping_add(1)
}

/// Position of the next message that is written.
pub(crate) const TAIL: At = At::control(1, 0);
/// Position of the next message that is read.
pub(crate) const HEAD: At = At::control(2, 0);

/// Each side's epoch.
const WRITER: At = At::control(3, 0);
const READER: At = At::control(4, 0);

/// Where the header says how the slots are laid out.
const LAYOUT_WORD: usize = 3;

/// A side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Writer,
    Reader,
}

impl Side {
    #[inline(always)]
    const fn epoch(self) -> At {
        match self {
            Side::Writer => WRITER,
            Side::Reader => READER,
        }
    }

    #[inline(always)]
    const fn peer(self) -> Side {
        match self {
            Side::Writer => Side::Reader,
            Side::Reader => Side::Writer,
        }
    }
}

impl<M: Memory> Region<M> {
    /// Checks the region against what this side expects of it.
    pub(crate) fn attach(memory: M, shape: &Shape) -> Result<Region<M>, RegionError> {
        shape.check(&memory)?;
        let region = Region::new(memory, shape);
        let shape = &region.found_layout(shape);
        // A layout with longer slots needs more bytes.
        shape.check(region.memory())?;
        let region = region.laid_out(shape);
        for (word, (what, expected)) in shape.header().into_iter().enumerate() {
            // Acquire: the magic is first and covers the rest.
            let found = region.word(At::control(0, word)).load(Ordering::Acquire);
            if found != expected {
                return Err(RegionError::Header { what, found, expected });
            }
        }
        Ok(region)
    }

    /// `shape`, with the layout of the slots that the maker of the region chose. If the word in the
    /// header names no layout, `shape` stays as it is, and comparing the header finds the word.
    fn found_layout(&self, shape: &Shape) -> Shape {
        // Acquire, though nothing depends on it: the whole header is compared later.
        let layout = match self.word(At::control(0, LAYOUT_WORD)).load(Ordering::Acquire) {
            word if shape.delivery == Delivery::Queue => Layout::of(word),
            _ => None,
        };
        let layout = layout.unwrap_or(shape.layout);
        Shape { layout, ..*shape }
    }

    /// Says that `side` is attached; returns its epoch.
    fn open(&self, side: Side) -> u32 {
        // One party per side: nobody else writes this word. Release: a side that sees the epoch
        // sees what this side repaired before.
        let word = self.word(side.epoch());
        let before = word.load(Ordering::Acquire);
        let epoch = (before | 1).wrapping_add((before & 1) << 1);
        word.store(epoch, Ordering::Release);
        epoch
    }
}

/// A side that is attached to a region; leaves it when dropped.
pub(crate) struct End<M: Memory> {
    pub(crate) region: Region<M>,
    side: Side,
    /// Epoch of this side while it is open.
    epoch: Option<u32>,
}

impl<M: Memory> End<M> {
    /// Takes the side: the peer sees that it is there, or there again.
    pub(crate) fn open(region: Region<M>, side: Side) -> End<M> {
        let epoch = Some(region.open(side));
        End { region, side, epoch }
    }

    /// A reader among others: it writes nothing to the region.
    pub(crate) fn observe(region: Region<M>) -> End<M> {
        End { region, side: Side::Reader, epoch: None }
    }

    pub(crate) fn close(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            // Release: a peer that sees the side closed sees its last message.
            self.region.word(self.side.epoch()).store(epoch.wrapping_add(1), Ordering::Release);
        }
    }

    /// How often the other side came and went: odd while it is attached, even when it has closed, 0
    /// before it first came. A side that was killed did not close; when its successor attaches, the
    /// figure grows by 2.
    #[inline(always)]
    fn peer_epoch(&self) -> u32 {
        // Acquire: pairs with `open` and `close`.
        self.region.word(self.side.peer().epoch()).load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is_peer_closed(&self) -> bool {
        let epoch = self.peer_epoch();
        epoch != 0 && epoch & 1 == 0
    }
}

impl<M: Memory> Drop for End<M> {
    fn drop(&mut self) {
        self.close();
    }
}

/// Defines the method that tunes an end.
macro_rules! tuned_method {
    ($($end:ident),*) => { $(
        impl<M: Memory> $end<M> {
            /// The same end, polling and treating cache lines in this manner.
            pub fn tuned(mut self, tuning: crate::Tuning) -> Self {
                self.end.region.tune(tuning);
                self
            }
        }
    )* };
}
pub(crate) use tuned_method;

/// Defines the methods by which an end sees that its peer has closed, and closes itself.
macro_rules! peer_methods {
    ($($end:ident),*) => { $(
        impl<M: Memory> $end<M> {
            /// Whether the other side was attached and has closed.
            #[inline]
            pub fn is_peer_closed(&self) -> bool {
                self.end.is_peer_closed()
            }

            /// Tells the other side that this one is gone, as dropping it does. To end a wait of
            /// the other side at once, call `wake` after it.
            pub fn close(&mut self) {
                self.end.close();
            }
        }
    )* };
}
pub(crate) use peer_methods;

#[cfg(all(test, not(loom)))]
mod tests;
