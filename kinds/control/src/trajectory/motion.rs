//! Motion profiles, one after the other: each begins in the state at which the one before is left.
//!
//! Ruckig compares with fixed bounds such as 1e-8, whatever the unit is. So it is called in units
//! in which the greatest velocity is 1 and the time to reach it about 1, and with the position of
//! the axis as the origin.

use rsruckig::prelude::{
    ControlInterface, DataArrayOrVec, InputParameter, Ruckig, ThrowErrorHandler, Trajectory,
};

/// The longest way that Ruckig is asked for, in its units. 1 is about the way that the axis takes
/// to its greatest velocity. Past some 1e8 Ruckig finds no profile, as its arithmetic has too few
/// digits.
const FAR: f64 = 1e7;

/// If limits change in motion and the axis is then this many times past them, it first brakes to
/// rest: Ruckig has too few digits to plan a way from such a state.
const WILD: f64 = 10.0;

/// What an axis may do, in the unit of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AxisLimits {
    /// Per s.
    pub(super) velocity: f64,
    /// Per s2.
    pub(super) acceleration: f64,
    /// Per s3.
    pub(super) jerk: f64,
}

/// Where an axis shall come to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Goal {
    /// The place where it began, at rest. It has not moved yet.
    Begin,
    /// In this place.
    Place(f64),
    /// As soon as it may.
    Anywhere,
}

/// The motion of an axis. Only [`AxisMotion::new`] allocates, and Ruckig does where it finds no
/// profile. That has not happened with any way up to [`FAR`], nor with any limits up to 1e4 times
/// as great or as small as those before.
pub(super) struct AxisMotion {
    limits: AxisLimits,
    ruckig: Ruckig<1, ThrowErrorHandler>,
    input: InputParameter<1>,
    /// The present profile, in Ruckig's units.
    profile: Trajectory<1>,
    /// Buffer for the next profile.
    next: Trajectory<1>,
    /// The units of way and time.
    way: f64,
    time_s: f64,
    goal: Goal,
    /// Where the profile begins, in the unit of the axis.
    begin: f64,
    /// Time since the profile began.
    passed_s: f64,
}

impl AxisMotion {
    /// An axis at rest.
    pub(super) fn new(limits: AxisLimits, position: f64) -> AxisMotion {
        let mut motion = AxisMotion {
            limits,
            ruckig: Ruckig::new(None, 1.0),
            input: InputParameter::new(None),
            profile: Trajectory::new(None),
            next: Trajectory::new(None),
            way: 0.0,
            time_s: 0.0,
            goal: Goal::Begin,
            begin: position,
            passed_s: 0.0,
        };
        motion.take_units();
        motion
    }

    /// Derives the units from the limits.
    fn take_units(&mut self) {
        let AxisLimits { velocity, acceleration, jerk } = self.limits;
        // With a small jerk the axis never meets its greatest acceleration.
        let time_s = (velocity / acceleration).max((velocity / jerk).sqrt());
        self.input.max_velocity[0] = 1.0;
        self.input.max_acceleration[0] = acceleration * time_s / velocity;
        self.input.max_jerk[0] = jerk * time_s * time_s / velocity;
        (self.way, self.time_s) = (velocity * time_s, time_s);
    }

    /// Continues from the present state to its goal within other limits. It brakes if the goal is
    /// too far away for these limits, or the axis too fast. Returns whether there is a profile; if
    /// not, the motion is invalid.
    pub(super) fn limit(&mut self, limits: AxisLimits) -> bool {
        if self.limits == limits {
            return true;
        }
        let [position, velocity, acceleration] = self.state();
        self.limits = limits;
        self.take_units();
        let speed = self.way / self.time_s;
        let state = [position, velocity / speed, acceleration * self.time_s / speed];
        self.goal == Goal::Begin || self.plan(self.goal, state) || self.plan(Goal::Anywhere, state)
    }

