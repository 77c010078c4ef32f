//! The services of a run.

mod restarts;
pub(super) mod supervised;
