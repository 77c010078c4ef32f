//! Data that outlives a flow: stores in memory and on disk, what is done with their entries, and
//! replies that are kept for a while.

pub(crate) mod cache;
mod cbor;
mod disk;
mod entries;
mod memory;
pub(crate) mod state;
pub(crate) mod store;
