//! Data that outlives a flow: stores in memory and on disk, what is done with their entries,
//! replies that are kept for a while, and databases.

pub(crate) mod cache;
mod database;
mod disk;
mod entries;
mod memory;
pub(crate) mod query;
pub(crate) mod session;
pub(crate) mod sql;
pub(crate) mod state;
pub(crate) mod store;
#[cfg(test)]
mod testing;
pub(crate) mod transaction;
