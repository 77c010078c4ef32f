//! What the compiler, the runtime and the kinds of nodes exchange: plain data only.
//!
//! A [`catalogue`] says what kinds of nodes there are; a [`plan`] is a checked graph of them. Some
//! parameters are YAML, so its tree is here too ([`Item`]); the parser belongs to the compiler.

mod by_name;
pub mod catalogue;
mod decimal;
mod duration;
mod item;
pub mod plan;
mod secrets;
mod units;

pub use decimal::decimal_comma;
pub use duration::{duration_ns, duration_text};
pub use item::{Data, Entry, Item, LinePlaces, LineStarts};
pub use secrets::{Brought, HIDDEN, Secrets, Wanted};

/// The table of kinds of a guest's image. The caller of the compiler reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestImage {
    /// The file, as the spec names it.
    pub image: String,
    /// What the image runs on.
    pub board: plan::Board,
    /// The bytes of the table; or why it could not be read, then `; ` and what to do.
    pub table: Result<Vec<u8>, String>,
}

/// A place in one of the texts that are compiled: source 0 is the spec, n the n-th override of the
/// command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Which text.
    pub source: u32,
    /// First byte.
    pub start: u32,
    /// Bytes.
    pub len: u32,
}
