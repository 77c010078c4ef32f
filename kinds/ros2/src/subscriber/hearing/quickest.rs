//! The shortest time that messages of a writer are on their way. A message that takes much longer
//! was held somewhere and is old, though it arrives only now. That happens after an outage of TCP,
//! which then delivers all that was sent meanwhile.

use std::time::{Duration, Instant};

/// The quickest message counts for one to two of these windows. After that a longer delay counts as
/// the usual one: the sender's clock was set, or the way has become longer.
const WINDOW: Duration = Duration::from_secs(10);

/// The quickest of the recent messages.
pub(super) struct Quickest {
    begun: Instant,
    before_ns: i64,
    now_ns: i64,
}

impl Quickest {
    pub(super) fn new(now: Instant) -> Quickest {
        Quickest { begun: now, before_ns: i64::MAX, now_ns: i64::MAX }
    }

    /// Whether a message that has just come was on its way more than `most` longer than the
    /// quickest.
    pub(super) fn is_slow(&mut self, took_ns: i64, now: Instant, most: Duration) -> bool {
        if now.saturating_duration_since(self.begun) > WINDOW {
            *self = Quickest { begun: now, before_ns: self.now_ns, now_ns: i64::MAX };
        }
        self.now_ns = self.now_ns.min(took_ns);
        let longer_ns = took_ns.saturating_sub(self.now_ns.min(self.before_ns));
        u128::from(longer_ns.unsigned_abs()) > most.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const MOST: Duration = Duration::from_millis(100);

    #[test]
    fn what_was_held_is_slow_however_long_the_outage_was() {
        let begun = Instant::now();
        let mut quickest = Quickest::new(begun);
        assert!(!quickest.is_slow(-5_000 * MS, begun, MOST));
        for outage_s in [1, 9, 11, 30, 3600] {
            let mut quickest = Quickest::new(begun);
            assert!(!quickest.is_slow(7 * MS, begun, MOST));
            let again = begun + Duration::from_secs(outage_s);
            assert!(quickest.is_slow((outage_s * 1000) as i64 * MS, again, MOST), "{outage_s} s");
            assert!(quickest.is_slow(200 * MS, again, MOST));
            assert!(!quickest.is_slow(90 * MS, again, MOST));
        }
    }

    #[test]
    fn a_clock_that_was_set_is_the_usual_one_after_two_windows() {
        let begun = Instant::now();
        let mut quickest = Quickest::new(begun);
        let mut slow = Vec::new();
        for second in 0..60 {
            let took_ns = if second < 15 { 0 } else { 3_600_000 * MS };
            if quickest.is_slow(took_ns, begun + Duration::from_secs(second), MOST) {
                slow.push(second);
            }
        }
        assert_eq!(slow.first(), Some(&15));
        assert!(slow.last() < Some(&40), "{slow:?}");
        assert!(!quickest.is_slow(i64::MIN, begun, MOST));
        assert!(quickest.is_slow(i64::MAX, begun, MOST), "far apart, and no overflow");
    }
}
