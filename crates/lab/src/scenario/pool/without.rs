//! Replaces the drivers if this program was built without them.

use std::path::Path;

use super::place::Place;

/// Whether this program was built with drivers.
pub(super) const BUILT: Result<(), &str> = Err("this program was built without databases; build \
                                                it with 'cargo build --release --features sql'");

/// A connection, which cannot exist in this program.
pub(super) enum Connection {}

impl Connection {
    /// Always fails; the error says why.
    pub(super) fn open(_: &Place) -> Result<Connection, String> {
        Err(why())
    }

    /// Never called, because no connection exists.
    pub(super) fn query(&mut self, _: u32, _: bool) -> Result<(), String> {
        match *self {}
    }
}

/// Always fails; the error says why.
pub(super) fn make_sqlite(_: &Path) -> Result<Place, String> {
    Err(why())
}

/// Always fails; the error says why.
pub(super) fn reach_postgres(_: &Path) -> Result<(), String> {
    Err(why())
}

/// Always fails; the error says why.
pub(super) fn make_postgres(_: &Path) -> Result<(), String> {
    Err(why())
}

fn why() -> String {
    BUILT.err().unwrap_or_default().into()
}
