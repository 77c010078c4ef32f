//! When frames are due: at absolute times, one period after the other.

/// The frames' clock.
#[derive(Debug)]
pub(super) struct Pace {
    period_ns: u64,
    due_ns: u64,
    /// Number of the frame that was due last.
    number: u64,
    missed: u64,
}

impl Pace {
    /// The first frame is due now.
    pub(super) fn new(rate_hz: u64, now_ns: u64) -> Pace {
        Pace { period_ns: 1_000_000_000 / rate_hz, due_ns: now_ns, number: 0, missed: 0 }
    }

    /// Time until the next frame is due; 0 if it is due.
    pub(super) fn left_ns(&self, now_ns: u64) -> u64 {
        self.due_ns.saturating_sub(now_ns)
    }

    /// Goes on to the frame that is due now and returns its number. Frames whose whole period has
    /// passed are missed: they are counted, and never made up for.
    pub(super) fn go_on(&mut self, now_ns: u64) -> u64 {
        let missed = now_ns.saturating_sub(self.due_ns) / self.period_ns;
        self.missed += missed;
        self.number += 1 + missed;
        self.due_ns += (1 + missed) * self.period_ns;
        self.number
    }

    /// Frames missed so far.
    pub(super) fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_frame_moves_none_of_those_after_it() {
        let mut pace = Pace::new(10, 500);
        assert_eq!((pace.left_ns(400), pace.left_ns(600)), (100, 0));
        assert_eq!(pace.go_on(500), 1);
        assert_eq!(pace.go_on(100_000_500 + 70_000_000), 2);
        assert_eq!(pace.left_ns(200_000_000), 500);
        assert_eq!(pace.missed(), 0);
    }

    #[test]
    fn whole_periods_are_missed_and_not_made_up_for() {
        let mut pace = Pace::new(10, 0);
        assert_eq!(pace.go_on(0), 1);
        assert_eq!(pace.go_on(450_000_000), 5, "2, 3 and 4 are gone");
        assert_eq!((pace.missed(), pace.left_ns(450_000_000)), (3, 50_000_000));
        assert_eq!(pace.go_on(500_000_000), 6);
    }
}
