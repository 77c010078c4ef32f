//! Messages over a byte stream of the kernel: pipe, Unix socket, TCP.
//!
//! The writer greets with the link's shape; then every message is a frame: its number (u32, little
//! endian, wrapping) and its bytes. Both ends hold all their memory from the start.
//!
//! - `queue`: a frame that finds no room at all is `Full`; if a part of it finds room, it is taken,
//!   and the rest goes out with the next `send`, `flush`, `wait_room` or `close`.
//! - `latest`: a message that has not begun to go out is overwritten by the next one.
//! - `broadcast`: a message that finds no room is dropped; the numbers tell the reader.
//!
//! A write to a pipe whose reader is gone raises SIGPIPE, which a Rust program ignores unless it
//! was told otherwise.

use std::mem::swap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read, write};
use rustix::net::{Shutdown, shutdown};
use sinew_plan::plan::{Delivery, Wait};

use super::wait::{self, Poll};
use super::{Carrier, LinkShape, Received, Receiver, Sender, Sent};
use crate::clock::now_ns;
use crate::fault::{Cause, Fault};
use crate::sys::timespec;

/// Bytes of the number before each message.
const NUMBER_LEN: usize = 4;

/// What a stream begins with, so that another stream is not taken for one of ours.
const MAGIC: u32 = u32::from_le_bytes(*b"Sin1");

/// Bytes of the greeting: magic, message size, type hash, delivery.
const GREETING_LEN: usize = 16;

/// Bytes that a reader takes from the kernel at once beyond one frame: the default size of a pipe,
/// so one read empties it.
const READ_AHEAD: usize = 64 * 1024;

/// Reads of one `receive` with `latest`: far more than kernel buffers hold, so that it finds the
/// newest; but a writer faster than the reader cannot hold it for ever.
const DRAIN_READS_MAX: u32 = 256;

/// How long `close` waits for room for the rest of a message that was taken. A living reader makes
/// room in far less time; a stuck one loses the message.
const CLOSE_NS_MAX: u64 = 100_000_000;

/// Bytes that one message takes in a stream.
pub(super) fn frame_len(shape: &LinkShape) -> usize {
    NUMBER_LEN + shape.message_size as usize
}

/// What Linux charges for a message in a socket's buffer besides its bytes: `struct sk_buff` and
/// its shared info, rounded up.
const CHARGE: usize = 1024;

/// Bytes of a socket's buffer that holds the capacity of the link. The room that a message takes is
/// rounded up to a power of two by the kernel's allocator.
pub(super) fn buffer_len(shape: &LinkShape) -> usize {
    let charge = frame_len(shape).saturating_add(CHARGE).next_power_of_two();
    // The kernel takes an i32, and reduces a size that it cannot give.
    charge.saturating_mul(shape.capacity as usize).min(1 << 30)
}

