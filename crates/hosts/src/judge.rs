//! Whether a message that came from another host is fresh.

use std::collections::VecDeque;

use crate::header::MessageHeader;

/// Lives of a sender that are over and still remembered.
const OVER_MAX: usize = 16;

/// Judges the messages of one key, for who receives them.
#[derive(Debug)]
pub struct Judge {
    /// Who judges: its number, and its life.
    host: u64,
    life: u64,
    /// Oldest stamp that is obeyed, ns.
    after_ns: u64,
    /// The life of who sends, and its last sequence.
    last: Option<(u64, u64)>,
    /// Lives that came before; nothing of them is obeyed any more.
    over: VecDeque<u64>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It may be obeyed until its stamp is too old, too.
    Fresh {
        /// When this host said the stamp in it, by its own monotonic clock, ns.
        stamp_ns: u64,
        /// Messages of the same life that were skipped before it.
        lost: u64,
    },
    /// Its stamp is older than it may be.
    Late {
        /// So old, ns.
        age_ns: u64,
    },
    /// It was seen, or one that was sent after it; or its sender has started anew since.
    Old,
    /// It has no stamp of this life of this host: its sender has heard none yet, or is no part of
    /// the graph.
    Unstamped,
}

impl Judge {
    /// For messages whose stamps this host said in this life, at most `after_ns` ago.
    pub fn new(host: u64, life: u64, after_ns: u64) -> Judge {
        Judge { host, life, after_ns, last: None, over: VecDeque::with_capacity(OVER_MAX) }
    }

    /// Judges a message that is there at `now_ns` of the monotonic clock by which stamps are said.
    /// What is not fresh leaves no trace: it cannot make others old.
    pub fn judge(&mut self, header: &MessageHeader, now_ns: u64) -> Freshness {
        let own = |echo: &&crate::Echo| (echo.host, echo.life) == (self.host, self.life);
        let Some(echo) = header.echoes.iter().find(own) else { return Freshness::Unstamped };
        // A stamp that is still to come was never said.
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
