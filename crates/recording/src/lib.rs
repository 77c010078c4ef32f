//! Recordings of the core: what stands in them, and who writes, mends, reads and replays them.
//!
//! Arrows run down: `format` and `schema` are words and constants, `clock` and `event` are
//! messages; `cycle` and `topics` follow from a plan; `read` goes through one file; `writer` makes
//! one, `mend` gives one that has broken off its end, and `summary` is that end; `recording` is all
//! parts of a run, `replay` carries them out once more, and `merge` makes one file of those of
//! several hosts.

pub mod clock;
pub mod cycle;
pub mod disk;
pub mod event;
#[cfg(test)]
mod fixture;
pub mod format;
pub mod mend;
pub mod merge;
pub mod messages;
mod read;
pub mod recording;
pub mod replay;
mod schema;
mod summary;
#[cfg(test)]
mod tests;
pub mod topics;
pub mod writer;
