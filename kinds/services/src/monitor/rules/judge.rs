//! When a rule fires, decided from the values of one source, each with its time.

use std::collections::VecDeque;

use super::quantity::How;
use super::{Comparison, Rule};

/// A rule that has fired is resolved when it has not held for as long as it had to hold, and at
/// least for this time: a value that flickers around its bound is one alarm, not hundreds a second.
const CLEAR_NS_MIN: u64 = 1_000_000_000;
/// Values that are further apart than this are not continuous: the core was stopped in between.
const GAP_NS: u64 = 3_000_000_000;
/// A window is kept in this many pieces, so that the cycles of an hour need not be stored one by
/// one. It forgets values too early by up to one piece.
const PIECES: u64 = 100;

/// What happens to a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::monitor) enum Change {
    /// It has held for long enough; the value at that time.
    Fired(f64),
    /// It no longer holds; how long it did.
    Resolved { after_ns: u64 },
    /// It held until what it watches was started again; how long.
    Forgotten { after_ns: u64 },
}

/// A rule and one source of its quantity.
#[derive(Clone, Debug)]
pub(in crate::monitor) struct Judge {
    comparison: Comparison,
    bound: f64,
    for_ns: u64,
    clear_ns: u64,
    window: Option<Window>,
    last_ns: u64,
    /// Since when it holds.
    since_ns: Option<u64>,
    /// When it fired.
    fired_ns: Option<u64>,
    /// Since when it no longer holds, after it has fired.
    clear_since_ns: Option<u64>,
}

impl Judge {
    /// A judge that has seen nothing yet.
    pub(super) fn new(rule: &Rule, bound: f64) -> Judge {
        let window = match rule.quantity.how() {
            How::Each => None,
            how => Some(Window { how, width_ns: rule.within_ns, pieces: VecDeque::new() }),
        };
        Judge {
            comparison: rule.comparison,
            bound,
            for_ns: rule.for_ns,
            clear_ns: rule.for_ns.max(CLEAR_NS_MIN),
            window,
            last_ns: 0,
            since_ns: None,
            fired_ns: None,
            clear_since_ns: None,
        }
    }

    /// Whether it has fired and still holds.
    pub(in crate::monitor) fn is_firing(&self) -> bool {
        self.fired_ns.is_some()
    }

    /// Forgets everything, because the core was started again. A rule that had fired is over with
    /// that.
    pub(in crate::monitor) fn reset(&mut self) -> Option<Change> {
        self.window.iter_mut().for_each(|window| window.pieces.clear());
        (self.since_ns, self.clear_since_ns) = (None, None);
        let fired_ns = self.fired_ns.take()?;
        Some(Change::Forgotten { after_ns: self.last_ns.saturating_sub(fired_ns) })
    }

    /// How many pieces of its window are stored.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.pieces.len())
    }

    /// Takes a value.
    pub(super) fn take(&mut self, now_ns: u64, value: f64) -> Option<Change> {
        let value = match &mut self.window {
            Some(window) => window.take(now_ns, value),
            None => value,
        };
        if now_ns.saturating_sub(self.last_ns) > GAP_NS {
            (self.since_ns, self.clear_since_ns) = (None, None);
        }
        self.last_ns = now_ns;
        match (self.comparison.holds)(&value, &self.bound) {
            true => self.holds(now_ns).then_some(Change::Fired(value)),
            false => self.is_over(now_ns).map(|after_ns| Change::Resolved { after_ns }),
        }
    }

    /// Returns whether the rule fires with this value.
    fn holds(&mut self, now_ns: u64) -> bool {
        self.clear_since_ns = None;
        let since_ns = *self.since_ns.get_or_insert(now_ns);
        let fires = self.fired_ns.is_none() && now_ns.saturating_sub(since_ns) >= self.for_ns;
        if fires {
            self.fired_ns = Some(now_ns);
        }
        fires
    }

    /// How long it had fired, if that ends with this value.
    fn is_over(&mut self, now_ns: u64) -> Option<u64> {
        self.since_ns = None;
        let fired_ns = self.fired_ns?;
        let since_ns = *self.clear_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since_ns) < self.clear_ns {
            return None;
        }
        (self.fired_ns, self.clear_since_ns) = (None, None);
        Some(since_ns.saturating_sub(fired_ns))
    }
}

/// The values of the window.
#[derive(Clone, Debug)]
struct Window {
    how: How,
    width_ns: u64,
    /// When each piece began, and its sum or its greatest value.
    pieces: VecDeque<(u64, f64)>,
}

impl Window {
    fn take(&mut self, now_ns: u64, value: f64) -> f64 {
        let is_old = |begun_ns: u64| now_ns.saturating_sub(begun_ns) >= self.width_ns;
        while self.pieces.front().is_some_and(|piece| is_old(piece.0)) {
            self.pieces.pop_front();
        }
        let piece_ns = self.width_ns / PIECES;
        match self.pieces.back_mut() {
            Some((begun_ns, kept)) if now_ns.saturating_sub(*begun_ns) < piece_ns => {
                *kept = self.how.join(*kept, value);
            }
            // A count of 0 needs no piece.
            _ if self.how == How::Count && value == 0.0 => {}
            _ => self.pieces.push_back((now_ns, value)),
        }
        self.pieces.iter().map(|piece| piece.1).fold(0.0, |a, b| self.how.join(a, b))
    }
}

impl How {
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            How::Greatest => a.max(b),
            How::Count | How::Each => a + b,
        }
    }
}
