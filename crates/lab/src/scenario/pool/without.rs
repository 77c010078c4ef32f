//! In the place of the drivers, where this program was built without.

use std::path::Path;

use super::place::Place;

/// Whether there are drivers in this program.
pub(super) const BUILT: Result<(), &str> = Err("this program was built without databases; build \
                                                it with 'cargo build --release --features sql'");

/// None can be.
pub(super) enum Connection {}

impl Connection {
    /// Says why not.
    pub(super) fn open(_: &Place) -> Result<Connection, String> {
        Err(why())
    }

    /// There is none.
    pub(super) fn query(&mut self, _: u32, _: bool) -> Result<(), String> {
        match *self {}
    }
}

/// Says why not.
pub(super) fn make_sqlite(_: &Path) -> Result<Place, String> {
    Err(why())
}

/// As above.
pub(super) fn reach_postgres(_: &Path) -> Result<(), String> {
    Err(why())
}

/// As above.
pub(super) fn make_postgres(_: &Path) -> Result<(), String> {
    Err(why())
}

fn why() -> String {
    BUILT.err().unwrap_or_default().into()
}
