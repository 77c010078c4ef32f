//! The motion of the flange: it moves and turns straight to a pose, each limited in speed and
//! acceleration.

use rs_opw_kinematics::glam::{DQuat, DVec3};
use rs_opw_kinematics::kinematic_traits::Pose;

use crate::limited::{Limited, Limits};
use crate::messages::CartesianTarget;

/// A way that is shorter than this, m or rad, is none: rounding makes such ways.
const THERE: f64 = 1e-12;

/// Where the flange is, and how it moves.
#[derive(Clone, Copy)]
pub(super) struct FlangeMotion {
    pub(super) pose: Pose,
    /// Of the place: m.
    pub(super) place: Limited,
    /// Of the turn, around axes of the arm's base: rad.
    pub(super) turn: Limited,
}

impl FlangeMotion {
    /// Stands still at a pose, with the limits of place and turn.
    pub(super) fn new(pose: Pose, [place, turn]: [Limits; 2]) -> FlangeMotion {
        let still = |limits| Limited { limits, speed: DVec3::ZERO };
        FlangeMotion { pose, place: still(place), turn: still(turn) }
    }

    /// A period later: on the way to `goal`, with this share of the greatest speeds; `None`: it
    /// brakes.
    pub(super) fn after(&self, goal: Option<&Pose>, pace: f64, period_s: f64) -> FlangeMotion {
        let [way, turn] = match goal.map(|goal| self.ways_to(goal)) {
            Some(ways) => {
                ways.map(|way| Some(if way.length() < THERE { DVec3::ZERO } else { way }))
            }
            None => [None; 2],
        };
        let (place, way) = paced(self.place, way, pace, period_s);
        let (turn, turned) = paced(self.turn, turn, pace, period_s);
        FlangeMotion { pose: moved(&self.pose, way, turned), place, turn }
    }

    /// The same pose, at a standstill.
    pub(super) fn stopped(&self) -> FlangeMotion {
        FlangeMotion::new(self.pose, [self.place.limits, self.turn.limits])
    }

    pub(super) fn stands(&self) -> bool {
        self.place.speed == DVec3::ZERO && self.turn.speed == DVec3::ZERO
    }

    /// The ways to a pose: of the place, m, and of the turn, axis times angle, rad.
    pub(super) fn ways_to(&self, goal: &Pose) -> [DVec3; 2] {
        let turn = turn_between(self.pose.rotation, goal.rotation);
        [goal.translation - self.pose.translation, turn]
    }

    /// The greater one of its speeds, as a share of its limit.
    pub(super) fn share_of_speed(&self) -> f64 {
        let share = |it: &Limited| it.speed.length() / it.limits.speed;
        share(&self.place).max(share(&self.turn))
    }

    /// Count of periods in which it still moves if it brakes from now on.
    pub(super) fn steps_to_rest(&self, period_s: f64) -> f64 {
        self.place.steps_to_rest(period_s).max(self.turn.steps_to_rest(period_s))
    }

    /// The pose after so many periods, if it brakes from now on.
    pub(super) fn braked(&self, steps: f64, period_s: f64) -> Pose {
        let [way, turned] = [&self.place, &self.turn].map(|it| it.braked(steps, period_s));
        moved(&self.pose, way, turned)
    }

    /// The pose as the receiver of the target reads it, to the last bit. `None` for a number that
    /// is not finite.
    pub(super) fn as_read(&self) -> Option<Pose> {
        let mut target = CartesianTarget::default();
        target.set_pose(&self.pose);
        target.pose()
    }
}

/// A step at a pace: the motion after it, and its way.
fn paced(from: Limited, way: Option<DVec3>, pace: f64, period_s: f64) -> (Limited, DVec3) {
    let mut to = from;
    to.limits.speed *= pace;
    let way = to.step(way, period_s);
    (Limited { limits: from.limits, ..to }, way)
}

fn moved(pose: &Pose, way: DVec3, turned: DVec3) -> Pose {
    let rotation = DQuat::from_scaled_axis(turned) * pose.rotation;
    Pose { translation: pose.translation + way, rotation: rotation.normalize() }
}

/// The shorter turn from one orientation to another: axis times angle, rad. It is exact for small
/// angles, where `DQuat::to_scaled_axis` gives zero.
pub(super) fn turn_between(from: DQuat, to: DQuat) -> DVec3 {
    let turn = to * from.inverse();
    let turn = if turn.w < 0.0 { -turn } else { turn };
    let sine = turn.xyz().length();
    turn.xyz().normalize_or_zero() * (2.0 * sine.atan2(turn.w))
}
