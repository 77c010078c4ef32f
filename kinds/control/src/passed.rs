//! How much time is over since the cycle before, with the periods that were lost: a simulated
//! machine does not stand still in them, and a watchdog counts them.

use sinew_core::Cycle;

/// In ns.
pub(crate) fn passed_ns(cycle: &Cycle) -> u64 {
    cycle.period_ns.saturating_mul(cycle.skipped.saturating_add(1))
}

/// In s.
pub(crate) fn passed_s(cycle: &Cycle) -> f64 {
    passed_ns(cycle) as f64 * 1e-9
}

/// Most periods by which a machine goes on in one cycle. Catching up must not itself take so long
/// that more are lost; of a longer gap the rest did not happen to the machine.
pub(crate) const PERIODS_MAX: u64 = 1000;

/// Periods since the cycle before, with those that were lost.
pub(crate) fn passed_periods(cycle: &Cycle) -> u64 {
    cycle.skipped.saturating_add(1).min(PERIODS_MAX)
}

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
