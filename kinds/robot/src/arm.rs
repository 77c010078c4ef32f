//! An arm, read from a URDF file: its geometry in the form that the closed form needs, and its
//! limits.
//!
//! The file must describe a serial chain with six revolute joints whose base is ortho-parallel
//! (axis 1 vertical, axes 2 and 3 across it) and whose last three axes meet in one point. With all
//! joints at zero, the arm is in the xz plane. The error names what does not fit.

use std::f64::consts::PI;
use std::path::Path;

use rs_opw_kinematics::glam::{DQuat, DVec3, EulerRot};
use rs_opw_kinematics::kinematic_traits::Pose;
use rs_opw_kinematics::parameters::opw_kinematics::Parameters as Geometry;
use sinew_core::catalogue::{Parameter, ParameterType};
use sinew_core::{Fault, Parameters, fault};
use urdf_rs::{JointType, Robot};

use super::kinematics::{JointLimits, Joints, Margins, Solver};
use super::workspace::{BOX_MAX_MM, BOX_MIN_MM, FLOOR_MM};
use crate::file;

/// Largest URDF file that is read, bytes. Far above any arm without meshes.
pub const URDF_BYTES_MAX: u64 = 1 << 20;

/// Lengths and directions that must agree may differ by this much (m, or sine of an angle).
const TOLERANCE: f64 = 1e-6;

/// Parameter: the arm's file.
pub const ARM: Parameter = Parameter::new("arm", ParameterType::Path)
    .doc("URDF of the arm: a serial chain with six revolute joints and a spherical wrist.");

/// Parameter: joint angles of the arm at the start.
pub const HOME_DEG: Parameter = Parameter::new(
    "home_deg",
    ParameterType::Numbers { count_min: 6, count_max: 6, min: -720.0, max: 720.0 },
)
.or("[0, 0, 0, 0, 90, 0]")
.unit("deg")
.doc("Joint angles at which the machine starts; the same for planner, ik and drives.");

/// Parameter: margin of wrist and elbow.
pub const SINGULARITY_DEG: Parameter =
    Parameter::new("singularity_deg", ParameterType::Number { min: 0.01, max: 45.0 })
        .or("5")
        .unit("deg")
        .doc("Least angle of wrist (joint 5) and elbow (joint 3) from straight.");

/// Parameter: margin of the shoulder.
pub const SHOULDER_M: Parameter =
    Parameter::new("shoulder_m", ParameterType::Number { min: 0.0001, max: 1.0 })
        .or("0.05")
        .unit("m")
        .doc("Least distance of the wrist centre from axis 1.");

/// All parameters that define where the arm and its flange may be.
pub const PLACE: [Parameter; 7] =
    [ARM, HOME_DEG, SINGULARITY_DEG, SHOULDER_M, FLOOR_MM, BOX_MIN_MM, BOX_MAX_MM];

/// The solver that parameters [`ARM`], [`SINGULARITY_DEG`] and [`SHOULDER_M`] describe.
///
/// # Errors
/// The file cannot be read or describes no such arm.
pub fn solver(parameters: &Parameters<'_>) -> Result<Solver, Fault> {
    let margins = Margins {
        angle_rad: parameters.number("singularity_deg").to_radians(),
        shoulder_m: parameters.number("shoulder_m"),
    };
    read(&parameters.path("arm"), margins)
}

/// Parameter [`HOME_DEG`] in rad, within the arm's limits.
///
/// # Errors
/// The arm may not be there.
pub fn home(parameters: &Parameters<'_>, solver: &Solver) -> Result<Joints, Fault> {
    let home = joints_rad(parameters.numbers("home_deg"));
    solver
        .follow(&solver.forward(&home), &home, parameters.period_ns as f64 * 1e-9)
        .map_err(|trouble| fault!("home_deg: {trouble}"))
}

/// Six angles in degrees as radians.
pub fn joints_rad(angles_deg: &[f64]) -> Joints {
    std::array::from_fn(|i| angles_deg[i].to_radians())
}

/// Reads an arm.
///
/// # Errors
/// The file cannot be read or describes no arm that fits.
pub fn read(path: &Path, margins: Margins) -> Result<Solver, Fault> {
    Ok(of_file(path, margins)?.1)
}

