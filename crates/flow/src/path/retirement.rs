//! Tells what would not end by itself that it is to end.

use std::cell::Cell;

use tokio::sync::Notify;

/// Whether flows still begin in a program.
#[derive(Default)]
pub(crate) struct Retirement {
    is_over: Cell<bool>,
    over: Notify,
}

impl Retirement {
    /// From now on no flows begin.
    pub(crate) fn begin(&self) {
        self.is_over.set(true);
        self.over.notify_waiters();
    }

    /// Whether flows have already stopped to begin.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Waits until no flows begin any more.
    pub(crate) async fn wait(&self) {
        // `notified` gets signals from now on, even before it is polled.
        let over = self.over.notified();
        if !self.is_over.get() {
            over.await;
        }
    }
}
