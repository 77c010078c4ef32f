//! The life of a connection: what it is doing, since when, and whether it goes on.
//!
//! Its state is a few cells that its socket and its requests write as they go. Once a round the
//! worker checks all connections and ends those that take too long, so no request needs a timer.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use slab::Slab;

use crate::http::upgrade::Upgrade;

/// Time between two checks. Deadlines are counted in rounds, and are up to two rounds late.
pub(super) const ROUND: Duration = Duration::from_millis(250);

/// Cancelled requests that a connection may have beyond those that were answered. A client that
/// opens and resets requests without end (CVE-2023-44487) makes work at the cost of others.
const CANCELLED_MAX: u32 = 200;

/// Rounds that a connection has for its first request, and for a head that has begun, when its
/// worker stops. A client that has just connected does not know of the stop, and would be reset.
const LAST_CALL: Round = 1;

/// The same for each connection when another listener takes this one's place. Its next answer says
/// that it closes. A client that asks only now and then may be closed just as it asks.
const LAST_CALL_AFTER_EDIT: Round = 20;

/// Rounds that a client has to take all of an answer while others find no room.
const SLOW: Round = 4;

/// A number of rounds, or a time as the rounds since the worker's first.
pub(super) type Round = u32;

/// How long connections may take, in rounds.
pub(super) struct Patience {
    pub(super) head: Round,
    pub(super) idle: Round,
    pub(super) stall: Round,
}

/// The number of rounds that last at least so long.
pub(super) fn rounds(time: Duration) -> Round {
    let rounds = time.as_nanos().div_ceil(ROUND.as_nanos()) + 1;
    Round::try_from(rounds).unwrap_or(Round::MAX)
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on.
    #[default]
    Live,
    /// It answers what it has begun, and takes no more.
    Drain,
    /// It ends at once.
    Close,
}

/// Which place a connection has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Seat {
    /// One of those that the listener has for all requests.
    #[default]
    Own,
    /// One beyond them, for requests that end the run or report on it.
    Spare,
    /// None: it has given its place to another connection.
    None,
}

/// A connection's state.
#[derive(Default)]
pub(super) struct Life {
    pub(super) seat: Cell<Seat>,
    /// Counts the bytes of answers that it holds; not there before the first that counts.
    held: OnceCell<Arc<AtomicUsize>>,
    /// Since when it holds any of them.
    holds_since: Cell<Option<Round>>,
    /// The head of the last answer has been handed over.
    is_answered: Cell<bool>,
    /// When it began to be idle, or to send a head.
    pub(super) since: Cell<Round>,
    /// Some of a head has come.
    in_head: Cell<bool>,
    /// Requests under way.
    open: Cell<u32>,
    /// All of the last request is here, with its body.
    pub(super) is_whole: Cell<bool>,
    /// Whether the body of the last request has come to its end, if it is a stream.
    streamed: RefCell<Option<Arc<AtomicBool>>>,
    /// Since when the client takes nothing.
    stalled: Cell<Option<Round>>,
    /// When it took something last.
    wrote_at: Cell<Round>,
    /// The client has not taken all that was written.
    pub(super) is_writing: Cell<bool>,
    /// Since when parts of answers wait until the client has a window for them (HTTP/2).
    unsent: RefCell<Slab<Round>>,
    /// There may be several requests at a time, so bytes that come need not be a head.
    is_http2: Cell<bool>,
    /// No request has come yet.
    is_new: Cell<bool>,
    /// When the worker stopped, and for how many rounds a request that comes is still answered.
    last_call: Cell<Option<(Round, Round)>>,
    /// A body was refused that is still coming.
    pub(super) unread: Cell<bool>,
    /// Requests that were cancelled, less those that were answered.
    cancelled: Cell<u32>,
    /// The protocol that goes on with the connection when the last answer is sent.
    pub(super) upgrade: RefCell<Option<Box<Upgrade>>>,
    verdict: Cell<Verdict>,
    waker: RefCell<Option<Waker>>,
}

