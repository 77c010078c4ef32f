//! A database: its connections, a limited number for all workers, and their leases.

pub(super) mod address;
mod failure;
pub(super) mod migrations;
pub(super) mod placeholders;
mod postgres;
mod rows;
mod sqlite;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use address::Address;
pub(super) use failure::too_late;
use failure::unavailable;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use migrations::Migration;
use postgres::PostgresConnection;
use sinew_flow::{Error, Flow, Value};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

pub(super) use rows::{Bounds, PartsToCome, TableRows};
use sqlite::SqliteConnection;

/// What a database is made of.
pub(super) struct Settings {
    /// The node's name.
    pub(super) name: String,
    pub(super) address: Address,
    pub(super) migrations: Vec<Migration>,
    pub(super) connections_max: usize,
    /// How long a flow waits for a connection.
    pub(super) connection_wait_max: Duration,
    /// How long a statement of SQLite waits for a lock.
    pub(super) busy_max: Duration,
}

impl Settings {
    /// A key that is equal if two nodes mean the same database.
    pub(super) fn key(&self) -> String {
        let Settings { name, address, connections_max, .. } = self;
        let waits = (self.connection_wait_max, self.busy_max);
        let checksums: Vec<&str> = self.migrations.iter().map(Migration::checksum).collect();
        let key = address.key();
        format!("sql {name} {key} {connections_max} {waits:?} {}", checksums.join(" "))
    }
}

/// A statement and its arguments, which are single values.
pub(super) struct BoundStatement {
    pub(super) text: Arc<str>,
    pub(super) args: Vec<Value>,
}

/// A database that all workers share.
pub(super) struct Database {
    settings: Settings,
    /// Set once the database has answered, and has all its tables.
    ready: OnceCell<()>,
    /// Permits for connections that may be in use.
    room: Arc<Semaphore>,
    /// Connections that are not in use.
    idle: Mutex<Vec<Connection>>,
}

/// A connection to either sort of database.
enum Connection {
    Sqlite(SqliteConnection),
    Postgres(Box<PostgresConnection>),
}

/// A connection in use, until this is dropped. Dropping it in the middle of a statement or of a
/// transaction cancels that.
pub(super) struct Lease {
    database: Arc<Database>,
    /// `Some` until this is dropped.
    connection: Option<Connection>,
    permit: Option<OwnedSemaphorePermit>,
    in_transaction: bool,
}

impl Database {
    /// A database without connections.
    pub(super) fn new(settings: Settings) -> Database {
        // One connection only, because each connection to memory would be a database of its own.
        let connections_max = match settings.address {
            Address::Memory => 1,
            _ => settings.connections_max,
        };
        Database {
            settings,
            ready: OnceCell::new(),
            room: Arc::new(Semaphore::new(connections_max)),
            idle: Mutex::default(),
        }
    }

    /// Its name and address, without a password.
    pub(super) fn shown(&self) -> String {
        format!("'{}' ({})", self.settings.name, self.settings.address)
    }

    /// Waits until the database has answered once and has all its tables.
    ///
    /// # Errors
    /// The database is not available (503); or its tables are not those of the graph.
    pub(super) async fn ready(self: &Arc<Self>) -> Result<(), Error> {
        let begin = || async {
            let mut lease = self.take().await?;
            lease.migrate().await
        };
        self.ready.get_or_try_init(begin).await.copied()
    }

    /// Waits for a free connection.
    ///
    /// # Errors
    /// As for [`Database::ready`]; or none was free in time (503).
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, Error> {
        if !self.ready.initialized() {
            self.ready().await?;
        }
        self.take().await
    }

    async fn take(self: &Arc<Self>) -> Result<Lease, Error> {
        let Settings { connection_wait_max: limit, name, .. } = &self.settings;
        let free = timeout(*limit, Arc::clone(&self.room).acquire_owned()).await;
        let Ok(Ok(permit)) = free else {
            return Err(unavailable(format_args!(
                "no connection of '{name}' was free within {limit:?}; raise its \
                 'connections_max', or give it less to do at once"
            )));
        };
        let connection = match self.unused() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let (database, connection) = (Arc::clone(self), Some(connection));
        Ok(Lease { database, connection, permit: Some(permit), in_transaction: false })
    }

    /// A connection that is not in use, preferably one that this thread drives.
    fn unused(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(Connection::is_usable);
        let near = idle.iter().rposition(Connection::is_near);
        near.map(|at| idle.swap_remove(at)).or_else(|| idle.pop())
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let Settings { address, busy_max, .. } = &self.settings;
        let connected = match address {
            Address::Memory => SqliteConnection::open(None, *busy_max).await,
            Address::File(path) => SqliteConnection::open(Some(path), *busy_max).await,
            Address::Postgres(server) => {
                let connected = server.connect().await;
                return connected
                    .map(|it| Connection::Postgres(Box::new(it)))
                    .map_err(|error| self.not_had(&error));
            }
        };
        connected.map(Connection::Sqlite).map_err(|error| self.not_had(&error))
    }

