//! The thread that speaks with the network: the node's own never waits for it.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::Notify;

use super::server::{Page, serve};
use super::webhook::{Outbox, Webhook};

/// Ends when it is dropped.
pub(super) struct Net {
    end: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    /// Serves the page at the listener, and tells the webhook what is put into its outbox.
    ///
    /// # Errors
    /// What the kernel says to a thread and a poller more.
    pub(super) fn start(
        listener: TcpListener,
        page: Arc<Page>,
        post: Option<(Outbox, Webhook)>,
    ) -> io::Result<Net> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        listener.set_nonblocking(true)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let end = Arc::new(Notify::new());
        let ended = Arc::clone(&end);
        let work = move || {
            runtime.block_on(async move {
                tokio::spawn(serve(listener, page));
                if let Some((outbox, webhook)) = post {
                    tokio::spawn(outbox.deliver(webhook));
                }
                ended.notified().await;
            });
            // A look-up of a name may go on for long; nobody waits for it.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new().name("monitor-net".into()).spawn(work)?;
        Ok(Net { end, thread: Some(thread) })
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.end.notify_one();
        if let Some(thread) = self.thread.take() {
            // If it has panicked there is nothing left to end.
            let _ = thread.join();
        }
    }
}