impl Life {
    /// A connection that begins now.
    pub(super) fn new(now: Round) -> Life {
        Life {
            is_answered: Cell::new(true),
            since: Cell::new(now),
            wrote_at: Cell::new(now),
            is_new: Cell::new(true),
            ..Life::default()
        }
    }

    /// Bytes have come.
    pub(super) fn read(&self, now: Round) {
        if self.open.get() == 0 && !self.in_head.get() {
            self.in_head.set(true);
            self.since.set(now);
        }
    }

    /// What has come so far was not a head, but a handshake.
    pub(super) fn rest(&self, now: Round) {
        self.in_head.set(false);
        self.since.set(now);
    }

    /// The client took bytes.
    pub(super) fn wrote(&self, now: Round) {
        self.stalled.set(None);
        self.wrote_at.set(now);
    }

    /// A part of an answer is handed over. It has the returned key until it is on its way.
    pub(super) fn hands_over(&self, now: Round) -> usize {
        self.unsent.borrow_mut().insert(now)
    }

    /// The part with this key is on its way, or given up.
    pub(super) fn took_over(&self, key: usize) {
        self.unsent.borrow_mut().remove(key);
    }

    /// The client takes no bytes.
    pub(super) fn stalls(&self, now: Round) {
        self.is_writing.set(true);
        self.stalled.set(self.stalled.get().or(Some(now)));
    }

    /// A request has come.
    pub(super) fn begin(&self, is_http2: bool) {
        self.in_head.set(false);
        self.is_whole.set(false);
        self.streamed.take();
        self.is_http2.set(is_http2);
        self.is_new.set(false);
        self.is_answered.set(false);
        self.open.set(self.open.get() + 1);
        if self.last_call.take().is_some() {
            self.end_with(Verdict::Drain);
        }
    }

    /// The head of an answer is handed over. Gives whether the head must say that the connection
    /// closes: HTTP/1.1 has no other way to say so.
    pub(super) fn answers(&self) -> bool {
        self.is_answered.set(true);
        !self.is_http2.get() && self.verdict.get() != Verdict::Live
    }

    /// The counter of the bytes of answers that it holds.
    pub(super) fn held(&self) -> Arc<AtomicUsize> {
        Arc::clone(self.held.get_or_init(Arc::default))
    }

    /// How many bytes of answers it holds. Relaxed: its own thread counts.
    pub(super) fn held_size(&self) -> usize {
        self.held.get().map_or(0, |held| held.load(Ordering::Relaxed))
    }

    /// Since when its client has been taking what it holds, if that is too long for others to wait.
    pub(super) fn slow_since(&self, now: Round) -> Option<Round> {
        self.holds_since.get().filter(|since| now.saturating_sub(*since) > SLOW)
    }

    /// Whether it has a spare place, and no whole request under way.
    pub(super) fn gives_way(&self) -> bool {
        self.seat.get() == Seat::Spare && (self.is_idle() || !self.is_whole.get())
    }

    /// Whether only the answer is still to come, and the client may have left without being
    /// noticed. Over HTTP/2 the connection is always read, so that would be noticed.
    pub(super) fn awaits_answer(&self) -> bool {
        let is_whole = || self.is_whole.get() || self.is_streamed(true);
        self.open.get() > 0 && !self.is_http2.get() && is_whole()
    }

    /// A request's body comes as a stream. The returned flag is to become true at its end.
    pub(super) fn streams(&self) -> Arc<AtomicBool> {
        Arc::clone(self.streamed.borrow_mut().insert(Arc::default()))
    }

    /// Whether the body is a stream that has come to its end, or one that has not. Relaxed: the
    /// body is read on this thread, or a delay does no harm.
    fn is_streamed(&self, to_its_end: bool) -> bool {
        let streamed = self.streamed.borrow();
        streamed.as_ref().is_some_and(|it| it.load(Ordering::Relaxed) == to_its_end)
    }

