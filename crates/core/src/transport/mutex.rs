//! `sync: mutex`: a region behind a robust mutex that processes may share.
//!
//! ```text
//!   0  mutex, event words (sys::SharedMutex)
//! 128  magic | version | delivery | message size | type hash | capacity
//! 256  tail | head | writer closed | reader closed
//! 384  slot 0, slot 1, ... each the message, padded to 8
//! ```
//!
//! `tail` counts the messages written, `head` those that the reader of a queue has taken; both
//! wrap. They move last, so a side that dies with the lock leaves whole messages only, and the next
//! owner has nothing to repair. That `latest` and `broadcast` keep their messages while the next
//! one is written, they have twice the slots that readers may look at.
//!
//! Positions are checked, for the peer may write anything; but the mutex itself is glibc's, and a
//! peer that forges its robust list can crash this side. Do not share one with a peer that is not
//! trusted.
//!
//! Polling waits look at the positions without the lock: what they see is a hint, which `send` and
//! `receive` check with the lock. `park` sleeps on the condition variable.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use sinew_plan::plan::Delivery;

use super::wait::{self, Poll};
use super::{Received, Receiver, Sender, Sent, Shape};
use crate::clock::now_ns;
use crate::fault::{Cause, Fault};
use crate::sys::{Locked, Region, SHARED_MUTEX_LEN, SharedMutex};

/// How long a side waits for the lock; past it the peer is lost. Whoever holds the lock copies one
/// message and is off, but a pthread mutex is not fair: a peer that takes it again and again can
/// keep a side out for many time slices of a busy machine (100 ms were seen to be too few).
const LOCK_NS_MAX: u64 = 1_000_000_000;

/// What a region of this layout begins with after the mutex.
const MAGIC: u32 = u32::from_le_bytes(*b"SinM");
const VERSION: u32 = 1;

/// Words of the header and of the positions.
const HEADER: usize = SHARED_MUTEX_LEN / 4;
const TAIL: usize = HEADER + 32;
const HEAD: usize = TAIL + 1;
const WRITER_CLOSED: usize = TAIL + 2;
const READER_CLOSED: usize = TAIL + 3;
/// Where the slots start, in bytes.
const SLOTS: usize = (HEADER + 64) * 4;

const HEADER_NAMES: [&str; 6] =
    ["magic", "layout version", "delivery", "message size", "type hash", "capacity"];

fn header(shape: &Shape) -> [u32; 6] {
    let delivery = shape.delivery as u32;
    [MAGIC, VERSION, delivery, shape.message_size, shape.type_hash, shape.capacity]
}

/// Messages that a reader may find: before that they are overwritten.
fn window(shape: &Shape) -> u32 {
    match shape.delivery {
        Delivery::Latest => 1,
        Delivery::Queue | Delivery::Broadcast => shape.capacity,
    }
}

fn slot_count(shape: &Shape) -> usize {
    match shape.delivery {
        Delivery::Queue => shape.capacity as usize,
        Delivery::Latest | Delivery::Broadcast => 2 * window(shape) as usize,
    }
}

fn stride(shape: &Shape) -> usize {
    (shape.message_size as usize).next_multiple_of(8)
}

/// Bytes of a region for this shape; `usize::MAX` if they cannot be addressed.
pub(super) fn region_len(shape: &Shape) -> usize {
    stride(shape).saturating_mul(slot_count(shape)).saturating_add(SLOTS)
}

/// Lays a link out in a fresh region of [`region_len`].
pub(super) fn create(region: &Region, shape: &Shape) -> io::Result<()> {
    let Shape { message_size, capacity, .. } = *shape;
    if message_size == 0 || !capacity.is_power_of_two() {
        return Err(io::Error::other(format!(
            "a link of {capacity} messages of {message_size} bytes: capacity must be a power of \
             two, and a message at least one byte"
        )));
    }
    SharedMutex::create(region)?;
    for (word, value) in region.words()[HEADER..].iter().zip(header(shape)) {
        word.store(value, Ordering::Relaxed);
    }
    Ok(())
}

/// Makes the writing end.
pub(super) fn sender(region: Region, shape: &Shape) -> Result<Box<dyn Sender>, Fault> {
    let link = Link::attach(region, shape)?;
    let guard = link.lock()?;
    let tail = guard.get(TAIL);
    guard.set(WRITER_CLOSED, 0);
    drop(guard);
    Ok(Box::new(MutexSender { link, tail, closed: false }))
}

/// Makes a reading end. Of `latest` and `broadcast` it starts with the oldest message that is
/// there.
pub(super) fn receiver(region: Region, shape: &Shape) -> Result<Box<dyn Receiver>, Fault> {
    let link = Link::attach(region, shape)?;
    let guard = link.lock()?;
    let tail = guard.get(TAIL);
    let head = match shape.delivery {
        Delivery::Queue => guard.get(HEAD),
        Delivery::Latest | Delivery::Broadcast => tail.wrapping_sub(tail.min(window(shape))),
    };
    guard.set(READER_CLOSED, 0);
    drop(guard);
    Ok(Box::new(MutexReceiver { link, head }))
}

