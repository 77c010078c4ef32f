//! Migrations: they make and change the tables of a database step by step; each is applied once.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ring::digest::{SHA256, digest};
use sinew_core::Refusal;
use sinew_flow::Error;
use sinew_spec::{Data, Item};

use crate::script::library::hex;

/// The table that records which migrations were applied.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS sinew_migrations (\
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, \
    applied_at TEXT NOT NULL)";
/// Reads the applied migrations.
pub(super) const APPLIED: &str =
    "SELECT number, name, checksum, applied_at FROM sinew_migrations ORDER BY number";
/// Records one more.
pub(super) const RECORD: &str = "INSERT INTO sinew_migrations VALUES ($1, $2, $3, $4)";

/// Most migrations of a database. The limit is needed because a graph is read as a whole.
const MIGRATIONS_MAX: usize = 1000;
/// Longest file of a migration, in bytes.
const FILE_SIZE_MAX: u64 = 1 << 20;
/// The ending of file names.
const ENDING: &str = ".sql";

const HELP: &str = "write a list of SQL texts, or of mappings such as {name: users, sql: 'CREATE \
                    TABLE ...'}, or the name of a folder with files such as 001_users.sql";

/// A step.
#[derive(Clone)]
pub(in crate::data::sql) struct Migration {
    pub(super) name: String,
    pub(super) sql: String,
    checksum: String,
}

/// A step that was applied.
pub(super) struct Applied {
    pub(super) number: i64,
    pub(super) name: String,
    pub(super) checksum: String,
    pub(super) applied_at: String,
}

impl Migration {
    fn new(name: String, sql: String) -> Migration {
        let checksum = hex(digest(&SHA256, sql.as_bytes()).as_ref());
        Migration { name, sql, checksum }
    }

    /// SHA-256 of its text, in hexadecimal.
    pub(super) fn checksum(&self) -> &str {
        &self.checksum
    }
}

/// The text for a database: the text for both, or the one under the database's name.
///
/// # Errors
/// There is no text for it.
pub(in crate::data::sql) fn text_for(item: &Item, is_postgres: bool) -> Result<&str, Refusal> {
    let name = if is_postgres { "postgres" } else { "sqlite" };
    let help = "write one text, or {sqlite: text, postgres: text}";
    let refuse = |message: String| Err(Refusal::new(item.span, message, help));
    match &item.data {
        Data::Scalar { text, .. } if text.trim().is_empty() => refuse("there is no SQL".into()),
        Data::Scalar { text, .. } => Ok(text),
        Data::List(_) => refuse(format!("SQL is a text, found {}", item.sort())),
        Data::Map(entries) => {
            let known = |key: &str| ["sqlite", "postgres"].contains(&key);
            if let Some(other) = entries.iter().find(|entry| !known(&entry.key)) {
                let message = format!("there is no database '{}'", other.key);
                return Err(Refusal::new(other.span, message, help));
            }
            match entries.iter().find(|entry| entry.key == name) {
                Some(entry) if matches!(entry.value.data, Data::Scalar { .. }) => {
                    text_for(&entry.value, is_postgres)
                }
                _ => refuse(format!("there is no text for {name}")),
            }
        }
    }
}

