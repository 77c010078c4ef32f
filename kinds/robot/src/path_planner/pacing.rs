//! How a path slows down to a standstill, and goes on, within the bounds of the tool: for a pause,
//! and while there is no feedback. After lost cycles it only goes on.
//!
//! The pace p is the share of full speed: path time advances by p times clock time, so the tool
//! stays on its path and passes the same places. By the chain rule the tool's acceleration is
//! p² x" + p' x', its jerk p³ x"' + 3 p p' x" + p" x', where x is the path at full pace. Profiles
//! leave a [`RESERVE`] of acceleration and jerk. From the reserve and the bounds follows how long a
//! change of pace must take, so that both stay within the bounds wherever on the path it begins:
//! around a corner, in an arc, in the middle of an acceleration.

use crate::path::profile::ToolLimits;

/// Share of acceleration and jerk that profiles leave to changes of pace. With a tenth, a path of
/// short moves is about a twentieth slower, and a pause from the default speed takes 1.4 s.
pub(super) const RESERVE: f64 = 0.1;

/// Shortest change of pace that is tried.
const CHANGE_S_MIN: f64 = 0.01;
/// Each time the next change tried is longer by this factor.
const LONGER: f64 = 1.02;
/// Time in which a change loses its full speed, as a share of the time of the whole change. If it
/// is shorter, a change that is cancelled at once costs less; if longer, less jerk is needed.
const TURN: f64 = 0.25;
/// Moments of a change at which the bounds are checked.
const MOMENTS: u32 = 200;

/// The bounds that profiles are made with.
pub(super) fn reserved(bounds: &ToolLimits) -> ToolLimits {
    let share = 1.0 - RESERVE;
    ToolLimits {
        acceleration_m_per_s2: bounds.acceleration_m_per_s2 * share,
        jerk_m_per_s3: bounds.jerk_m_per_s3 * share,
        turn_acceleration_rad_per_s2: bounds.turn_acceleration_rad_per_s2 * share,
        turn_jerk_rad_per_s3: bounds.turn_jerk_rad_per_s3 * share,
        ..*bounds
    }
}

/// The pace of a path that may be paused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    /// Time from full pace to a standstill, and back.
    change_s: f64,
    /// The progress of the change to a standstill: 0 at full pace, 1 at a standstill.
    part: f64,
    /// The speed of the change, as a share: 1 towards a standstill, -1 away from it. It may jump
    /// only at the ends of a change, where it moves neither speed nor acceleration.
    trend: f64,
}

impl Pacing {
    /// Starts at full pace.
    pub(super) fn new(bounds: &ToolLimits) -> Pacing {
        let mut change_s = CHANGE_S_MIN;
        // The loop ends: with a very long change only the shares of the profiles are left, and they
        // are below 1.
        while !keeps(bounds, change_s) {
            change_s *= LONGER;
        }
        Pacing { change_s, part: 0.0, trend: -1.0 }
    }

    /// The tool already stands still, whatever the reason.
    pub(super) fn stand(&mut self) {
        (self.part, self.trend) = (1.0, 1.0);
    }

    /// Advances by a time, towards a standstill or away from it. Returns the pace in the middle of
    /// that time.
    pub(super) fn advance(&mut self, time_s: f64, pause: bool) -> f64 {
        let wanted = if pause { 1.0 } else { -1.0 };
        let at_an_end = self.part == 0.0 || self.part == 1.0;
        let turn = if at_an_end { 2.0 } else { time_s / (self.change_s * TURN) };
        self.trend += (wanted - self.trend).clamp(-turn, turn);
        let before = self.part;
        self.part = (before + self.trend * time_s / self.change_s).clamp(0.0, 1.0);
        1.0 - blend(f64::midpoint(before, self.part))[0]
    }
}

