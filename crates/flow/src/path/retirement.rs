//! How what has no end of its own learns that it is to end.

use std::cell::Cell;

use tokio::sync::Notify;

/// Whether a program still has flows that begin.
#[derive(Default)]
pub(crate) struct Retirement {
    is_over: Cell<bool>,
    over: Notify,
}

impl Retirement {
    /// None begin any more.
    pub(crate) fn begin(&self) {
        self.is_over.set(true);
        self.over.notify_waiters();
    }

    /// Whether that is so already.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Waits until then.
    pub(crate) async fn wait(&self) {
        // It hears of what comes from now on, even before it is polled.
        let over = self.over.notified();
        if !self.is_over.get() {
            over.await;
        }
    }
}
