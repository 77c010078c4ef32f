//! Where the databases are, and what they contain.

use std::path::PathBuf;

/// Rows of the table.
pub(super) const ROWS: u32 = 10_000;
/// The user at PostgreSQL, and the database.
pub(super) const USER: &str = "sinew";
pub(super) const DATABASE: &str = "postgres";
/// The file of SQLite in the folder, and the socket of PostgreSQL.
pub(super) const FILE: &str = "items.sqlite";
pub(super) const PORT: u16 = 5432;

/// Which database it is, and its folder.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Its socket is in this folder.
    Postgres(PathBuf),
    /// Its file is in this folder.
    Sqlite(PathBuf),
}

impl Place {
    /// Its URL, as a graph and other programs read it.
    pub(super) fn url(&self) -> String {
        match self {
            Place::Postgres(folder) => {
                let host = folder.display();
                format!("postgres://{USER}@/{DATABASE}?host={host}&port={PORT}")
            }
            Place::Sqlite(folder) => format!("sqlite://{}", folder.join(FILE).display()),
        }
    }
}
