//! How the clock of another host stands to the own one, by stamps that came back: for logs and
//! recordings. Nothing is judged by it.

/// Two clocks run apart by this at most, in a million: crystals do by less. While NTP or PTP
/// bends one of them faster, an estimate that is not renewed says too little.
pub const DRIFT_PPM: u64 = 100;

/// An estimate of another host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// When it was taken, by the own monotonic clock, ns.
    pub at_ns: u64,
    /// The other's monotonic clock less the own one, ns.
    pub offset_ns: i64,
    /// How much the offset may be wrong then, at most, ns.
    pub uncertainty_ns: u64,
}

impl ClockEstimate {
    /// As NTP does it (RFC 5905, section 8): this host said `stamp_ns` by its own clock; the other
    /// kept it for `held_ns`, said `there_ns` by its clock, and that came here at `now_ns`. The
    /// truth lies where the ways there and back would each take half of what they took together,
    /// or beside it by that half. `None` if the times contradict each other.
    pub fn of(stamp_ns: u64, held_ns: u64, there_ns: u64, now_ns: u64) -> Option<ClockEstimate> {
        let round_trip_ns = now_ns.checked_sub(stamp_ns)?.checked_sub(held_ns)?;
        let uncertainty_ns = round_trip_ns.div_ceil(2);
        let offset_ns = i128::from(there_ns) - i128::from(now_ns) + i128::from(uncertainty_ns);
        let offset_ns = i64::try_from(offset_ns).ok()?;
        Some(ClockEstimate { at_ns: now_ns, offset_ns, uncertainty_ns })
    }

    /// How wrong it may be at another time: the clocks run apart.
    pub fn uncertainty_ns_at(&self, time_ns: u64) -> u64 {
        let drift_ns = u128::from(self.at_ns.abs_diff(time_ns)) * u128::from(DRIFT_PPM) / 1_000_000;
        self.uncertainty_ns.saturating_add(u64::try_from(drift_ns).unwrap_or(u64::MAX))
    }

    /// The better one of it and a later one: it counts until drift has made it the worse one.
    pub fn or_later(self, later: ClockEstimate) -> ClockEstimate {
        let is_better = later.uncertainty_ns <= self.uncertainty_ns_at(later.at_ns);
        if is_better { later } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hosts on a network whose two ways are random, and as unlike as they can be.
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
        // At 100 us in a second it takes two seconds.
        assert_eq!(sure.or_later(of(1_000_000_000, loose)), sure);
        assert_eq!(sure.or_later(of(2_000_000_000, loose)).uncertainty_ns, loose);
        assert_eq!(sure.or_later(of(1, 100_000)).at_ns, 1);
        assert_eq!(of(u64::MAX, u64::MAX).uncertainty_ns_at(0), u64::MAX);
    }
}