fn of_file(path: &Path, margins: Margins) -> Result<(KinematicChain, Solver), Fault> {
    let shown = path.display();
    let bytes = file::read(path, URDF_BYTES_MAX)
        .map_err(|error| fault!("{shown}: {error}; give a URDF file in 'arm'"))?;
    let text = String::from_utf8(bytes).map_err(|_| fault!("{shown}: is not text (UTF-8)"))?;
    of_text(&text, margins).map_err(|error| fault!("{shown}: {error}"))
}

fn of_text(text: &str, margins: Margins) -> Result<(KinematicChain, Solver), Fault> {
    let robot = urdf_rs::read_from_string(text).map_err(|error| {
        fault!("is not a URDF ({error}); expected '<robot>' with links and joints, and its end")
    })?;
    let chain = KinematicChain::of(&robot)?;
    let solver = Solver::new(chain.geometry()?, chain.limits, margins);
    chain.compare(&solver)?;
    Ok((chain, solver))
}

/// The six joints from base to flange, and the flange after the last joint.
pub struct KinematicChain {
    origins: [Pose; 6],
    axes: [DVec3; 6],
    limits: [JointLimits; 6],
    flange: Pose,
}

impl KinematicChain {
    /// Reads an arm as [`read`] does, with the same requirements.
    ///
    /// # Errors
    /// As for [`read`].
    pub fn read(path: &Path) -> Result<KinematicChain, Fault> {
        // Margins are requirements on poses, not on a file.
        Ok(of_file(path, Margins { angle_rad: 0.0, shoulder_m: 0.0 })?.0)
    }

    /// Follows the file's joints from the root to the end. Fixed joints become part of the next
    /// joint.
    fn of(robot: &Robot) -> Result<KinematicChain, Fault> {
        let is_child = |link: &str| robot.joints.iter().any(|joint| joint.child.link == link);
        let root = robot.links.iter().find(|link| !is_child(&link.name));
        let mut link = root.ok_or_else(|| fault!("has no base link; joints form a ring"))?;
        let mut pending = Pose::IDENTITY;
        let (mut origins, mut axes, mut limits) = (vec![], vec![], vec![]);
        for _ in 0..=robot.joints.len() {
            let mut next = robot.joints.iter().filter(|joint| joint.parent.link == link.name);
            let Some(joint) = next.next() else { break };
            if let Some(other) = next.next() {
                return Err(fault!(
                    "link '{}' carries joints '{}' and '{}'; the arm must be one serial chain",
                    link.name,
                    joint.name,
                    other.name
                ));
            }
            pending = pending * pose_of(&joint.origin);
            match joint.joint_type {
                JointType::Fixed => {}
                JointType::Revolute => {
                    origins.push(std::mem::replace(&mut pending, Pose::IDENTITY));
                    axes.push(DVec3::from_array(joint.axis.xyz.0).normalize_or_zero());
                    limits.push(limits_of(joint)?);
                }
                ref other => {
                    return Err(fault!(
                        "joint '{}' is {other:?}; expected Revolute or Fixed",
                        joint.name
                    ));
                }
            }
            let child = robot.links.iter().find(|child| child.name == joint.child.link);
            link = child.ok_or_else(|| fault!("joint '{}' has no such child", joint.name))?;
        }
        let found = axes.len();
        let six = || fault!("has {found} revolute joints in its chain; expected 6");
        Ok(KinematicChain {
            origins: origins.try_into().map_err(|_| six())?,
            axes: axes.try_into().map_err(|_| six())?,
            limits: limits.try_into().map_err(|_| six())?,
            flange: pending,
        })
    }

    /// Where the six links and the flange are in the base frame, m.
    pub fn forward(&self, joints: &Joints) -> [Pose; 7] {
        let mut frames = [Pose::IDENTITY; 7];
        let mut frame = Pose::IDENTITY;
        for i in 0..6 {
            let turn = DQuat::from_axis_angle(self.axes[i], joints[i]);
            frame = frame * self.origins[i] * Pose::from_parts(DVec3::ZERO, turn);
            frames[i] = frame;
        }
        frames[6] = frame * self.flange;
        frames
    }

    /// Direction of a joint's axis (0 is the first) in the base frame, all joints at zero.
    pub fn axis(&self, joint: usize) -> DVec3 {
        self.forward(&[0.0; 6])[joint].rotation * self.axes[joint]
    }

