//! A six-axis arm: planner, inverse kinematics, fieldbus master, and the drives that it commands.

pub mod arm;
pub mod drives;
pub mod ethercat;
pub mod ethercat_master;
pub mod ik;
pub mod kinematics;
pub mod messages;
pub mod path;
pub mod path_planner;
pub mod workspace;
