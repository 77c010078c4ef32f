//! How a link crosses: one file and one row of [`TRANSPORTS`] each. All of them carry fixed-size
//! messages from one writer, and all go through the same conformance suite.
//!
//! A transport is opened once, by whoever starts the graph; that gives a [`Carrier`] for each side.
//! A carrier with descriptors may travel to another process; there it becomes a [`Sender`] or a
//! [`Receiver`].

mod doorbell;
mod kernel;
mod mutex;
mod pipe;
mod region;
mod stream;
mod tcp;
mod unix;
mod wait;

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

pub use doorbell::Doorbell;
pub use kernel::Kernel;
pub use region::{look, open_in, tuning};
use sinew_link::{Memory, queue};
use sinew_plan::catalogue::MessageType;
use sinew_plan::plan::{Delivery, Link, LinkTuning, Sync, Transport, Wait};

use self::doorbell::Parking;
use crate::fault::Fault;
use crate::sys::Region;

/// Mixed into the hash of a type if there is a stamp in front of each message.
const STAMPED: u32 = 0x5354_4d50;

/// What both sides of a link must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkShape {
    /// Bytes of a message.
    pub message_size: u32,
    /// Hash of the message type.
    pub type_hash: u32,
    /// Messages that the link can hold; a power of two. Byte streams hold at least one, and beyond
    /// that what the kernel's buffer, sized for this many, takes.
    pub capacity: u32,
    /// How both sides keep out of each other's way.
    pub sync: Sync,
    /// Which messages the reader gets.
    pub delivery: Delivery,
    /// How a side waits.
    pub wait: Wait,
    /// What suits the link, as measured; `None`: the default. Used only for links in memory without
    /// a lock. Behind a mutex, whose place follows from the layout, and through the kernel nothing
    /// is shaped.
    pub tuning: Option<LinkTuning>,
}

impl LinkShape {
    /// The shape of a planned link.
    pub fn of(link: &Link) -> LinkShape {
        // Two ends do not fit together if only one of them uses stamps.
        let stamped = if link.after_ns.is_some() { STAMPED } else { 0 };
        LinkShape {
            message_size: link.crossing_bytes(),
            type_hash: link.message.hash ^ stamped,
            capacity: link.capacity,
            sync: link.sync,
            delivery: link.delivery,
            wait: link.wait,
            tuning: link.tuning,
        }
    }
}

impl LinkShape {
    /// The shape of the link that brings new values of its parameters to a node.
    pub fn tuning(message: &MessageType) -> LinkShape {
        LinkShape {
            message_size: message.size,
            type_hash: message.hash,
            capacity: 1,
            sync: Sync::LockFree,
            delivery: Delivery::Latest,
            wait: Wait::Spin,
            tuning: None,
        }
    }
}

/// One side of an open link, not yet in use.
#[derive(Debug)]
pub enum Carrier {
    /// Bytes that both sides map.
    Region(Region),
    /// Bytes that a guest maps, and the bells with which both sides wake each other.
    Guest(Region, Doorbell),
    /// One end of a byte stream.
    Stream(OwnedFd),
}

impl Carrier {
    /// The bytes that both sides map; a stream has none.
    pub fn region(&self) -> Option<&Region> {
        match self {
            Carrier::Region(region) | Carrier::Guest(region, _) => Some(region),
            Carrier::Stream(_) => None,
        }
    }
}

/// What became of a message that was handed to [`Sender::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way.
    Done,
    /// There is no room; it was not taken. Only `delivery: queue` says this.
    Full,
    /// The reader has closed the link or is gone; it was not taken.
    Closed,
}

/// The writing end. No call blocks but [`Sender::wait_room`], except that a byte stream waits a
/// bounded time in `close` if the rest of a message has yet to go out, and that with `sync: mutex`
/// `send` waits a bounded time for its lock.
pub trait Sender: Send {
    /// Sends one message of the link's size and wakes a reader that sleeps.
    ///
    /// # Errors
    /// [`Cause::BadPeer`](crate::Cause::BadPeer) if the reader wrote what no reader may write,
    /// [`Cause::System`](crate::Cause::System) if the kernel refuses.
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault>;

    /// As `send`, without waiting for a lock either. `None`: somebody holds it.
    fn try_send(&mut self, message: &[u8]) -> Option<Result<Sent, Fault>> {
        Some(self.send(message))
    }

