//! The drivers by which the lab uses the databases.

use std::path::Path;

use postgres::{Client, Config, NoTls, Statement};
use rusqlite::OpenFlags;

use super::place::{DATABASE, FILE, PORT, Place, ROWS, USER};

const QUERY: &str = "SELECT text FROM items WHERE id = $1";
/// A query that sleeps for a day: nobody waits for it that long.
const HANG: &str = "SELECT pg_sleep(86400)";

/// Whether this program was built with drivers.
pub(super) const BUILT: Result<(), &str> = Ok(());

/// How to reach PostgreSQL over its socket in a folder.
fn config(folder: &Path) -> Config {
    let mut config = Config::new();
    config.host_path(folder).port(PORT).user(USER).dbname(DATABASE);
    config
}

/// A connection to one of the databases.
pub(super) enum Connection {
    Postgres(Box<Client>, Statement),
    Sqlite(rusqlite::Connection),
}

impl Connection {
    /// Opens a connection.
    pub(super) fn open(place: &Place) -> Result<Connection, String> {
        match place {
            Place::Postgres(folder) => {
                let failed = |error: postgres::Error| format!("PostgreSQL: {error}");
                let mut client = config(folder).connect(NoTls).map_err(failed)?;
                let statement = client.prepare(QUERY).map_err(failed)?;
                Ok(Connection::Postgres(Box::new(client), statement))
            }
            Place::Sqlite(folder) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let opened = rusqlite::Connection::open_with_flags(folder.join(FILE), flags);
                opened.map(Connection::Sqlite).map_err(|error| format!("SQLite: {error}"))
            }
        }
    }

    /// Reads the row with this key; never returns if `hangs`.
    pub(super) fn query(&mut self, id: u32, hangs: bool) -> Result<(), String> {
        match self {
            Connection::Postgres(client, _) if hangs => {
                client.batch_execute(HANG).map_err(|error| format!("PostgreSQL: {error}"))
            }
            Connection::Postgres(client, statement) => {
                let row = client.query_one(statement, &[&(id as i32)]);
                row.map(|row| drop(row.get::<_, String>(0)))
                    .map_err(|error| format!("PostgreSQL: {error}"))
            }
            Connection::Sqlite(connection) => {
                let mut statement =
                    connection.prepare(QUERY).map_err(|error| format!("SQLite: {error}"))?;
                let text = statement.query_row([id], |row| row.get::<_, String>(0));
                text.map(drop).map_err(|error| format!("SQLite: {error}"))
            }
        }
    }
}

/// Makes SQLite's file in a folder, with its table.
pub(super) fn make_sqlite(folder: &Path) -> Result<Place, String> {
    let made = || -> rusqlite::Result<()> {
        let mut connection = rusqlite::Connection::open(folder.join(FILE))?;
        let all = connection.transaction()?;
        all.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT NOT NULL)", [])?;
        for id in 0..ROWS {
            all.execute("INSERT INTO items VALUES ($1, 'item ' || $1)", [id])?;
        }
        all.commit()
    };
    made().map_err(|error| format!("SQLite: {error}"))?;
    Ok(Place::Sqlite(folder.into()))
}

/// Whether PostgreSQL answers in its folder.
pub(super) fn reach_postgres(folder: &Path) -> Result<(), String> {
    config(folder).connect(NoTls).map(drop).map_err(|error| error.to_string())
}

/// Makes the table of PostgreSQL, and its rows.
pub(super) fn make_postgres(folder: &Path) -> Result<(), String> {
    let last = ROWS - 1;
    let table = format!(
        "CREATE TABLE items (id integer PRIMARY KEY, text text NOT NULL); \
         INSERT INTO items SELECT id, 'item ' || id FROM generate_series(0, {last}) AS id; \
         ANALYZE items"
    );
    let made = config(folder).connect(NoTls).and_then(|mut client| client.batch_execute(&table));
    made.map_err(|error| format!("PostgreSQL: {error}"))
}
