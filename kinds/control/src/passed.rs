//! How much time is over since the cycle before, with the periods that were lost.

use sinew_core::Cycle;

/// In ns.
pub(crate) fn passed_ns(cycle: &Cycle) -> u64 {
    cycle.period_ns.saturating_mul(cycle.skipped.saturating_add(1))
}

/// In s.
pub(crate) fn passed_s(cycle: &Cycle) -> f64 {
    passed_ns(cycle) as f64 * 1e-9
}
