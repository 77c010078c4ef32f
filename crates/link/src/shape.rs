//! What a region is made for: the layout of its bytes, and why one may be refused.

use core::fmt;

use crate::memory::Memory;

/// Bytes from one index to the next: two cache lines, since prefetchers fetch pairs.
pub(crate) const LINE: usize = 128;
/// Where the slots begin.
pub(crate) const SLOTS: usize = 5 * LINE;

/// Which messages the reader gets. The header holds the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Delivery {
    /// Every one, in order.
    Queue = 1,
    /// The newest.
    Latest = 2,
    /// Every one that it is fast enough for.
    Broadcast = 3,
    /// No messages: a row of counters.
    Counters = 4,
}

/// How the slots of a queue say that they are full. The header holds the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Layout {
    /// The writer's tail says it, on a line of its own.
    Index = 1,
    /// A sequence beside the payload says it: a small message crosses in a single cache line.
    Sequence = 2,
}

impl Layout {
    /// The layout that a word of the header means.
    pub(crate) fn of(word: u32) -> Option<Layout> {
        [Layout::Index, Layout::Sequence].into_iter().find(|&layout| layout as u32 == word)
    }

    /// Bytes from one slot to the next, of messages of `size` bytes.
    #[inline(always)]
    pub(crate) const fn stride(self, size: usize) -> usize {
        match self {
            Layout::Index => size.next_multiple_of(8),
            // Lines of their own: one slot is read while its neighbour is written.
            Layout::Sequence => (size + 4).next_multiple_of(64),
        }
    }
}

/// Largest message; past it the header is refused. Larger things should cross by reference.
pub const MESSAGE_SIZE_MAX: u32 = 1 << 26;
/// Largest capacity; past it the header is refused. So a wrapped position is never ambiguous.
pub const CAPACITY_MAX: u32 = 1 << 24;
/// Longest link that is [tuned](crate::Tuning) so that a message arrives soon; a longer one is
/// tuned so that many messages get through. The best tuning for one is worse for the other by a
/// factor of up to ten.
pub const SHORT_MAX: u32 = 16;

/// Longest message, bytes, that shares a cache line with its sequence. Between the two CPUs of an
/// Intel Xeon the sequence layout is 1.5 times as fast below it, and slower above.
pub const SMALL_MAX: u32 = 60;

/// What a region is made for. Both sides state it, and attaching compares it with the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Which messages the reader gets.
    pub delivery: Delivery,
    /// Bytes of a message, 1 to [`MESSAGE_SIZE_MAX`].
    pub message_size: u32,
    /// Tells types of equal size apart; what it is computed from is up to both sides.
    pub type_hash: u32,
    /// Messages that the region holds: a power of two up to [`CAPACITY_MAX`]; 4 for latest.
    pub capacity: u32,
    /// How the slots of a queue say that they are full; [`Layout::Sequence`] for the others. The
    /// side that makes a region chooses; a side that attaches to it takes what its header says.
    pub layout: Layout,
    /// Whether a side may sleep in the kernel. Then each `wake` costs a fence and a load.
    pub parks: bool,
}

impl Shape {
    /// A queue. A short one of small messages has the sequence layout: on an Intel Xeon that saves
    /// a third of a round trip; on an AMD EPYC it costs up to a fifth while its CPUs are near each
    /// other, and saves a tenth while they are far apart. Any other one has the index layout: with
    /// the sequence layout a stream through a long queue of 8 B messages takes four times as long
    /// (`cargo bench -p sinew-link --bench layouts`; docs/figures/links.md).
    pub const fn queue(message_size: u32, type_hash: u32, capacity: u32) -> Shape {
        let is_short = capacity <= SHORT_MAX;
        let is_small = message_size <= SMALL_MAX;
        let layout = if is_short && is_small { Layout::Sequence } else { Layout::Index };
        Shape { delivery: Delivery::Queue, message_size, type_hash, capacity, layout, parks: false }
    }

    /// Latest: four slots, always.
    pub const fn latest(message_size: u32, type_hash: u32) -> Shape {
        let layout = Layout::Sequence;
        let delivery = Delivery::Latest;
        Shape { delivery, message_size, type_hash, capacity: 4, layout, parks: false }
    }

    /// A broadcast that remembers the last `capacity` messages.
    pub const fn broadcast(message_size: u32, type_hash: u32, capacity: u32) -> Shape {
        let layout = Layout::Sequence;
        let delivery = Delivery::Broadcast;
        Shape { delivery, message_size, type_hash, capacity, layout, parks: false }
    }

    /// The same, with sides that may sleep in the kernel.
    pub const fn parking(self) -> Shape {
        Shape { parks: true, ..self }
    }

    /// Bytes that the region needs; `usize::MAX` if this machine cannot address so many.
    pub const fn region_len(&self) -> usize {
        let len = SLOTS as u64 + self.capacity as u64 * self.stride() as u64;
        if len > (isize::MAX as u64) { usize::MAX } else { len as usize }
    }

