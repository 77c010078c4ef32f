//! Regions: where the bytes come from, what stands in their header, who is attached.

use core::fmt;
use core::ptr::NonNull;

use crate::cells::{At, LINE, Ordering, Region, SLOTS};

/// Bytes that both sides reach.
///
/// # Safety
/// `base` is aligned to 128 and points at `len` readable and writable bytes, the same for every
/// call. They stay where they are until the value and all its clones and copies are gone, from
/// whatever thread they are used, and nobody holds a Rust reference to them.
#[expect(clippy::len_without_is_empty, reason = "an empty region holds no link")]
pub unsafe trait Memory {
    /// The first byte.
    fn base(&self) -> NonNull<u8>;
    /// How many bytes.
    fn len(&self) -> usize;
    /// The words and payloads that stand for the bytes under loom.
    #[cfg(all(test, loom))]
    fn cells(&self) -> &crate::proofs::LoomCells;
}

/// Bytes that live for the rest of the program: fixed memory, or memory that is never given back.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(all(test, loom), expect(dead_code, reason = "loom has memory of its own"))]
pub struct RawMemory {
    base: NonNull<u8>,
    len: usize,
}

impl RawMemory {
    /// `len` bytes at `base`.
    ///
    /// # Safety
    /// What [`Memory`] asks, for as long as any copy of the value is in use.
    pub const unsafe fn new(base: NonNull<u8>, len: usize) -> RawMemory {
        RawMemory { base, len }
    }
}

// SAFETY: the value is an address; who made it promised that any thread may use the bytes.
unsafe impl Send for RawMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for RawMemory {}

#[cfg(not(all(test, loom)))]
// SAFETY: promised to `new`.
unsafe impl Memory for RawMemory {
    fn base(&self) -> NonNull<u8> {
        self.base
    }

    fn len(&self) -> usize {
        self.len
    }
}

/// Which messages the reader gets. The numbers stand in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Delivery {
    /// Every one, in order.
    Queue = 1,
    /// The newest.
    Latest = 2,
    /// Every one that it is fast enough for.
    Broadcast = 3,
    /// No messages: a directory of counters.
    Counters = 4,
}

/// How the slots of a queue say that they are full. The numbers stand in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Layout {
    /// The writer's tail says it, on a line of its own.
    Index = 1,
    /// A sequence beside the payload says it: a small message crosses in a single cache line.
    Sequence = 2,
}

/// Largest message; past it the header is refused. Larger things want to cross by reference.
pub const MESSAGE_SIZE_MAX: u32 = 1 << 26;
/// Largest capacity; past it the header is refused. So positions never meet themselves.
pub const CAPACITY_MAX: u32 = 1 << 24;
/// Longest queue that is laid out so that a message arrives soon; a longer one is there so that
/// many do. The best for one is bad for the other, by a factor of up to ten.
pub const SHORT_MAX: u32 = 16;
/// Up to this size a short queue puts the sequence beside the payload, in its cache lines. Measured
/// on two cores (`cargo bench --bench layouts`): a round trip of 48 B costs no more than two bare
/// words that go to and fro, one of 120 B four fifths of the index layout's. Past it the index
/// layout is as good or better, and in a long queue always.
pub const SEQUENCE_SIZE_MAX: u32 = 124;

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
    /// How the slots of a queue say that they are full; [`Layout::Sequence`] for the others.
    pub layout: Layout,
    /// Whether a side may sleep in the kernel. Then each `wake` costs a fence and a load.
    pub parks: bool,
}

