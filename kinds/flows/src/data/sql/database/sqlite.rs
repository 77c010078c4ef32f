//! A connection to SQLite: a thread of its own, which does one piece of work after the other.
//!
//! It does not use the domain's pool. A transaction or a stream of rows keeps its connection for as
//! long as its flow takes, and would keep a thread of the pool as long, while others wait for that
//! thread.

mod cells;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, unfold};
use jiff::Timestamp;
use rusqlite::{InterruptHandle, OpenFlags};
use sinew_flow::Error;
use tokio::sync::oneshot;

use self::cells::each_row;
use super::BoundStatement;
use super::failure::{of_sqlite, unavailable};
use super::migrations::{self, APPLIED, Applied, Migration, RECORD, TABLE};
use super::rows::{Bounds, PART_SIZE, Row, TableRows};

/// Statements that each connection keeps prepared: enough for a graph of any reasonable size.
const PREPARED_MAX: usize = 256;
/// Most parts of a stream that wait to be taken.
const PARTS_MAX: usize = 2;
/// Longest pause between two tries to get a lock that another process holds: there is no signal
/// when the lock is released.
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(20);

/// Run at the start of every connection. The write-ahead log lets others read while one writes.
const BEGIN: &str = "PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON;";

type Job = Box<dyn FnOnce(&mut rusqlite::Connection) + Send>;

/// A connection.
pub(super) struct SqliteConnection {
    jobs: mpsc::Sender<Job>,
    interrupt: Arc<InterruptHandle>,
    cancel: Arc<Cancel>,
    /// Whether nothing is under way.
    pub(super) is_over: bool,
}

/// Whether the work that is under way is to end.
#[derive(Default)]
struct Cancel {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    fn set(&self, is_set: bool) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = is_set;
        self.changed.notify_all();
    }

    /// Waits for `limit`, or until it is set. Whether it is set.
    fn wait(&self, limit: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_set, limit, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl SqliteConnection {
    /// Opens a file, which is created if there is none; `None` for a database in memory.
    ///
    /// # Errors
    /// SQLite's error.
    pub(super) async fn open(
        path: Option<&Path>,
        busy_max: Duration,
    ) -> Result<SqliteConnection, Error> {
        let (answer, answered) = oneshot::channel();
        let (jobs, work) = mpsc::channel::<Job>();
        let (path, cancel) = (path.map(Path::to_owned), Arc::<Cancel>::default());
        let cancelled = Arc::clone(&cancel);
        let live = move || match begin(path.as_deref(), busy_max, cancelled) {
            Ok(mut connection) => {
                // An error means that the caller is gone; then no work comes.
                let _ = answer.send(Ok(connection.get_interrupt_handle()));
                work.into_iter().for_each(|job| job(&mut connection));
            }
            Err(error) => drop(answer.send(Err(of_sqlite(&error)))),
        };
        let spawned = thread::Builder::new().name("sqlite".into()).spawn(live);
        spawned.map_err(|error| unavailable(format_args!("no thread: {error}")))?;
        let interrupt = Arc::new(answered.await.map_err(|_| gone())??);
        Ok(SqliteConnection { jobs, interrupt, cancel, is_over: true })
    }

    /// Does something on its thread. If the future is dropped before the end, the work is still
    /// under way.
    async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.is_over = false;
        let (answer, answered) = oneshot::channel();
        // An error is ignored: nobody may wait for the answer any more.
        self.begin(move |connection| drop(answer.send(work(connection))))?;
        let answer = answered.await.map_err(|_| gone())?;
        self.is_over = true;
        answer
    }

    fn begin(
        &self,
        work: impl FnOnce(&mut rusqlite::Connection) + Send + 'static,
    ) -> Result<(), Error> {
        let cancel = Arc::clone(&self.cancel);
        let job: Job = Box::new(move |connection| {
            if !cancel.wait(Duration::ZERO) {
                work(connection);
            }
        });
        self.jobs.send(job).map_err(|_| gone())
    }

    /// Runs a statement, and takes all rows.
    pub(super) async fn ask(
        &mut self,
        asked: BoundStatement,
        bounds: Bounds,
    ) -> Result<TableRows, Error> {
        self.run(move |connection| {
            let mut answer = TableRows::default();
            answer.changed = each_row(connection, &asked, |row| answer.add(row, bounds))?;
            Ok(answer)
        })
        .await
    }

    /// Runs a statement, and gives the rows as lines of JSON. The statement waits while parts are
    /// not taken.
    pub(super) fn stream(
        &mut self,
        asked: BoundStatement,
    ) -> Result<BoxStream<'static, Result<Bytes, Error>>, Error> {
        self.is_over = false;
        let (to, parts) = tokio::sync::mpsc::channel(PARTS_MAX);
        self.begin(move |connection| {
            let mut part = Vec::with_capacity(PART_SIZE);
            let send = |part: &mut Vec<u8>| {
                let whole = Bytes::from(std::mem::replace(part, Vec::with_capacity(PART_SIZE)));
                to.blocking_send(Ok(whole)).map_err(|_| Error::new("nobody takes the rows"))
            };
            let take = |row: Row| {
                row.write(&mut part)?;
                if part.len() >= PART_SIZE { send(&mut part) } else { Ok(()) }
            };
            let ended = each_row(connection, &asked, take);
            // An error means that the receiver is gone.
            let _ = match ended {
                Ok(_) if part.is_empty() => return,
                Ok(_) => send(&mut part),
                Err(error) => to.blocking_send(Err(error)).map_err(|_| Error::new("gone")),
            };
        })?;
        let next = async |mut parts: tokio::sync::mpsc::Receiver<_>| {
            parts.recv().await.map(|part| (part, parts))
        };
        Ok(unfold(parts, next).boxed())
    }

    /// Carries out a command that has no result.
    pub(super) async fn command(&mut self, text: &'static str) -> Result<(), Error> {
        self.run(|connection| connection.execute_batch(text).map_err(|it| of_sqlite(&it))).await
    }

    /// Applies the migrations that were not applied, each in a transaction of its own.
    pub(super) async fn migrate(&mut self, all: Vec<Migration>) -> Result<(), Error> {
        self.run(move |connection| {
            while migrate(connection, &all)? {}
            Ok(())
        })
        .await
    }

    /// Cancels what is under way, and hands the connection to `then` once it is clean as at the
    /// start. If that is not possible, the connection is closed.
    pub(super) fn recover(mut self, then: impl FnOnce(SqliteConnection) + Send + 'static) {
        self.cancel.set(true);
        self.interrupt.interrupt();
        let jobs = self.jobs.clone();
        let clean: Job = Box::new(move |connection| {
            self.cancel.set(false);
            if connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok() {
                self.is_over = true;
                then(self);
            }
        });
        // An error means that the thread is gone, which has closed the connection.
        let _ = jobs.send(clean);
    }
}

