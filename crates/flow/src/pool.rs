//! Threads for work that blocks, as many as the spec says or as the work needs, and a bounded queue
//! before them.

mod piece;
mod size;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use rustix::time::ClockId;
use sinew_control::status::{PoolChange, PoolStatus};
use sinew_core::clock::now_ns;
use sinew_core::fault::Fault;
use sinew_core::{panics, privileges};
use sinew_figures::cpus::idle;
use sinew_spec::plan::PoolSize;
use tokio::sync::oneshot;

use self::piece::{Spent, Stopwatch, cpu_ns};
use self::size::{Sight, Sizer};
use crate::Error;

/// Most pieces of work that may wait for a thread, slow ones among them.
const WAITING_MAX: usize = 1024;
/// Most pieces that may wait to be done before all others.
const FIRST_MAX: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// The result of a piece of work, or its panic.
type Answered<T> = oneshot::Receiver<Result<T, Fault>>;

/// Threads for work that blocks. They end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

/// Dropping it lets the threads end.
struct Owner(Arc<Shared>);

/// What the threads share.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Work came, or threads are to end.
    more: Condvar,
    /// The same for the thread that does only `first` work.
    first: Condvar,
}

/// Where a piece of work waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    First,
    Slow,
    Others,
}

#[derive(Default)]
struct Queue {
    /// Work that is done before all other work.
    first: VecDeque<Piece>,
    /// Work that may take seconds.
    slow: VecDeque<Piece>,
    others: VecDeque<Piece>,
    /// Pieces under way, and the slow ones among them.
    running: u32,
    slow_running: u32,
    /// How many of the running pieces wait for other pools.
    elsewhere: u32,
    /// Threads that exist, without the one that does only `first` work.
    threads: u32,
    /// Threads that there should be.
    size: u32,
    spent: Spent,
    occupied: Occupied,
    /// No more can come.
    is_closed: bool,
}

/// How long threads were occupied, added up until `until_ns`.
#[derive(Clone, Copy, Default)]
struct Occupied {
    until_ns: u64,
    /// Time with work, ended or not.
    running_ns: u64,
    /// The part of it in which they waited for another pool.
    elsewhere_ns: u64,
    /// Most threads that had work at once since the last look.
    peak: u32,
}

struct Piece {
    work: Work,
    line: Line,
    queued_ns: u64,
    /// No thread was free for it when it came.
    waits: bool,
}

/// Which sort of work a thread takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    All,
    First,
}

