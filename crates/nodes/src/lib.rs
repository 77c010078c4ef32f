//! The node kinds that come with Sinew, in one table.

mod file;
pub mod robot;
pub mod service;

use sinew_runtime::NodeEntry;

/// Every kind, one row each.
pub const NODES: &[NodeEntry] = &[
    robot::path_planner::NODE,
    robot::ik::NODE,
    robot::ethercat_master::NODE,
    robot::drives::NODE,
    service::axis_log::NODE,
];

#[cfg(test)]
mod random;
#[cfg(test)]
mod testing;