    /// Bytes from one slot to the next.
    pub(crate) const fn stride(&self) -> usize {
        let size = self.message_size as usize;
        match (self.delivery, self.layout) {
            (Delivery::Counters, _) => size,
            (Delivery::Queue, Layout::Index) => Layout::Index.stride(size),
            _ => Layout::Sequence.stride(size),
        }
    }

    /// The header's words, in their order.
    pub(crate) fn header(&self) -> [(&'static str, u32); 9] {
        [
            ("magic", u32::from_le_bytes(*b"SNEW")),
            ("layout version", 1),
            ("delivery", self.delivery as u32),
            ("slot layout", self.layout as u32),
            ("message size", self.message_size),
            ("type hash", self.type_hash),
            ("capacity", self.capacity),
            ("stride", self.stride() as u32),
            ("parks", self.parks as u32),
        ]
    }

    pub(crate) fn check<M: Memory>(&self, memory: &M) -> Result<(), RegionError> {
        if self.message_size == 0 || self.message_size > MESSAGE_SIZE_MAX {
            return Err(RegionError::MessageSize { found: self.message_size });
        }
        let fixed = self.delivery == Delivery::Latest && self.capacity != 4;
        if fixed || !self.capacity.is_power_of_two() || self.capacity > CAPACITY_MAX {
            return Err(RegionError::Capacity { found: self.capacity });
        }
        let (found, expected) = (memory.len(), self.region_len());
        if found < expected {
            return Err(RegionError::Length { found, expected });
        }
        match memory.base().addr().get() % LINE {
            0 => Ok(()),
            past => Err(RegionError::Alignment { past }),
        }
    }
}

// The drawing in the crate's documentation; C and bare-metal peers rely on it.
const _: () = {
    const fn index(message_size: u32, capacity: u32) -> usize {
        Shape { layout: Layout::Index, ..Shape::queue(message_size, 0, capacity) }.region_len()
    }
    const fn sequenced(message_size: u32) -> usize {
        Shape { layout: Layout::Sequence, ..Shape::queue(message_size, 0, 8) }.region_len()
    }
    assert!(SLOTS == 640 && LINE == 128);
    assert!(sequenced(4) == 640 + 8 * 64 && sequenced(SMALL_MAX) == 640 + 8 * 64);
    assert!(sequenced(SMALL_MAX + 1) == 640 + 8 * 128 && sequenced(124) == 640 + 8 * 128);
    assert!(index(4, 8) == 640 + 8 * 8);
    assert!(index(125, 8) == 640 + 8 * 128);
    assert!(index(130, 2) == 640 + 2 * 136);
    assert!(Shape::latest(60, 0).region_len() == 640 + 4 * 64);
    assert!(Shape::latest(61, 0).region_len() == 640 + 4 * 128);
};

/// Why a region cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// The shape's message size is out of range.
    MessageSize {
        /// What the shape says.
        found: u32,
    },
    /// The shape's capacity is out of range.
    Capacity {
        /// What the shape says.
        found: u32,
    },
    /// The memory is too short.
    Length {
        /// Bytes there are.
        found: usize,
        /// Bytes the shape needs.
        expected: usize,
    },
    /// The memory does not begin at a multiple of 128.
    Alignment {
        /// Bytes past such a multiple.
        past: usize,
    },
    /// A word of the header differs from the shape.
    Header {
        /// Which word.
        what: &'static str,
        /// What the header holds.
        found: u32,
        /// What the shape says.
        expected: u32,
    },
    /// The queue's positions contradict each other.
    Positions {
        /// The writer's.
        tail: u32,
        /// The reader's.
        head: u32,
        /// How far apart they may be.
        capacity: u32,
    },
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RegionError::MessageSize { found } => write!(
                f,
                "message size {found} is not within 1 to {MESSAGE_SIZE_MAX}; \
                 send large data by reference"
            ),
            RegionError::Capacity { found } => write!(
                f,
                "capacity {found} is not a power of two from 1 to {CAPACITY_MAX} (latest: 4); \
                 use {}",
                found.clamp(1, CAPACITY_MAX).next_power_of_two()
            ),
            RegionError::Length { found, expected } => write!(
                f,
                "the region has {found} bytes, the shape needs {expected}; enlarge the memory"
            ),
            RegionError::Alignment { past } => write!(
                f,
                "the region begins {past} bytes past a multiple of {LINE}; align the memory"
            ),
            RegionError::Header { what, found, expected } => write!(
                f,
                "the region's {what} is {found}, this side expects {expected}; \
                 start both sides from the same graph and version"
            ),
            RegionError::Positions { tail, head, capacity } => write!(
                f,
                "the region's tail {tail} and head {head} are not within its capacity {capacity}; \
                 make the region anew"
            ),
        }
    }
}

impl core::error::Error for RegionError {}
