//! Inverse kinematics of an arm with ortho-parallel base and spherical wrist, without allocating.
//!
//! The closed form and its names (a1, a2, b, c1..c4) are those of M. Brandstötter, A. Angerer, M.
//! Hofbaur: "An Analytical Solution of the Inverse Kinematics Problem of Industrial Serial
//! Manipulators with an Ortho-parallel Basis and a Spherical Wrist", Austrian Robotics Workshop
//! 2014. `rs-opw-kinematics` solves the same problem, but returns a `Vec`, which a cycle must not
//! allocate. Its forward kinematics does not allocate and is used here.

use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::fmt;

use rs_opw_kinematics::glam::DVec3;
use rs_opw_kinematics::kinematic_traits::Pose;
use rs_opw_kinematics::kinematics_impl::OPWKinematics;
use rs_opw_kinematics::parameters::opw_kinematics::Parameters;

/// Six joint angles, rad.
pub type Joints = [f64; 6];

/// The manufacturer's limits of one joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JointLimits {
    /// Least angle.
    pub min_rad: f64,
    /// Greatest angle.
    pub max_rad: f64,
    /// Greatest speed.
    pub speed_max_rad_per_s: f64,
}

/// How near the arm may come to a singularity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// Least angle of wrist (axis 4 to axis 6) and elbow (upper arm to forearm) from the straight
    /// position.
    pub angle_rad: f64,
    /// Least distance of the wrist centre from axis 1.
    pub shoulder_m: f64,
}

/// Why the arm cannot go to a pose.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the sentences in Display say what each figure is")]
pub enum Trouble {
    Unreachable { distance_m: f64, min_m: f64, max_m: f64 },
    Limit { joint: usize, angle_rad: f64, limits: JointLimits },
    Speed { joint: usize, speed_rad_per_s: f64, limits: JointLimits },
    Wrist { angle_rad: f64, margin_rad: f64 },
    Elbow { angle_rad: f64, margin_rad: f64 },
    Shoulder { distance_m: f64, margin_m: f64 },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Trouble::Unreachable { distance_m, min_m, max_m } => write!(
                f,
                "out of reach: wrist centre {distance_m:.4} m from joint 2, the arm reaches \
                 {min_m:.4} to {max_m:.4} m: {:.4} m too {}; move the path",
                (distance_m - max_m).max(min_m - distance_m).max(0.0),
                if distance_m > max_m { "far" } else { "near" }
            ),
            Trouble::Limit { joint, angle_rad, limits } => write!(
                f,
                "joint {} would stand at {:.2} deg, its limits are {:.2} to {:.2} deg; move the \
                 path or turn the tool",
                joint + 1,
                angle_rad.to_degrees(),
                limits.min_rad.to_degrees(),
                limits.max_rad.to_degrees()
            ),
            Trouble::Speed { joint, speed_rad_per_s, limits } => write!(
                f,
                "joint {} would turn at {:.1} deg/s, its limit is {:.1} deg/s; lower the path \
                 speed",
                joint + 1,
                speed_rad_per_s.to_degrees(),
                limits.speed_max_rad_per_s.to_degrees()
            ),
            Trouble::Wrist { angle_rad, margin_rad } => write!(
                f,
                "wrist singularity: joint 5 would be {:.2} deg from straight, singularity_deg is \
                 {:.2}; turn the tool or move the path",
                angle_rad.to_degrees(),
                margin_rad.to_degrees()
            ),
            Trouble::Elbow { angle_rad, margin_rad } => write!(
                f,
                "elbow singularity: joint 3 would be {:.2} deg from stretched or folded, \
                 singularity_deg is {:.2}; move the path closer to the middle of the reach",
                angle_rad.to_degrees(),
                margin_rad.to_degrees()
            ),
            Trouble::Shoulder { distance_m, margin_m } => write!(
                f,
                "shoulder singularity: wrist centre would be {distance_m:.4} m from axis 1 (joint \
                 1), shoulder_m is {margin_m:.4}; move the path away from axis 1"
            ),
        }
    }
}