    /// The place of the next message, to be written part by part; for `delivery: queue` in shared
    /// memory. `None`: there is no room, or the reader has closed the link.
    ///
    /// # Errors
    /// As for `send`; and [`Cause::Error`](crate::Cause::Error) if the link has no such places.
    fn claim(&mut self) -> Result<Option<Claim<'_>>, Fault> {
        Err(no_places())
    }

    /// The place of the message `ahead` messages after the next one: for a caller that fills
    /// several at a time, in an order of its own. Each is sent by a `claim` at its turn. `None`:
    /// there is no room, or the reader has closed the link.
    ///
    /// # Errors
    /// As for `claim`.
    fn place(&mut self, _ahead: u32) -> Result<Option<MessagePlace>, Fault> {
        Err(no_places())
    }

    /// How many places there are.
    ///
    /// # Errors
    /// [`Cause::Error`](crate::Cause::Error) if the link has no such places.
    fn places(&self) -> Result<u32, Fault> {
        Err(no_places())
    }

    /// Goes on with what an earlier `send` took but could not yet move; called every cycle.
    ///
    /// # Errors
    /// As for `send`.
    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// Waits, as the link's wait strategy says, until there may be room or the monotonic clock
    /// shows `until_ns`. Returns whether there may be room.
    fn wait_room(&mut self, until_ns: u64) -> bool;

    /// Tells the reader that nothing more will come. Dropping does the same. (A killed writer
    /// cannot say that in a region: attach another sender and drop it to say it for the dead one.)
    fn close(&mut self);

    /// As `close`, but at once: what was taken and has not yet gone out is lost.
    fn hang_up(&mut self) {
        self.close();
    }
}

/// The place of the next message, to be written part by part: for messages so large that a copy of
/// the whole costs more than the rest of the link. Nobody gets a reference into the region, because
/// a peer may write there at any time. [`commit`](Claim::commit) sends it; if it is dropped,
/// nothing is sent.
pub struct Claim<'a> {
    slot: queue::Claim<'a, Region>,
    parking: &'a Parking,
}

impl Claim<'_> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.slot.len()
    }

    /// Writes a part of the message, `offset` bytes from its start. Bytes that no part covers hold
    /// an earlier message, or anything.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn write_at(&mut self, offset: usize, part: &[u8]) {
        self.slot.write_at(offset, part);
    }

    /// Sends the message, and wakes a reader that sleeps.
    pub fn commit(self) {
        self.slot.commit_and_wake(self.parking);
    }
}

/// The place of a message, for code that can write only through a pointer, such as a library in C.
/// It keeps the region mapped, nothing else: its user must know whether the place is still this
/// side's. Nobody gets a reference to its bytes.
#[derive(Clone, Debug)]
pub struct MessagePlace {
    region: Region,
    at: Range<usize>,
}

impl MessagePlace {
    /// Where it begins: aligned to 8 bytes, and to 128 if the message's size is a multiple of that.
    pub fn start(&self) -> NonNull<u8> {
        let start = self.region.base().as_ptr().wrapping_add(self.at.start);
        NonNull::new(start).expect("a place inside a region is not 0")
    }

    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.at.len()
    }
}

/// A message that is read in place before its turn. As with a [`Peek`], a writer that breaks the
/// rules can change it between two reads.
pub struct Ahead<'a>(queue::Ahead<'a, Region>);

impl Ahead<'_> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Copies a part of the message, which begins `offset` bytes from its start.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) {
        self.0.read_at(offset, into);
    }
}

/// The next message, in its place, to be read part by part. A writer that breaks the rules can
/// change it between two reads: check what was copied, not what is in the place.
/// [`release`](Peek::release) frees it; if it is dropped, it stays the next one.
pub struct Peek<'a> {
    slot: queue::Peek<'a, Region>,
    parking: &'a Parking,
}

impl Peek<'_> {
    /// Bytes of the message.
    #[expect(clippy::len_without_is_empty, reason = "a message is never empty")]
    pub fn len(&self) -> usize {
        self.slot.len()
    }

    /// Copies a part of the message, which begins `offset` bytes from its start.
    ///
    /// # Panics
    /// If the part reaches past the end of the message.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) {
        self.slot.read_at(offset, into);
    }

    /// Frees the place of the message, and wakes a writer that waits for room.
    pub fn release(self) {
        self.slot.release_and_wake(self.parking);
    }
}

/// The fault of a link that has no such places.
fn no_places() -> Fault {
    crate::fault!(
        "this link cannot be written or read in place; give it 'transport: shared_memory' (or \
         in_process), 'sync: lock_free' and 'delivery: queue'"
    )
}

