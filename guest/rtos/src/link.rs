//! An end of a link between Linux and a node.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use sinew_carve_out::{Delivery, Direction, RegionRow};
use sinew_link::latest::Fresh;
use sinew_link::{Corrupt, Os, RawMemory, RegionError, broadcast, latest, queue};

use crate::{Fault, board, cpu, fault};

/// An end over the region of a row.
pub(crate) struct Link {
    row: RegionRow,
    /// The row's number in the carve-out.
    pub(crate) number: usize,
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

/// What a read found.
pub(crate) struct Received {
    pub(crate) is_new: bool,
    /// Messages that were overwritten before they were read.
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
        Ok(Link { row, number, end: end? })
    }

    /// Takes a message, if there is one.
    pub(crate) fn receive(&mut self, message: &mut [u8]) -> Result<Received, Fault> {
        board::before_read(self.base(), self.row.size as usize);
        let received = |is_new| Received { is_new, lost: 0 };
        let found = match &mut self.end {
            End::QueueIn(reader) => reader.try_receive(message).map(received),
            End::LatestIn(reader) => {
                reader.read(message).map(|fresh| received(fresh == Fresh::New))
            }
            End::BroadcastIn(reader) => reader.receive(message).map(|arrived| match arrived {
                Some(arrived) => Received { is_new: true, lost: arrived.lost },
                None => received(false),
            }),
            End::QueueOut(_) | End::LatestOut(_) | End::BroadcastOut(_) => Ok(received(false)),
        };
        found.map_err(|error| self.bad(error))
    }

    /// Whether there was room.
    pub(crate) fn send(&mut self, message: &[u8]) -> Result<bool, Fault> {
        let bell = Bell(self.row.link.bell);
        let sent = match &mut self.end {
            End::QueueOut(writer) => match writer.try_send(message) {
                Ok(()) => Ok(true),
                Err(queue::SendError::Full) => Ok(false),
                Err(queue::SendError::Corrupt) => Err(Corrupt),
            },
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
        // What was written is in memory before Linux is told.
        board::after_write(self.base(), self.row.size as usize);
        match &self.end {
            End::QueueOut(writer) => writer.wake(&bell),
            End::LatestOut(writer) => writer.wake(&bell),
            End::BroadcastOut(writer) => writer.wake(&bell),
            End::QueueIn(_) | End::LatestIn(_) | End::BroadcastIn(_) => {}
        }
        sent.map_err(|error| self.bad(error))
    }

    /// Whether who writes it has gone in order.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.end {
            End::QueueIn(end) => end.is_peer_closed(),
            End::LatestIn(end) => end.is_peer_closed(),
            End::BroadcastIn(end) => end.is_peer_closed(),
            End::QueueOut(_) | End::LatestOut(_) | End::BroadcastOut(_) => false,
        }
    }

    /// Says to the other side that this one goes.
    pub(crate) fn close(&mut self) {
        match &mut self.end {
            End::QueueIn(end) => end.close(),
            End::QueueOut(end) => end.close(),
            End::LatestIn(end) => end.close(),
            End::LatestOut(end) => end.close(),
            // Its writer never waits for readers, so it is not told.
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

/// Wakes a reader on Linux. The guest itself never waits for a link: its nodes are periodic.
struct Bell(u32);

impl Os for Bell {
    fn yield_now(&self) {}

    fn futex_wait(&self, _word: &AtomicU32, _expected: u32, _timeout_ns: u64) {}

    fn futex_wake(&self, _word: &AtomicU32) {
        board::ring(self.0);
    }

    fn now_ns(&self) -> u64 {
        (u128::from(cpu::counter()) * 1_000_000_000 / u128::from(cpu::counter_hz())) as u64
    }
}
