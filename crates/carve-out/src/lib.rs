//! The carve-out: memory that two operating systems of one chip see, and its content.
//!
//! Linux makes it and writes [`Header`], [`NodeRow`]s and [`RegionRow`]s. Then the guest starts,
//! reads them, and writes its state into words of its own. Every word has one writer. Both sides
//! exchange offsets, never addresses: each side may map the bytes at any address. Only loads,
//! stores and fences are used. What the other side wrote may be anything, so it is copied out,
//! checked, then used.
//!
//! # The bytes
//!
//! Words are u32, little-endian.
//!
//! ```text
//!      0  Linux: magic | version | size | epoch | nodes | rows | where named memory begins
//!  0x080  Linux: order | beat
//!  0x100  guest: state | epoch | beat | tick Hz
//!  0x180  guest: fault: kind | pc | address | status | node | cycle | text length | text
//! 0x1000  Linux: 16 nodes of 512 bytes: what the guest is to run
//! 0x3000  guest: 16 nodes of 128 bytes: what each has done
//! 0x4000  Linux: 64 rows of 128 bytes: what lies in the carve-out, and where
//! 0x6000  guest: 64 words: the state of its side of each row
//! 0x8000  Linux: 32 entries of 128 bytes: the named memory that it has made
//! 0x9000  guest: 32 entries: what it has made
//! 0xa000  Linux: 64 words: how often it holds each entry of both
//! 0xa200  guest: 64 words: the same
//! 0xb000  four queues of letters: Linux asks, guest answers, guest asks, Linux answers
//! 0x10000 regions of links, each at the start of a page
//!         named memory: the lower half is Linux's to give out, the upper half the guest's
//! ```
//!
//! [`Registry`] makes and finds named memory. [`Letters`] carries requests between the sides.
#![no_std]

#[cfg(test)]
extern crate std;

mod fault;
pub mod image;
mod letter;
mod node;
mod registry;
mod row;
mod shared;
mod text;

pub use fault::{FaultKind, GuestFault};
pub use letter::{AgentLetter, Ask, LETTER_TEXT_MAX, Letters, LettersBroken};
pub use node::{COUNTERS_MAX, NodeRow, NodeTally, Trial, VALUES_MAX};
pub use registry::{Registry, SharedHolds};
pub use row::{Delivery, Direction, LinkRow, RegionRow, SideState};
pub use shared::{
    ENTRIES_MAX, MadeBy, QUEUE_CAPACITY_MAX, QUEUE_MESSAGE_MAX, SHARED_BYTES_MAX, SHARED_QUOTA,
    SharedClass, SharedEntry, SharedRefusal, SharedWish,
};
pub use text::Name;

use sinew_link::{Memory, SharedWords};

/// First word of every carve-out: "SNWC".
pub const MAGIC: u32 = 0x4357_4e53;
/// Version of this layout.
pub const VERSION: u32 = 2;
/// Most nodes of a guest.
pub const NODES_MAX: usize = 16;
/// Most rows.
pub const ROWS_MAX: usize = 64;
/// Most bells in each direction. The first is the keeper's, each other one belongs to a link.
pub const BELLS_MAX: usize = 32;
/// Offset of the first region.
pub const DATA: usize = 0x10000;
/// Regions begin at multiples of this.
pub const PAGE: usize = 4096;
/// Smallest carve-out, bytes.
pub const SIZE_MIN: usize = 128 * 1024;
/// Largest carve-out, bytes.
pub const SIZE_MAX: usize = 1 << 30;

const ORDER: usize = 0x080;
const BEAT_OF_LINUX: usize = 0x084;
const STATE: usize = 0x100;
const EPOCH_OF_GUEST: usize = 0x104;
const BEAT_OF_GUEST: usize = 0x108;
const TICK_HZ: usize = 0x10c;
const FAULT: usize = 0x180;
const NODES: usize = 0x1000;
const STATUS: usize = 0x3000;
const ROWS: usize = 0x4000;
const ROW_STATES: usize = 0x6000;
/// Offsets of the entries of named memory, by their maker.
const ENTRIES: [usize; 2] = [0x8000, 0x9000];
/// Offsets of the words in which each side writes how often it holds each entry.
const HOLDS: [usize; 2] = [0xa000, 0xa200];
/// Offset of the queues of letters.
const LETTERS: usize = 0xb000;

