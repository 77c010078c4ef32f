//! Named memory: things that one side makes and both find by name.

use sinew_link::semaphore::SEMAPHORE_BYTES;
use sinew_link::{Memory, Shape, SharedWords};

use crate::number_enum;
use crate::text::Name;

/// Most entries that each side makes.
pub const ENTRIES_MAX: usize = 32;
/// Most bytes of one thing. A larger wish is refused.
pub const SHARED_BYTES_MAX: u32 = 1 << 20;
/// Most bytes that each side gives out in all, so that a side that leaks still leaves some room.
pub const SHARED_QUOTA: u32 = 4 << 20;
/// Most bytes of a message of a message queue.
pub const QUEUE_MESSAGE_MAX: u32 = 4096;
/// Most messages in a message queue, in each direction.
pub const QUEUE_CAPACITY_MAX: u32 = 256;

pub(crate) const BYTES: usize = 128;

number_enum! {
    /// The side whose allocator made a thing.
    MadeBy {
        /// Linux.
        Linux = 0,
        /// The guest.
        Guest = 1,
    }
}

impl MadeBy {
    /// The other side.
    pub fn other(self) -> MadeBy {
        match self {
            MadeBy::Linux => MadeBy::Guest,
            MadeBy::Guest => MadeBy::Linux,
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            MadeBy::Linux => "linux",
            MadeBy::Guest => "guest",
        }
    }
}

number_enum! {
    /// The class of a named thing.
    SharedClass {
        /// Bytes.
        Region = 1,
        /// A semaphore.
        Semaphore = 2,
        /// A message queue: one for each direction.
        Queue = 3,
    }
}

impl SharedClass {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            SharedClass::Region => "region",
            SharedClass::Semaphore => "semaphore",
            SharedClass::Queue => "queue",
        }
    }
}

number_enum! {
    /// Why a side refuses a request. The numbers are used in answers.
    SharedRefusal {
        /// The name belongs to something else.
        Taken = 1,
        /// Nobody has made such a thing.
        Unknown = 2,
        /// It is too small, too large, or of an impossible shape.
        BadSize = 3,
        /// All entries are in use.
        TooMany = 4,
        /// More bytes than a side gives out.
        Quota = 5,
        /// No room of that length is left.
        NoRoom = 6,
        /// A side still holds it.
        Attached = 7,
        /// This side does not hold it.
        Detached = 8,
        /// It is something else.
        WrongClass = 9,
        /// It holds messages of another type.
        WrongHash = 10,
        /// It is not a valid name.
        BadName = 11,
        /// The request is not understood.
        BadRequest = 12,
        /// The image has no such job.
        NoJob = 13,
        /// The job answered with an error.
        JobFailed = 14,
        /// Another job is still running.
        Busy = 15,
        /// The graph's guest has no such node.
        NoNode = 16,
        /// The other side wrote a value that is not allowed.
        Corrupt = 17,
        /// The deadline is over.
        Late = 18,
    }
}

impl SharedRefusal {
    /// In words, with the next step.
    pub fn text(self) -> &'static str {
        match self {
            SharedRefusal::Taken => {
                "the name is taken by something of another class, size or hash; choose another"
            }
            SharedRefusal::Unknown => "nothing has this name; get it first",
            SharedRefusal::BadSize => {
                "the size is not valid: 1 B to 1 MiB (1048576 B) in all; a queue has messages of 1 \
                 B to 4096 B, and a power of two of them up to 256"
            }
            SharedRefusal::TooMany => "this side has 32 entries, the limit; remove one",
            SharedRefusal::Quota => {
                "this side would allocate more than 4 MiB, the limit; remove something"
            }
            SharedRefusal::NoRoom => {
                "no room of that length is left in this side's half; remove something, or raise \
                 the memory of the guest"
            }
            SharedRefusal::Attached => "a side still holds it; detach it there first",
            SharedRefusal::Detached => "it is not attached here; attach it first",
            SharedRefusal::WrongClass => "it is of another class",
            SharedRefusal::WrongHash => "it has another hash",
            SharedRefusal::BadName => "expected a name of 1 to 31 bytes",
            SharedRefusal::BadRequest => "the other side does not understand this request",
            SharedRefusal::NoJob => "the image has no such job",
            SharedRefusal::JobFailed => "the job failed",
            SharedRefusal::Busy => "another job is still at work; call again later",
            SharedRefusal::NoNode => "the guest has no such node",
            SharedRefusal::Corrupt => "the other side wrote invalid data; start it again",
            SharedRefusal::Late => "no answer within the deadline",
        }
    }
}