thread_local! {
    /// The pool of this thread, if it has one.
    static HERE: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

/// Waits for room in another pool, such as a pool of connections. To be called by work on a
/// [`Pool`]: this time is no reason for more threads of that pool, as they would only wait in the
/// same place. On other threads it only calls `wait`. A panic of `wait` goes on to the caller.
pub fn queued_elsewhere<T>(wait: impl FnOnce() -> T) -> T {
    let shared = HERE.with_borrow(Clone::clone);
    let Some(shared) = shared else { return wait() };
    shared.lock().wait_elsewhere(1);
    let waited = catch_unwind(AssertUnwindSafe(wait));
    shared.lock().wait_elsewhere(-1);
    waited.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Keeps a pool at the right size.
pub(crate) struct PoolKeeper {
    shared: Arc<Shared>,
    bounds: PoolSize,
    sizer: Sizer,
    /// CPUs that its threads may use, and how many of them at once.
    cpus: Vec<u32>,
    cpu_count: u64,
    looked: Looked,
    /// The counts when somebody last asked for the status.
    told: (Spent, Occupied),
    changes: u64,
    last_change: Option<(u64, PoolChange)>,
}

/// All counts at a moment.
#[derive(Clone, Copy, Default)]
struct Looked {
    at_ns: u64,
    spent: Spent,
    occupied: Occupied,
    waiting: u64,
    /// Idle time of the CPUs; `None` if the kernel does not say.
    idle_ns: Option<u64>,
    process_cpu_ns: u64,
}

impl Pool {
    /// A pool of this many threads, and one more that does only the work of [`Pool::run_first`].
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub fn start(threads: u32) -> io::Result<Pool> {
        let shared = Arc::new(Shared::default());
        let pool = Pool(Arc::new(Owner(Arc::clone(&shared))));
        shared.spawn(Takes::First)?;
        shared.resize(threads)?;
        Ok(pool)
    }

    /// A pool that finds its size or has a fixed one, and the keeper of that size.
    ///
    /// # Errors
    /// As for [`Pool::start`].
    pub(crate) fn start_kept(bounds: PoolSize) -> io::Result<(Pool, PoolKeeper)> {
        let pool = Pool::start(bounds.start)?;
        let mut keeper = PoolKeeper::new(Arc::clone(&pool.0.0), bounds);
        keeper.looked = keeper.now();
        Ok((pool, keeper))
    }

    /// Does `work` on one of the threads.
    ///
    /// # Errors
    /// It panicked, or too much waits already (503).
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(self.queue(Line::Others, work)?).await
    }

    /// The same for work that may take seconds, such as asking a name server. At most half of the
    /// threads do such work at once. So an order to the supervisor finds a thread, unless there is
    /// only one.
    ///
    /// # Errors
    /// As for [`Pool::run`].
    pub async fn run_slow<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(self.queue(Line::Slow, work)?).await
    }

    /// The same, but before all other waiting work; for what ends a run. Such work has a queue of
    /// its own and, if need be, a thread of its own.
    ///
    /// # Errors
    /// As for [`Pool::run`].
    pub async fn run_first<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(self.queue(Line::First, work)?).await
    }

    fn queue<T: Send + 'static>(
        &self,
        line: Line,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Answered<T>, Error> {
        let (answer, answered) = oneshot::channel();
        let work = move || {
            if line == Line::Slow && answer.is_closed() {
                // Its flow was cancelled while the work waited; it is left out, as others wait
                // behind it.
                return;
            }
            let done = catch_unwind(AssertUnwindSafe(work));
            let done = done.map_err(|panic| panics::take_or(&*panic));
            // If the flow was cancelled, nobody waits for the answer, and it is dropped here, which
            // may panic.
            let _ = catch_unwind(AssertUnwindSafe(|| answer.send(done)));
        };
        let Pool(owner) = self;
        owner.0.lock().push(line, Box::new(work))?;
        owner.0.more.notify_one();
        if line == Line::First {
            owner.0.first.notify_one();
        }
        Ok(answered)
    }
}

async fn answer<T>(answered: Answered<T>) -> Result<T, Error> {
    match answered.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => Err(Error::new(panic)),
        Err(_) => Err(Error::new("the thread that did the work is gone")),
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.more.notify_all();
        self.0.first.notify_all();
    }
}