/// Whether a change that takes this long keeps to the bounds, on any path made with the reserve,
/// and also if it is reversed.
fn keeps(bounds: &ToolLimits, change_s: f64) -> bool {
    let way = (bounds.speed_m_per_s, bounds.acceleration_m_per_s2, bounds.jerk_m_per_s3);
    let turn = (
        bounds.turn_speed_rad_per_s,
        bounds.turn_acceleration_rad_per_s2,
        bounds.turn_jerk_rad_per_s3,
    );
    let share = 1.0 - RESERVE;
    [way, turn].into_iter().all(|(speed, acceleration, jerk)| {
        (0..=MOMENTS).all(|moment| {
            let [gone, rate, change] = blend(f64::from(moment) / f64::from(MOMENTS));
            let change = (change.abs() + rate / TURN) / change_s.powi(2);
            let (pace, rate) = (1.0 - gone, rate / change_s);
            let of_acceleration = pace * pace * share + rate * speed / acceleration;
            let of_jerk = pace.powi(3) * share
                + 3.0 * pace * rate * share * acceleration / jerk
                + change * speed / jerk;
            of_acceleration <= 1.0 && of_jerk <= 1.0
        })
    })
}

/// A blend from 0 to 1 whose two derivatives are zero at both ends: value, first and second
/// derivative.
fn blend(part: f64) -> [f64; 3] {
    let left = 1.0 - part;
    [
        part.powi(3) * (10.0 - 15.0 * part + 6.0 * part * part),
        30.0 * (part * left).powi(2),
        60.0 * part * left * (1.0 - 2.0 * part),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::tests::BOUNDS;

    /// The paces of a pause that is cancelled after `cycles` cycles.
    fn paces(cycles: usize) -> Vec<f64> {
        let mut pacing = Pacing::new(&BOUNDS);
        (0..5000).map(|cycle| pacing.advance(1e-3, cycle < cycles)).collect()
    }

    #[test]
    fn a_change_that_is_called_off_turns_round_smoothly() {
        let change_s = Pacing::new(&BOUNDS).change_s;
        let steepest = 1.875 / change_s;
        let bend = (5.78 + 1.875 / TURN) / (change_s * change_s);
        for cycles in (0..2500).step_by(7) {
            let paces = paces(cycles);
            let rates: Vec<_> = paces.windows(2).map(|pair| (pair[1] - pair[0]) / 1e-3).collect();
            assert!(rates.iter().all(|rate| rate.abs() <= steepest * 1.001), "{cycles}");
            for pair in rates.windows(2) {
                let found = (pair[1] - pair[0]).abs() / 1e-3;
                assert!(found <= bend * 1.001, "{cycles}: {found} of {bend}");
            }
            let least = paces.iter().copied().fold(1.0, f64::min);
            let lowest = paces.iter().position(|pace| *pace == least).expect("is there");
            assert!(paces[..lowest].is_sorted_by(|a, b| a >= b), "{cycles}");
            assert!(paces[lowest..].is_sorted(), "{cycles}");
            assert_eq!(paces[4999], 1.0, "{cycles}");
        }
    }

    #[test]
    fn a_short_pause_costs_little_and_a_long_one_is_a_standstill() {
        let least = |cycles| paces(cycles).into_iter().fold(1.0, f64::min);
        assert_eq!(least(0), 1.0);
        assert!((0.98..1.0).contains(&least(6)), "{}", least(6));
        assert_eq!(least(2000), 0.0);
    }

    #[test]
    fn bounds_of_all_sizes_have_a_change() {
        for (speed, acceleration, jerk) in
            [(10.0, 0.001, 0.01), (0.0001, 100.0, 1e4), (10.0, 100.0, 0.01), (0.01, 0.001, 1e4)]
        {
            let bounds = ToolLimits {
                speed_m_per_s: speed,
                acceleration_m_per_s2: acceleration,
                jerk_m_per_s3: jerk,
                ..BOUNDS
            };
            let pacing = Pacing::new(&bounds);
            assert!(pacing.change_s.is_finite() && keeps(&bounds, pacing.change_s));
            assert!(!keeps(&bounds, pacing.change_s / 1.1) || pacing.change_s == CHANGE_S_MIN);
        }
    }
}
