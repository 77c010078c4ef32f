//! The two sides of a link that is measured: a pair of the runtime's own ends, used as the runtime
//! uses them, or the ends of a queue that is written and read in place.

use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use sinew_core::clock::now_ns;
use sinew_core::sys::Region;
use sinew_core::transport::{Carrier, LinkShape, Received, Receiver, Sender, Sent, row};
use sinew_spec::plan::Wait;

use super::case::Case;
use crate::harness::in_place::{InPlace, sum};
use crate::harness::{Access, Gone, Life, Side, Waits};

/// Longest wait for the rest of a message without checking whether the other side is alive.
const WAIT_NS_MAX: u64 = 50_000_000;
/// The same while the rest of a message still has to be sent.
const REST_WAIT_NS: u64 = 20_000;
/// Larger messages may leave a stream in parts. Up to this size a pipe takes all or nothing.
const WHOLE_BYTES_MAX: u32 = 4096 - 4;

/// The carriers that a side needs for its two ends.
pub(super) struct Carriers {
    out: Carrier,
    into: Carrier,
}

impl Carriers {
    /// Two links, one in each direction: returns the carriers of the near and of the far side.
    pub(super) fn open(case: &Case, shape: &LinkShape) -> io::Result<(Carriers, Carriers)> {
        let open = row(case.transport).open;
        let ((there, there_end), (back, back_end)) = (open(shape)?, open(shape)?);
        let near = Carriers { out: there, into: back_end };
        Ok((near, Carriers { out: back, into: there_end }))
    }

    /// The descriptors to pass to another process; `None` if these carriers cannot be passed.
    pub(super) fn descriptors(&self) -> Option<[BorrowedFd<'_>; 2]> {
        Some([descriptor(&self.out)?, descriptor(&self.into)?])
    }

    /// The carriers of descriptors that another process passed.
    pub(super) fn adopt(case: &Case, descriptors: Vec<OwnedFd>) -> Result<Carriers, Gone> {
        let of = |descriptor| match case.is_stream() {
            true => Ok(Carrier::Stream(descriptor)),
            false => Region::map(descriptor).map(Carrier::Region),
        };
        let [out, into] = <[OwnedFd; 2]>::try_from(descriptors)
            .map_err(|found| Gone(format!("got {} descriptors, expected 2", found.len())))?;
        let failed = |error: io::Error| Gone(format!("cannot map the link: {error}"));
        Ok(Carriers { out: of(out).map_err(failed)?, into: of(into).map_err(failed)? })
    }
}

fn descriptor(carrier: &Carrier) -> Option<BorrowedFd<'_>> {
    match carrier {
        Carrier::Stream(stream) => Some(stream.as_fd()),
        other => other.region().and_then(Region::file),
    }
}

/// One side of a pair of links.
pub(in crate::scenario) enum Ends {
    Copied(Copied),
    InPlace(Box<InPlace>),
}

impl Ends {
    pub(super) fn attach(
        case: &Case,
        shape: &LinkShape,
        carriers: Carriers,
        life: &Life,
    ) -> Result<Ends, Gone> {
        let life = life.clone();
        match case.access {
            Access::Copied => Copied::attach(case, shape, carriers, life).map(Ends::Copied),
            Access::InPlace => {
                let region = |carrier: Carrier| {
                    let region = carrier.region().cloned();
                    region.ok_or_else(|| Gone("a stream has no slots to work in".into()))
                };
                let LinkShape { message_size, type_hash, capacity, .. } = *shape;
                let shape = sinew_link::Shape::queue(message_size, type_hash, capacity);
                let (shape, wait) = match case.wait {
                    Wait::Spin => (shape, sinew_link::Wait::Spin),
                    Wait::Yield => (shape, sinew_link::Wait::Yield),
                    Wait::Park => (shape.parking(), sinew_link::Wait::Park),
                    Wait::SpinThenPark => (shape.parking(), sinew_link::Wait::SpinThenPark),
                };
                let (out, into) = (region(carriers.out)?, region(carriers.into)?);
                let ends = InPlace::attach(&shape, out, into, life)?.waiting(wait);
                Ok(Ends::InPlace(Box::new(ends)))
            }
        }
    }
}

impl Side for Ends {
    #[inline]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        match self {
            Ends::Copied(ends) => ends.send(word),
            Ends::InPlace(ends) => ends.send(word),
        }
    }

    #[inline]
    fn receive(&mut self) -> Result<u64, Gone> {
        match self {
            Ends::Copied(ends) => ends.receive(),
            Ends::InPlace(ends) => ends.receive(),
        }
    }
}

/// The runtime's ends, and a buffer for each.
pub(in crate::scenario) struct Copied {
    sender: Box<dyn Sender>,
    receiver: Box<dyn Receiver>,
    out: Vec<u8>,
    into: Vec<u8>,
    waits: Waits,
    /// Whether a message may be sent in parts.
    in_parts: bool,
}

impl Copied {
    fn attach(
        case: &Case,
        shape: &LinkShape,
        carriers: Carriers,
        life: Life,
    ) -> Result<Copied, Gone> {
        let (transport, buffer) = (row(case.transport), vec![0; case.bytes as usize]);
        let failed = |fault| Gone(format!("cannot attach to the link: {fault}"));
        Ok(Copied {
            sender: (transport.sender)(carriers.out, shape).map_err(failed)?,
            receiver: (transport.receiver)(carriers.into, shape).map_err(failed)?,
            out: buffer.clone(),
            into: buffer,
            waits: Waits::new(life),
            in_parts: case.is_stream() && case.bytes > WHOLE_BYTES_MAX,
        })
    }

    /// Waits until the whole message has been sent. (With `latest` and `broadcast` this returns at
    /// once, and the rest is sent while the answer is awaited.)
    fn send_rest(&mut self) -> Result<(), Gone> {
        let mut patience = self.waits.patience();
        while !self.sender.wait_room(now_ns() + WAIT_NS_MAX) {
            patience.look()?;
        }
        Ok(())
    }
}

fn closed() -> Gone {
    Gone("the other side has closed the link".into())
}

impl Side for Copied {
    #[inline]
    fn send(&mut self, word: u64) -> Result<(), Gone> {
        let Copied { sender, out, waits, .. } = self;
        out.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&word.to_ne_bytes()));
        loop {
            match sender.send(out).map_err(broken)? {
                Sent::Done => break,
                Sent::Closed => return Err(closed()),
                Sent::Full => waits.wait(|until_ns| sender.wait_room(until_ns))?,
            }
        }
        if self.in_parts { self.send_rest() } else { Ok(()) }
    }

    #[inline]
    fn receive(&mut self) -> Result<u64, Gone> {
        let Copied { sender, receiver, into, waits, in_parts, .. } = self;
        loop {
            match receiver.receive(into).map_err(broken)? {
                Received::New { .. } => return Ok(read(into)),
                Received::Closed => return Err(closed()),
                Received::None if *in_parts => sender.flush().map_err(broken)?,
                Received::None => {}
            }
            waits.wait(|until_ns| match *in_parts {
                // The flush above reports an error.
                true => sender.flush().is_err() || receiver.wait(now_ns() + REST_WAIT_NS),
                false => receiver.wait(until_ns),
            })?;
        }
    }
}

/// Reads all of a message; returns its first word.
#[inline]
fn read(message: &[u8]) -> u64 {
    black_box(sum(message));
    message.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

fn broken(fault: sinew_core::Fault) -> Gone {
    Gone(fault.to_string())
}
