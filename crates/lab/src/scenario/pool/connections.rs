//! A pool of connections to a database, as services have one: who finds all of them busy waits for
//! one, and with it its thread.

use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use postgres::{Client, Config, NoTls, Statement};
use rusqlite::OpenFlags;
use sinew_flow::queued_elsewhere;

/// Rows of the table.
pub(super) const ROWS: u32 = 10_000;
/// Who asks PostgreSQL, and the database.
pub(super) const USER: &str = "sinew";
pub(super) const DATABASE: &str = "postgres";
/// The file of SQLite in the folder, and the socket of PostgreSQL.
pub(super) const FILE: &str = "items.sqlite";
pub(super) const PORT: u16 = 5432;

const QUERY: &str = "SELECT text FROM items WHERE id = $1";
/// A day: past it nobody is left who waits for it.
const HANG: &str = "SELECT pg_sleep(86400)";

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

/// How to reach PostgreSQL over its socket in a folder.
pub(super) fn config(folder: &Path) -> Config {
    let mut config = Config::new();
    config.host_path(folder).port(PORT).user(USER).dbname(DATABASE);
    config
}

/// Connections, opened when they are first needed.
pub(super) struct Connections {
    place: Place,
    max: usize,
    state: Mutex<State>,
    /// One is free, or may be opened again.
    freed: Condvar,
}

struct State {
    free: Vec<Connection>,
    open: usize,
}

enum Connection {
    Postgres(Box<Client>, Statement),
    Sqlite(rusqlite::Connection),
}

impl Connections {
    /// At most so many.
    pub(super) fn new(place: Place, max: usize) -> Connections {
        let state = Mutex::new(State { free: Vec::new(), open: 0 });
        Connections { place, max, state, freed: Condvar::new() }
    }

    /// Reads the row with this key, over a connection that is free, once there is one.
    pub(super) fn query(&self, id: u32, hangs: bool) -> Result<(), String> {
        let taken = queued_elsewhere(|| self.take());
        let asked = taken.map_or_else(|| Connection::open(&self.place), Ok).and_then(|mut it| {
            it.query(id, hangs)?;
            Ok(it)
        });
        let mut state = self.state();
        let answered = match asked {
            Ok(connection) => {
                state.free.push(connection);
                Ok(())
            }
            // What is left on it nobody knows.
            Err(why) => {
                state.open -= 1;
                Err(why)
            }
        };
        drop(state);
        self.freed.notify_one();
        answered
    }

    /// Waits for a connection that is free; `None`: one may be opened.
    fn take(&self) -> Option<Connection> {
        let mut state = self.state();
        loop {
            if let Some(connection) = state.free.pop() {
                return Some(connection);
            }
            if state.open < self.max {
                state.open += 1;
                return None;
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No one can have panicked while holding it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn open(place: &Place) -> Result<Connection, String> {
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

    fn query(&mut self, id: u32, hangs: bool) -> Result<(), String> {
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

/// SQLite's file in a folder, with its table.
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
