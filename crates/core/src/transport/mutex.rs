//! `sync: mutex`: the links of `sinew_link` behind a robust mutex that processes may share.
//!
//! The region is that of the same link without it; the mutex is after its last slot, at the next
//! multiple of 128 bytes. A side holds the mutex while it sends or receives, but not while it
//! waits: the words that a waiting link looks at, and its bells, need no lock. A side that dies
//! with the lock leaves whole messages only, as one that dies without it does, so the next owner
//! has nothing to repair.
//!
//! The mutex itself is glibc's, and a peer that forges its robust list can crash this side. Do not
//! share one with a peer that is not trusted.

use std::io;

use super::{Received, Receiver, Sender, Sent};
use crate::clock::now_ns;
use crate::fault::{Cause, Fault};
use crate::sys::{Locked, Region, SHARED_MUTEX_LEN, SharedMutex};

/// How long a side waits for the lock; past it the peer is lost. The holder copies one message and
/// unlocks, but a pthread mutex is not fair: a peer that takes it again and again can keep a side
/// out for many time slices of a busy machine (100 ms were seen to be too few).
const LOCK_NS_MAX: u64 = 1_000_000_000;

/// Where the mutex is; `usize::MAX` if that cannot be addressed.
fn place(link: &sinew_link::Shape) -> usize {
    link.region_len().checked_next_multiple_of(128).unwrap_or(usize::MAX)
}

/// Bytes of a region for this link and its mutex; `usize::MAX` if they cannot be addressed.
pub(super) fn region_len(link: &sinew_link::Shape) -> usize {
    place(link).saturating_add(SHARED_MUTEX_LEN)
}

/// Makes the mutex of a link in a fresh region of [`region_len`].
pub(super) fn create(region: &Region, link: &sinew_link::Shape) -> io::Result<()> {
    SharedMutex::create(region, place(link))
}

/// An end of a link, and the mutex that both sides share.
pub(super) struct Behind<End: ?Sized> {
    mutex: SharedMutex,
    end: Box<End>,
}

impl<End: ?Sized> Behind<End> {
    /// An end of the link in `region`.
    pub(super) fn new(
        region: Region,
        link: &sinew_link::Shape,
        end: Box<End>,
    ) -> Result<Behind<End>, Fault> {
        let (found, expected) = (region.size(), region_len(link));
        if found < expected {
            return Err(Fault::new(
                Cause::BadPeer,
                format_args!(
                    "the region has {found} bytes, expected {expected}; give both ends the same \
                     plan"
                ),
            ));
        }
        Ok(Behind { mutex: SharedMutex::attach(region, place(link)), end })
    }
}

/// The lock, held; released when dropped.
struct Held<'a>(&'a SharedMutex);

impl Held<'_> {
    fn within(wait_ns: u64, mutex: &SharedMutex) -> Result<Held<'_>, Fault> {
        match mutex.lock(now_ns().saturating_add(wait_ns)) {
            Locked::Clean | Locked::OwnerDied => Ok(Held(mutex)),
            Locked::TimedOut => Err(Fault::new(
                Cause::LostPeer,
                format_args!(
                    "the link's mutex was not free within {} ms; see whether the peer was stopped \
                     while it held it",
                    wait_ns / 1_000_000
                ),
            )),
            Locked::Broken => Err(Fault::new(
                Cause::BadPeer,
                format_args!("the link's mutex was overwritten; the peer wrote past its messages"),
            )),
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl Sender for Behind<dyn Sender> {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        let _held = Held::within(LOCK_NS_MAX, &self.mutex)?;
        self.end.send(message)
    }

    fn try_send(&mut self, message: &[u8]) -> Option<Result<Sent, Fault>> {
        // If the lock cannot be had, the next send that waits for it tells why.
        let _held = Held::within(0, &self.mutex).ok()?;
        Some(self.end.send(message))
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        self.end.wait_room(until_ns)
    }

    fn close(&mut self) {
        self.end.close();
    }
}

impl Receiver for Behind<dyn Receiver> {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let _held = Held::within(LOCK_NS_MAX, &self.mutex)?;
        self.end.receive(into)
    }

    fn wait(&mut self, until_ns: u64) -> bool {
        self.end.wait(until_ns)
    }
}
