//! The stamps that this host has sent.

use std::collections::VecDeque;

/// Stamps are remembered for this long: longer than any port obeys one.
const KEPT_NS: u64 = 12_000_000_000;
/// Most stamps that are remembered: of two ways, each at the shortest interval of 2 ms.
const KEPT_MAX: usize = 12_000;

/// The stamps that this host has sent in this life, so that nobody can echo one that it has not
/// sent: such a stamp could lie ahead, and count as young when its time comes.
#[derive(Debug, Default)]
pub struct SentStamps {
    /// The last ones, rising.
    last: VecDeque<u64>,
    /// The first one of all.
    first_ns: Option<u64>,
}

impl SentStamps {
    /// Notes a stamp that is sent. Stamps must rise.
    pub fn note(&mut self, stamp_ns: u64) {
        let is_over = |it: &u64| stamp_ns.saturating_sub(*it) > KEPT_NS;
        while self.last.len() >= KEPT_MAX || self.last.front().is_some_and(is_over) {
            self.last.pop_front();
        }
        self.last.push_back(stamp_ns);
        self.first_ns.get_or_insert(stamp_ns);
    }

    /// Whether a stamp was sent. Of those that are no longer remembered only the time is known;
    /// they are too old for every port that judges age.
    pub fn has(&self, stamp_ns: u64) -> bool {
        match self.last.front() {
            Some(oldest) if stamp_ns >= *oldest => self.last.binary_search(&stamp_ns).is_ok(),
            _ => self.first_ns.is_some_and(|first_ns| stamp_ns >= first_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sent_is_there() {
        let mut sent = SentStamps::default();
        assert!(!sent.has(0) && !sent.has(5));
        [10, 20, 30].into_iter().for_each(|it| sent.note(it));
        assert_eq!(
            [5, 10, 15, 20, 30, 31].map(|it| sent.has(it)),
            [false, true, false, true, true, false]
        );
    }

    #[test]
    fn the_oldest_are_forgotten_but_not_their_time() {
        let mut sent = SentStamps::default();
        (1..=100_000).for_each(|it| sent.note(it * 1000));
        assert_eq!(sent.last.len(), KEPT_MAX);
        assert!(sent.has(1500) && !sent.has(500) && !sent.has(100_000_500));
        sent.note(100_000_000 + KEPT_NS);
        assert_eq!(sent.last.len(), 2);
    }
}
