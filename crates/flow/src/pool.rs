//! Threads for work that blocks, as many as the spec says or as the work needs, and a bounded queue
//! before them.

mod piece;
mod size;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use sinew_control::status::{PoolChange, PoolStatus};
use sinew_core::clock::now_ns;
use sinew_core::fault::Fault;
use sinew_core::{panics, privileges};
use sinew_figures::cpus::idle;
use sinew_spec::plan::PoolSize;
use tokio::sync::oneshot;

pub use self::piece::queued_elsewhere;
use self::piece::{Spent, Stopwatch};
use self::size::{Sight, Sizer};
use crate::Error;

/// So many pieces of work may wait for a thread.
const WAITING_MAX: usize = 1024;
/// So many may wait to be done before all others.
const FIRST_MAX: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// What a piece of work gives, or what it panicked with.
type Answered<T> = oneshot::Receiver<Result<T, Fault>>;

/// Threads for work that blocks. They end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool(Arc<Owner>);

/// Who drops it lets the threads end.
struct Owner(Arc<Shared>);

/// What the threads share.
struct Shared {
    queue: Mutex<Queue>,
    /// Something came, or threads are to end.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// What is done before all others.
    first: VecDeque<Piece>,
    /// Work that may take seconds.
    slow: VecDeque<Piece>,
    others: VecDeque<Piece>,
    /// Slow pieces under way.
    slow_running: u32,
    /// Threads that live.
    threads: u32,
    /// Threads that there are to be.
    size: u32,
    spent: Spent,
    /// No more can come.
    is_closed: bool,
}

struct Piece {
    work: Work,
    queued_ns: u64,
    is_slow: bool,
}

/// What looks after the size of a pool.
pub(crate) struct PoolKeeper {
    shared: Arc<Shared>,
    bounds: PoolSize,
    sizer: Sizer,
    cpus: Vec<u32>,
    /// At the last look: when, what was spent, how long CPUs had idled.
    looked_ns: u64,
    spent: Spent,
    idle_ns: Option<u64>,
    /// What was spent when somebody last asked for the status.
    told: Spent,
    changes: u64,
    last_change: Option<(u64, PoolChange)>,
}

impl Pool {
    /// A pool of so many threads.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub fn start(threads: u32) -> io::Result<Pool> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let pool = Pool(Arc::new(Owner(Arc::clone(&shared))));
        shared.resize(threads)?;
        Ok(pool)
    }

    /// A pool that finds its size, or has a fixed one, and what looks after that.
    ///
    /// # Errors
    /// As for [`Pool::start`].
    pub(crate) fn start_kept(bounds: PoolSize) -> io::Result<(Pool, PoolKeeper)> {
        let pool = Pool::start(bounds.start)?;
        let shared = Arc::clone(&pool.0.0);
        Ok((pool, PoolKeeper::new(shared, bounds)))
    }

    /// The same for work that may take seconds, such as asking a name server: half of the threads
    /// at most do that at once. So an order to the supervisor finds a thread, unless there is but
    /// one.
    ///
    /// # Errors
    /// As for [`Pool::run`].
    pub async fn run_slow<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(self.queue(true, |queue| &mut queue.slow, WAITING_MAX, work)?).await
    }

    /// Does `work` on one of the threads.
    ///
    /// # Errors
    /// It panicked, or too much waits already (503).
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(self.queue(false, |queue| &mut queue.others, WAITING_MAX, work)?).await
    }

    /// The same before all that waits, in places of its own: for what ends a run.
    ///
    /// # Errors
    /// As for [`Pool::run`].
    pub async fn run_first<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(self.queue(false, |queue| &mut queue.first, FIRST_MAX, work)?).await
    }

    fn queue<T: Send + 'static>(
        &self,
        is_slow: bool,
        line: impl Fn(&mut Queue) -> &mut VecDeque<Piece>,
        max: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Answered<T>, Error> {
        let (answer, answered) = oneshot::channel();
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            // Nobody waits for the answer to a flow that was cancelled.
            let _ = answer.send(done.map_err(|panic| panics::take_or(&*panic)));
        };
        let Pool(owner) = self;
        let mut queue = owner.0.lock();
        let line = line(&mut queue);
        if line.len() >= max {
            let what = "too much work waits for a thread; raise 'flows: {blocking: ...}'";
            return Err(Error::new(what).with_status(503));
        }
        line.push_back(Piece { work: Box::new(work), queued_ns: now_ns(), is_slow });
        drop(queue);
        owner.0.changed.notify_one();
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
        self.0.changed.notify_all();
    }
}

