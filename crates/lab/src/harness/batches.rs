//! Operations that are too short to be timed alone.

use std::time::Duration;

use sinew_core::clock::Clock;

use super::{Found, of_means};

/// Times are given for this many operations: a single one may take less than a nanosecond.
pub(crate) const THOUSAND: f64 = 1000.0;
/// Least time of a batch, ns: the clock readings around it do not show, and few interruptions come
/// in between.
const BATCH_NS: u64 = 200_000;
/// Operations of the first batch that is tried.
const TRIED: u64 = 64;
/// Fewest batches of a round.
const BATCHES_MIN: usize = 9;

/// The time of a thousand operations, measured in batches for about `share`. This is inlined, so
/// that nothing but the operation is called.
#[inline(always)]
pub(crate) fn batches(clock: Clock, share: Duration, mut operation: impl FnMut()) -> Found {
    let mut time = |operations: u64| {
        let before = clock.ticks();
        (0..operations).for_each(|_| operation());
        clock.ns(clock.ticks().wrapping_sub(before))
    };
    let mut operations = TRIED;
    while time(operations) < BATCH_NS {
        operations *= 2;
    }
    let mut means = Vec::new();
    let began = clock.ticks();
    let passed = || clock.ns(clock.ticks().wrapping_sub(began));
    while means.len() < BATCHES_MIN || passed() < share.as_nanos() as u64 {
        means.push(time(operations) as f64 * THOUSAND / operations as f64);
    }
    of_means(means, clock.step_ns() * THOUSAND / operations as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_as_long_as_its_operations() {
        let (clock, mut done) = (Clock::calibrate(), 0);
        let pause = Duration::from_micros(5);
        let found = batches(clock, Duration::ZERO, || {
            std::thread::sleep(pause);
            done += 1;
        });
        assert!(found.median_ns >= THOUSAND * pause.as_nanos() as f64, "{found:?}");
        assert!(found.values.n() == BATCHES_MIN as u64 && done >= TRIED);
    }
}
