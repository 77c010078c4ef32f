//! The entries of a store in a file, by redb. All operations that wait for the disk go into one
//! transaction, which ends with fsync. So an operation is answered only when it would survive a
//! power cut.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use jiff::Timestamp;
use redb::{
    Database, ReadableDatabase, ReadableTable, Table as Rows, TableDefinition, TableHandle,
    WriteTransaction,
};
use sinew_core::panics;
use sinew_flow::{Error, Pool};
use tokio::sync::oneshot;

use super::entries::{Act, Asked, Counts, Entry, Outcome, StoreLimits, Table, Totals, carry_out};
use crate::script::refused_for_now;

/// By key: when the entry expires (ms since 1970), its turn, and its value.
const ENTRIES: TableDefinition<'_, &str, (u64, u64, &[u8])> = TableDefinition::new("entries");
/// Keys in the order in which they were written.
const BY_TURN: TableDefinition<'_, u64, &str> = TableDefinition::new("by_turn");
/// Keys that expire, ordered by that time.
const BY_TIME: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("by_time");
/// The format, the totals, and the next turn.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("sinew_store");
/// The number in `NUMBERS` for the format of these tables.
const FORMAT: u64 = 1;

/// How much of a file redb keeps in memory; its own default is 1 GiB.
const CACHE_BYTES: usize = 16 << 20;
/// Most operations in one transaction, so that the first need not wait for long.
const BATCH_MAX: usize = 256;
/// Most operations that wait for a store's disk, and most bytes of these; one more fails with 503.
const WAITING_MAX: usize = 4096;
const WAITING_BYTES_MAX: usize = 64 << 20;

/// The file of a store, and the operations that wait for it.
pub(super) struct Disk {
    path: PathBuf,
    /// `None` after a failure: redb must be opened again.
    database: Mutex<Option<Database>>,
    line: Mutex<Line>,
    totals: Mutex<Totals>,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    bytes: usize,
    /// A piece of work in the pool will carry out these operations.
    is_served: bool,
}

struct Job {
    request: Asked,
    limits: StoreLimits,
    counts: Arc<Counts>,
    answer: oneshot::Sender<Result<Outcome, Error>>,
}

impl Disk {
    /// Opens a file, or creates it.
    ///
    /// # Errors
    /// The file is in use, broken or not of a store; or the system refuses.
    pub(super) fn open(path: &Path) -> Result<Disk, Error> {
        let (database, totals) = open(path)?;
        Ok(Disk {
            path: path.to_owned(),
            database: Mutex::new(Some(database)),
            line: Mutex::default(),
            totals: Mutex::new(totals),
        })
    }

    /// How much the store holds.
    pub(super) fn totals(&self) -> Totals {
        *lock(&self.totals)
    }

    /// Carries out an operation on a thread of the pool.
    ///
    /// # Errors
    /// As for [`carry_out`]; or too many operations wait already (503).
    pub(super) async fn carry_out(
        self: &Arc<Disk>,
        pool: &Pool,
        request: Asked,
        limits: StoreLimits,
        counts: &Arc<Counts>,
    ) -> Result<Outcome, Error> {
        let (answer, answered) = oneshot::channel();
        if self.join(Job { request, limits, counts: Arc::clone(counts), answer })? {
            self.serve(pool);
        }
        answered.await.unwrap_or_else(|_| Err(Error::new("the store's thread has failed")))
    }

    /// Puts an operation into the line. `true` if no piece of work serves the line yet.
    fn join(&self, job: Job) -> Result<bool, Error> {
        let mut line = lock(&self.line);
        let bytes = line.bytes + job.request.len();
        if line.jobs.len() >= WAITING_MAX || bytes > WAITING_BYTES_MAX {
            let what = "too many operations wait for the store's disk; try again";
            return Err(refused_for_now(503, what, 1));
        }
        line.bytes = bytes;
        line.jobs.push_back(job);
        Ok(!std::mem::replace(&mut line.is_served, true))
    }

    /// Takes the next operations, `max` at most. If there are none, or if these are the last, the
    /// work that serves the line ends.
    fn next(&self, max: usize, are_last: bool) -> Vec<Job> {
        let mut line = lock(&self.line);
        let count = line.jobs.len().min(max);
        let jobs: Vec<Job> = line.jobs.drain(..count).collect();
        line.bytes -= jobs.iter().map(|job| job.request.len()).sum::<usize>();
        line.is_served = count > 0 && !are_last;
        jobs
    }

    /// Lets a thread serve the line, with one transaction for each piece of work, so that other
    /// work gets its turn in between.
    fn serve(self: &Arc<Disk>, pool: &Pool) {
        let (disk, again) = (Arc::clone(self), pool.clone());
        let work = move || {
            let jobs = disk.next(BATCH_MAX, false);
            if !jobs.is_empty() {
                disk.answer(jobs);
                disk.serve(&again);
            }
        };
        // One poll puts the work into the pool's queue; nobody waits for its end.
        if let Some(Err(error)) = pool.run(work).now_or_never() {
            for job in self.next(usize::MAX, true) {
                let _ = job.answer.send(Err(error.clone()));
            }
        }
    }

