//! What lies ahead of the flange: whether the arm can stand on each pose of a motion, and on each
//! pose on which it then brakes to a standstill, and how fast its joints turn there.
//!
//! From a motion that passes, braking passes, too. So whoever takes only such steps, and brakes
//! where the next one does not pass, never comes where the arm may not be.

use sinew_core::{Fault, fault};

use super::motion::FlangeMotion;
use crate::kinematics::{Joints, Margins, Solver, Trouble};
use crate::workspace::Workspace;

/// Kept from singularities and from the joints' limits at the poses that are looked at. What the
/// change of the joints' speeds tells of the poses between them comes on top. More costs room.
const RESERVE: Margins = Margins { angle_rad: RESERVE_LIMIT, shoulder_m: 1e-3 };
const RESERVE_LIMIT: f64 = 0.05 * DEGREE;

/// The same at the pose of the next cycle, where `ik` may round otherwise: its joints before are
/// the same but for the last bits.
const ROUNDING: Margins = Margins { angle_rad: 1e-9, shoulder_m: 1e-9 };
const ROUNDING_LIMIT: f64 = 1e-9;

/// The share of a joint's greatest speed past which nothing passes. The rest is for what happens
/// between the poses that are looked at.
const SPEED_SHARE: f64 = 0.9;

/// Cycles from one of these poses to the next. Near singularities the flange is slow and brakes
/// within a few cycles, while the joints' speeds change much.
const STEPS: f64 = 2.0;
/// Most of these poses, which bounds the time that it takes. If it brakes for longer than so many
/// times [`STEPS`] cycles, they are further apart. On an Intel Xeon (model 167) all of them take
/// 11 us.
const POSES_MAX: f64 = 32.0;
/// Furthest that a joint may turn from one of these poses to the next, so that nothing between them
/// is missed, rad. With the default accelerations joints turn less.
const TURN_MAX_RAD: f64 = 3.0 * DEGREE;

const DEGREE: f64 = std::f64::consts::PI / 180.0;

/// Why it does not pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hindrance {
    /// The floor or the box.
    Outside,
    /// The arm.
    Arm(Trouble),
}

impl From<Trouble> for Hindrance {
    fn from(trouble: Trouble) -> Hindrance {
        Hindrance::Arm(trouble)
    }
}

/// The speed of the joint that is nearest to its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) joint: usize,
    /// As a share of the limit.
    pub(super) share: f64,
}

/// A moment while it brakes.
struct Moment {
    /// Periods since the begin.
    steps: f64,
    joints: Joints,
    /// The joints' speeds before it, rad/s.
    rates: Joints,
}

/// The arm and its surroundings.
pub(super) struct Outlook {
    solver: Solver,
    reserved: Solver,
    workspace: Workspace,
    period_s: f64,
}

impl Outlook {
    /// For an arm that begins at `home`.
    ///
    /// # Errors
    /// Home is so near to something that nothing would ever pass.
    pub(super) fn new(
        solver: &Solver,
        workspace: &Workspace,
        home: (&FlangeMotion, &Joints),
        period_s: f64,
    ) -> Result<Outlook, Fault> {
        let outlook = Outlook {
            solver: solver.reserved(&ROUNDING, ROUNDING_LIMIT),
            reserved: solver.reserved(&RESERVE, RESERVE_LIMIT),
            workspace: workspace.reserved(),
            period_s,
        };
        let place = home.0.pose.translation;
        outlook.workspace.check(place).map_err(|outside| fault!("home_deg: {outside}"))?;
        let stands = outlook.reserved.stand(&home.0.pose, home.1);
        stands.map_err(|trouble| {
            fault!(
                "home_deg: the limiter keeps {:.2} deg and {:.1} mm more from singularities and \
                 the joints' limits: {trouble}",
                RESERVE.angle_rad / DEGREE,
                RESERVE.shoulder_m * 1e3
            )
        })?;
        Ok(outlook)
    }

    /// The joints at the pose of `next`, a period after they were at `joints`, as `ik` computes
    /// them.
    pub(super) fn step(&self, next: &FlangeMotion, joints: &Joints) -> Result<Joints, Hindrance> {
        self.check_place(next)?;
        let pose = next.as_read().ok_or(Hindrance::Outside)?;
        Ok(self.solver.follow(&pose, joints, self.period_s)?)
    }