/// The solver: geometry and limits of one arm. Copying it is cheap.
#[derive(Clone, Copy, Debug)]
pub struct Solver {
    parameters: Parameters,
    opw: OPWKinematics,
    limits: [JointLimits; 6],
    margins: Margins,
}

/// A pair of sine and cosine.
type SinCos = (f64, f64);

impl Solver {
    /// A solver.
    ///
    /// # Panics
    /// A joint offset is outside ±2π or not finite.
    pub fn new(parameters: Parameters, limits: [JointLimits; 6], margins: Margins) -> Solver {
        Solver { parameters, opw: OPWKinematics::new(parameters), limits, margins }
    }

    /// Pose of the flange.
    pub fn forward(&self, joints: &Joints) -> Pose {
        // Angles that are not finite give no pose. The origin, which is far from any target, stands
        // for it.
        self.opw.try_forward(joints).unwrap_or(Pose::IDENTITY)
    }

    /// All branches that reach `pose`, each angle in -π to π: shoulder front and back, elbow up and
    /// down, wrist plain and flipped. Limits are not checked. Does not allocate.
    pub fn inverse(&self, pose: &Pose) -> Branches {
        let p = &self.parameters;
        let mut branches = Branches { joints: [[0.0; 6]; 8], count: 0 };
        let centre = self.wrist_centre(pose);
        let height = centre.z - p.c1;
        for front in [true, false] {
            let (q1, out) = self.shoulder(centre, front);
            for lower in [true, false] {
                let Some((q2, q3)) = self.elbow(out, height, lower) else { continue };
                for wrist in wrists(pose, q1.sin_cos(), (q2 + q3).sin_cos()) {
                    branches.joints[branches.count] =
                        self.joints_of([q1, q2, q3, wrist[0], wrist[1], wrist[2]]);
                    branches.count += 1;
                }
            }
        }
        branches
    }

    /// The branch nearest to `previous` that reaches `pose`, if the arm may be there and get there
    /// within `period_s`. Of the whole turns of an angle only the nearest is tried, within limits
    /// or not, as the others are more than half a turn away. Does not allocate.
    ///
    /// # Errors
    /// The first reason why not. A speed is the reason only if there is no other.
    pub fn follow(&self, pose: &Pose, previous: &Joints, period_s: f64) -> Result<Joints, Trouble> {
        let joints = self.stand(pose, previous)?;
        self.check_speed(&joints, previous, period_s)?;
        Ok(joints)
    }

    /// Like [`Solver::follow`], without a limit of the joints' speed.
    ///
    /// # Errors
    /// The first reason why the arm may not be there.
    pub fn stand(&self, pose: &Pose, previous: &Joints) -> Result<Joints, Trouble> {
        let centre = self.wrist_centre(pose);
        self.check_shoulder(centre)?;
        let branches = self.inverse(pose);
        let mut best: Option<(f64, Joints)> = None;
        for branch in branches.as_slice() {
            let joints = nearest(branch, previous);
            let way: f64 = (0..6).map(|i| (joints[i] - previous[i]).abs()).sum();
            if best.is_none_or(|(least, _)| way < least) {
                best = Some((way, joints));
            }
        }
        let Some((_, joints)) = best else { return Err(self.unreachable(centre)) };
        self.check_stand(&joints, &[0.0; 6])?;
        Ok(joints)
    }

    /// The solution on the branch on which `previous` is, whatever its joints. It takes a fraction
    /// of the time of [`Solver::stand`], and gives the same while joints change little from pose to
    /// pose. [`Solver::check_stand`] is left to do.
    ///
    /// # Errors
    /// The pose is out of reach, or the wrist centre too near to axis 1.
    pub fn stay(&self, pose: &Pose, previous: &Joints) -> Result<Joints, Trouble> {
        let p = &self.parameters;
        let centre = self.wrist_centre(pose);
        self.check_shoulder(centre)?;
        let [_, q2, q3, _, q5, _] = self.angles_of(previous);
        let bend = q3 + p.a2.atan2(p.c3);
        let out = p.a1 + p.c2 * q2.sin() + p.a2.hypot(p.c3) * (q2 + bend).sin();
        let (q1, out) = self.shoulder(centre, out > 0.0);
        let Some((q2, q3)) = self.elbow(out, centre.z - p.c1, bend.sin() > 0.0) else {
            return Err(self.unreachable(centre));
        };
        let wrists = wrists(pose, q1.sin_cos(), (q2 + q3).sin_cos());
        let [q4, q5, q6] = wrists[usize::from(q5.sin() <= 0.0)];
        Ok(nearest(&self.joints_of([q1, q2, q3, q4, q5, q6]), previous))
    }

