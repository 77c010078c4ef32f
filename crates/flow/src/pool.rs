//! Threads for work that blocks: a fixed number, and a bounded queue before them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

use sinew_core::fault::Fault;
use sinew_core::panics;
use tokio::sync::{Semaphore, oneshot};

use crate::Error;

/// So many pieces of work may wait for each thread.
const WAITING_MAX: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// What a piece of work gives, or what it panicked with.
type Answered<T> = oneshot::Receiver<Result<T, Fault>>;

/// Threads for work that blocks. They end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool {
    work: SyncSender<Work>,
    /// What is done before all that waits in `work`.
    first: SyncSender<Work>,
    /// How many threads may still begin slow work.
    slow: Arc<Semaphore>,
}

impl Pool {
    /// A pool of so many threads.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub fn start(threads: u32) -> io::Result<Pool> {
        let (work, others) = sync_channel(threads as usize * WAITING_MAX);
        let (first, firsts) = sync_channel(WAITING_MAX);
        let queues = Arc::new(Mutex::new((firsts, others)));
        for _ in 0..threads {
            let queues = Arc::clone(&queues);
            thread::Builder::new().name("blocking".into()).spawn(move || do_all(&queues))?;
        }
        let slow = Arc::new(Semaphore::new(threads.div_ceil(2) as usize));
        Ok(Pool { work, first, slow })
    }

    /// The same for work that may take seconds, such as asking a name server: half of the threads
    /// at most do that at once, and what waits for one of these waits here. So an order to the
    /// supervisor finds a thread, unless there is but one.
    ///
    /// # Errors
    /// As for [`Pool::run`].
    pub async fn run_slow<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let slow = Arc::clone(&self.slow).acquire_owned().await.map_err(Error::new)?;
        let work = move || {
            // Until its end, also when nobody waits for it any more.
            let _slow = slow;
            work()
        };
        self.run(work).await
    }

    /// Does `work` on one of the threads.
    ///
    /// # Errors
    /// It panicked, or too much waits already (503).
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        answer(Pool::queue(&self.work, work)?).await
    }

    /// The same before all that waits, in places of its own: for what ends a run.
    ///
    /// # Errors
    /// As for [`Pool::run`].
    pub async fn run_first<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let answered = Pool::queue(&self.first, work)?;
        // A thread that waits for the other queue is woken by this; if that is full, none waits.
        let _ = self.work.try_send(Box::new(|| ()));
        answer(answered).await
    }

    fn queue<T: Send + 'static>(
        queue: &SyncSender<Work>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Answered<T>, Error> {
        let (answer, answered) = oneshot::channel();
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            // Nobody waits for the answer to a flow that was cancelled.
            let _ = answer.send(done.map_err(|panic| panics::take_or(&*panic)));
        };
        queue.try_send(Box::new(work)).map_err(|error| match error {
            TrySendError::Full(_) => {
                Error::new("too much work waits for a thread; raise 'flows: {blocking: ...}'")
                    .with_status(503)
            }
            TrySendError::Disconnected(_) => Error::new("the threads for blocking work are gone"),
        })?;
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

