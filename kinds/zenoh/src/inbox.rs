//! What came for one incoming port and waits to be taken.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sinew_hosts::{ECHO_LEN, ECHOES_MAX, Freshness, HEADER_LEN, Judge, MessageHeader};

use crate::not_taken::NotTaken;
use crate::setting::IncomingPort;

/// What became of the messages of an incoming port since the mirror was opened. Those that were
/// refused are counted with their host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IncomingCounts {
    /// Handed out.
    pub received: u64,
    /// Their stamp was too old as they came, or when they were to be handed out.
    pub late: u64,
    /// Sent and never seen, or late.
    pub lost: u64,
    /// Fresh, but dropped for newer ones: nobody took them, and the queue was full.
    pub flooded: u64,
    /// The same at a port where only the newest is wanted.
    pub replaced: u64,
}

impl IncomingCounts {
    /// Adds others.
    pub(crate) fn add(&mut self, other: &IncomingCounts) {
        let IncomingCounts { received, late, lost, flooded, replaced } = *other;
        self.received += received;
        self.late += late;
        self.lost = self.lost.saturating_add(lost);
        self.flooded += flooded;
        self.replaced += replaced;
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
    /// The number of their key.
    pub(crate) key: u64,
    /// Bytes of a message.
    pub(crate) bytes: usize,
    after_ns: u64,
    capacity: usize,
    newest_only: bool,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    judge: Judge,
    /// The last life whose messages bore a stamp of this host. What comes before that was made
    /// before its sender had heard this host.
    stamped: Option<u64>,
    /// Fresh messages with their stamps, the oldest first.
    ring: VecDeque<(u64, Vec<u8>)>,
    counts: IncomingCounts,
}

impl Inbox {
    /// An empty one, for messages that a peer sends under the key with this number.
    pub(crate) fn new(port: &IncomingPort, (peer, key): (usize, u64), own: (u64, u64)) -> Inbox {
        let after_ns = port.after_ns.unwrap_or(u64::MAX);
        let capacity = if port.newest_only { 1 } else { port.capacity };
        let judge = Judge::new(own, after_ns);
        let held =
            Held { judge, stamped: None, ring: VecDeque::new(), counts: IncomingCounts::default() };
        Inbox {
            peer,
            key,
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

    /// Whether so many bytes can be a message, with a seal of this length. If not, they need not be
    /// looked at.
    pub(crate) fn fits(&self, len: usize, seal: usize) -> bool {
        let least = HEADER_LEN + self.bytes + seal;
        (least..=least + ECHOES_MAX * ECHO_LEN).contains(&len)
    }

    /// A message of a life that may send came. Returns whether it waits now; if not, it is late.
    ///
    /// # Errors
    /// It is not taken, and why.
    pub(crate) fn arrive(
        &self,
        (header, message): (&MessageHeader, &[u8]),
        was_sent: impl Fn(u64) -> bool,
        now_ns: u64,
    ) -> Result<bool, NotTaken> {
        let mut held = self.held();
        let Held { judge, stamped, ring, counts } = &mut *held;
        let verdict = judge.judge(header, was_sent, now_ns);
        let (stamp_ns, lost) = match verdict {
            Freshness::Unstamped if *stamped != Some(header.life) => return Err(NotTaken::Early),
            Freshness::Fresh { stamp_ns, lost } => (stamp_ns, lost),
            Freshness::Late { .. } => {
                *stamped = Some(header.life);
                counts.late += 1;
                return Ok(false);
            }
            refused => return Err(refusal(refused)),
        };
        *stamped = Some(header.life);
        counts.lost = counts.lost.saturating_add(lost);
        // The new message reuses the memory of the one that is dropped.
        let mut place = Vec::new();
        if ring.len() == self.capacity {
            place = ring.pop_front().map(|it| it.1).unwrap_or_default();
            *(if self.newest_only { &mut counts.replaced } else { &mut counts.flooded }) += 1;
        }
        place.clear();
        place.extend_from_slice(message);
        ring.push_back((stamp_ns, place));
        Ok(true)
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

/// Why a message that is neither fresh nor late is not taken.
pub(crate) fn refusal(verdict: Freshness) -> NotTaken {
    match verdict {
        Freshness::Ahead => NotTaken::Ahead,
        Freshness::Forged => NotTaken::Forged,
        Freshness::Unstamped => NotTaken::Unstamped,
        Freshness::Old | Freshness::Fresh { .. } | Freshness::Late { .. } => NotTaken::Again,
    }
}

#[cfg(test)]
mod tests;