/// What [`Receiver::receive`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing since the last call.
    None,
    /// A message.
    New {
        /// With `broadcast`: how many messages before it were overwritten or dropped. 0 otherwise.
        lost: u32,
    },
    /// Nothing, and the writer has closed the link or is gone: nothing will come.
    Closed,
}

/// The reading end. No call blocks but [`Receiver::wait`], except that `sync: mutex` waits a
/// bounded time for its lock.
pub trait Receiver: Send {
    /// Takes a message (the next one, or with `latest` the newest) into `into`, which has the
    /// link's message size. If there is no new message, `into` may be overwritten with the old one,
    /// but with nothing else.
    ///
    /// # Errors
    /// [`Cause::BadPeer`](crate::Cause::BadPeer) if the writer wrote what no writer may write,
    /// [`Cause::System`](crate::Cause::System) if the kernel refuses.
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault>;

    /// The next message, to be read part by part; for `delivery: queue` in shared memory. `None`:
    /// there is none, or there will be none.
    ///
    /// # Errors
    /// As for `receive`; and [`Cause::Error`](crate::Cause::Error) if the link has no such places.
    fn peek(&mut self) -> Result<Option<Peek<'_>>, Fault> {
        Err(no_places())
    }

    /// The message `ahead` messages after the next one, to be read before its turn; for `delivery:
    /// queue` in shared memory. `None`: it is not there yet.
    ///
    /// # Errors
    /// As for `peek`.
    fn ahead(&mut self, _ahead: u32) -> Result<Option<Ahead<'_>>, Fault> {
        Err(no_places())
    }

    /// Waits, as the link's wait strategy says, until `receive` may give something other than
    /// `None` or the monotonic clock shows `until_ns`. Returns whether it may.
    fn wait(&mut self, until_ns: u64) -> bool;
}

/// A transport: how to open it, and how to make ends of its carriers.
pub struct TransportRow {
    /// Its name in the plan.
    pub transport: Transport,
    /// The ways to synchronise that it supports.
    pub syncs: &'static [Sync],
    /// Whether the carriers may go to other processes.
    pub crosses_processes: bool,
    /// Opens a link: the writer's carrier and the reader's. Regions of `broadcast` may have more
    /// readers: their carriers are clones of the reader's.
    pub open: fn(&LinkShape) -> io::Result<(Carrier, Carrier)>,
    /// Makes the writing end.
    pub sender: MakeEnd<dyn Sender>,
    /// Makes a reading end.
    pub receiver: MakeEnd<dyn Receiver>,
}

/// Makes an end of a carrier; refuses one that is of another shape. (A byte stream tells its shape
/// only when the writer has sent it, so there the first `receive` refuses.)
pub type MakeEnd<End> = fn(Carrier, &LinkShape) -> Result<Box<End>, Fault>;

const BOTH: &[Sync] = &[Sync::LockFree, Sync::Mutex];
const LOCK_FREE: &[Sync] = &[Sync::LockFree];

/// All transports.
pub const TRANSPORTS: &[TransportRow] = &[
    TransportRow {
        transport: Transport::InProcess,
        syncs: BOTH,
        crosses_processes: false,
        open: region::open_in_process,
        sender: region::sender,
        receiver: region::receiver,
    },
    TransportRow {
        transport: Transport::SharedMemory,
        syncs: BOTH,
        crosses_processes: true,
        open: region::open_shared,
        sender: region::sender,
        receiver: region::receiver,
    },
    TransportRow {
        transport: Transport::Pipe,
        syncs: LOCK_FREE,
        crosses_processes: true,
        open: pipe::open,
        sender: stream::sender,
        receiver: stream::receiver,
    },
    TransportRow {
        transport: Transport::Unix,
        syncs: LOCK_FREE,
        crosses_processes: true,
        open: unix::open,
        sender: stream::sender,
        receiver: stream::receiver,
    },
    TransportRow {
        transport: Transport::Tcp,
        syncs: LOCK_FREE,
        crosses_processes: true,
        open: tcp::open,
        sender: stream::sender,
        receiver: stream::receiver,
    },
    // The owner of a guest opens its links in the memory that both see, with [`open_in`].
    TransportRow {
        transport: Transport::CarveOut,
        syncs: LOCK_FREE,
        crosses_processes: true,
        open: region::open_shared,
        sender: region::sender,
        receiver: region::receiver,
    },
];

/// The row of a transport.
pub fn row(transport: Transport) -> &'static TransportRow {
    TRANSPORTS.iter().find(|row| row.transport == transport).expect("every transport has a row")
}