    /// The limits of the joints.
    pub fn limits(&self) -> &[JointLimits; 6] {
        &self.limits
    }

    /// The same arm with wider margins, and with its joints' limits this much further inside.
    #[must_use]
    pub fn reserved(&self, more: &Margins, limit_rad: f64) -> Solver {
        let mut solver = *self;
        solver.margins.angle_rad += more.angle_rad;
        solver.margins.shoulder_m += more.shoulder_m;
        for limits in &mut solver.limits {
            limits.min_rad += limit_rad;
            limits.max_rad -= limit_rad;
        }
        solver
    }

    /// Whether any branch reaches `pose`, regardless of limits.
    ///
    /// # Errors
    /// [`Trouble::Unreachable`]
    pub fn reach(&self, pose: &Pose) -> Result<(), Trouble> {
        let is_reached = !self.inverse(pose).as_slice().is_empty();
        is_reached.then_some(()).ok_or_else(|| self.unreachable(self.wrist_centre(pose)))
    }

    fn wrist_centre(&self, pose: &Pose) -> DVec3 {
        pose.translation - self.parameters.c4 * (pose.rotation * DVec3::Z)
    }

    /// Angle of joint 1 that puts the wrist centre before or behind the arm, and how far out from
    /// joint 2 it then is.
    fn shoulder(&self, centre: DVec3, front: bool) -> (f64, f64) {
        let p = &self.parameters;
        let radius = (centre.x * centre.x + centre.y * centre.y - p.b * p.b).sqrt();
        let (toward, aside) = (centre.y.atan2(centre.x), p.b.atan2(radius));
        if front {
            (toward - aside, radius - p.a1)
        } else {
            (toward + aside - PI, -(radius + p.a1))
        }
    }

    /// Angles of joint 2 and 3 that put the wrist centre `out` and `height` from joint 2.
    fn elbow(&self, out: f64, height: f64, lower: bool) -> Option<(f64, f64)> {
        let p = &self.parameters;
        let forearm = p.a2.hypot(p.c3);
        let distance = out.hypot(height);
        let upper =
            (distance * distance + p.c2 * p.c2 - forearm * forearm) / (2.0 * distance * p.c2);
        let bend = (distance * distance - p.c2 * p.c2 - forearm * forearm) / (2.0 * p.c2 * forearm);
        // NaN (the shoulder's cylinder cannot be left) fails these comparisons too.
        if !(upper.abs() <= 1.0 && bend.abs() <= 1.0) {
            return None;
        }
        let side = if lower { 1.0 } else { -1.0 };
        let q2 = out.atan2(height) - side * upper.acos();
        Some((q2, side * bend.acos() - p.a2.atan2(p.c3)))
    }

    fn unreachable(&self, centre: DVec3) -> Trouble {
        let p = &self.parameters;
        let forearm = p.a2.hypot(p.c3);
        Trouble::Unreachable {
            distance_m: (centre.x.hypot(centre.y) - p.a1).hypot(centre.z - p.c1),
            min_m: (p.c2 - forearm).abs(),
            max_m: p.c2 + forearm,
        }
    }

    /// Converts the angles of the closed form to joint angles.
    fn joints_of(&self, angles: Joints) -> Joints {
        let p = &self.parameters;
        std::array::from_fn(|i| {
            wrapped((angles[i] + p.offsets[i]) * f64::from(p.sign_corrections[i]))
        })
    }

    /// The other way: converts joint angles to the angles of the closed form.
    fn angles_of(&self, joints: &Joints) -> Joints {
        let p = &self.parameters;
        std::array::from_fn(|i| joints[i] * f64::from(p.sign_corrections[i]) - p.offsets[i])
    }

