//! Recordings of the core: their content, and the code that writes, mends, reads and replays them.
//!
//! Modules depend only on modules named before them. `format` and `schema` are words and constants,
//! `clock` and `event` are messages. `cycle` and `topics` follow from a plan. `read` reads one
//! file. `writer` writes one. `mend` adds the end that a broken file lacks, and `summary` is that
//! end. `recording` is all parts of a run. `replay` carries them out again. `merge` makes one file
//! of the recordings of several hosts.

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
