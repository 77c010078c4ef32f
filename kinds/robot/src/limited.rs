//! A motion in space, or around an axis, with limits of its speed and acceleration. It also serves
//! for a velocity: then its speed is the acceleration and its acceleration is the jerk.

use rs_opw_kinematics::glam::DVec3;

/// The greatest speed, and the greatest change of speed.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// In units per s.
    pub(crate) speed: f64,
    /// In units per s2.
    pub(crate) acceleration: f64,
}

impl Limits {
    /// The limits in another unit.
    pub(crate) fn scaled(self, factor: f64) -> Limits {
        Limits { speed: self.speed * factor, acceleration: self.acceleration * factor }
    }
}

/// A motion in space, or around an axis.
#[derive(Clone, Copy)]
pub(crate) struct Limited {
    /// The limits of the motion.
    pub(crate) limits: Limits,
    /// In units per s.
    pub(crate) speed: DVec3,
}

impl Limited {
    /// How far it goes in a period, with this way to go; `None`: it brakes.
    ///
    /// It is never faster than the speed from which it can still brake before the goal. In a period
    /// it brakes by a whole step at most, so a goal that is nearer than that step is reached at
    /// once.
    pub(crate) fn step(&mut self, way: Option<DVec3>, period_s: f64) -> DVec3 {
        let most = self.limits.acceleration * period_s;
        let wanted = way.map_or(DVec3::ZERO, |way| self.wanted(way, most, period_s));
        let change = (wanted - self.speed).clamp_length_max(most);
        self.speed += change;
        self.speed * period_s
    }

    /// How far it still goes if it brakes from now on.
    pub(crate) fn way_to_rest(&self, period_s: f64) -> DVec3 {
        self.braked(self.steps_to_rest(period_s), period_s)
    }

    /// Count of steps in which it still moves if it brakes from now on.
    pub(crate) fn steps_to_rest(&self, period_s: f64) -> f64 {
        (self.speed.length() / (self.limits.acceleration * period_s)).floor()
    }

    /// How far it goes in so many steps if it brakes from now on.
    pub(crate) fn braked(&self, steps: f64, period_s: f64) -> DVec3 {
        let most = self.limits.acceleration * period_s;
        let steps = steps.min(self.steps_to_rest(period_s));
        // The steps have the speeds: speed - most, speed - 2 most and so on.
        let far = (self.speed.length() - most * (steps + 1.0) / 2.0) * steps * period_s;
        self.speed.normalize_or_zero() * far
    }

    fn wanted(&self, way: DVec3, most: f64, period_s: f64) -> DVec3 {
        let far = way.length();
        // Its way while it brakes from v in steps of `most`: (v2 / most + v) * period / 2.
        let braking = (most * most / 4.0 + 2.0 * most * far / period_s).sqrt() - most / 2.0;
        let speed = self.limits.speed.min(braking).min(far / period_s);
        way.normalize_or_zero() * speed
    }
}