fn begin(
    path: Option<&Path>,
    busy_max: Duration,
    cancel: Arc<Cancel>,
) -> rusqlite::Result<rusqlite::Connection> {
    let flags = OpenFlags::default() - OpenFlags::SQLITE_OPEN_URI;
    let mut connection = match path {
        Some(path) => rusqlite::Connection::open_with_flags(path, flags)?,
        None => rusqlite::Connection::open_in_memory()?,
    };
    let mut since = Instant::now();
    let wait = move |tries: i32| {
        if tries == 0 {
            since = Instant::now();
        }
        let left = busy_max.saturating_sub(since.elapsed());
        let pause = Duration::from_millis(1 << tries.clamp(0, 5)).min(LOCK_PAUSE_MAX).min(left);
        !left.is_zero() && !cancel.wait(pause)
    };
    connection.busy_handler(Some(wait))?;
    connection.set_prepared_statement_cache_capacity(PREPARED_MAX);
    connection.execute_batch(BEGIN)?;
    Ok(connection)
}

/// Applies the next migration; whether there was one.
fn migrate(connection: &mut rusqlite::Connection, all: &[Migration]) -> Result<bool, Error> {
    let said = |error: rusqlite::Error| of_sqlite(&error);
    let kind = rusqlite::TransactionBehavior::Immediate;
    // Other processes that migrate this database wait here.
    let transaction = connection.transaction_with_behavior(kind).map_err(said)?;
    transaction.execute_batch(TABLE).map_err(said)?;
    let applied = {
        let mut statement = transaction.prepare(APPLIED).map_err(said)?;
        let row = |row: &rusqlite::Row<'_>| {
            let (number, name) = (row.get(0)?, row.get(1)?);
            Ok(Applied { number, name, checksum: row.get(2)?, applied_at: row.get(3)? })
        };
        let rows = statement.query_map([], row).map_err(said)?;
        rows.collect::<Result<Vec<_>, _>>().map_err(said)?
    };
    let Some(next) = migrations::next(all, &applied)? else {
        transaction.commit().map_err(said)?;
        return Ok(false);
    };
    let migration = &all[next];
    let failed = |error| migrations::failed(migration, &said(error));
    transaction.execute_batch(&migration.sql).map_err(failed)?;
    let (number, applied_at) = (next as i64 + 1, Timestamp::now().to_string());
    let record = (number, &migration.name, migration.checksum(), applied_at);
    transaction.execute(RECORD, record).map_err(said)?;
    transaction.commit().map_err(said)?;
    Ok(true)
}

#[cold]
fn gone() -> Error {
    unavailable("the thread of this connection is gone")
}