impl Shared {
    /// The lock is held for a few loads and stores. No piece of work runs under it, so none poisons
    /// it.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(self: &Arc<Shared>, takes: Takes) -> io::Result<()> {
        let shared = Arc::clone(self);
        let name = if takes == Takes::All { "blocking" } else { "blocking-first" };
        thread::Builder::new().name(name.into()).spawn(move || shared.work(takes))?;
        Ok(())
    }

    /// Sets the number of threads. New ones begin at once; surplus ones end after their present
    /// piece of work.
    fn resize(self: &Arc<Shared>, size: u32) -> io::Result<()> {
        let missing = {
            let mut queue = self.lock();
            queue.size = size;
            size.saturating_sub(queue.threads)
        };
        let mut spawned = Ok(());
        for _ in 0..missing {
            // Counted before the thread starts, because a thread may find at its beginning that it
            // is to end.
            self.lock().threads += 1;
            spawned = self.spawn(Takes::All);
            if spawned.is_err() {
                let mut queue = self.lock();
                queue.threads -= 1;
                queue.size = queue.threads;
                break;
            }
        }
        self.more.notify_all();
        spawned
    }

    /// Does the work that comes, until no more can come or this thread is one too many.
    fn work(self: &Arc<Shared>, takes: Takes) {
        HERE.set(Some(Arc::clone(self)));
        let came = if takes == Takes::All { &self.more } else { &self.first };
        let mut stopwatch = Stopwatch::new();
        let mut queue = self.lock();
        loop {
            if let Some(Piece { work, line, queued_ns, waits }) = queue.next(takes) {
                queue.begin(line);
                drop(queue);
                let spent = stopwatch.time(waits.then_some(queued_ns), work);
                queue = self.lock();
                queue.end(line, spent);
                if line == Line::Slow {
                    // Another slow piece may begin, on this or another thread.
                    self.more.notify_one();
                }
            } else if queue.is_closed || takes == Takes::All && queue.has_surplus() {
                queue.threads -= u32::from(takes == Takes::All);
                // The wake-up of this thread may have been for work, which another thread is to do
                // now.
                self.more.notify_one();
                return;
            } else {
                queue = came.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Queue {
    /// Puts work in its queue, if there is room.
    fn push(&mut self, line: Line, work: Work) -> Result<(), Error> {
        let is_full = match line {
            Line::First => self.first.len() >= FIRST_MAX,
            Line::Slow | Line::Others => self.slow.len() + self.others.len() >= WAITING_MAX,
        };
        if is_full {
            let what =
                "too much work waits for a thread; raise 'flows: {blocking: ...}' or its max";
            return Err(Error::new(what).with_status(503));
        }
        // Even a sleeping thread takes a while to wake up; that time is no reason for more threads.
        let waits = self.running + self.waiting() as u32 >= self.size;
        let piece = Piece { work, line, queued_ns: now_ns(), waits };
        match line {
            Line::First => self.first.push_back(piece),
            Line::Slow => self.slow.push_back(piece),
            Line::Others => self.others.push_back(piece),
        }
        Ok(())
    }

    /// The next piece of work for a thread that is to go on. Of slow and other pieces, the one that
    /// has waited longer.
    fn next(&mut self, takes: Takes) -> Option<Piece> {
        let first = self.first.pop_front();
        if first.is_some() || takes == Takes::First || self.has_surplus() {
            return first;
        }
        let may_be_slow = self.slow_running < self.slow_max();
        let slow_ns = self.slow.front().filter(|_| may_be_slow).map(|piece| piece.queued_ns);
        let other_ns = self.others.front().map(|piece| piece.queued_ns);
        match (slow_ns, other_ns) {
            (Some(slow_ns), Some(other_ns)) if slow_ns < other_ns => self.slow.pop_front(),
            (Some(_), None) => self.slow.pop_front(),
            _ => self.others.pop_front(),
        }
    }

    /// Most threads that may do slow work at once.
    fn slow_max(&self) -> u32 {
        self.size.div_ceil(2)
    }

    /// Whether a thread is to end. After the pool has shrunk, threads may still do more slow work
    /// than its share. Those do not count, so that other work keeps its threads.
    fn has_surplus(&self) -> bool {
        let beyond = self.slow_running.saturating_sub(self.slow_max());
        self.threads.saturating_sub(beyond) > self.size
    }

    fn waiting(&self) -> u64 {
        (self.first.len() + self.slow.len() + self.others.len()) as u64
    }

    fn begin(&mut self, line: Line) {
        self.occupy();
        self.running += 1;
        self.slow_running += u32::from(line == Line::Slow);
        self.occupied.peak = self.occupied.peak.max(self.running);
    }

    fn end(&mut self, line: Line, spent: Spent) {
        self.occupy();
        self.running -= 1;
        self.slow_running -= u32::from(line == Line::Slow);
        self.spent.add(spent);
    }

    /// One thread more or one less waits for another pool.
    fn wait_elsewhere(&mut self, more: i32) {
        self.occupy();
        self.elsewhere = self.elsewhere.saturating_add_signed(more);
    }

    /// Adds up the times until now, before a count changes.
    fn occupy(&mut self) {
        let now_ns = now_ns();
        let Occupied { until_ns, running_ns, elsewhere_ns, .. } = &mut self.occupied;
        let span_ns = now_ns.saturating_sub(*until_ns);
        *until_ns = now_ns;
        // Wrapping, as in [`Spent::add`].
        *running_ns = running_ns.wrapping_add(span_ns.wrapping_mul(self.running.into()));
        *elsewhere_ns = elsewhere_ns.wrapping_add(span_ns.wrapping_mul(self.elsewhere.into()));
    }
}

impl Occupied {
    /// Nanoseconds since `before`: with work, and of these waiting for another pool.
    fn since(self, before: Occupied) -> (u64, u64) {
        let running_ns = self.running_ns.wrapping_sub(before.running_ns);
        (running_ns, self.elsewhere_ns.wrapping_sub(before.elsewhere_ns))
    }
}

impl PoolKeeper {
    fn new(shared: Arc<Shared>, bounds: PoolSize) -> PoolKeeper {
        // The CPUs that this process may use, but no more at once than the share that its control
        // group has.
        let cpus = privileges::cpus().unwrap_or_default();
        let count = thread::available_parallelism().map_or(1, usize::from);
        PoolKeeper {
            shared,
            bounds,
            sizer: Sizer::new(bounds, count),
            cpus,
            cpu_count: count as u64,
            looked: Looked::default(),
            told: (Spent::default(), Occupied::default()),
            changes: 0,
            last_change: None,
        }
    }

    /// Looks at what the work took since the last look, and changes the number of threads if that
    /// is better. To be called about ten times a second.
    pub(crate) fn look(&mut self) {
        if self.bounds.is_fixed() {
            return;
        }
        let now = self.now();
        let sight = self.sight(now);
        self.looked = now;
        let before = self.sizer.size();
        let Some(size) = self.sizer.look(sight) else { return };
        if let Err(error) = self.shared.resize(size) {
            let threads = self.shared.lock().size;
            self.sizer.refused(threads, &error.to_string());
        }
        let after = self.sizer.size();
        if after != before {
            self.changes += 1;
            let why = self.sizer.why().to_owned();
            self.last_change = Some((now.at_ns, PoolChange { before, after, ago_ms: 0, why }));
        }
    }

    fn now(&self) -> Looked {
        let (at_ns, process_cpu_ns) = (now_ns(), cpu_ns(ClockId::ProcessCPUTime));
        let mut queue = self.shared.lock();
        queue.occupy();
        let (spent, occupied, waiting) = (queue.spent, queue.occupied, queue.waiting());
        queue.occupied.peak = queue.running;
        let rests = queue.running == 0 && waiting == 0 && spent == self.looked.spent;
        drop(queue);
        // A pool at rest does not read a file ten times a second.
        let idle = if rests { None } else { idle(&self.cpus).ok() };
        let idle_ns = idle.map(|idle| idle.as_nanos() as u64);
        Looked { at_ns, spent, occupied, waiting, idle_ns, process_cpu_ns }
    }

    fn sight(&self, now: Looked) -> Sight {
        let before = self.looked;
        let span_ns = now.at_ns.saturating_sub(before.at_ns);
        let (occupied_ns, elsewhere_ns) = now.occupied.since(before.occupied);
        let idle_ns = now.idle_ns.zip(before.idle_ns).map(|(now, then)| now.saturating_sub(then));
        // If the process has a share of the CPUs, only the rest of this share counts as idle.
        let used_ns = now.process_cpu_ns.saturating_sub(before.process_cpu_ns);
        let left_ns = (span_ns * self.cpu_count).saturating_sub(used_ns);
        Sight {
            span_ns,
            spent: now.spent.since(before.spent),
            occupied_ns,
            elsewhere_ns,
            peak: now.occupied.peak,
            waiting: now.waiting,
            idle_ns: idle_ns.map(|idle_ns| idle_ns.min(left_ns)),
        }
    }

    /// The status that people see. Times are of the pieces that ended since the last call.
    pub(crate) fn status(&mut self) -> PoolStatus {
        let (spent, occupied, threads, waiting) = {
            let mut queue = self.shared.lock();
            queue.occupy();
            (queue.spent, queue.occupied, queue.size, queue.waiting())
        };
        let new = spent.since(self.told.0);
        let (occupied_ns, elsewhere_ns) = occupied.since(self.told.1);
        self.told = (spent, occupied);
        let outside_ns = occupied_ns.saturating_sub(new.cpu_ns + new.ready_ns + elsewhere_ns);
        let of_piece = |ns: u64| (new.pieces > 0).then(|| ns / new.pieces);
        let last_change = self.last_change.as_ref().map(|(at_ns, change)| {
            let ago_ms = now_ns().saturating_sub(*at_ns) / 1_000_000;
            PoolChange { ago_ms, ..change.clone() }
        });
        PoolStatus {
            threads,
            min: self.bounds.min,
            max: self.bounds.max,
            waiting,
            done: spent.pieces,
            cpu_ns: of_piece(new.cpu_ns),
            outside_ns: of_piece(outside_ns),
            queued_ns: of_piece(new.queued_ns),
            changes: self.changes,
            last_change,
            why: self.sizer.why().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