/// What both ends know.
#[derive(Debug)]
struct Link {
    region: Region,
    mutex: SharedMutex,
    shape: Shape,
}

impl Link {
    fn attach(region: Region, shape: &Shape) -> Result<Link, Fault> {
        let (found, expected) = (region.size(), region_len(shape));
        if found < expected {
            return Err(Fault::new(
                Cause::BadPeer,
                format_args!(
                    "the region has {found} bytes, expected {expected}; give both ends the same \
                     plan"
                ),
            ));
        }
        let words = region.words()[HEADER..].iter().map(|word| word.load(Ordering::Relaxed));
        for ((name, found), expected) in HEADER_NAMES.iter().zip(words).zip(header(shape)) {
            if found != expected {
                return Err(Fault::new(
                    Cause::BadPeer,
                    format_args!(
                        "the region's {name} is {found:#x}, expected {expected:#x}; give both ends \
                         the same plan"
                    ),
                ));
            }
        }
        let mutex = SharedMutex::attach(region.clone());
        Ok(Link { region, mutex, shape: *shape })
    }

    fn lock(&self) -> Result<Guard<'_>, Fault> {
        self.lock_within(LOCK_NS_MAX)
    }

    fn lock_within(&self, wait_ns: u64) -> Result<Guard<'_>, Fault> {
        match self.mutex.lock(now_ns().saturating_add(wait_ns)) {
            // Positions move last, so there is nothing to repair after an owner that died.
            Locked::Clean | Locked::OwnerDied => Ok(Guard { link: self, held: true }),
            Locked::TimedOut => Err(Fault::new(
                Cause::LostPeer,
                format_args!(
                    "the link's mutex was not to be had in {} ms; was the peer stopped with it?",
                    wait_ns / 1_000_000
                ),
            )),
            Locked::Broken => Err(Fault::new(
                Cause::BadPeer,
                format_args!("the link's mutex was overwritten; the peer wrote past its messages"),
            )),
        }
    }

    /// A word without the lock: a hint.
    fn hint(&self, word: usize) -> u32 {
        self.region.words()[word].load(Ordering::Relaxed)
    }

    fn slot(&self, position: u32) -> usize {
        // The count is a power of two, so positions may wrap.
        SLOTS + (position as usize & (slot_count(&self.shape) - 1)) * stride(&self.shape)
    }

    /// The words of the slot at `position`.
    fn slot_words(&self, position: u32) -> &[AtomicU32] {
        &self.region.words()[self.slot(position) / 4..][..stride(&self.shape) / 4]
    }

    /// Copies a message into its slot, word by word: a peer that breaks the lock can spoil the
    /// message, and nothing else.
    fn copy_in(&self, position: u32, message: &[u8]) {
        for (word, part) in self.slot_words(position).iter().zip(message.chunks(4)) {
            let mut bytes = [0; 4];
            bytes[..part.len()].copy_from_slice(part);
            // Relaxed: the lock orders it.
            word.store(u32::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// Copies a message out of its slot; as above.
    fn copy_out(&self, position: u32, into: &mut [u8]) {
        for (word, part) in self.slot_words(position).iter().zip(into.chunks_mut(4)) {
            // Relaxed: as above.
            part.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..part.len()]);
        }
    }

    /// Whether the other side was told: not if the lock is not to be had.
    fn close(&self, word: usize, wait_ns: u64) -> bool {
        let Ok(guard) = self.lock_within(wait_ns) else { return false };
        guard.set(word, 1);
        guard.notify();
        true
    }

    /// Sleeps until notified, unless `ready` already.
    fn park(&self, until_ns: u64, ready: impl FnOnce() -> bool) {
        if let Ok(guard) = self.lock()
            && !ready()
        {
            guard.wait(until_ns);
        }
    }
}

/// The lock, held.
struct Guard<'a> {
    link: &'a Link,
    held: bool,
}

impl Guard<'_> {
    fn get(&self, word: usize) -> u32 {
        self.link.region.words()[word].load(Ordering::Relaxed)
    }

    fn set(&self, word: usize, value: u32) {
        // Release: a side that dies right after it leaves what the position stands for complete.
        self.link.region.words()[word].store(value, Ordering::Release);
    }

    fn notify(mut self) {
        self.held = false;
        self.link.mutex.unlock_and_notify();
    }

    fn wait(mut self, until_ns: u64) {
        self.held = false;
        self.link.mutex.unlock_and_wait(until_ns);
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.held {
            self.link.mutex.unlock();
        }
    }
}

