//! What simulated machines share: they advance through lost periods too, show what a real one would
//! measure, and have no command as their safe value.

use sinew_core::catalogue::{Port, Unit};
use sinew_core::{Cycle, Message, Real};

/// The most periods by which a machine advances in one cycle. Catching up must not itself take so
/// long that more periods are lost. The rest of a longer gap is dropped.
pub(crate) const PERIODS_MAX: u64 = 1000;

/// Periods since the cycle before, with those that were lost.
pub(crate) fn passed_periods(cycle: &Cycle) -> u64 {
    cycle.skipped.saturating_add(1).min(PERIODS_MAX)
}

/// A number that a plant shows.
pub(crate) const fn output(name: &'static str, doc: &'static str, unit: &'static str) -> Port {
    Port::output(name, doc, Real::TYPE).optional().unit(Unit::Of(unit))
}

/// The safe value is a zeroed message, so nothing is to be written.
pub(crate) fn safe(_port: usize, _safe: usize, _message: &mut [u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_periods_count_up_to_a_limit() {
        let passed = |skipped| {
            let mut cycle = Cycle::new(7, 1_000_000);
            cycle.skipped = skipped;
            passed_periods(&cycle)
        };
        assert_eq!([0, 3, 999, 1000, u64::MAX].map(passed), [1, 4, 1000, 1000, 1000]);
    }
}
