//! From YAML to a checked graph to a plan. Pure: no IO, no threads, no clock.

pub mod catalogue;
pub mod plan;