    /// A request is over.
    pub(super) fn end(&self, answered: bool, now: Round) {
        self.open.set(self.open.get() - 1);
        self.since.set(now);
        if !self.is_http2.get() && self.is_streamed(false) {
            self.unread.set(true);
        }
        if let Some((_, patience)) = self.last_call.get() {
            self.last_call.set(Some((now, patience)));
        }
        let cancelled = self.cancelled.get();
        self.cancelled.set(if answered { cancelled.saturating_sub(1) } else { cancelled + 1 });
    }

    /// Whether no request is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.open.get() == 0
    }

    /// Checks whether it takes too long, and ends it if so.
    pub(super) fn judge(&self, now: Round, patience: &Patience) {
        let passed = |since: Round| now.saturating_sub(since);
        let in_head = self.in_head.get() && !self.is_http2.get();
        let holds = (self.held_size() > 0).then_some(now);
        self.holds_since.set(holds.map(|now| self.holds_since.get().unwrap_or(now)));
        let verdict = match self.verdict.get() {
            Verdict::Close => return,
            _ if self.takes_nothing_since().is_some_and(|it| passed(it) > patience.stall) => {
                Verdict::Close
            }
            _ if self.cancelled.get() > CANCELLED_MAX => Verdict::Close,
            _ if !self.is_idle() => return,
            // Its last answer is still on its way.
            _ if self.is_writing.get() || holds.is_some() => {
                self.since.set(now);
                return;
            }
            _ if in_head && passed(self.since.get()) > patience.head => Verdict::Close,
            _ if self.last_call.get().is_some_and(|(since, patience)| passed(since) > patience) => {
                self.last_call.set(None);
                if in_head { Verdict::Close } else { Verdict::Drain }
            }
            // It was told to end in order, and has not: the client is gone.
            Verdict::Drain if passed(self.since.get()) > patience.head => Verdict::Close,
            Verdict::Live if !in_head && passed(self.since.get()) > patience.idle => {
                self.since.set(now);
                Verdict::Drain
            }
            _ => return,
        };
        self.end_with(verdict);
    }

    /// Since when its client has taken nothing of an answer that is there. Over HTTP/2 the socket
    /// does not show that: the client takes other frames, while bytes wait until their stream has a
    /// window.
    fn takes_nothing_since(&self) -> Option<Round> {
        let held = self.holds_since.get().map(|since| since.max(self.wrote_at.get()));
        let unsent = self.unsent.borrow().iter().map(|(_, since)| *since).min();
        [self.stalled.get(), held, unsent].into_iter().flatten().min()
    }

    /// The worker stops: requests under way are answered, and no others. After an edit (`yields`) a
    /// client is told with its next answer that the connection closes. Otherwise a client that
    /// sends a request just as it closes would not know whether the request was read. HTTP/2 has a
    /// frame for that.
    pub(super) fn stop(&self, now: Round, yields: bool) {
        let is_http1 = !self.is_http2.get();
        let begins = self.in_head.get() && is_http1 || self.is_new.get();
        let is_told = self.is_idle() || self.is_answered.get();
        self.since.set(now);
        match yields {
            true if self.is_new.get() || is_http1 && is_told => {
                self.last_call.set(Some((now, LAST_CALL_AFTER_EDIT)));
            }
            false if self.is_idle() && begins => self.last_call.set(Some((now, LAST_CALL))),
            _ => self.end_with(Verdict::Drain),
        }
    }

    /// No source serves any more: a connection that had longer after an edit has `LAST_CALL` from
    /// now on.
    pub(super) fn hurry(&self, now: Round) {
        if self.last_call.get().is_some_and(|(_, patience)| patience > LAST_CALL) {
            self.last_call.set(Some((now, LAST_CALL)));
        }
    }

    /// Sets what becomes of the connection, and wakes it.
    pub(super) fn end_with(&self, verdict: Verdict) {
        self.verdict.set(verdict);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// What becomes of the connection. The caller is woken when that changes.
    pub(super) fn verdict(&self, context: &Context<'_>) -> Verdict {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        self.verdict.get()
    }
}

#[cfg(test)]
mod tests;