fn bad_position(name: &str, found: u32, own: u32, capacity: u32) -> Fault {
    Fault::new(
        Cause::BadPeer,
        format_args!(
            "the peer's {name} is {found}, ours is {own}, and they may be {capacity} apart; the \
             peer wrote past its messages"
        ),
    )
}

#[derive(Debug)]
struct MutexSender {
    link: Link,
    tail: u32,
    closed: bool,
}

impl Sender for MutexSender {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        let guard = self.link.lock()?;
        put(&self.link, &mut self.tail, self.closed, guard, message)
    }

    fn try_send(&mut self, message: &[u8]) -> Option<Result<Sent, Fault>> {
        // Whatever keeps the lock from being had is told by the next send that waits for it.
        let guard = self.link.lock_within(0).ok()?;
        Some(put(&self.link, &mut self.tail, self.closed, guard, message))
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        let strategy = self.link.shape.wait;
        wait::wait(self, strategy, until_ns)
    }

    fn close(&mut self) {
        if !self.closed {
            self.closed = true;
            self.link.close(WRITER_CLOSED, LOCK_NS_MAX);
        }
    }

    fn hang_up(&mut self) {
        self.closed = self.closed || self.link.close(WRITER_CLOSED, 0);
    }
}

/// Puts a message into the link whose lock is held.
fn put(
    link: &Link,
    tail: &mut u32,
    closed: bool,
    guard: Guard<'_>,
    message: &[u8],
) -> Result<Sent, Fault> {
    let shape = &link.shape;
    assert_eq!(message.len(), shape.message_size as usize, "a message of another type");
    if closed || guard.get(READER_CLOSED) != 0 {
        return Ok(Sent::Closed);
    }
    if shape.delivery == Delivery::Queue {
        let head = guard.get(HEAD);
        let fill = tail.wrapping_sub(head);
        if fill == shape.capacity {
            return Ok(Sent::Full);
        }
        if fill > shape.capacity {
            return Err(bad_position("head", head, *tail, shape.capacity));
        }
    }
    link.copy_in(*tail, message);
    *tail = tail.wrapping_add(1);
    guard.set(TAIL, *tail);
    guard.notify();
    Ok(Sent::Done)
}

impl MutexSender {
    fn has_room(&self) -> bool {
        let Shape { delivery, capacity, .. } = self.link.shape;
        delivery != Delivery::Queue
            || self.tail.wrapping_sub(self.link.hint(HEAD)) != capacity
            || self.link.hint(READER_CLOSED) != 0
    }
}

impl Poll for MutexSender {
    fn ready(&mut self) -> bool {
        self.has_room()
    }

    fn park(&mut self, until_ns: u64) {
        self.link.park(until_ns, || self.has_room());
    }
}

impl Drop for MutexSender {
    fn drop(&mut self) {
        self.close();
    }
}

#[derive(Debug)]
struct MutexReceiver {
    link: Link,
    /// The next message's position.
    head: u32,
}

impl Receiver for MutexReceiver {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let shape = &self.link.shape;
        assert_eq!(into.len(), shape.message_size as usize, "a message of another type");
        let window = window(shape);
        let guard = self.link.lock()?;
        let tail = guard.get(TAIL);
        let behind = tail.wrapping_sub(self.head);
        if behind == 0 {
            let closed = guard.get(WRITER_CLOSED) != 0;
            return Ok(if closed { Received::Closed } else { Received::None });
        }
        let queue = shape.delivery == Delivery::Queue;
        let behind_max = if queue { window } else { i32::MAX as u32 };
        if behind > behind_max {
            return Err(bad_position("tail", tail, self.head, behind_max));
        }
        let overwritten = behind.saturating_sub(window);
        let at = self.head.wrapping_add(overwritten);
        self.link.copy_out(at, into);
        self.head = at.wrapping_add(1);
        if queue {
            guard.set(HEAD, self.head);
            guard.notify();
        }
        let lost = if shape.delivery == Delivery::Latest { 0 } else { overwritten };
        Ok(Received::New { lost })
    }

    fn wait(&mut self, until_ns: u64) -> bool {
        let strategy = self.link.shape.wait;
        wait::wait(self, strategy, until_ns)
    }
}

impl MutexReceiver {
    fn has_next(&self) -> bool {
        self.link.hint(TAIL) != self.head || self.link.hint(WRITER_CLOSED) != 0
    }
}

impl Poll for MutexReceiver {
    fn ready(&mut self) -> bool {
        self.has_next()
    }

    fn park(&mut self, until_ns: u64) {
        self.link.park(until_ns, || self.has_next());
    }
}

impl Drop for MutexReceiver {
    fn drop(&mut self) {
        // A broadcast goes on for the other readers.
        if self.link.shape.delivery != Delivery::Broadcast {
            self.link.close(READER_CLOSED, LOCK_NS_MAX);
        }
    }
}
