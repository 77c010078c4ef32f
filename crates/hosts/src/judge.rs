//! Whether a message from another host is fresh.

use crate::header::MessageHeader;
use crate::in_order::{InOrder, Misordered};

/// Judges the messages of one key, at the receiver.
#[derive(Debug)]
pub struct Judge {
    /// The number and the life of the host that judges.
    own: (u64, u64),
    /// Greatest age of a stamp that is accepted, ns.
    after_ns: u64,
    order: InOrder,
}

/// The result for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The message may be obeyed, until its stamp is too old.
    Fresh {
        /// The stamp in it: when this host sent it, by its own monotonic clock, ns.
        stamp_ns: u64,
        /// Messages of the same life that were skipped before it.
        lost: u64,
    },
    /// Its stamp is too old.
    Late {
        /// The age of the stamp, ns.
        age_ns: u64,
    },
    /// This message or a later one was received already.
    Old,
    /// Its sequence is further ahead than any sender can have come.
    Ahead,
    /// It has no stamp of this life of this host: its sender has not heard any yet, or is not part
    /// of the graph.
    Unstamped,
    /// It has a stamp of this life of this host that this host has never sent.
    Forged,
}

impl Judge {
    /// For messages with stamps that this host sent in this life, at most `after_ns` ago.
    pub fn new(own: (u64, u64), after_ns: u64) -> Judge {
        Judge { own, after_ns, order: InOrder::default() }
    }

    /// Judges a message that is there at `now_ns` of the monotonic clock that stamps are taken
    /// from; `was_sent` says whether this host has sent a stamp
    /// ([`SentStamps`](crate::SentStamps)). A message that is not fresh changes nothing: it cannot
    /// make others old.
    pub fn judge(
        &mut self,
        header: &MessageHeader,
        was_sent: impl Fn(u64) -> bool,
        now_ns: u64,
    ) -> Freshness {
        let Some(stamp_ns) = header.stamp_of(self.own) else { return Freshness::Unstamped };
        // A stamp from the future was never sent.
        let age_ns = now_ns.checked_sub(stamp_ns).filter(|_| was_sent(stamp_ns));
        let Some(age_ns) = age_ns else { return Freshness::Forged };
        if age_ns > self.after_ns {
            return Freshness::Late { age_ns };
        }
        match self.order.take((header.life, header.sequence), stamp_ns, now_ns) {
            Ok(lost) => Freshness::Fresh { stamp_ns, lost },
            Err(Misordered::Old) => Freshness::Old,
            Err(Misordered::Ahead) => Freshness::Ahead,
        }
    }
}

#[cfg(test)]
mod tests;