/// Does what comes, the first queue before the other one, until no more can come.
fn do_all(queues: &Mutex<(Receiver<Work>, Receiver<Work>)>) {
    let next = || {
        // Held only while it waits for the next piece: no piece runs under it, so none poisons it.
        let (firsts, others) = &*queues.lock().unwrap_or_else(PoisonError::into_inner);
        firsts.try_recv().or_else(|_| others.recv())
    };
    while let Ok(work) = next() {
        work();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::testing::run;
    use futures_util::FutureExt;
    use futures_util::future::join_all;

    /// A thread that takes longer than this to begin is never woken.
    const HANGS_AFTER: Duration = Duration::from_secs(20);

    #[test]
    fn work_is_done_elsewhere_and_answered() {
        let pool = Pool::start(2).expect("threads");
        let here = thread::current().id();
        let there = run(pool.run(|| thread::current().id())).expect("an answer");
        assert_ne!(there, here);
    }

    #[test]
    fn a_panic_is_an_error_of_that_work_alone() {
        let pool = Pool::start(1).expect("a thread");
        let answer: Result<(), Error> = run(pool.run(|| panic!("boom")));
        assert!(answer.expect_err("a panic").text().contains("panicked: boom"));
        assert_eq!(run(pool.run(|| 7)), Ok(7), "the thread goes on");
    }

    #[test]
    fn a_full_pool_refuses_and_goes_on_when_there_is_room() {
        let pool = Pool::start(1).expect("a thread");
        let (go_on, wait) = mpsc::channel::<()>();
        let (says, begun) = mpsc::channel();
        // The first holds the thread, the others fill the queue before it.
        let mut first = Box::pin(pool.run(move || {
            says.send(()).expect("the test waits");
            wait.recv()
        }));
        assert!((&mut first).now_or_never().is_none());
        begun.recv().expect("the thread has begun");
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(pool.run(|| ()))).collect();
        for work in &mut waiting {
            assert!(work.now_or_never().is_none());
        }
        let error = run(pool.run(|| ())).expect_err("no room");
        assert_eq!(error.status(), 503);
        go_on.send(()).expect("the thread waits");
        run(first).expect("an answer").expect("the word to go on");
        assert!(run(join_all(waiting)).iter().all(Result::is_ok));
        assert_eq!(run(pool.run(|| 7)), Ok(7));
    }

    #[test]
    fn a_full_pool_still_takes_what_goes_first_and_does_it_next() {
        let pool = Pool::start(1).expect("a thread");
        run(pool.run(|| ())).expect("done");
        // Soon the thread waits for more. If it does not yet, this shows less, and fails no sooner.
        thread::sleep(Duration::from_millis(20));
        let (woken, is_woken) = mpsc::channel();
        let mut wakes = Box::pin(pool.run_first(move || woken.send(())));
        // It may be done by now.
        let _ = (&mut wakes).now_or_never();
        is_woken.recv_timeout(HANGS_AFTER).expect("a thread that waits is woken");
        let (go_on, wait) = mpsc::channel::<()>();
        let (says, done) = mpsc::channel();
        let mut holds = Box::pin(pool.run(move || wait.recv()));
        assert!((&mut holds).now_or_never().is_none());
        let work = |name: &'static str| {
            let says = says.clone();
            move || says.send(name).expect("the test waits")
        };
        // The thread may have taken the first already, or not.
        let mut others: Vec<_> = (0..=WAITING_MAX).map(|_| Box::pin(pool.run(work("x")))).collect();
        let full = others.iter_mut().filter_map(|it| it.now_or_never()).count();
        assert!(full > 0, "the queue is full");
        let mut first = Box::pin(pool.run_first(work("first")));
        assert!((&mut first).now_or_never().is_none());
        go_on.send(()).expect("the thread waits");
        run(first).expect("done");
        assert_eq!(done.recv(), Ok("first"));
    }

    #[test]
    fn slow_work_leaves_half_of_the_threads_to_others() {
        let pool = Pool::start(2).expect("threads");
        let (go_on, wait) = mpsc::channel::<()>();
        let mut slow = Box::pin(pool.run_slow(move || wait.recv()));
        assert!((&mut slow).now_or_never().is_none());
        let mut next = Box::pin(pool.run_slow(|| 8));
        assert!((&mut next).now_or_never().is_none(), "it waits for the other");
        assert_eq!(run(pool.run(|| 7)), Ok(7), "a thread is left");
        // One that is cancelled keeps its thread until its end.
        drop(slow);
        assert!((&mut next).now_or_never().is_none());
        go_on.send(()).expect("the thread waits");
        assert_eq!(run(next), Ok(8));
    }

    #[test]
    fn the_threads_end_with_the_last_handle() {
        let pool = Pool::start(2).expect("threads");
        let other = pool.clone();
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        drop(pool);
        // What is under way is finished, also when nobody waits for it any more.
        let ((go_on, wait), (says, done)) = (mpsc::channel(), mpsc::channel());
        let work = other.run(move || {
            wait.recv().expect("the test tells it");
            drop(held);
            says.send(()).expect("the test waits");
        });
        assert!(Box::pin(work).now_or_never().is_none());
        drop(other);
        go_on.send(()).expect("the thread waits");
        done.recv().expect("it was done");
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
