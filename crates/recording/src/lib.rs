//! Recordings of the core: what stands in them, and who writes, mends, reads and replays them.
//!
//! Arrows run down: `format` and `schema` are words and constants; `cycle` and `topics` follow from
//! a plan; `read` goes through one file; `index`, `mend` and `writer` make files; `recording` is
//! all parts of a run, and `replay` carries them out once more.

pub mod chunk;
pub mod cycle;
#[cfg(test)]
mod fixture;
pub mod format;
pub mod index;
pub mod mend;
mod read;
pub mod recording;
pub mod replay;
mod schema;
#[cfg(test)]
mod tests;
pub mod topics;
pub mod writer;