const _: () = assert!(NODES + NODES_MAX * node::ROW_BYTES <= STATUS);
const _: () = assert!(STATUS + NODES_MAX * node::STATUS_BYTES <= ROWS);
const _: () = assert!(ROWS + ROWS_MAX * row::BYTES <= ROW_STATES);
const _: () = assert!(ROW_STATES + ROWS_MAX * 4 <= ENTRIES[0] && DATA.is_multiple_of(PAGE));
const _: () = assert!(ENTRIES[1] + ENTRIES_MAX * shared::BYTES <= HOLDS[0]);
const _: () = assert!(HOLDS[1] + 2 * ENTRIES_MAX * 4 <= LETTERS);
const _: () = assert!(LETTERS + 4 * letter::QUEUE_BYTES <= DATA);
const _: () = assert!(FAULT + fault::BYTES <= NODES && DATA < SIZE_MIN);

/// Declares an enum whose numbers are stored in the carve-out.
macro_rules! number_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name { $($(#[$vdoc])* $variant = $number,)* }

        impl $name {
            /// The variant with this number; `None` if the other side wrote anything else.
            pub fn of(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use number_enum;

number_enum! {
    /// An order of Linux to the guest.
    Order {
        /// Get ready, then wait.
        Wait = 0,
        /// Run the nodes.
        Run = 1,
        /// Send safe values, and end.
        Stop = 2,
    }
}

number_enum! {
    /// The progress of the guest.
    GuestState {
        /// It has written nothing yet.
        Absent = 0,
        /// It makes its nodes.
        Starting = 1,
        /// It waits for the order to run.
        Ready = 2,
        /// Its nodes run.
        Running = 3,
        /// It has stopped as it was told to.
        Stopped = 4,
        /// It cannot go on; the fault says why.
        Faulted = 5,
    }
}

/// Why bytes are not a carve-out of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCarveOut {
    /// Shorter than [`SIZE_MIN`] or longer than [`SIZE_MAX`].
    Size(usize),
    /// Word `what` is `found`, not `expected`.
    Header {
        /// Name of the word.
        what: &'static str,
        /// Its value.
        found: u32,
        /// The value that it must have.
        expected: u32,
    },
    /// More nodes or rows than there is room for.
    TooMany {
        /// Nodes or rows.
        what: &'static str,
        /// Their count.
        found: u32,
    },
}

impl core::fmt::Display for BadCarveOut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {
            BadCarveOut::Size(size) => {
                write!(f, "the carve-out has {size} bytes, expected {SIZE_MIN} to {SIZE_MAX}")
            }
            BadCarveOut::Header { what, found, expected } => {
                write!(f, "the carve-out's {what} is {found:#x}, expected {expected:#x}")
            }
            BadCarveOut::TooMany { what, found } => {
                write!(f, "the carve-out has {found} {what}, more than there is room for")
            }
        }
    }
}

impl core::error::Error for BadCarveOut {}

/// The header, at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Size of the whole, bytes.
    pub size: u32,
    /// Number of this life of the guest, from 1.
    pub epoch: u32,
    /// Count of nodes that it is to run.
    pub nodes: u32,
    /// Count of rows.
    pub rows: u32,
    /// Offset of named memory.
    pub named_from: u32,
}

/// A carve-out, as either side sees it.
#[derive(Clone, Debug)]
pub struct CarveOut<M> {
    words: SharedWords<M>,
}

impl<M: Memory> CarveOut<M> {
    /// A carve-out that Linux makes, or makes anew: it is empty, and no guest has begun.
    ///
    /// # Errors
    /// The memory is too short or too long.
    pub fn create(memory: M) -> Result<CarveOut<M>, BadCarveOut> {
        let carve_out = CarveOut::over(memory)?;
        let size = carve_out.words.memory().len() as u32;
        for (at, word) in [MAGIC, VERSION, size, 0, 0, 0, DATA as u32].into_iter().enumerate() {
            carve_out.words.set(at * 4, word);
        }
        Ok(carve_out)
    }

    /// A carve-out that the other side has made.
    ///
    /// # Errors
    /// It is not a carve-out, or has another version or size.
    pub fn open(memory: M) -> Result<(CarveOut<M>, Header), BadCarveOut> {
        let carve_out = CarveOut::over(memory)?;
        let word = |at: usize| carve_out.words.get(at * 4);
        let size = carve_out.words.memory().len() as u32;
        for (at, (what, expected)) in
            [("magic", MAGIC), ("version", VERSION), ("size", size)].into_iter().enumerate()
        {
            let found = word(at);
            if found != expected {
                return Err(BadCarveOut::Header { what, found, expected });
            }
        }
        let (nodes, rows, named_from) = (word(4), word(5), word(6));
        let header = Header { size, epoch: word(3), nodes, rows, named_from };
        if !(DATA as u32..=size).contains(&named_from) || !named_from.is_multiple_of(PAGE as u32) {
            let what = "named memory's start";
            return Err(BadCarveOut::Header { what, found: named_from, expected: DATA as u32 });
        }
        for (what, found, most) in
            [("nodes", header.nodes, NODES_MAX), ("rows", header.rows, ROWS_MAX)]
        {
            if found as usize > most {
                return Err(BadCarveOut::TooMany { what, found });
            }
        }
        Ok((carve_out, header))
    }

    fn over(memory: M) -> Result<CarveOut<M>, BadCarveOut> {
        match memory.len() {
            size if (SIZE_MIN..=SIZE_MAX).contains(&size) => {
                Ok(CarveOut { words: SharedWords::new(memory) })
            }
            size => Err(BadCarveOut::Size(size)),
        }
    }

    /// Its bytes.
    pub fn memory(&self) -> &M {
        self.words.memory()
    }

    /// Linux: begins a new life of the guest, with these nodes and rows. Clears what the life
    /// before has left in the guest's words.
    pub fn begin(&self, epoch: u32, nodes: &[NodeRow], rows: &[RegionRow]) {
        self.words.set(ORDER, Order::Wait as u32);
        (STATE..FAULT + fault::BYTES).step_by(4).for_each(|at| self.words.set(at, 0));
        (STATUS..ROWS).step_by(4).for_each(|at| self.words.set(at, 0));
        (ROW_STATES..ROW_STATES + ROWS_MAX * 4).step_by(4).for_each(|at| self.words.set(at, 0));
        for (at, node) in nodes.iter().enumerate().take(NODES_MAX) {
            node.write(&self.words, NODES + at * node::ROW_BYTES);
        }
        for (at, row) in rows.iter().enumerate().take(ROWS_MAX) {
            row.write(&self.words, ROWS + at * row::BYTES);
        }
        let ends = rows.iter().map(|row| row.offset as usize + row.size as usize);
        let named_from = ends.max().unwrap_or(DATA).next_multiple_of(PAGE).max(DATA);
        self.words.set(24, named_from.min(self.memory().len()) as u32);
        (ENTRIES[0]..LETTERS).step_by(4).for_each(|at| self.words.set(at, 0));
        letter::create(self.memory());
        self.words.set(16, nodes.len().min(NODES_MAX) as u32);
        self.words.set(20, rows.len().min(ROWS_MAX) as u32);
        self.words.set(12, epoch);
    }

    /// Linux: gives an order.
    pub fn order(&self, order: Order) {
        self.words.set(ORDER, order as u32);
    }

    /// Guest: the order of Linux. An unknown number counts as the order to stop.
    pub fn ordered(&self) -> Order {
        Order::of(self.words.get(ORDER)).unwrap_or(Order::Stop)
    }

    /// Linux: shows that it is alive.
    pub fn beat_of_linux(&self) {
        let beat = self.words.get(BEAT_OF_LINUX);
        self.words.set(BEAT_OF_LINUX, beat.wrapping_add(1));
    }

    /// Guest: how often Linux has shown that it is alive.
    pub fn beats_of_linux(&self) -> u32 {
        self.words.get(BEAT_OF_LINUX)
    }

    /// Guest: writes its progress, and in which life.
    pub fn reached(&self, state: GuestState, epoch: u32) {
        self.words.set(EPOCH_OF_GUEST, epoch);
        self.words.set(STATE, state as u32);
    }

    /// Linux: the progress of the guest in this life. `None` if it wrote nonsense.
    pub fn state(&self, epoch: u32) -> Option<GuestState> {
        match GuestState::of(self.words.get(STATE)) {
            // A state of another life means that the guest has not begun this one.
            Some(_) if self.words.get(EPOCH_OF_GUEST) != epoch => Some(GuestState::Absent),
            state => state,
        }
    }

    /// Guest: it is alive, and counts so many ticks a second.
    pub fn beat_of_guest(&self, tick_hz: u32) {
        self.words.set(TICK_HZ, tick_hz);
        let beat = self.words.get(BEAT_OF_GUEST);
        self.words.set(BEAT_OF_GUEST, beat.wrapping_add(1));
    }

    /// Linux: how often the guest has shown that it is alive.
    pub fn beats_of_guest(&self) -> u32 {
        self.words.get(BEAT_OF_GUEST)
    }

    /// Guest: writes why it cannot go on. Must be called before it reaches [`GuestState::Faulted`].
    pub fn set_fault(&self, fault: &GuestFault) {
        fault.write(&self.words, FAULT);
    }

    /// Linux: why the guest could not go on. `None` if there is no fault, or what the guest wrote
    /// is not one.
    pub fn fault(&self) -> Option<GuestFault> {
        GuestFault::read(&self.words, FAULT)
    }

    /// Guest: node `node` of the table. `None` past the end of the table, or if the row is
    /// nonsense.
    pub fn node(&self, node: usize) -> Option<NodeRow> {
        let row = node < NODES_MAX;
        row.then(|| NodeRow::read(&self.words, NODES + node * node::ROW_BYTES))?
    }

    /// Guest: writes the work of node `node`. Only the guest writes this.
    ///
    /// # Panics
    /// There is no room for such a node.
    pub fn set_tally(&self, node: usize, status: &NodeTally) {
        assert!(node < NODES_MAX, "node {node} of {NODES_MAX}");
        status.write(&self.words, STATUS + node * node::STATUS_BYTES);
    }

    /// Linux: the work of node `node`.
    ///
    /// # Panics
    /// There is no room for such a node.
    pub fn tally(&self, node: usize) -> NodeTally {
        assert!(node < NODES_MAX, "node {node} of {NODES_MAX}");
        NodeTally::read(&self.words, STATUS + node * node::STATUS_BYTES)
    }

    /// Row `row` of the table. `None` past the end of the table, or if the row is nonsense. Its
    /// region is inside the carve-out.
    pub fn row(&self, row: usize) -> Option<RegionRow> {
        let is_there = row < ROWS_MAX;
        let found = is_there.then(|| RegionRow::read(&self.words, ROWS + row * row::BYTES))??;
        found.lies_in(self.memory().len()).then_some(found)
    }

    /// Guest: writes the state of its side of a row.
    ///
    /// # Panics
    /// There is no such row.
    pub fn set_side(&self, row: usize, state: SideState) {
        assert!(row < ROWS_MAX, "row {row} of {ROWS_MAX}");
        self.words.set(ROW_STATES + row * 4, state as u32);
    }

    /// Linux: the state of the guest's side of a row; `None` if it wrote nonsense.
    ///
    /// # Panics
    /// There is no such row.
    pub fn side(&self, row: usize) -> Option<SideState> {
        assert!(row < ROWS_MAX, "row {row} of {ROWS_MAX}");
        SideState::of(self.words.get(ROW_STATES + row * 4))
    }
}

#[cfg(test)]
mod tests;