    /// Turns to a place, unless it is already on its way there. Returns whether there is a profile;
    /// if not, the motion goes on as before.
    pub(super) fn go(&mut self, place: f64) -> bool {
        self.turn(Goal::Place(place))
    }

    /// Comes to rest as soon as the limits allow. Returns whether there is a profile; if not, the
    /// motion goes on as before.
    pub(super) fn brake(&mut self) -> bool {
        self.turn(Goal::Anywhere)
    }

    fn turn(&mut self, goal: Goal) -> bool {
        if self.goal == goal {
            return true;
        }
        let (position, [_, velocity, acceleration]) = (self.state()[0], self.in_units());
        self.plan(goal, [position, velocity, acceleration])
    }

    /// Plans a profile to a goal: from a position in the unit of the axis, with a velocity and an
    /// acceleration in Ruckig's units.
    fn plan(&mut self, goal: Goal, [position, velocity, acceleration]: [f64; 3]) -> bool {
        let most = self.input.max_acceleration[0];
        self.input.current_velocity[0] = velocity;
        self.input.current_acceleration[0] = acceleration;
        self.input.control_interface = match goal {
            Goal::Place(place) => {
                // The speed that it reaches until its acceleration is zero.
                let speed = velocity.abs() + acceleration.powi(2) / 2.0 / self.input.max_jerk[0];
                let is_wild = speed > WILD || acceleration.abs() > WILD * most;
                if is_wild || (place - position).abs() * speed.max(1.0) > FAR * self.way {
                    return false;
                }
                self.input.target_position[0] = (place - position) / self.way;
                ControlInterface::Position
            }
            Goal::Begin | Goal::Anywhere => {
                // It may brake as hard as it already does: while it brakes down to a limit, Ruckig
                // at times misses the limit by the last digit, and finds no profile from there.
                if velocity * acceleration < 0.0 {
                    self.input.max_acceleration[0] = most.max(acceleration.abs());
                }
                ControlInterface::Velocity
            }
        };
        let is_found = self.ruckig.calculate(&self.input, &mut self.next).is_ok()
            && self.next.duration.is_finite();
        self.input.max_acceleration[0] = most;
        if is_found {
            std::mem::swap(&mut self.profile, &mut self.next);
            (self.goal, self.begin, self.passed_s) = (goal, position, 0.0);
        }
        is_found
    }

    /// Lets this time pass.
    pub(super) fn advance(&mut self, time_s: f64) {
        self.passed_s += time_s;
    }

    /// Time until it rests.
    pub(super) fn left_s(&self) -> f64 {
        (self.profile.duration * self.time_s - self.passed_s).max(0.0)
    }

    /// Whether it rests in the place to which it was sent.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.goal, Goal::Place(_)) && self.left_s() == 0.0
    }

    /// Position, velocity and acceleration.
    pub(super) fn state(&self) -> [f64; 3] {
        if let (Goal::Place(place), true) = (self.goal, self.left_s() == 0.0) {
            return [place, 0.0, 0.0];
        }
        let [way, velocity, acceleration] = self.in_units();
        let speed = self.way / self.time_s;
        [self.begin + way * self.way, velocity * speed, acceleration * speed / self.time_s]
    }

    /// Way since the begin of the profile, velocity and acceleration, in Ruckig's units.
    fn in_units(&self) -> [f64; 3] {
        let time = (self.passed_s / self.time_s).min(self.profile.duration);
        let mut state = [(); 3].map(|()| DataArrayOrVec::Stack([0.0]));
        let [way, velocity, acceleration] = &mut state;
        self.profile.at_time(
            time,
            &mut Some(way),
            &mut Some(velocity),
            &mut Some(acceleration),
            &mut None,
            &mut None,
        );
        if self.left_s() == 0.0 {
            return [state[0][0], 0.0, 0.0];
        }
        state.map(|it| it[0])
    }
}