    fn answer(&self, jobs: Vec<Job>) {
        // Operations of flows that were cancelled while they waited are left out.
        let jobs: Vec<Job> = jobs.into_iter().filter(|job| !job.answer.is_closed()).collect();
        let mut database = lock(&self.database);
        let done = guarded(&self.path, || {
            let database = match &mut *database {
                Some(database) => database,
                None => database.insert(open(&self.path)?.0),
            };
            self.transact(database, &jobs, now_ms())
        });
        if done.is_err() {
            *database = None;
        }
        drop(database);
        let done = done.unwrap_or_else(|error| vec![Err(error); jobs.len()]);
        for (job, done) in jobs.into_iter().zip(done) {
            // An error means that the flow was cancelled.
            let _ = job.answer.send(done);
        }
    }

    /// Carries out the operations in one transaction; returns the result of each.
    ///
    /// # Errors
    /// The disk fails; then nothing was done.
    fn transact(
        &self,
        database: &Database,
        jobs: &[Job],
        now_ms: u64,
    ) -> Result<Vec<Result<Outcome, Error>>, Error> {
        let fail = |error: redb::Error| failed(&self.path, &error);
        if jobs.iter().all(|job| matches!(job.request.act, Act::Get)) {
            let read = database.begin_read().map_err(|error| fail(error.into()))?;
            let entries = read.open_table(ENTRIES).map_err(|error| fail(error.into()))?;
            let look = |job: &Job| {
                let found =
                    entry(&entries, &job.request.key).map_err(|error| fail(error.into()))?;
                let found = found.filter(|(entry, _)| entry.until_ms > now_ms);
                Ok(Ok(found.map_or(Outcome::Missing, |(entry, _)| Outcome::Is(entry.value))))
            };
            return jobs.iter().map(look).collect();
        }
        let mut write = database.begin_write().map_err(|error| fail(error.into()))?;
        // After a kill, the file can be opened without reading all of it.
        write.set_quick_repair(true);
        let mut tables = Tables::open(&write, &self.path)?;
        let mut done = Vec::with_capacity(jobs.len());
        for Job { request, limits, counts, .. } in jobs {
            let outcome = carry_out(&mut tables, request, *limits, now_ms, counts);
            if tables.has_failed.get() {
                outcome?;
            } else {
                done.push(outcome);
            }
        }
        let totals = tables.close()?;
        write.commit().map_err(|error| fail(error.into()))?;
        *lock(&self.totals) = totals;
        Ok(done)
    }
}

/// The tables of a file within a transaction.
struct Tables<'a> {
    path: &'a Path,
    entries: Rows<'a, &'static str, (u64, u64, &'static [u8])>,
    by_turn: Rows<'a, u64, &'static str>,
    by_time: Rows<'a, (u64, &'static str), ()>,
    numbers: Rows<'a, &'static str, u64>,
    turn: u64,
    totals: Totals,
    /// The transaction must be dropped.
    has_failed: Cell<bool>,
}

impl<'a> Tables<'a> {
    fn open(write: &'a WriteTransaction, path: &'a Path) -> Result<Tables<'a>, Error> {
        let open = || -> Result<Tables<'a>, redb::Error> {
            let numbers = write.open_table(NUMBERS)?;
            let number = |name| Ok::<_, redb::Error>(numbers.get(name)?.map_or(0, |it| it.value()));
            let totals = Totals { entries: number("entries")?, bytes: number("bytes")? };
            let turn = number("turn")?;
            Ok(Tables {
                path,
                entries: write.open_table(ENTRIES)?,
                by_turn: write.open_table(BY_TURN)?,
                by_time: write.open_table(BY_TIME)?,
                numbers,
                turn,
                totals,
                has_failed: Cell::new(false),
            })
        };
        open().map_err(|error| failed(path, &error))
    }

    fn close(mut self) -> Result<Totals, Error> {
        let numbers =
            [("entries", self.totals.entries), ("bytes", self.totals.bytes), ("turn", self.turn)];
        for (name, number) in numbers {
            let written = self.numbers.insert(name, number).map(drop);
            written.map_err(|error| self.fail(error))?;
        }
        Ok(self.totals)
    }

    fn fail(&self, error: redb::StorageError) -> Error {
        self.has_failed.set(true);
        failed(self.path, &error.into())
    }

    fn delete(&mut self, key: &str) -> Result<(), redb::StorageError> {
        let Some((old, turn)) = entry(&self.entries, key)? else { return Ok(()) };
        self.totals.take(Totals::of(key, &old.value));
        self.entries.remove(key)?;
        self.by_turn.remove(turn)?;
        self.by_time.remove((old.until_ms, key))?;
        Ok(())
    }

    fn write(&mut self, key: &str, entry: &Entry) -> Result<(), redb::StorageError> {
        self.delete(key)?;
        self.turn += 1;
        self.totals.add(Totals::of(key, &entry.value));
        self.entries.insert(key, (entry.until_ms, self.turn, &*entry.value))?;
        self.by_turn.insert(self.turn, key)?;
        if entry.until_ms < u64::MAX {
            self.by_time.insert((entry.until_ms, key), ())?;
        }
        Ok(())
    }
}

