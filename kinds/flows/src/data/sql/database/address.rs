//! Where a database is.

use std::fmt;
use std::path::{Path, PathBuf};

use super::postgres::Server;

/// Where a database is.
pub(in crate::data::sql) enum Address {
    /// SQLite in the memory of this process.
    Memory,
    /// A file of SQLite.
    File(PathBuf),
    /// A server of PostgreSQL.
    Postgres(Box<Server>),
}

/// What to write.
pub(in crate::data::sql) const HELP: &str = "write sqlite://users.db, sqlite://:memory: or \
                                        postgres://user:password@host/database";

impl Address {
    /// Reads a URL. Paths are seen from `folder`; `ca` is a file with the authorities to trust.
    ///
    /// # Errors
    /// It is none; what is wrong, without its password.
    pub(in crate::data::sql) fn read(
        url: &str,
        folder: &Path,
        ca: Option<&Path>,
    ) -> Result<Address, String> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Address::Postgres(Box::new(Server::read(url, ca)?)));
        }
        match url.strip_prefix("sqlite://") {
            Some(":memory:") => Ok(Address::Memory),
            Some("") => Err("there is no path behind sqlite://".into()),
            Some(path) if path.contains('?') => {
                Err("a path of SQLite has no '?' here; options are parameters of the node".into())
            }
            Some(path) => Ok(Address::File(folder.join(path))),
            // It may hold a password, and so is not repeated.
            None => Err("this is not a URL of a database".into()),
        }
    }

    /// Whether it is one of PostgreSQL.
    pub(in crate::data::sql) fn is_postgres(&self) -> bool {
        matches!(self, Address::Postgres(_))
    }

    /// What differs if two are not the same. Not to be shown: it has the password.
    pub(super) fn key(&self) -> String {
        match self {
            Address::Postgres(server) => server.key(),
            other => other.to_string(),
        }
    }
}

/// As it may be shown: without a password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Memory => f.write_str("sqlite://:memory:"),
            Address::File(path) => write!(f, "sqlite://{}", path.display()),
            Address::Postgres(server) => server.fmt(f),
        }
    }
}
