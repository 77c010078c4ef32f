//! Where the links of the arm are: the joints of a URDF file, one after the other.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use glam::{Affine3A, DQuat, DVec3, EulerRot, Quat, Vec3};
use sinew_robot::arm::{self, URDF_BYTES_MAX};
use sinew_robot::kinematics::{Joints, Margins};
use sinew_runtime::{Fault, fault};
use urdf_rs::{JointType, Robot};

/// Joints that move.
pub(super) const JOINTS: usize = 6;

/// The arm's chain from base to flange.
pub(super) struct Chain {
    /// In order, fixed ones among them.
    joints: Vec<Joint>,
}

struct Joint {
    /// In the frame of the joint before.
    origin: Affine3A,
    /// `None`: it is fixed.
    axis: Option<Vec3>,
}

/// The frames of the links that move, from the first to the last, and that of the flange; all in
/// the base frame.
pub(super) struct Frames {
    pub(super) links: [Affine3A; JOINTS],
    pub(super) flange: Affine3A,
}

impl Chain {
    /// Reads an arm as the nodes of the core do, with the same demands.
    pub(super) fn read(path: &Path) -> Result<Chain, Fault> {
        let shown = path.display();
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(URDF_BYTES_MAX).read_to_string(&mut text))
            .map_err(|error| fault!("{shown}: {error}; give a URDF file in 'arm'"))?;
        Chain::parse(&text).map_err(|error| fault!("{shown}: {error}"))
    }

    /// An arm from the text of a URDF file.
    pub(super) fn parse(text: &str) -> Result<Chain, Fault> {
        // Says what is wrong with a file. What follows relies on it; the margins play no part.
        arm::parse(text, Margins { angle_rad: 0.1, shoulder_m: 0.01 })?;
        let robot = urdf_rs::read_from_string(text).map_err(|error| fault!("{error}"))?;
        Ok(Chain { joints: joints(&robot) })
    }

    /// Where the links are with the joints at these angles.
    pub(super) fn frames(&self, angles_rad: &Joints) -> Frames {
        let mut angles = angles_rad.iter();
        let mut links = [Affine3A::IDENTITY; JOINTS];
        let mut places = links.iter_mut();
        let mut frame = Affine3A::IDENTITY;
        for joint in &self.joints {
            frame *= joint.origin;
            let Some(axis) = joint.axis else { continue };
            if let (Some(&angle), Some(place)) = (angles.next(), places.next()) {
                frame *= Affine3A::from_axis_angle(axis, angle as f32);
                *place = frame;
            }
        }
        Frames { links, flange: frame }
    }

    /// The axes of the joints in the base frame, all joints at zero.
    pub(super) fn axes(&self) -> [Vec3; JOINTS] {
        let frames = self.frames(&[0.0; JOINTS]);
        let mut axes = self.joints.iter().filter_map(|joint| joint.axis);
        frames.links.map(|frame| frame.transform_vector3(axes.next().unwrap_or(Vec3::Z)))
    }
}

/// The joints of a robot that is known to be one serial chain.
fn joints(robot: &Robot) -> Vec<Joint> {
    let is_child = |link: &str| robot.joints.iter().any(|joint| joint.child.link == link);
    let root = robot.links.iter().find(|link| !is_child(&link.name));
    let mut link = root.map(|root| root.name.as_str());
    let mut joints = Vec::new();
    while let Some(name) = link
        && let Some(joint) = robot.joints.iter().find(|joint| joint.parent.link == name)
    {
        joints.push(Joint {
            origin: origin(&joint.origin),
            axis: match joint.joint_type {
                JointType::Revolute => Some(DVec3::from(joint.axis.xyz.0).as_vec3().normalize()),
                _ => None,
            },
        });
        link = Some(&joint.child.link);
    }
    joints
}

fn origin(pose: &urdf_rs::Pose) -> Affine3A {
    // Roll, pitch and yaw about fixed axes.
    let [roll, pitch, yaw] = pose.rpy.0;
    let rotation = DQuat::from_euler(EulerRot::ZYX, yaw, pitch, roll);
    let rotation = Quat::from_array(rotation.to_array().map(|part| part as f32));
    Affine3A::from_rotation_translation(rotation, DVec3::from(pose.xyz.0).as_vec3())
}