impl Table for Tables<'_> {
    fn get(&self, key: &str) -> Result<Option<Entry>, Error> {
        let found = entry(&self.entries, key).map_err(|error| self.fail(error))?;
        Ok(found.map(|(entry, _)| entry))
    }

    fn put(&mut self, key: &str, entry: Entry) -> Result<(), Error> {
        self.write(key, &entry).map_err(|error| self.fail(error))
    }

    fn remove(&mut self, key: &str) -> Result<(), Error> {
        self.delete(key).map_err(|error| self.fail(error))
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn next_to_expire(&self) -> Result<Option<(u64, Box<str>)>, Error> {
        let first = self.by_time.first().map_err(|error| self.fail(error))?;
        Ok(first.map(|(at, _)| (at.value().0, at.value().1.into())))
    }

    fn oldest(&self) -> Result<Option<Box<str>>, Error> {
        let first = self.by_turn.first().map_err(|error| self.fail(error))?;
        Ok(first.map(|(_, key)| key.value().into()))
    }
}

/// An entry and its turn.
fn entry(
    entries: &impl ReadableTable<&'static str, (u64, u64, &'static [u8])>,
    key: &str,
) -> Result<Option<(Entry, u64)>, redb::StorageError> {
    Ok(entries.get(key)?.map(|row| {
        let (until_ms, turn, value) = row.value();
        (Entry { value: Bytes::copy_from_slice(value), until_ms }, turn)
    }))
}

/// Opens a file, or creates it; also returns how much it holds.
fn open(path: &Path) -> Result<(Database, Totals), Error> {
    guarded(path, || {
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        // Other users of the machine must not read the entries.
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(|error| failed(path, &error.into()))?;
        if is_new {
            sync_folder(path).map_err(|error| failed(path, &error.into()))?;
        }
        let database = Database::builder().set_cache_size(CACHE_BYTES).create_file(file);
        let database = database.map_err(|error| failed(path, &error.into()))?;
        let totals = begin(&database, path)?;
        Ok((database, totals))
    })
}

/// Syncs the folder, so that the name of a new file survives a power cut too.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes the tables of a new file; checks that the tables of an existing file are ours.
fn begin(database: &Database, path: &Path) -> Result<Totals, Error> {
    let begin = || -> Result<Result<Totals, Error>, redb::Error> {
        let write = database.begin_write()?;
        let names: Vec<String> = write.list_tables()?.map(|it| it.name().to_owned()).collect();
        let is_new = names.is_empty();
        if !is_new && !names.iter().any(|name| name == NUMBERS.name()) {
            return Ok(Err(foreign(path, "its tables are those of another program")));
        }
        let mut numbers = write.open_table(NUMBERS)?;
        let format = if is_new {
            numbers.insert("format", FORMAT)?;
            FORMAT
        } else {
            numbers.get("format")?.map_or(0, |it| it.value())
        };
        drop(numbers);
        if format != FORMAT {
            let what = format!("it has format {format}, and this program knows {FORMAT}");
            return Ok(Err(foreign(path, &what)));
        }
        let totals = match Tables::open(&write, path) {
            Ok(tables) => tables.totals,
            Err(error) => return Ok(Err(error)),
        };
        if is_new {
            write.commit()?
        } else {
            write.abort()?
        }
        Ok(Ok(totals))
    };
    begin().map_err(|error| failed(path, &error))?
}

/// Does the work; a panic of redb on a broken file becomes an error.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(foreign(path, &panics::take_or(&*panic).to_string())))
}

#[cold]
fn failed(path: &Path, error: &redb::Error) -> Error {
    let file = path.display();
    match error {
        redb::Error::Io(error) => {
            let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
            match error.kind() {
                ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                    foreign(path, &error.to_string())
                }
                kind if full.contains(&kind) => Error::new(format_args!(
                    "no room on the disk for store '{file}': {error}; make room there, and the \
                     store goes on"
                ))
                .with_status(507),
                _ => Error::new(format_args!("store '{file}': {error}")),
            }
        }
        redb::Error::DatabaseAlreadyOpen => Error::new(format_args!(
            "store '{file}' is in use by another process; stop that one, or write another 'path'"
        ))
        .with_status(503),
        redb::Error::UpgradeRequired(format) => {
            foreign(path, &format!("it has format {format} of an older redb"))
        }
        other => foreign(path, &other.to_string()),
    }
}

#[cold]
fn foreign(path: &Path, why: &str) -> Error {
    Error::new(format_args!(
        "'{}' is not a store, or it is broken: {why}; move it away, or write another 'path'",
        path.display()
    ))
}

/// The time of day: the only clock that stays valid over a restart of the machine.
fn now_ms() -> u64 {
    u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0)
}

/// A poisoned lock is still good: a panic leaves no worse state than a failure of the disk.
fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod tests;