fn greeting(shape: &LinkShape) -> [u8; GREETING_LEN] {
    let words = [MAGIC, shape.message_size, shape.type_hash, shape.delivery as u32];
    let mut bytes = [0; GREETING_LEN];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Makes the writing end.
pub(super) fn sender(carrier: Carrier, shape: &LinkShape) -> Result<Box<dyn Sender>, Fault> {
    let stream = descriptor(carrier)?;
    match write(&stream, &greeting(shape)) {
        Ok(GREETING_LEN) | Err(Errno::PIPE | Errno::CONNRESET) => {}
        Ok(len) => return Err(system(format_args!("a fresh stream took {len} bytes only"))),
        Err(error) => return Err(system(format_args!("cannot greet the reader: {error}"))),
    }
    let (delivery, wait) = (shape.delivery, shape.wait);
    let frame = Frame::new(frame_len(shape));
    let next = frame.clone();
    Ok(Box::new(StreamSender { stream: Some(stream), frame, next, number: 0, delivery, wait }))
}

/// Makes the reading end.
pub(super) fn receiver(carrier: Carrier, shape: &LinkShape) -> Result<Box<dyn Receiver>, Fault> {
    let frame_len = frame_len(shape);
    Ok(Box::new(StreamReceiver {
        stream: descriptor(carrier)?,
        buffer: vec![0; (frame_len + READ_AHEAD).max(2 * frame_len)],
        from: 0,
        to: 0,
        frame_len,
        greeting: Some(greeting(shape)),
        number: 0,
        closed: false,
        delivery: shape.delivery,
        wait: shape.wait,
    }))
}

fn descriptor(carrier: Carrier) -> Result<OwnedFd, Fault> {
    match carrier {
        Carrier::Stream(stream) => Ok(stream),
        Carrier::Region(_) | Carrier::Guest(..) => {
            Err(system(format_args!("got a region, expected a stream; open and use one transport")))
        }
    }
}

fn system(text: std::fmt::Arguments<'_>) -> Fault {
    Fault::new(Cause::System, text)
}

/// Waits until the descriptor is ready for `flags`, is closed by the peer, or the time is over.
fn poll_until(stream: BorrowedFd<'_>, flags: PollFlags, until_ns: u64) -> bool {
    let mut descriptors = [PollFd::new(&stream, flags)];
    let timeout = timespec(until_ns.saturating_sub(now_ns()));
    // An error is not hidden: the read or write that follows meets it too.
    !matches!(poll(&mut descriptors, Some(&timeout)), Ok(0))
}

/// A frame, and how much of it has gone out.
#[derive(Clone, Debug)]
struct Frame {
    bytes: Vec<u8>,
    gone: usize,
}

impl Frame {
    /// A frame of which nothing is left to send.
    fn new(len: usize) -> Frame {
        Frame { bytes: vec![0; len], gone: len }
    }

    fn load(&mut self, number: u32, message: &[u8]) {
        self.bytes[..NUMBER_LEN].copy_from_slice(&number.to_le_bytes());
        self.bytes[NUMBER_LEN..].copy_from_slice(message);
        self.gone = 0;
    }

    fn is_gone(&self) -> bool {
        self.gone == self.bytes.len()
    }

    fn cancel(&mut self) {
        self.gone = self.bytes.len();
    }
}

#[derive(Debug)]
struct StreamSender {
    /// `None` once either side has closed it.
    stream: Option<OwnedFd>,
    /// What goes out now.
    frame: Frame,
    /// With `latest`: what goes out after it.
    next: Frame,
    /// Number of the next message.
    number: u32,
    delivery: Delivery,
    wait: Wait,
}

impl Sender for StreamSender {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        self.flush()?;
        match self.delivery {
            _ if self.stream.is_none() => return Ok(Sent::Closed),
            Delivery::Queue if !self.frame.is_gone() => return Ok(Sent::Full),
            Delivery::Broadcast if !self.frame.is_gone() => {}
            Delivery::Latest if !self.frame.is_gone() && self.frame.gone > 0 => {
                self.next.load(self.number, message);
            }
            _ => {
                self.frame.load(self.number, message);
                self.flush()?;
                if self.stream.is_none() {
                    return Ok(Sent::Closed);
                }
                if self.frame.gone == 0 && self.delivery != Delivery::Latest {
                    self.frame.cancel();
                    if self.delivery == Delivery::Queue {
                        return Ok(Sent::Full);
                    }
                }
            }
        }
        self.number = self.number.wrapping_add(1);
        Ok(Sent::Done)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        let Some(stream) = &self.stream else { return Ok(()) };
        loop {
            if self.frame.is_gone() {
                if self.next.is_gone() {
                    return Ok(());
                }
                swap(&mut self.frame, &mut self.next);
            }
            match write(stream, &self.frame.bytes[self.frame.gone..]) {
                Ok(len) => self.frame.gone += len,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    self.stream = None;
                    return Ok(());
                }
                Err(error) => {
                    return Err(system(format_args!("cannot write to the stream: {error}")));
                }
            }
        }
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        wait::wait(self, self.wait, until_ns)
    }

    fn close(&mut self) {
        let until_ns = now_ns().saturating_add(CLOSE_NS_MAX);
        while let Some(stream) = &self.stream
            && self.has_rest()
            && now_ns() < until_ns
            && poll_until(stream.as_fd(), PollFlags::OUT, until_ns)
            && self.flush().is_ok()
        {}
        self.hang_up();
    }

    fn hang_up(&mut self) {
        if let Some(stream) = self.stream.take() {
            // So that the reader sees it even if somebody else holds a copy of the descriptor; a
            // descriptor that is not a socket refuses.
            let _ = shutdown(stream, Shutdown::Write);
        }
    }
}

impl StreamSender {
    /// Whether something that was taken has not yet gone out.
    fn has_rest(&self) -> bool {
        !(self.frame.is_gone() && self.next.is_gone())
    }
}

impl Poll for StreamSender {
    fn ready(&mut self) -> bool {
        // A fault comes back with the next send.
        if self.delivery != Delivery::Queue || self.flush().is_err() {
            return true;
        }
        let Some(stream) = &self.stream else { return true };
        self.frame.is_gone() && poll_until(stream.as_fd(), PollFlags::OUT, 0)
    }

    fn park(&mut self, until_ns: u64) {
        if let Some(stream) = &self.stream {
            poll_until(stream.as_fd(), PollFlags::OUT, until_ns);
        }
    }
}

impl Drop for StreamSender {
    fn drop(&mut self) {
        self.close();
    }
}

#[derive(Debug)]
struct StreamReceiver {
    stream: OwnedFd,
    /// What was read and not yet received is in `from..to`.
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    frame_len: usize,
    /// What must come first; `None` once it has come.
    greeting: Option<[u8; GREETING_LEN]>,
    /// The number that the next message has if none was lost.
    number: u32,
    closed: bool,
    delivery: Delivery,
    wait: Wait,
}