    /// The same, and whether braking from there on passes. The second answer is the greatest speed
    /// of the joints until they stand.
    ///
    /// The floor and the box are convex and it brakes straight, so both ends of that way are
    /// enough.
    pub(super) fn pass(
        &self,
        next: &FlangeMotion,
        joints: &Joints,
    ) -> Result<(Joints, Load), Hindrance> {
        let begun = self.step(next, joints)?;
        let to_rest = next.steps_to_rest(self.period_s);
        let end = FlangeMotion { pose: next.braked(to_rest, self.period_s), ..*next };
        self.check_place(&end)?;
        let rates = std::array::from_fn(|i| (begun[i] - joints[i]) / self.period_s);
        let mut load = self.load(&rates, &rates);
        let count = (to_rest / STEPS).ceil().clamp(1.0, POSES_MAX);
        let mut here = Moment { steps: 0.0, joints: begun, rates };
        for number in 1..=count as u32 {
            let steps = (to_rest * part(f64::from(number) / count)).round();
            let (there, of_stretch) = self.stretch(next, &here, steps)?;
            load = if of_stretch.share > load.share { of_stretch } else { load };
            here = there;
        }
        if load.share > SPEED_SHARE {
            let speed_rad_per_s = load.share * self.solver.limits()[load.joint].speed_max_rad_per_s;
            return Err(self.too_fast(load.joint, speed_rad_per_s));
        }
        Ok((begun, load))
    }

    /// From one moment of braking to a later one: whether the arm can stand there and in between,
    /// and how fast the joints turn.
    ///
    /// If a speed changes by d within a time t, the joint is at most d t / 8 beyond both ends in
    /// between. What is taken is twice as much. The first speed is not a mean but that of the
    /// begin, from which the mean differs by half as much.
    fn stretch(
        &self,
        motion: &FlangeMotion,
        from: &Moment,
        steps: f64,
    ) -> Result<(Moment, Load), Hindrance> {
        let joints = self.reserved.stay(&motion.braked(steps, self.period_s), &from.joints)?;
        let time_s = ((steps - from.steps) * self.period_s).max(self.period_s);
        let rates = std::array::from_fn(|i| (joints[i] - from.joints[i]) / time_s);
        let part = if from.steps == 0.0 { 0.5 } else { 0.25 };
        let between = std::array::from_fn(|i| (rates[i] - from.rates[i]).abs() * time_s * part);
        self.reserved.check_stand(&joints, &between)?;
        if let Some(joint) = (0..6).find(|&i| (rates[i] * time_s).abs() > TURN_MAX_RAD) {
            return Err(self.too_fast(joint, rates[joint].abs()));
        }
        Ok((Moment { steps, joints, rates }, self.load(&rates, &from.rates)))
    }

    fn check_place(&self, motion: &FlangeMotion) -> Result<(), Hindrance> {
        self.workspace.check(motion.pose.translation).map_err(|_| Hindrance::Outside)
    }

    /// The load of a stretch with these mean rates, after one with the rates `before`. Within it
    /// the rates change about as much as from the one to the other.
    fn load(&self, mean: &Joints, before: &Joints) -> Load {
        let share = |joint: usize| {
            let rate = mean[joint].abs() + (mean[joint] - before[joint]).abs() / 2.0;
            rate / self.solver.limits()[joint].speed_max_rad_per_s
        };
        let first = Load { joint: 0, share: share(0) };
        (1..6)
            .map(|joint| Load { joint, share: share(joint) })
            .fold(first, |most, one| if one.share > most.share { one } else { most })
    }

    fn too_fast(&self, joint: usize, speed_rad_per_s: f64) -> Hindrance {
        let limits = self.solver.limits()[joint];
        Hindrance::Arm(Trouble::Speed { joint, speed_rad_per_s, limits })
    }
}

/// When, as a part of the time of braking, so many of the poses are passed. They are nearer to each
/// other at the begin, where it is fast.
fn part(of_poses: f64) -> f64 {
    let left = (1.0 - of_poses).sqrt();
    1.0 - left * left.sqrt()
}
