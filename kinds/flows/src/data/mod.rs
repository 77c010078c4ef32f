//! Data that outlives a flow: stores in memory and on disk, operations on their entries, replies
//! that are kept for a while, and databases.

pub(crate) mod cache;
mod disk;
mod entries;
mod memory;
pub(crate) mod session;
pub(crate) mod sql;
pub(crate) mod state;
pub(crate) mod store;