impl StreamReceiver {
    /// Reads once; returns how many bytes came.
    fn fill(&mut self) -> Result<usize, Fault> {
        if self.closed {
            return Ok(0);
        }
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.buffer.len() - self.from < self.frame_len + GREETING_LEN {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        loop {
            match read(&self.stream, &mut self.buffer[self.to..]) {
                Ok(len) => {
                    self.to += len;
                    self.closed = len == 0;
                    return Ok(len);
                }
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(Errno::CONNRESET) => {
                    self.closed = true;
                    return Ok(0);
                }
                Err(error) => {
                    return Err(system(format_args!("cannot read from the stream: {error}")));
                }
            }
        }
    }

    /// Takes the next frame out of the buffer, if all of it is there: where its message starts, and
    /// how many are missing before it.
    fn next(&mut self) -> Result<Option<(usize, u32)>, Fault> {
        if let Some(greeting) = &self.greeting {
            if self.to - self.from < GREETING_LEN {
                return Ok(None);
            }
            let found = &self.buffer[self.from..self.from + GREETING_LEN];
            check_greeting(found, greeting)?;
            self.from += GREETING_LEN;
            self.greeting = None;
        }
        if self.to - self.from < self.frame_len {
            return Ok(None);
        }
        let number = word(&self.buffer[self.from..]);
        let lost = number.wrapping_sub(self.number);
        if lost > i32::MAX as u32 || (lost > 0 && self.delivery == Delivery::Queue) {
            return Err(Fault::new(
                Cause::BadPeer,
                format_args!(
                    "the writer sent message number {number}, expected {}; the stream is cut or \
                     another process writes to it",
                    self.number,
                ),
            ));
        }
        let start = self.from + NUMBER_LEN;
        self.from += self.frame_len;
        self.number = number.wrapping_add(1);
        Ok(Some((start, lost)))
    }

    fn next_into(&mut self, into: &mut [u8]) -> Result<Option<u32>, Fault> {
        let Some((start, lost)) = self.next()? else { return Ok(None) };
        into.copy_from_slice(&self.buffer[start..start + self.frame_len - NUMBER_LEN]);
        Ok(Some(lost))
    }

    /// Takes the next message.
    fn receive_next(&mut self, into: &mut [u8]) -> Result<Option<u32>, Fault> {
        loop {
            let next = self.next_into(into)?;
            if next.is_some() || self.fill()? == 0 {
                return Ok(next);
            }
        }
    }

    /// Takes all there is and keeps the last.
    fn receive_newest(&mut self, into: &mut [u8]) -> Result<Option<u32>, Fault> {
        let mut found = None;
        for _ in 0..DRAIN_READS_MAX {
            let mut newest = None;
            while let Some((start, _)) = self.next()? {
                newest = Some(start);
            }
            if let Some(start) = newest {
                found = Some(0);
                into.copy_from_slice(&self.buffer[start..start + self.frame_len - NUMBER_LEN]);
            }
            if self.fill()? == 0 {
                break;
            }
        }
        Ok(found)
    }

    /// Whether `next` finds something, a message or a fault.
    fn has_next(&self) -> bool {
        let greeting_len = if self.greeting.is_some() { GREETING_LEN } else { 0 };
        self.to - self.from >= greeting_len + self.frame_len
    }
}

impl Receiver for StreamReceiver {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let found = match self.delivery {
            Delivery::Latest => self.receive_newest(into)?,
            Delivery::Queue | Delivery::Broadcast => self.receive_next(into)?,
        };
        Ok(match found {
            Some(lost) => Received::New { lost },
            // What is left in the buffer is no whole message.
            None if self.closed => Received::Closed,
            None => Received::None,
        })
    }

    fn wait(&mut self, until_ns: u64) -> bool {
        wait::wait(self, self.wait, until_ns)
    }
}

impl Poll for StreamReceiver {
    fn ready(&mut self) -> bool {
        while !self.has_next() && !self.closed {
            match self.fill() {
                Ok(0) => return self.closed,
                Ok(_) => {}
                // The next receive gets the same error from the kernel.
                Err(_) => return true,
            }
        }
        true
    }

    fn park(&mut self, until_ns: u64) {
        poll_until(self.stream.as_fd(), PollFlags::IN, until_ns);
    }
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        // As in the writer's `hang_up`.
        let _ = shutdown(&self.stream, Shutdown::Both);
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn check_greeting(found: &[u8], expected: &[u8]) -> Result<(), Fault> {
    const NAMES: [&str; 4] = ["magic", "message size", "type hash", "delivery"];
    let words = found.chunks_exact(4).zip(expected.chunks_exact(4));
    for (name, (found, expected)) in NAMES.iter().zip(words) {
        if found != expected {
            return Err(Fault::new(
                Cause::BadPeer,
                format_args!(
                    "the writer's {name} is {:#x}, expected {:#x}; give both ends the same plan",
                    word(found),
                    word(expected),
                ),
            ));
        }
    }
    Ok(())
}