impl Shared {
    /// Held for a few loads and stores: no piece of work runs under it, so none poisons it.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on there are to be so many threads. New ones begin at once, others end with what
    /// they do.
    fn resize(self: &Arc<Shared>, size: u32) -> io::Result<()> {
        let missing = {
            let mut queue = self.lock();
            queue.size = size;
            size.saturating_sub(queue.threads)
        };
        for _ in 0..missing {
            // Before it lives: one that begins may be the one that is to end.
            self.lock().threads += 1;
            let shared = Arc::clone(self);
            let thread = thread::Builder::new().name("blocking".into());
            if let Err(error) = thread.spawn(move || shared.work()) {
                let mut queue = self.lock();
                queue.threads -= 1;
                queue.size = queue.threads;
                return Err(error);
            }
        }
        self.changed.notify_all();
        Ok(())
    }

    /// Does what comes, until no more can come or one thread less is wanted.
    fn work(&self) {
        let mut stopwatch = Stopwatch::new();
        let mut queue = self.lock();
        loop {
            if let Some(Piece { work, queued_ns, is_slow }) = queue.next() {
                drop(queue);
                let spent = stopwatch.time(queued_ns, work);
                queue = self.lock();
                queue.spent.add(spent);
                if is_slow {
                    queue.slow_running -= 1;
                    // Another piece of that sort may begin, here or elsewhere.
                    self.changed.notify_one();
                }
            } else if queue.is_closed || queue.threads > queue.size {
                queue.threads -= 1;
                // What woke this one may have been meant for work, which another is to do.
                self.changed.notify_one();
                return;
            } else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Queue {
    /// The next piece of work for a thread that is to go on; the one that has waited longer.
    fn next(&mut self) -> Option<Piece> {
        if let Some(piece) = self.first.pop_front() {
            return Some(piece);
        }
        if self.threads > self.size {
            return None;
        }
        let slow = self.slow.front().filter(|_| self.slow_running < self.size.div_ceil(2));
        let slow_ns = slow.map_or(u64::MAX, |piece| piece.queued_ns);
        if self.others.front().is_some_and(|piece| piece.queued_ns <= slow_ns) {
            return self.others.pop_front();
        }
        if slow_ns == u64::MAX {
            return None;
        }
        self.slow_running += 1;
        self.slow.pop_front()
    }

    fn waiting(&self) -> u64 {
        (self.first.len() + self.slow.len() + self.others.len()) as u64
    }
}

impl PoolKeeper {
    fn new(shared: Arc<Shared>, bounds: PoolSize) -> PoolKeeper {
        // Those that are allowed, but no more than a share of them where a group has one.
        let cpus = privileges::cpus().unwrap_or_default();
        let count = thread::available_parallelism().map_or(1, usize::from);
        let idle_ns = idle(&cpus).ok().map(|idle| idle.as_nanos() as u64);
        PoolKeeper {
            shared,
            bounds,
            sizer: Sizer::new(bounds, count),
            cpus,
            looked_ns: now_ns(),
            spent: Spent::default(),
            idle_ns,
            told: Spent::default(),
            changes: 0,
            last_change: None,
        }
    }

    /// Looks what the work took since the last look, and changes the number of threads if that is
    /// better; to be called some ten times a second.
    pub(crate) fn look(&mut self) {
        let sight = self.sight();
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
            let change = PoolChange { before, after, ago_ms: 0, why };
            self.last_change = Some((self.looked_ns, change));
        }
    }

    fn sight(&mut self) -> Sight {
        let now_ns = now_ns();
        let idle_ns = idle(&self.cpus).ok().map(|idle| idle.as_nanos() as u64);
        let (spent, waiting) = {
            let queue = self.shared.lock();
            (queue.spent, queue.waiting())
        };
        let sight = Sight {
            span_ns: now_ns - self.looked_ns,
            spent: spent.since(self.spent),
            waiting,
            idle_ns: idle_ns.zip(self.idle_ns).map(|(now, then)| now.saturating_sub(then)),
        };
        (self.looked_ns, self.spent, self.idle_ns) = (now_ns, spent, idle_ns);
        sight
    }

    /// What people see. Times are of the pieces that ended since the last call.
    pub(crate) fn status(&mut self) -> PoolStatus {
        let (spent, threads, waiting) = {
            let queue = self.shared.lock();
            (queue.spent, queue.size, queue.waiting())
        };
        let new = spent.since(self.told);
        self.told = spent;
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
            outside_ns: of_piece(new.waiting_ns()),
            queued_ns: of_piece(new.queued_ns),
            changes: self.changes,
            last_change,
            why: self.sizer.why().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
