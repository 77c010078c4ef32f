//! What came for one incoming port and waits to be taken.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sinew_hosts::{ECHOES_MAX, Freshness, HEADER_LEN, Judge, MessageHeader};

use crate::setting::IncomingPort;

/// Bytes of an echo in a header.
const ECHO_LEN: usize = 24;

/// What became of the messages of an incoming port since the mirror was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncomingCounts {
    /// Handed out.
    pub received: u64,
    /// Their stamp was too old as they came, or when they were to be handed out.
    pub late: u64,
    /// Seen before, overtaken, or of a life that is over.
    pub old: u64,
    /// Sent and never seen, or late.
    pub lost: u64,
    /// Without a stamp of this life of this host.
    pub unstamped: u64,
    /// Of a host that has not said its version, or says another one, or of a life that has not.
    pub unjoined: u64,
    /// No header, or a message of another length.
    pub malformed: u64,
    /// Fresh, but dropped for newer ones: nobody took them, and the queue was full.
    pub flooded: u64,
    /// The same at a port where only the newest is wanted.
    pub replaced: u64,
}

impl IncomingCounts {
    /// Adds others.
    pub(crate) fn add(&mut self, other: &IncomingCounts) {
        let of = |it: &IncomingCounts| {
            let IncomingCounts { received, late, old, lost, unstamped, .. } = *it;
            let IncomingCounts { unjoined, malformed, flooded, replaced, .. } = *it;
            [received, late, old, lost, unstamped, unjoined, malformed, flooded, replaced]
        };
        let (mut sums, others) = (of(self), of(other));
        sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        let [received, late, old, lost, unstamped, unjoined, malformed, flooded, replaced] = sums;
        *self = IncomingCounts {
            received,
            late,
            old,
            lost,
            unstamped,
            unjoined,
            malformed,
            flooded,
            replaced,
        };
    }
}

/// The messages that wait at one incoming port.
///
/// They are judged when they come, so that old messages and those of a stranger push out no fresh
/// one. Their age is judged once more when they are taken.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// The index of the peer that sends the messages.
    pub(crate) peer: usize,
    bytes: usize,
    after_ns: u64,
    capacity: usize,
    newest_only: bool,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    judge: Judge,
    /// Fresh messages with their stamps, the oldest first.
    ring: VecDeque<(u64, Vec<u8>)>,
    counts: IncomingCounts,
}

impl Inbox {
    pub(crate) fn new(port: &IncomingPort, peer: usize, (host, life): (u64, u64)) -> Inbox {
        let after_ns = port.after_ns.unwrap_or(u64::MAX);
        let capacity = if port.newest_only { 1 } else { port.capacity };
        let judge = Judge::new(host, life, after_ns);
        let held = Held { judge, ring: VecDeque::new(), counts: IncomingCounts::default() };
        Inbox {
            peer,
            bytes: port.bytes,
            after_ns,
            capacity,
            newest_only: port.newest_only,
            held: Mutex::new(held),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so many bytes can be a message. If not, that is counted and the bytes need not be
    /// looked at.
    pub(crate) fn fits(&self, len: usize) -> bool {
        let most = HEADER_LEN + ECHOES_MAX * ECHO_LEN + self.bytes;
        let fits = (HEADER_LEN + self.bytes..=most).contains(&len);
        if !fits {
            self.held().counts.malformed += 1;
        }
        fits
    }

    /// A message came from a host whose joined life is `joined`. Returns whether it waits now.
    pub(crate) fn arrive(&self, bytes: &[u8], joined: Option<u64>, now_ns: u64) -> bool {
        let mut held = self.held();
        let Held { judge, ring, counts } = &mut *held;
        let Ok((header, message)) = MessageHeader::read(bytes, self.bytes) else {
            counts.malformed += 1;
            return false;
        };
        if joined != Some(header.life) {
            counts.unjoined += 1;
            return false;
        }
        match judge.judge(&header, now_ns) {
            Freshness::Fresh { stamp_ns, lost } => {
                counts.lost += lost;
                // The new message reuses the memory of the one that is dropped.
                let mut place = Vec::new();
                if ring.len() == self.capacity {
                    place = ring.pop_front().map(|it| it.1).unwrap_or_default();
                    let gone =
                        if self.newest_only { &mut counts.replaced } else { &mut counts.flooded };
                    *gone += 1;
                }
                place.clear();
                place.extend_from_slice(message);
                ring.push_back((stamp_ns, place));
                return true;
            }
            Freshness::Late { .. } => counts.late += 1,
            Freshness::Old => counts.old += 1,
            Freshness::Unstamped => counts.unstamped += 1,
        }
        false
    }

    /// The next message that is still fresh, and its stamp.
    ///
    /// # Panics
    /// If `bytes` does not have the length of the port's messages.
    pub(crate) fn take(&self, now_ns: u64, bytes: &mut [u8]) -> Option<u64> {
        let mut held = self.held();
        while let Some((stamp_ns, message)) = held.ring.pop_front() {
            if now_ns.saturating_sub(stamp_ns) <= self.after_ns {
                held.counts.received += 1;
                drop(held);
                bytes.copy_from_slice(&message);
                return Some(stamp_ns);
            }
            held.counts.late += 1;
        }
        None
    }

    pub(crate) fn counts(&self) -> IncomingCounts {
        self.held().counts
    }
}

#[cfg(test)]
mod tests;
