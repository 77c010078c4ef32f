//! Rows of the table of regions: what is in the carve-out, and where.

use sinew_link::{Memory, PieceMemory, RegionError, Shape, SharedWords};

use crate::text::Name;
use crate::{DATA, NODES_MAX, PAGE, number_enum};

pub(crate) const BYTES: usize = 128;

number_enum! {
    /// The direction of messages, as the guest sees it.
    Direction {
        /// The guest reads.
        In = 0,
        /// The guest writes.
        Out = 1,
    }
}

number_enum! {
    /// Which messages the reader gets.
    Delivery {
        /// Every one, in order.
        Queue = 0,
        /// The newest.
        Latest = 1,
        /// Every one for which it is fast enough.
        Broadcast = 2,
    }
}

number_enum! {
    /// The state of a side of a row.
    SideState {
        /// It has not attached the region.
        Free = 0,
        /// It uses it.
        Attached = 1,
        /// It has detached the region.
        Detached = 2,
        /// It could not attach the region, whose bytes were not as expected.
        Refused = 3,
    }
}

/// A region of a link between the two systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// The guest's node at its end, as an index into the table of nodes.
    pub node: u32,
    /// Index of that node's port.
    pub port: u32,
    /// Direction of messages.
    pub direction: Direction,
    /// Which messages the reader gets.
    pub delivery: Delivery,
    /// Messages that a queue or broadcast holds.
    pub capacity: u32,
    /// Bytes of a message.
    pub message_size: u32,
    /// Number of the bell that wakes the reader; 0: none, it polls.
    pub bell: u32,
}

/// A region in the carve-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionRow {
    /// Its name, unique.
    pub name: Name,
    /// First byte, a multiple of [`PAGE`].
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Hash of the message's type.
    pub hash: u32,
    /// The link that uses the region.
    pub link: LinkRow,
}

impl RegionRow {
    /// Whether it begins at a page, after the tables, and ends within `size` bytes.
    pub fn lies_in(&self, size: usize) -> bool {
        let (offset, len) = (self.offset as usize, self.size as usize);
        let ends = offset.checked_add(len).is_some_and(|end| end <= size);
        offset >= DATA && offset.is_multiple_of(PAGE) && len > 0 && ends
    }

    /// The shape of its region.
    pub fn shape(&self) -> Shape {
        let LinkRow { message_size, capacity, .. } = self.link;
        let shape = match self.link.delivery {
            Delivery::Queue => Shape::queue(message_size, self.hash, capacity),
            Delivery::Latest => Shape::latest(message_size, self.hash),
            Delivery::Broadcast => Shape::broadcast(message_size, self.hash, capacity),
        };
        if self.link.bell == 0 { shape } else { shape.parking() }
    }

    /// Linux: makes its region, with nothing in it. Must be called before any side attaches.
    ///
    /// # Errors
    /// It is not inside this memory, or has no possible shape.
    pub fn create<M: Memory>(&self, carve_out: M) -> Result<(), RegionError> {
        let (offset, shape) = (self.offset as usize, self.shape());
        let (len, needed) = (carve_out.len(), offset.saturating_add(self.size as usize));
        match PieceMemory::new(carve_out, offset, self.size as usize) {
            Some(piece) => sinew_link::create(&piece, &shape),
            None => Err(RegionError::Length { found: len, expected: needed }),
        }
    }

    pub(crate) fn write<M: Memory>(&self, words: &SharedWords<M>, at: usize) {
        let LinkRow { node, port, direction, delivery, capacity, message_size, bell } = self.link;
        self.name.write(words, at);
        let rest = [
            self.offset,
            self.size,
            self.hash,
            node,
            port,
            direction as u32,
            delivery as u32,
            capacity,
            message_size,
            bell,
        ];
        for (i, word) in rest.into_iter().enumerate() {
            words.set(at + 32 + i * 4, word);
        }
    }

    pub(crate) fn read<M: Memory>(words: &SharedWords<M>, at: usize) -> Option<RegionRow> {
        let word = |i: usize| words.get(at + 32 + i * 4);
        let link = LinkRow {
            node: word(3),
            port: word(4),
            direction: Direction::of(word(5))?,
            delivery: Delivery::of(word(6))?,
            capacity: word(7),
            message_size: word(8),
            bell: word(9),
        };
        let (offset, size, hash) = (word(0), word(1), word(2));
        let row = RegionRow { name: Name::read(words, at), offset, size, hash, link };
        ((link.node as usize) < NODES_MAX).then_some(row)
    }
}
