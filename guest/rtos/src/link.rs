//! An end of a link between Linux and a node.

mod in_place;

pub use in_place::Peek;

use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use sinew_carve_out::{Delivery, Direction, LinkRow, RegionRow};
use sinew_link::latest::Fresh;
use sinew_link::{Corrupt, Layout, Os, RawMemory, RegionError, Wait, broadcast, latest, queue};

use crate::{Fault, agent, board, cpu, fault, kernel};

/// Offsets in a region of the writer's words, of the reader's words, and of both bells; see
/// `sinew_link`.
const WRITERS: usize = 128;
const READERS: usize = 256;
const BELLS: Range<usize> = 384..640;
/// Bytes that hold all words of one side.
const LINE: usize = 64;

/// An end of a link, over the region of a row.
pub(crate) struct Link {
    row: RegionRow,
    /// The row's number in the carve-out.
    pub(crate) number: usize,
    layout: Layout,
    end: End,
}

enum End {
    QueueIn(queue::Reader<RawMemory>),
    QueueOut(queue::Writer<RawMemory>),
    LatestIn(latest::Reader<RawMemory>),
    LatestOut(latest::Writer<RawMemory>),
    BroadcastIn(broadcast::Reader<RawMemory>),
    BroadcastOut(broadcast::Writer<RawMemory>),
}

/// The result of a read.
pub(crate) struct Received {
    pub(crate) is_new: bool,
    /// Count of messages that were overwritten before they were read.
    pub(crate) lost: u32,
}

impl Link {
    /// Attaches to the region of a row.
    pub(crate) fn attach(number: usize, row: RegionRow) -> Result<Link, RegionError> {
        let base = board::CARVE_OUT + row.offset as usize;
        let base = NonNull::new(base as *mut u8).expect("the carve-out does not begin at 0");
        // SAFETY: the row lies in the carve-out, which is mapped for ever and only used as atomics.
        let memory = unsafe { RawMemory::new(base, row.size as usize) };
        let shape = row.shape();
        let end = match (row.link.delivery, row.link.direction) {
            (Delivery::Queue, Direction::In) => {
                queue::Reader::attach(memory, &shape).map(End::QueueIn)
            }
            (Delivery::Queue, Direction::Out) => {
                queue::Writer::attach(memory, &shape).map(End::QueueOut)
            }
            (Delivery::Latest, Direction::In) => {
                latest::Reader::attach(memory, &shape).map(End::LatestIn)
            }
            (Delivery::Latest, Direction::Out) => {
                latest::Writer::attach(memory, &shape).map(End::LatestOut)
            }
            (Delivery::Broadcast, Direction::In) => {
                broadcast::Reader::attach(memory, &shape).map(End::BroadcastIn)
            }
            (Delivery::Broadcast, Direction::Out) => {
                broadcast::Writer::attach(memory, &shape).map(End::BroadcastOut)
            }
        };
        Ok(Link { row, number, layout: shape.layout, end: end? })
    }

    /// Takes a message, if there is one. For a queue it makes up to `polls` looks.
    pub(crate) fn receive(&mut self, message: &mut [u8], polls: u32) -> Result<Received, Fault> {
        let (base, bell) = (self.base(), self.bell(0));
        let received = |is_new| Received { is_new, lost: 0 };
        if let End::QueueIn(reader) = &mut self.end {
            let taken = take(reader, base, self.layout, message, polls);
            if taken == Ok(true) {
                board::after_write(base + READERS, LINE);
                reader.wake(&bell);
            }
            return taken.map(received).map_err(|error| self.bad(error));
        }
        board::before_read(base, self.row.size as usize);
        let found = match &mut self.end {
            End::LatestIn(reader) => {
                reader.read(message).map(|fresh| received(fresh == Fresh::New))
            }
            End::BroadcastIn(reader) => reader.receive(message).map(|arrived| match arrived {
                Some(arrived) => Received { is_new: true, lost: arrived.lost },
                None => received(false),
            }),
            _ => Ok(received(false)),
        };
        found.map_err(|error| self.bad(error))
    }

    /// Sends a message. Returns whether there was room.
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<bool, Fault> {
        let (base, bell) = (self.base(), self.bell(0));
        let mut written = 0..self.row.size as usize;
        let sent = match &mut self.end {
            End::QueueOut(writer) => {
                written = writer.next_at();
                match put(writer, base, message) {
                    Ok(()) => Ok(true),
                    Err(queue::SendError::Full) => return Ok(false),
                    Err(queue::SendError::Corrupt) => Err(Corrupt),
                }
            }
            End::LatestOut(writer) => {
                writer.send(message);
                Ok(true)
            }
            End::BroadcastOut(writer) => {
                writer.send(message);
                Ok(true)
            }
            End::QueueIn(_) | End::LatestIn(_) | End::BroadcastIn(_) => Ok(true),
        };
        // The message must be in memory before Linux is told.
        board::after_write(base + written.start, written.len());
        if matches!(self.end, End::QueueOut(_)) {
            board::after_write(base + WRITERS, LINE);
        }
        match &self.end {
            End::QueueOut(writer) => writer.wake(&bell),
            End::LatestOut(writer) => writer.wake(&bell),
            End::BroadcastOut(writer) => writer.wake(&bell),
            End::QueueIn(_) | End::LatestIn(_) | End::BroadcastIn(_) => {}
        }
        sent.map_err(|error| self.bad(error))
    }