impl core::fmt::Display for SharedRefusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for SharedRefusal {}

/// The thing that shall be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedWish {
    /// What it is.
    pub class: SharedClass,
    /// Bytes.
    pub size: u32,
    /// Hash of its content, which both sides compare. 0 for plain bytes.
    pub hash: u32,
    /// For a semaphore its first tokens; for a queue the bytes of a message and the capacity.
    pub detail: [u32; 2],
}

impl SharedWish {
    /// Bytes.
    pub fn region(size: u32, hash: u32) -> SharedWish {
        SharedWish { class: SharedClass::Region, size, hash, detail: [0; 2] }
    }

    /// A semaphore with `tokens` tokens at first.
    pub fn semaphore(tokens: u32) -> SharedWish {
        let class = SharedClass::Semaphore;
        SharedWish { class, size: SEMAPHORE_BYTES as u32, hash: 0, detail: [tokens, 0] }
    }

    /// A message queue for messages of `message_size` bytes, with room for `capacity` in each
    /// direction.
    pub fn queue(message_size: u32, capacity: u32, hash: u32) -> SharedWish {
        let detail = [message_size, capacity];
        let wish = SharedWish { class: SharedClass::Queue, size: 0, hash, detail };
        let size = if wish.has_queue_shape() { 2 * wish.way_bytes() as u32 } else { 0 };
        SharedWish { size, ..wish }
    }

    /// Whether such a thing is possible.
    pub fn is_sound(&self) -> bool {
        let of_class = match self.class {
            SharedClass::Region => true,
            SharedClass::Semaphore => {
                self.size == SEMAPHORE_BYTES as u32 && self.detail[0] <= u32::from(u16::MAX)
            }
            SharedClass::Queue => {
                self.has_queue_shape() && self.size == 2 * self.way_bytes() as u32
            }
        };
        of_class && (1..=SHARED_BYTES_MAX).contains(&self.size)
    }

    /// The shape of each direction of a queue.
    pub(crate) fn shape(&self) -> Shape {
        Shape::queue(self.detail[0], self.hash, self.detail[1])
    }

    /// Bytes of one direction of a queue.
    pub(crate) fn way_bytes(&self) -> usize {
        self.shape().region_len().next_multiple_of(128)
    }

    fn has_queue_shape(&self) -> bool {
        let [message, capacity] = self.detail;
        (1..=QUEUE_MESSAGE_MAX).contains(&message)
            && capacity.is_power_of_two()
            && capacity <= QUEUE_CAPACITY_MAX
    }
}

/// A named thing, copied out of the table and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedEntry {
    /// Its name.
    pub name: Name,
    /// Whose allocator made it.
    pub maker: MadeBy,
    /// Its place in that side's table.
    pub index: u32,
    /// First byte in the carve-out.
    pub offset: u32,
    /// The life of the guest in which it was made.
    pub epoch: u32,
    /// What it is.
    pub wish: SharedWish,
}

/// States of an entry, the lower two bits of its stamp; the upper ones count its changes.
pub(crate) const FREE: u32 = 0;
pub(crate) const CHANGING: u32 = 1;
pub(crate) const THERE: u32 = 2;
pub(crate) const LEAVING: u32 = 3;

impl SharedEntry {
    /// Writes all but the stamp.
    pub(crate) fn write<M: Memory>(&self, words: &SharedWords<M>, at: usize) {
        let SharedWish { class, size, hash, detail } = self.wish;
        self.name.write(words, at + 4);
        let rest = [class as u32, self.offset, size, hash, detail[0], detail[1], self.epoch];
        for (i, word) in rest.into_iter().enumerate() {
            words.set(at + 36 + i * 4, word);
        }
    }

    /// Reads an entry, with its stamp, if it is there and does not change meanwhile. Only its class
    /// is checked.
    pub(crate) fn read<M: Memory>(
        words: &SharedWords<M>,
        at: usize,
        maker: MadeBy,
        index: u32,
    ) -> Option<(SharedEntry, u32)> {
        let stamp = words.get(at);
        if stamp & 3 != THERE {
            return None;
        }
        let word = |i: usize| words.get(at + 36 + i * 4);
        let class = SharedClass::of(word(0))?;
        let wish = SharedWish { class, size: word(2), hash: word(3), detail: [word(4), word(5)] };
        let (name, offset, epoch) = (Name::read(words, at + 4), word(1), word(6));
        let entry = SharedEntry { name, maker, index, offset, epoch, wish };
        // A writer of a word of a later change wrote its stamp before that word; both are acquired.
        (words.get(at) == stamp).then_some((entry, stamp))
    }
}