    fn check_shoulder(&self, centre: DVec3) -> Result<(), Trouble> {
        let (distance_m, margin_m) = (centre.x.hypot(centre.y), self.margins.shoulder_m);
        if distance_m < margin_m {
            return Err(Trouble::Shoulder { distance_m, margin_m });
        }
        Ok(())
    }

    /// Whether wrist and elbow keep their margins and all joints are within their limits, each by
    /// an angle of its own.
    ///
    /// # Errors
    /// [`Trouble::Wrist`], [`Trouble::Elbow`] or [`Trouble::Limit`]
    pub fn check_stand(&self, joints: &Joints, spare_rad: &Joints) -> Result<(), Trouble> {
        let p = &self.parameters;
        let angles = self.angles_of(joints);
        let margin = |joint: usize| (self.margins.angle_rad + spare_rad[joint]).min(FRAC_PI_2);
        let (wrist, margin_rad) = (angles[4].sin().abs(), margin(4));
        if wrist < margin_rad.sin() {
            return Err(Trouble::Wrist { angle_rad: wrist.asin(), margin_rad });
        }
        let (elbow, margin_rad) = ((angles[2] + p.a2.atan2(p.c3)).sin().abs(), margin(2));
        if elbow < margin_rad.sin() {
            return Err(Trouble::Elbow { angle_rad: elbow.asin(), margin_rad });
        }
        for (joint, &limits) in self.limits.iter().enumerate() {
            let (angle_rad, spare) = (joints[joint], spare_rad[joint]);
            if !(limits.min_rad + spare..=limits.max_rad - spare).contains(&angle_rad) {
                return Err(Trouble::Limit { joint, angle_rad, limits });
            }
        }
        Ok(())
    }

    /// Whether the joints may get from `previous` to `joints` within `period_s`.
    ///
    /// # Errors
    /// [`Trouble::Speed`]
    pub fn check_speed(
        &self,
        joints: &Joints,
        previous: &Joints,
        period_s: f64,
    ) -> Result<(), Trouble> {
        for (joint, &limits) in self.limits.iter().enumerate() {
            let speed_rad_per_s = (joints[joint] - previous[joint]).abs() / period_s;
            if speed_rad_per_s > limits.speed_max_rad_per_s {
                return Err(Trouble::Speed { joint, speed_rad_per_s, limits });
            }
        }
        Ok(())
    }
}

/// Up to eight solutions.
#[derive(Clone, Copy, Debug)]
pub struct Branches {
    joints: [Joints; 8],
    count: usize,
}

impl Branches {
    /// The solutions; empty if the pose is out of reach.
    pub fn as_slice(&self) -> &[Joints] {
        &self.joints[..self.count]
    }
}

/// Angles of joint 4, 5 and 6, given the first three joints: plain and flipped.
fn wrists(pose: &Pose, (s1, c1): SinCos, (s23, c23): SinCos) -> [[f64; 3]; 2] {
    let x = pose.rotation * DVec3::X;
    let y = pose.rotation * DVec3::Y;
    let z = pose.rotation * DVec3::Z;
    let along = |v: DVec3| v.x * s23 * c1 + v.y * s23 * s1 + v.z * c23;
    let across = z.x * c23 * c1 + z.y * c23 * s1 - z.z * s23;
    let aside = z.y * c1 - z.x * s1;
    let q4 = aside.atan2(across);
    let q5 = aside.hypot(across).atan2(along(z));
    let q6 = along(y).atan2(-along(x));
    [[q4, q5, q6], [q4 + PI, -q5, q6 - PI]]
}

/// The same directions as angles that are nearest to those of `previous`.
fn nearest(joints: &Joints, previous: &Joints) -> Joints {
    std::array::from_fn(|i| previous[i] + wrapped(joints[i] - previous[i]))
}

/// The same direction as an angle within -π to π.
fn wrapped(angle: f64) -> f64 {
    angle - TAU * (angle / TAU).round()
}

#[cfg(test)]
mod tests;
