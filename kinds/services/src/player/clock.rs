//! The clock of a film, as its sound output sends it: which position is heard at which time.

use sinew_media::PlayState;
use sinew_pictures::messages::PlayClock;

/// A clock that was read; it continues by itself until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clock {
    position_ns: u64,
    at_ns: u64,
    speed: f64,
    /// The number of the last order that it obeys.
    pub(crate) serial: u32,
    /// What the sound does.
    pub(crate) state: PlayState,
}

impl Clock {
    /// The clock in a message. With values that are not possible it is stopped.
    pub(crate) fn of(message: &PlayClock) -> Clock {
        let speed = if message.speed.is_finite() { message.speed.clamp(0.0, 16.0) } else { 0.0 };
        Clock {
            position_ns: message.position_ns,
            at_ns: message.at_ns,
            speed,
            serial: message.serial,
            state: PlayState::of(message.state).0,
        }
    }

    /// The position of the film that is heard at this time.
    pub(crate) fn position_ns(&self, now_ns: u64) -> u64 {
        let passed = now_ns as f64 - self.at_ns as f64;
        let moved = (passed * self.speed) as i64;
        self.position_ns.saturating_add_signed(moved)
    }

    /// When a position of the film will be heard, ns from now on; `None`: the clock is stopped.
    pub(crate) fn left_ns(&self, position_ns: u64, now_ns: u64) -> Option<u64> {
        let ahead = position_ns as f64 - self.position_ns(now_ns) as f64;
        (self.speed > 0.0).then(|| (ahead / self.speed).max(0.0) as u64)
    }

    /// Whether sound is heard.
    pub(crate) fn moves(&self) -> bool {
        self.speed > 0.0
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;

    fn clock(speed: f64) -> Clock {
        let zeros = PlayClock::new_zeroed();
        Clock::of(&PlayClock { position_ns: 1_000, at_ns: 5_000, speed, ..zeros })
    }

    #[test]
    fn a_clock_goes_on_by_itself_at_its_speed() {
        assert_eq!(clock(1.0).position_ns(5_700), 1_700);
        assert_eq!(clock(2.0).position_ns(5_700), 2_400);
        assert_eq!(clock(0.0).position_ns(9_999), 1_000);
        // Sound that is passed to a device is heard a little later.
        assert_eq!(clock(1.0).position_ns(4_900), 900);
        assert_eq!(clock(1.0).position_ns(0), 0, "never before the beginning");
        assert_eq!(clock(2.0).left_ns(2_000, 5_000), Some(500));
        assert_eq!(clock(2.0).left_ns(500, 5_000), Some(0));
        assert_eq!(clock(0.0).left_ns(2_000, 5_000), None);
    }

    #[test]
    fn a_speed_that_no_clock_has_stands_or_is_bounded() {
        for speed in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(clock(speed).position_ns(u64::MAX), 1_000, "{speed}");
        }
        assert_eq!(clock(1e9).position_ns(5_001), 1_016);
    }
}