    /// The seven lengths, offsets and signs, from the joint axes when all angles are zero.
    fn geometry(&self) -> Result<Geometry, Fault> {
        let frames = self.forward(&[0.0; 6]);
        let axis = |i: usize| self.axis(i);
        let point = |i: usize| frames[i].translation;
        let demand = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(fault!("{what}; the arm does not fit this solver")) }
        };
        let parallel = |a: DVec3, b: DVec3| a.cross(b).length() < TOLERANCE && a.length() > 0.5;
        demand(parallel(axis(0), DVec3::Z), "axis 1 is not parallel to z")?;
        demand(point(0).truncate().length() < TOLERANCE, "axis 1 does not pass the base's origin")?;
        for (joint, name) in [(1, "axis 2"), (2, "axis 3"), (4, "axis 5")] {
            demand(
                parallel(axis(joint), DVec3::Y),
                &format!("{name} is not parallel to y when all joints are at zero"),
            )?;
        }
        let centre = point(4);
        for (joint, name) in [(3, "axis 4"), (5, "axis 6")] {
            let away = axis(joint).cross(centre - point(joint)).length();
            demand(
                away < TOLERANCE,
                &format!(
                    "{name} passes the wrist centre at {away:.6} m; the wrist is not a sphere"
                ),
            )?;
        }
        // Directions point outwards: to the wrist, to the flange.
        let outwards = |joint: usize, way: DVec3| {
            if axis(joint).dot(way) < 0.0 { -axis(joint) } else { axis(joint) }
        };
        let forearm = outwards(3, centre - point(2));
        let tool = outwards(5, frames[6].translation - centre);
        let lean = |v: DVec3| v.x.atan2(v.z);
        let upper = point(2) - point(1);
        let (angle2, angle3, angle5) = (lean(upper), lean(forearm), lean(tool));
        let along = (centre - point(2)).dot(forearm);
        let beside = (centre - point(2)).dot(DVec3::new(forearm.z, 0.0, -forearm.x));
        let mark = DQuat::from_rotation_y(angle5).inverse() * frames[6].rotation * DVec3::X;
        let zero = [0.0, angle2, angle3 - angle2, 0.0, angle5 - angle3, mark.y.atan2(mark.x)];
        let facing = [DVec3::Z, DVec3::Y, DVec3::Y, forearm, DVec3::Y, tool];
        Ok(Geometry {
            a1: point(1).x,
            a2: beside,
            b: centre.y,
            c1: point(1).z,
            c2: upper.x.hypot(upper.z),
            c3: along,
            c4: (frames[6].translation - centre).dot(tool),
            offsets: zero.map(|angle| -(angle - 2.0 * PI * (angle / (2.0 * PI)).round())),
            sign_corrections: std::array::from_fn(|i| {
                if axis(i).dot(facing[i]) < 0.0 { -1 } else { 1 }
            }),
            dof: 6,
        })
    }

    /// Checks that file and solver describe the same arm.
    fn compare(&self, solver: &Solver) -> Result<(), Fault> {
        for joints in [[0.0; 6], [0.3, -0.2, 0.4, 0.5, -0.6, 0.7], [-1.0, 0.5, -0.9, 2.0, 1.0, 3.0]]
        {
            let file = self.forward(&joints)[6];
            let ours = solver.forward(&joints);
            let metres = (file.translation - ours.translation).length();
            let radians = file.angular_distance(ours);
            if !(metres < TOLERANCE && radians < TOLERANCE) {
                return Err(fault!(
                    "its chain and the six-axis model differ by {metres:.6} m and {radians:.6} \
                     rad; the arm does not fit this solver"
                ));
            }
        }
        Ok(())
    }
}

fn pose_of(origin: &urdf_rs::Pose) -> Pose {
    let [roll, pitch, yaw] = origin.rpy.0;
    let rotation = DQuat::from_euler(EulerRot::ZYX, yaw, pitch, roll);
    Pose { translation: DVec3::from_array(origin.xyz.0), rotation }
}

fn limits_of(joint: &urdf_rs::Joint) -> Result<JointLimits, Fault> {
    let limit = &joint.limit;
    let (min_rad, max_rad) = (limit.lower, limit.upper);
    let sane = min_rad.is_finite() && max_rad.is_finite() && min_rad < max_rad;
    if !(sane && limit.velocity.is_finite() && limit.velocity > 0.0) {
        return Err(fault!(
            "joint '{}' has limits {min_rad} to {max_rad} rad, {} rad/s; expected finite figures, \
             lower < upper, velocity > 0",
            joint.name,
            limit.velocity
        ));
    }
    Ok(JointLimits { min_rad, max_rad, speed_max_rad_per_s: limit.velocity })
}

#[cfg(test)]
mod tests;
