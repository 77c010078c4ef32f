//! Threads for work that blocks: a fixed number, and a bounded queue before them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

use tokio::sync::oneshot;

use super::Error;
use crate::panics;

/// So many pieces of work may wait for each thread.
const WAITING_MAX: usize = 64;

type Work = Box<dyn FnOnce() + Send>;

/// Threads for work that blocks. They end when the last clone is dropped.
#[derive(Clone)]
pub struct Pool(SyncSender<Work>);

impl Pool {
    /// A pool of so many threads.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub fn start(threads: u32) -> io::Result<Pool> {
        let (sender, receiver) = sync_channel(threads as usize * WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..threads {
            let receiver = Arc::clone(&receiver);
            thread::Builder::new().name("blocking".into()).spawn(move || work(&receiver))?;
        }
        Ok(Pool(sender))
    }

    /// Does `work` on one of the threads.
    ///
    /// # Errors
    /// It panicked, or too much waits already (503).
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let work = move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            // Nobody waits for the answer to a flow that was cancelled.
            let _ = answer.send(done.map_err(|_| panics::take()));
        };
        self.0.try_send(Box::new(work)).map_err(|error| match error {
            TrySendError::Full(_) => {
                Error::new("too much work waits for a thread; raise 'flows: {blocking: ...}'")
                    .with_status(503)
            }
            TrySendError::Disconnected(_) => Error::new("the threads for blocking work are gone"),
        })?;
        match answered.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => Err(Error::new(format_args!("panic: {panic}"))),
            Err(_) => Err(Error::new("the thread that did the work is gone")),
        }
    }
}

fn work(queue: &Mutex<Receiver<Work>>) {
    loop {
        // Held only while it waits for the next piece: no piece runs under it, so none poisons it.
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else { return };
        work();
    }
}