    fn not_had(&self, error: &Error) -> Error {
        let text = format_args!("cannot open {}: {}", self.shown(), error.text());
        Error::new(text).with_status(error.status())
    }

    /// The lock is held for a few moves; nothing panics under it.
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Whether nothing is under way on it.
    fn is_over(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_over,
            Connection::Postgres(connection) => connection.is_over,
        }
    }

    /// Whether the connection is still open, as far as this side knows.
    fn is_usable(&self) -> bool {
        match self {
            Connection::Sqlite(_) => true,
            Connection::Postgres(connection) => !connection.is_closed(),
        }
    }

    fn is_near(&self) -> bool {
        match self {
            Connection::Sqlite(_) => true,
            Connection::Postgres(connection) => connection.is_near(),
        }
    }
}

impl Lease {
    fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it has one until it is dropped")
    }

    /// Runs a statement, and takes all rows. The work is drawn from the flow.
    ///
    /// # Errors
    /// The database's error, or more rows than the bounds allow. If the future is dropped before
    /// its end, the statement is cancelled.
    pub(super) async fn ask(
        &mut self,
        flow: &Flow,
        asked: BoundStatement,
        bounds: Bounds,
    ) -> Result<TableRows, Error> {
        match self.connection() {
            Connection::Sqlite(connection) => {
                let answer = connection.ask(asked, bounds).await?;
                flow.spend(answer.price())?;
                Ok(answer)
            }
            Connection::Postgres(connection) => connection.ask(flow, asked, bounds).await,
        }
    }

    /// Runs a statement, and gives the rows as lines of JSON while they come. If a part does not
    /// come within `patience`, the last part is an error.
    ///
    /// # Errors
    /// The database's error before the first row.
    pub(super) async fn stream(
        mut self,
        asked: BoundStatement,
        patience: Duration,
    ) -> Result<PartsToCome, Error> {
        let parts: BoxStream<'static, _> = match self.connection() {
            Connection::Sqlite(connection) => connection.stream(asked)?,
            Connection::Postgres(connection) => connection.stream(asked).await?,
        };
        let mut parts = rows::in_time(parts, patience, self);
        let first = parts.next().await.transpose()?;
        Ok(futures_util::stream::iter(first.map(Ok)).chain(parts).boxed())
    }

    /// Notes that all rows have come.
    fn ended(&mut self) {
        match self.connection() {
            Connection::Sqlite(connection) => connection.is_over = true,
            Connection::Postgres(connection) => connection.is_over = true,
        }
    }

    /// Begins a transaction. In SQLite it takes the right to write at once, because a transaction
    /// that begins to write later cannot wait for others.
    ///
    /// # Errors
    /// The database's error.
    pub(super) async fn begin(&mut self) -> Result<(), Error> {
        self.in_transaction = true;
        let text = match self.connection() {
            Connection::Sqlite(_) => "BEGIN IMMEDIATE",
            Connection::Postgres(_) => "BEGIN",
        };
        self.command(text).await
    }

    /// Ends a transaction.
    ///
    /// # Errors
    /// The database's error; then the transaction is rolled back. If the connection was lost, it is
    /// unknown whether it was committed.
    pub(super) async fn commit(&mut self) -> Result<(), Error> {
        self.command("COMMIT").await?;
        self.in_transaction = false;
        Ok(())
    }

    /// Takes back all changes since [`Lease::begin`]. If that fails, the connection is closed or
    /// cleaned when this is dropped.
    pub(super) async fn roll_back(&mut self) {
        if self.connection().is_over() && self.command("ROLLBACK").await.is_ok() {
            self.in_transaction = false;
        }
    }

    async fn command(&mut self, text: &'static str) -> Result<(), Error> {
        match self.connection() {
            Connection::Sqlite(connection) => connection.command(text).await,
            Connection::Postgres(connection) => connection.command(text).await,
        }
    }

    async fn migrate(&mut self) -> Result<(), Error> {
        let database = Arc::clone(&self.database);
        let migrations = &database.settings.migrations;
        if migrations.is_empty() {
            return Ok(());
        }
        self.in_transaction = true;
        let migrated = match self.connection() {
            Connection::Sqlite(connection) => connection.migrate(migrations.clone()).await,
            Connection::Postgres(connection) => connection.migrate(migrations).await,
        };
        self.in_transaction = migrated.is_err();
        migrated.map_err(|error| {
            let text = format_args!("tables of {}: {}", database.shown(), error.text());
            Error::new(text).with_status(error.status())
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (Some(connection), permit) = (self.connection.take(), self.permit.take()) else {
            return;
        };
        if connection.is_over() && !self.in_transaction && connection.is_usable() {
            // Done before the permit is given back, so that the next holder finds this connection.
            self.database.idle().push(connection);
            return drop(permit);
        }
        let database = Arc::downgrade(&self.database);
        match connection {
            Connection::Sqlite(connection) => connection.recover(move |connection| {
                if let Some(database) = database.upgrade() {
                    database.idle().push(Connection::Sqlite(connection));
                }
                drop(permit);
            }),
            Connection::Postgres(connection) => connection.cancel(permit),
        }
    }
}
