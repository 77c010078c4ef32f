//! How a flow ends without its reply: its deadline passes, or its domain stops.
//!
//! The node in which it waits then fails, so the error names that node, and goes to `error` ports
//! and through `try` like any other. These have [`GRACE`] to handle the error; then the flow is
//! dropped.

use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use crate::{Error, Flow};

/// How long the `error` ports and `try` of a flow may still take after its deadline has passed.
const GRACE: Duration = Duration::from_secs(1);
/// The same in a domain that stops; it is short, because the answer must still be sent.
const GRACE_AT_STOP: Duration = Duration::from_millis(50);

/// Why a flow must end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Over {
    /// It need not end.
    #[default]
    No,
    /// Its deadline has passed.
    Deadline,
    /// Its domain stops.
    Stop,
}

impl Flow {
    /// When the flow must have ended; `None` if that is later than a clock can say. A flow that
    /// never waits needs no clock: its time counts from the first wait, or from the first call of
    /// this.
    pub fn deadline(&self) -> Option<Instant> {
        if self.deadline.get().is_none() {
            self.deadline.set(Instant::now().checked_add(self.limits.get().deadline));
        }
        self.deadline.get()
    }

    /// Replaces the deadline.
    pub(crate) fn defer(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline);
    }

    /// Runs a future for this flow that may wait or take turns, until the flow must have ended.
    /// Also for work after its reply or before its beginning.
    ///
    /// # Errors
    /// As `running`; or the deadline has passed (504), or the domain stops (503).
    pub async fn in_time<T>(
        &self,
        mut running: Pin<&mut impl Future<Output = Result<T, Error>>>,
    ) -> Result<T, Error> {
        // The flow's time counts from the first wait; before that it needs neither clock nor timer.
        let mut end = pin!(None);
        let mut has_turned = false;
        poll_fn(|context| {
            loop {
                let begun = self.program.ticks();
                // At the first poll the flow has not yet let others have the worker, so its slice
                // goes on.
                if std::mem::replace(&mut has_turned, true) {
                    self.turned.set(begun);
                }
                let polled = running.as_mut().poll(context);
                self.program.base.turns.spend(self.program.ticks().wrapping_sub(begun));
                if polled.is_ready() {
                    return polled;
                }
                if self.over.get() != Over::No && !self.is_heard.get() {
                    return Poll::Ready(Err(self.ended_early()));
                }
                if end.is_none() {
                    end.set(Some(self.end()));
                }
                let ended = end.as_mut().as_pin_mut().map_or(Poll::Pending, |it| it.poll(context));
                let Poll::Ready(why) = ended else { return Poll::Pending };
                if self.over.replace(why) != Over::No {
                    return Poll::Ready(Err(self.ended_early()));
                }
                // A node that waits fails when it is polled now. If no node waits, the flow ends
                // here.
                self.branches.wake_all();
                end.set(Some(self.end()));
            }
        })
        .await
    }

    /// Waits until this flow must end. If it must end already, waits until its grace is over.
    async fn end(&self) -> Over {
        match self.over.get() {
            Over::No => {}
            why => {
                let grace = if why == Over::Stop { GRACE_AT_STOP } else { GRACE };
                sleep(grace).await;
                return why;
            }
        }
        let deadline = async {
            while let Some(deadline) = self.deadline() {
                sleep_until(deadline.into()).await;
                // The deadline may have been deferred meanwhile.
                if self.deadline() == Some(deadline) {
                    return;
                }
            }
            pending().await
        };
        tokio::select! {
            biased;
            () = self.program.base.closing.wait() => Over::Stop,
            () = deadline => Over::Deadline,
        }
    }

    /// Waits until this flow must end. If it must end already, waits for ever: the caller is then
    /// part of handling that error.
    pub(crate) async fn must_end(&self) {
        if self.over.get() != Over::No {
            return pending().await;
        }
        while self.over.get() == Over::No {
            self.branches.changed().await;
        }
        self.is_heard.set(true);
    }

    /// Notes the node in which the flow waits.
    pub(crate) fn waits_in(&self, node: usize) {
        self.waits_in.set(Some(node));
    }

    /// The error that the flow ends with, as an error of the node in which it waited.
    #[cold]
    pub(crate) fn ended_early(&self) -> Error {
        let error = match self.over.get() {
            Over::Stop => {
                Error::new("the flow had not ended when its domain stopped").with_status(503)
            }
            _ => {
                let limit = self.limits.get().deadline;
                let text = format_args!("the flow has not ended within {limit:?}, its deadline");
                Error::new(text).with_status(504)
            }
        };
        match self.waits_in.get() {
            Some(node) => error.of(self.program.entry(node).name()),
            None => error,
        }
    }
}