impl Shape {
    /// A queue, in the layout that was measured to be best for size and capacity: up to
    /// [`SHORT_MAX`] for the latency of a message, above for the throughput of many.
    pub const fn queue(message_size: u32, type_hash: u32, capacity: u32) -> Shape {
        let beside = message_size <= SEQUENCE_SIZE_MAX && capacity <= SHORT_MAX;
        let layout = if beside { Layout::Sequence } else { Layout::Index };
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
            (Delivery::Queue, Layout::Index) => size.next_multiple_of(8),
            // Lines of their own: one slot is read while its neighbour is written.
            _ => (size + 4).next_multiple_of(64),
        }
    }

    /// The header's words, in their order.
    fn header(&self) -> [(&'static str, u32); 9] {
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

    fn check<M: Memory>(&self, memory: &M) -> Result<(), RegionError> {
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
    assert!(SLOTS == 640 && LINE == 128);
    assert!(Shape::queue(4, 0, 8).region_len() == 640 + 8 * 64);
    assert!(Shape::queue(124, 0, 8).region_len() == 640 + 8 * 128);
    assert!(Shape::queue(125, 0, 8).region_len() == 640 + 8 * 128);
    assert!(Shape::queue(130, 0, 2).region_len() == 640 + 2 * 136);
    assert!(Shape::latest(60, 0).region_len() == 640 + 4 * 64);
    assert!(Shape::latest(61, 0).region_len() == 640 + 4 * 128);
};

/// Why a region cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionError {
    /// The shape's message size is out of range.
    MessageSize {
        /// The shape says.
        found: u32,
    },
    /// The shape's capacity is out of range.
    Capacity {
        /// The shape says.
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
        /// Bytes past one.
        past: usize,
    },
    /// A word of the header differs from the shape.
    Header {
        /// Which word.
        what: &'static str,
        /// What stands there.
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
        /// At most so far apart.
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
            (Delivery::Broadcast, _) => set(
                region.sequence(position),
                crate::broadcast::writing(position.wrapping_sub(shape.capacity)),
            ),
            _ => {}
        }
    }
    let header = shape.header();
    for (word, &(_, value)) in header.iter().enumerate().skip(1) {
        set(At::control(0, word), value);
    }
    // Release: who sees the magic sees the rest.
    region.word(At::control(0, 0)).store(header[0].1, Ordering::Release);
    Ok(())
}

/// Sequence that says: the slot for `position` was last written one lap ago.
pub(crate) const fn last_lap(position: u32, capacity: u32) -> u32 {
    position.wrapping_add(1).wrapping_sub(capacity)
}

// SAFETY: a borrow gives the same bytes as what it borrows.
unsafe impl<M: Memory> Memory for &M {
    fn base(&self) -> NonNull<u8> {
        (**self).base()
    }

    fn len(&self) -> usize {
        (**self).len()
    }

    #[cfg(all(test, loom))]
    fn cells(&self) -> &crate::proofs::LoomCells {
        (**self).cells()
    }
}

/// Position of the next message that is written.
pub(crate) const TAIL: At = At::control(1, 0);
/// Position of the next message that is read.
pub(crate) const HEAD: At = At::control(2, 0);

/// A side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Writer,
    Reader,
}

impl Side {
    const fn epoch(self) -> At {
        match self {
            Side::Writer => At::control(3, 0),
            Side::Reader => At::control(4, 0),
        }
    }

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
        for (word, (what, expected)) in shape.header().into_iter().enumerate() {
            // Acquire: the magic is first and covers the rest.
            let found = region.word(At::control(0, word)).load(Ordering::Acquire);
            if found != expected {
                return Err(RegionError::Header { what, found, expected });
            }
        }
        Ok(region)
    }

    /// Says that `side` is attached; gives its epoch.
    fn open(&self, side: Side) -> u32 {
        // One party per side: nobody else writes this word. Release: who sees the epoch sees what
        // this side put right before.
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
    /// Of this side while it is open.
    epoch: Option<u32>,
}

impl<M: Memory> End<M> {
    /// Takes the side: the peer sees that it is there, or there again.
    pub(crate) fn open(region: Region<M>, side: Side) -> End<M> {
        let epoch = Some(region.open(side));
        End { region, side, epoch }
    }

    /// A reader beside others: it leaves no trace in the region.
    pub(crate) fn observe(region: Region<M>) -> End<M> {
        End { region, side: Side::Reader, epoch: None }
    }

    pub(crate) fn close(&mut self) {
        if let Some(epoch) = self.epoch.take() {
            // Release: who sees the side closed sees its last message.
            self.region.word(self.side.epoch()).store(epoch.wrapping_add(1), Ordering::Release);
        }
    }

    pub(crate) fn peer_epoch(&self) -> u32 {
        // Acquire: pairs with `open` and `close`.
        self.region.word(self.side.peer().epoch()).load(Ordering::Acquire)
    }

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

/// Writes what every end of a link tells of its peer.
macro_rules! peer_methods {
    ($($end:ident),*) => { $(
        impl<M: Memory> $end<M> {
            /// How often the other side came and went: odd while it is attached, even when it has
            /// closed, 0 before it first came. A side that was killed did not close; when its
            /// successor attaches, the figure grows by 2.
            pub fn peer_epoch(&self) -> u32 {
                self.end.peer_epoch()
            }

            /// Whether the other side was here and left in order.
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
