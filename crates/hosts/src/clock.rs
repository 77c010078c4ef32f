//! The difference of another host's clock to the local one, estimated from returned stamps: for
//! logs and recordings. No decision depends on it.

/// Two clocks drift apart by at most this, in parts per million; crystals drift less. While NTP or
/// PTP adjusts one of them faster, the error of an estimate that is not renewed is larger than
/// stated.
pub const DRIFT_PPM: u64 = 100;

/// An estimate of another host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// When it was taken, by the local monotonic clock, ns.
    pub at_ns: u64,
    /// The other host's monotonic clock minus the local one, ns.
    pub offset_ns: i64,
    /// The possible error of the offset at that time, ns.
    pub uncertainty_ns: u64,
}

impl ClockEstimate {
    /// As in NTP (RFC 5905, section 8). This host sent `stamp_ns` by its own clock. The other host
    /// kept it for `held_ns` and sent `there_ns` by its clock, which arrived here at `now_ns`. The
    /// estimate assumes that both ways take the same time; the true value differs from it by at
    /// most half of the round trip. `None` if the times contradict each other.
    pub fn of(stamp_ns: u64, held_ns: u64, there_ns: u64, now_ns: u64) -> Option<ClockEstimate> {
        let round_trip_ns = now_ns.checked_sub(stamp_ns)?.checked_sub(held_ns)?;
        let uncertainty_ns = round_trip_ns.div_ceil(2);
        let offset_ns = i128::from(there_ns) - i128::from(now_ns) + i128::from(uncertainty_ns);
        let offset_ns = i64::try_from(offset_ns).ok()?;
        Some(ClockEstimate { at_ns: now_ns, offset_ns, uncertainty_ns })
    }

    /// Its possible error at another time: the clocks drift.
    pub fn uncertainty_ns_at(&self, time_ns: u64) -> u64 {
        let drift_ns = u128::from(self.at_ns.abs_diff(time_ns)) * u128::from(DRIFT_PPM) / 1_000_000;
        self.uncertainty_ns.saturating_add(u64::try_from(drift_ns).unwrap_or(u64::MAX))
    }

    /// The better one of this estimate and a later one. This one is better until drift has made it
    /// worse.
    pub fn or_later(self, later: ClockEstimate) -> ClockEstimate {
        let is_better = later.uncertainty_ns <= self.uncertainty_ns_at(later.at_ns);
        if is_better { later } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hosts on a network whose delays in the two directions are random, and as different as
    /// possible.
    #[test]
    fn the_truth_is_never_further_away_than_said() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let apart_ns = random.i64(-1_000_000_000..1_000_000_000);
            let (there_ns, kept_ns, back_ns) =
                (random.u64(..1_000_000), random.u64(..1_000_000), random.u64(..1_000_000));
            let stamp_ns = 5_000_000_000;
            let now_ns = stamp_ns + there_ns + kept_ns + back_ns;
            let said_ns = (now_ns - back_ns).saturating_add_signed(apart_ns);
            let estimate = ClockEstimate::of(stamp_ns, kept_ns, said_ns, now_ns).expect("times");
            let wrong_ns = estimate.offset_ns.abs_diff(apart_ns);
            assert!(wrong_ns <= estimate.uncertainty_ns, "{wrong_ns} ns: {estimate:?}");
            assert_eq!(estimate.uncertainty_ns, (there_ns + back_ns).div_ceil(2));
        }
    }

    #[test]
    fn times_that_contradict_each_other_say_nothing() {
        for (stamp_ns, held_ns, there_ns, now_ns) in
            [(9, 0, 1, 8), (1, 9, 1, 8), (0, 0, u64::MAX, 1), (0, u64::MAX, 0, 1)]
        {
            assert_eq!(ClockEstimate::of(stamp_ns, held_ns, there_ns, now_ns), None);
        }
    }

    #[test]
    fn a_sure_estimate_counts_until_drift_has_made_it_the_worse_one() {
        let of = |at_ns, uncertainty_ns| ClockEstimate { at_ns, offset_ns: 0, uncertainty_ns };
        let (sure, loose) = (of(0, 100_000), 300_000);
        // At 100 us per second it takes two seconds.
        assert_eq!(sure.or_later(of(1_000_000_000, loose)), sure);
        assert_eq!(sure.or_later(of(2_000_000_000, loose)).uncertainty_ns, loose);
        assert_eq!(sure.or_later(of(1, 100_000)).at_ns, 1);
        assert_eq!(of(u64::MAX, u64::MAX).uncertainty_ns_at(0), u64::MAX);
    }
}