/// The files that migrations are read from.
pub(in crate::data::sql) fn files(item: &Item, folder: &Path) -> Vec<PathBuf> {
    match &item.data {
        Data::Scalar { text, .. } => list(&folder.join(text)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The migrations of the spec: a list, or a folder of files in the order of their names.
///
/// # Errors
/// All that is wrong.
pub(in crate::data::sql) fn read(
    item: &Item,
    folder: &Path,
    is_postgres: bool,
) -> Result<Vec<Migration>, Vec<Refusal>> {
    let refuse = |message: String| vec![Refusal::new(item.span, message, HELP)];
    let made = match &item.data {
        Data::Scalar { text, .. } => {
            let read = from_folder(&folder.join(text), is_postgres);
            read.map_err(|error| refuse(format!("migrations in '{text}': {error}")))?
        }
        Data::List(items) => {
            let (mut made, mut refusals) = (Vec::new(), Vec::new());
            for (at, item) in items.iter().enumerate() {
                match from_item(item, at + 1, is_postgres) {
                    Ok(migration) => made.push(migration),
                    Err(refusal) => refusals.push(refusal),
                }
            }
            if !refusals.is_empty() {
                return Err(refusals);
            }
            made
        }
        Data::Map(_) => return Err(refuse("migrations are a list or a folder".into())),
    };
    if made.len() > MIGRATIONS_MAX {
        return Err(refuse(format!("{} migrations; at most {MIGRATIONS_MAX}", made.len())));
    }
    Ok(made)
}

fn from_item(item: &Item, number: usize, is_postgres: bool) -> Result<Migration, Refusal> {
    let unnamed = || format!("number {number}");
    let Data::Map(entries) = &item.data else {
        return Ok(Migration::new(unnamed(), text_for(item, is_postgres)?.to_owned()));
    };
    let known = |key: &str| ["name", "sql"].contains(&key);
    if let Some(other) = entries.iter().find(|entry| !known(&entry.key)) {
        let message = format!("there is no key '{}' here", other.key);
        return Err(Refusal::new(other.span, message, HELP));
    }
    let value = |key| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
    let Some(sql) = value("sql") else {
        return Err(Refusal::new(item.span, "a migration has 'sql'", HELP));
    };
    let name = match value("name").map(|name| &name.data) {
        Some(Data::Scalar { text, .. }) => text.clone(),
        _ => unnamed(),
    };
    Ok(Migration::new(name, text_for(sql, is_postgres)?.to_owned()))
}

/// The files of a folder that end with `ENDING`, in the order of their names.
fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|path| path.ends_with(ENDING)) {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn from_folder(folder: &Path, is_postgres: bool) -> io::Result<Vec<Migration>> {
    let (ours, others) = match is_postgres {
        true => (".postgres", ".sqlite"),
        false => (".sqlite", ".postgres"),
    };
    let mut made = Vec::new();
    for path in list(folder)? {
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = file.strip_suffix(ENDING).unwrap_or(file);
        if name.ends_with(others) {
            continue;
        }
        let bad = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        if fs::metadata(&path)?.len() > FILE_SIZE_MAX {
            return Err(bad(format!("'{file}' has more than {FILE_SIZE_MAX} bytes")));
        }
        let sql = fs::read_to_string(&path).map_err(|error| bad(format!("'{file}': {error}")))?;
        made.push(Migration::new(name.strip_suffix(ours).unwrap_or(name).to_owned(), sql));
    }
    match made.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "there is no file for this database")),
        false => Ok(made),
    }
}

/// The index of the migration that is to be applied next; `None` if all were applied.
///
/// # Errors
/// An applied migration has changed, or is not in the graph.
pub(super) fn next(all: &[Migration], applied: &[Applied]) -> Result<Option<usize>, Error> {
    for (at, was) in applied.iter().enumerate() {
        let Applied { number, name, checksum, applied_at } = was;
        let Some(migration) = all.get(at).filter(|_| *number == at as i64 + 1) else {
            return Err(Error::new(format_args!(
                "migration {number} ('{name}') was applied at {applied_at}, and the graph has {}; \
                 run a graph that knows it",
                all.len()
            )));
        };
        if migration.checksum != *checksum {
            return Err(Error::new(format_args!(
                "migration {number} ('{name}') has changed since it was applied at {applied_at}; \
                 restore it, and write the change as a new one behind the last"
            )));
        }
    }
    Ok(Some(applied.len()).filter(|&next| next < all.len()))
}

/// The error of a migration that fails.
pub(super) fn failed(migration: &Migration, error: &Error) -> Error {
    let text = format_args!("migration '{}': {}", migration.name, error.text());
    Error::new(text).with_status(error.status())
}
