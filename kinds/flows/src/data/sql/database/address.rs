//! Where a database is.

use std::fmt;
use std::path::{Path, PathBuf};

use super::postgres::Server;

/// Where a database is.
pub(in crate::data::sql) enum Address {
    /// SQLite in the memory of this process.
    Memory,
    /// An SQLite file.
    File(PathBuf),
    /// A PostgreSQL server.
    Postgres(Box<Server>),
}

/// Help for a wrong URL.
pub(in crate::data::sql) const HELP: &str = "write sqlite://users.db, sqlite://:memory: or \
                                        postgres://user:password@host/database";

impl Address {
    /// Reads a URL. Paths are relative to `folder`; `ca` is a file with the authorities to trust.
    ///
    /// # Errors
    /// What is wrong with the URL, without its password.
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
            // The text may contain a password, so the message does not repeat it.
            None => Err("this is not a URL of a database".into()),
        }
    }

    /// Whether it is a PostgreSQL server.
    pub(in crate::data::sql) fn is_postgres(&self) -> bool {
        matches!(self, Address::Postgres(_))
    }

    /// A key that differs if two addresses are not the same. It must not be shown, as it contains
    /// the password.
    pub(super) fn key(&self) -> String {
        match self {
            Address::Postgres(server) => server.key(),
            other => other.to_string(),
        }
    }
}

/// The address as it may be shown: without a password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Memory => f.write_str("sqlite://:memory:"),
            Address::File(path) => write!(f, "sqlite://{}", path.display()),
            Address::Postgres(server) => server.fmt(f),
        }
    }
}
