//! The node kinds of the machines that come with Sinew, in one table. A six-axis arm: planner,
//! inverse kinematics, fieldbus master, and the drives that it commands. A base on two wheels, also
//! among obstacles, and a follower of paths for it. Limiters for both, for goals that come from
//! outside.

pub mod arm;
pub mod drives;
pub mod ethercat_master;
mod file;
pub mod ik;
pub mod kinematics;
mod limited;
pub mod messages;
pub mod odometry;
pub mod path;
pub mod path_follower;
pub mod path_planner;
mod planar;
pub mod pose_limiter;
pub mod rover;
pub mod twist_limiter;
pub mod twist_select;
pub mod wheeled_base;
mod wheels;
pub mod workspace;

use sinew_core::NodeEntry;
pub use sinew_ethercat as ethercat;

/// Every kind, one row each.
pub const NODES: &[NodeEntry] = &[
    path_planner::NODE,
    pose_limiter::NODE,
    ik::NODE,
    ethercat_master::NODE,
    drives::NODE,
    twist_limiter::NODE,
    wheeled_base::NODE,
    path_follower::NODE,
    twist_select::NODE,
    rover::NODE,
    odometry::NODE,
];

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tuning_tests;
