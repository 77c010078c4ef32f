//! Whether a message from another host is fresh.

use std::collections::VecDeque;

use crate::header::MessageHeader;

/// Most past lives of a sender that are remembered.
const OVER_MAX: usize = 16;

/// Judges the messages of one key, at the receiver.
#[derive(Debug)]
pub struct Judge {
    /// The number and the life of the host that judges.
    host: u64,
    life: u64,
    /// Greatest age of a stamp that is accepted, ns.
    after_ns: u64,
    /// The sender's life, and its last sequence.
    last: Option<(u64, u64)>,
    /// Earlier lives of the sender. Their messages are no longer accepted.
    over: VecDeque<u64>,
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
    /// This message or a later one was received already, or its sender has restarted since.
    Old,
    /// It has no stamp of this life of this host: its sender has not heard any yet, or is not part
    /// of the graph.
    Unstamped,
}

impl Judge {
    /// For messages with stamps that this host sent in this life, at most `after_ns` ago.
    pub fn new(host: u64, life: u64, after_ns: u64) -> Judge {
        Judge { host, life, after_ns, last: None, over: VecDeque::with_capacity(OVER_MAX) }
    }

    /// Judges a message that is there at `now_ns` of the monotonic clock that stamps are taken
    /// from. A message that is not fresh changes nothing: it cannot make others old.
    pub fn judge(&mut self, header: &MessageHeader, now_ns: u64) -> Freshness {
        let own = |echo: &&crate::Echo| (echo.host, echo.life) == (self.host, self.life);
        let Some(echo) = header.echoes.iter().find(own) else { return Freshness::Unstamped };
        // A stamp from the future was never sent.
        let Some(age_ns) = now_ns.checked_sub(echo.stamp_ns) else { return Freshness::Unstamped };
        if age_ns > self.after_ns {
            return Freshness::Late { age_ns };
        }
        let lost = match self.last {
            _ if self.over.contains(&header.life) => return Freshness::Old,
            Some((life, sequence)) if life == header.life => {
                if header.sequence <= sequence {
                    return Freshness::Old;
                }
                header.sequence - sequence - 1
            }
            Some((life, _)) => {
                self.forget(life);
                0
            }
            None => 0,
        };
        self.last = Some((header.life, header.sequence));
        Freshness::Fresh { stamp_ns: echo.stamp_ns, lost }
    }

    fn forget(&mut self, life: u64) {
        if self.over.len() == OVER_MAX {
            self.over.pop_front();
        }
        self.over.push_back(life);
    }
}

#[cfg(test)]
mod tests;
