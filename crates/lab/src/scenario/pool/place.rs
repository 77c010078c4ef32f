//! Where the databases are, and what is in them.

use std::path::PathBuf;

/// Rows of the table.
pub(super) const ROWS: u32 = 10_000;
/// Who asks PostgreSQL, and the database.
pub(super) const USER: &str = "sinew";
pub(super) const DATABASE: &str = "postgres";
/// The file of SQLite in the folder, and the socket of PostgreSQL.
pub(super) const FILE: &str = "items.sqlite";
pub(super) const PORT: u16 = 5432;

/// Which database, and the folder that it has.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Its socket is there.
    Postgres(PathBuf),
    /// Its file is there.
    Sqlite(PathBuf),
}

impl Place {
    /// Where it is, as a graph and other programs read it.
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
