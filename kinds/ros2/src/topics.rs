//! The types of ROS that a topic can have, one table for each direction: their parts that are
//! numbers, and how these are put into a message of ROS and taken from one.

pub(crate) mod inward;
pub(crate) mod outward;

use crate::fields::{Slot, Width};

const POSITION: Slot = Slot { name: "position", width: Width::Xyz, usual: &["position_m"] };
const ORIENTATION: Slot =
    Slot { name: "orientation", width: Width::Xyzw, usual: &["orientation_xyzw"] };
const LINEAR: Slot =
    Slot { name: "linear", width: Width::Xyz, usual: &["velocity_m_per_s", "linear_m_per_s"] };
const ANGULAR: Slot = Slot {
    name: "angular",
    width: Width::Xyz,
    usual: &["angular_velocity_rad_per_s", "angular_rad_per_s", "turn_rad_per_s"],
};

/// Positions of joints. The unit of a field tells what turns and what slides.
const JOINT_POSITION: Slot =
    Slot { name: "position", width: Width::Joints, usual: &["position_rad", "position_m"] };
const JOINT_VELOCITY: Slot = Slot {
    name: "velocity",
    width: Width::Joints,
    usual: &["velocity_rad_per_s", "velocity_m_per_s"],
};
const JOINT_EFFORT: Slot =
    Slot { name: "effort", width: Width::Joints, usual: &["effort_nm", "torque_nm", "force_n"] };

const JOINTS: &[Slot] = &[JOINT_POSITION, JOINT_VELOCITY, JOINT_EFFORT];
const POSE: &[Slot] = &[POSITION, ORIENTATION];
const TWIST: &[Slot] = &[LINEAR, ANGULAR];

/// How far the length of a rotation may be from 1, to allow for rounding.
const LENGTH_OFF_MAX: f64 = 0.01;

/// Scales a rotation to a length of exactly 1. Returns false if its length is not close to 1.
pub(crate) fn normalise(rotation: &mut [f64]) -> bool {
    let length = rotation.iter().map(|part| part * part).sum::<f64>().sqrt();
    let is_one = (length - 1.0).abs() <= LENGTH_OFF_MAX;
    if is_one {
        rotation.iter_mut().for_each(|part| *part /= length);
    }
    is_one
}