    /// Sleeps until there may be a message or room: until the bell rings, at most `park_ms`;
    /// without a bell for a millisecond.
    pub(crate) fn park(&mut self, park_ms: u32) {
        if self.row.link.bell == 0 {
            return kernel::wait_ms(1);
        }
        // Nothing comes from a peer that has closed its end. A new peer rings.
        if self.is_closed() {
            return kernel::wait_ms(park_ms);
        }
        let bell = self.bell(park_ms);
        let deadline_ns = Some(cpu::now_ns().saturating_add(u64::from(park_ms) * 1_000_000));
        match &mut self.end {
            End::QueueIn(reader) => reader.wait(Wait::Park, deadline_ns, &bell),
            End::QueueOut(writer) => writer.wait_room(Wait::Park, deadline_ns, &bell),
            End::LatestIn(reader) => reader.wait(Wait::Park, deadline_ns, &bell),
            End::BroadcastIn(reader) => reader.wait(Wait::Park, deadline_ns, &bell),
            End::LatestOut(_) | End::BroadcastOut(_) => true,
        };
    }

    /// The bell of this link.
    fn bell(&self, park_ms: u32) -> Bell {
        let LinkRow { bell: number, node, .. } = self.row.link;
        Bell { number, node: node as usize, park_ms, base: self.base() }
    }

    /// The end of a queue that the guest reads.
    pub(crate) fn reader(&mut self) -> Option<&mut queue::Reader<RawMemory>> {
        match &mut self.end {
            End::QueueIn(reader) => Some(reader),
            _ => None,
        }
    }

    /// The end of a queue that the guest writes.
    pub(crate) fn writer(&mut self) -> Option<&mut queue::Writer<RawMemory>> {
        match &mut self.end {
            End::QueueOut(writer) => Some(writer),
            _ => None,
        }
    }

    /// Whether the peer has closed its end.
    pub(crate) fn is_closed(&self) -> bool {
        board::before_read(self.base() + WRITERS, LINE);
        match &self.end {
            End::QueueIn(end) => end.is_peer_closed(),
            End::LatestIn(end) => end.is_peer_closed(),
            End::BroadcastIn(end) => end.is_peer_closed(),
            End::QueueOut(_) | End::LatestOut(_) | End::BroadcastOut(_) => false,
        }
    }

    /// Tells the other side that this end closes.
    pub(crate) fn close(&mut self) {
        match &mut self.end {
            End::QueueIn(end) => end.close(),
            End::QueueOut(end) => end.close(),
            End::LatestIn(end) => end.close(),
            End::LatestOut(end) => end.close(),
            // The writer of a broadcast never waits for readers, so it is not told.
            End::BroadcastIn(_) => {}
            End::BroadcastOut(end) => end.close(),
        }
    }

    fn base(&self) -> usize {
        board::CARVE_OUT + self.row.offset as usize
    }

    fn bad(&self, error: Corrupt) -> Fault {
        fault!("link '{}': {error}", self.row.name)
    }
}

/// Takes the next message of a queue, with up to `polls` looks for one. Before there is a message,
/// only the words that announce it are put in step, as the message may be long.
// Neither this nor `put` may be inlined: a test counts their barriers.
#[inline(never)]
fn take(
    reader: &mut queue::Reader<RawMemory>,
    base: usize,
    layout: Layout,
    message: &mut [u8],
    polls: u32,
) -> Result<bool, Corrupt> {
    if !find(reader, base, layout, polls)? {
        return Ok(false);
    }
    let next = reader.next_at();
    board::before_read(base + next.start, next.len());
    reader.try_receive(message)
}

/// Whether a queue has a message, within `polls` looks.
#[inline(always)]
fn find(
    reader: &mut queue::Reader<RawMemory>,
    base: usize,
    layout: Layout,
    polls: u32,
) -> Result<bool, Corrupt> {
    let sign = sign(reader.next_at(), layout);
    for _ in 0..polls {
        board::before_read(base + sign.start, sign.len());
        if reader.peek()?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The bytes that announce a message in a slot: the sequence, which is the last word of the slot,
/// or the writer's line.
fn sign(slot: Range<usize>, layout: Layout) -> Range<usize> {
    match layout {
        Layout::Sequence => slot.end - 4..slot.end,
        Layout::Index => WRITERS..WRITERS + LINE,
    }
}

/// Sends the next message of a queue.
#[inline(never)]
fn put(
    writer: &mut queue::Writer<RawMemory>,
    base: usize,
    message: &[u8],
) -> Result<(), queue::SendError> {
    board::before_read(base + READERS, LINE);
    writer.try_send(message)
}

/// Wakes the other side on Linux. Also wakes a serving node when Linux rings.
struct Bell {
    number: u32,
    /// The node at the guest's end.
    node: usize,
    /// Longest sleep without another look.
    park_ms: u32,
    /// Address of the region.
    base: usize,
}

impl Os for Bell {
    fn yield_now(&self) {
        kernel::wait_ms(1);
    }

    fn futex_wait(&self, word: &AtomicU32, expected: u32, _timeout_ns: u64) {
        // Acquire: pairs with the release of the side that rings. A ring since then is not lost
        // either: the node's notification is kept until the node waits.
        if word.load(Ordering::Acquire) == expected {
            kernel::wait_ms(self.park_ms);
        }
    }

    fn futex_wake(&self, _word: &AtomicU32) {
        board::after_write(self.base + BELLS.start, BELLS.len());
        board::ring(self.number);
    }

    /// Past every deadline once the node must stop, so that any wait ends.
    fn now_ns(&self) -> u64 {
        if agent::is_to_stop(self.node) {
            return u64::MAX;
        }
        cpu::now_ns()
    }
}
