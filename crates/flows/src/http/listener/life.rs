//! The life of a connection: what it is doing, since when, and whether it goes on.
//!
//! Its state is a few cells that its socket and its requests write as they go. Once in a round the
//! worker looks at all of them and ends those that take too long: no request needs a timer.

use std::cell::{Cell, RefCell};
use std::task::{Context, Waker};
use std::time::Duration;

/// Time between two looks: deadlines are counted in these, and are up to two of them late.
pub(super) const ROUND: Duration = Duration::from_millis(250);

/// Cancelled requests that a connection may have beyond those that were answered. A client that
/// opens and resets without end (CVE-2023-44487) makes work for others to pay.
const CANCELLED_MAX: u32 = 200;

/// Rounds that a connection has for its first request, and for a head that has begun, when its
/// worker stops: whoever has just connected knows of no stop, and would find itself reset.
const LAST_CALL: Round = 1;

/// Rounds, from the worker's first.
pub(super) type Round = u32;

/// How long connections may take, in rounds.
pub(super) struct Patience {
    pub(super) head: Round,
    pub(super) idle: Round,
    pub(super) stall: Round,
}

/// So many rounds are at least as long.
pub(super) fn rounds(time: Duration) -> Round {
    let rounds = time.as_nanos().div_ceil(ROUND.as_nanos()) + 1;
    Round::try_from(rounds).unwrap_or(Round::MAX)
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on.
    Live,
    /// It answers what it has begun, and takes no more.
    Drain,
    /// It ends at once.
    Close,
}

/// A connection's state.
pub(super) struct Life {
    /// When it began to be idle, or to send a head.
    since: Cell<Round>,
    /// Some of a head has come.
    in_head: Cell<bool>,
    /// Requests under way.
    open: Cell<u32>,
    /// All of the last one is here.
    is_whole: Cell<bool>,
    /// Since when the client takes nothing.
    stalled: Cell<Option<Round>>,
    /// Several requests at a time: what comes need not be a head.
    is_http2: Cell<bool>,
    /// No request has come yet.
    is_new: Cell<bool>,
    /// The worker stopped then, and what comes first is still answered.
    last_call: Cell<Option<Round>>,
    /// A body was refused unread.
    unread: Cell<bool>,
    /// Requests that were cancelled, less those that were answered.
    cancelled: Cell<u32>,
    verdict: Cell<Verdict>,
    waker: RefCell<Option<Waker>>,
}

impl Life {
    /// A connection that begins now.
    pub(super) fn new(now: Round) -> Life {
        Life {
            since: Cell::new(now),
            in_head: Cell::new(false),
            open: Cell::new(0),
            is_whole: Cell::new(false),
            stalled: Cell::new(None),
            is_http2: Cell::new(false),
            is_new: Cell::new(true),
            last_call: Cell::new(None),
            unread: Cell::new(false),
            cancelled: Cell::new(0),
            verdict: Cell::new(Verdict::Live),
            waker: RefCell::new(None),
        }
    }

    /// Bytes have come.
    pub(super) fn read(&self, now: Round) {
        if self.open.get() == 0 && !self.in_head.get() {
            self.in_head.set(true);
            self.since.set(now);
        }
    }

    /// What came so far was no head, but a handshake.
    pub(super) fn rest(&self, now: Round) {
        self.in_head.set(false);
        self.since.set(now);
    }

    /// The client took bytes.
    pub(super) fn wrote(&self) {
        self.stalled.set(None);
    }

    /// The client takes no bytes.
    pub(super) fn stalls(&self, now: Round) {
        self.stalled.set(self.stalled.get().or(Some(now)));
    }

    /// A request has come.
    pub(super) fn begin(&self, is_http2: bool) {
        self.in_head.set(false);
        self.is_whole.set(false);
        self.is_http2.set(is_http2);
        self.is_new.set(false);
        self.open.set(self.open.get() + 1);
        if self.last_call.take().is_some() {
            self.end_with(Verdict::Drain);
        }
    }

    /// All of the last request is here, body and all.
    pub(super) fn whole(&self) {
        self.is_whole.set(true);
    }

    /// Whether nothing but the answer is awaited, which the client may do no more. Over HTTP/2
    /// there is always somebody who reads.
    pub(super) fn awaits_answer(&self) -> bool {
        self.open.get() > 0 && self.is_whole.get() && !self.is_http2.get()
    }

    /// A request is over.
    pub(super) fn end(&self, answered: bool, now: Round) {
        self.open.set(self.open.get() - 1);
        self.since.set(now);
        let cancelled = self.cancelled.get();
        self.cancelled.set(if answered { cancelled.saturating_sub(1) } else { cancelled + 1 });
    }

    /// A body was refused that is still coming.
    pub(super) fn refused_body(&self) {
        self.unread.set(true);
    }

    /// Whether a body was refused that is still coming.
    pub(super) fn has_unread(&self) -> bool {
        self.unread.get()
    }

    /// Whether no request is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.open.get() == 0
    }

    /// Looks whether it takes too long.
    pub(super) fn judge(&self, now: Round, patience: &Patience) {
        let passed = |since: Round| now.saturating_sub(since);
        let in_head = self.in_head.get() && !self.is_http2.get();
        let verdict = match self.verdict.get() {
            Verdict::Close => return,
            _ if self.stalled.get().is_some_and(|since| passed(since) > patience.stall) => {
                Verdict::Close
            }
            _ if self.cancelled.get() > CANCELLED_MAX => Verdict::Close,
            _ if !self.is_idle() => return,
            _ if in_head && passed(self.since.get()) > patience.head => Verdict::Close,
            _ if self.last_call.get().is_some_and(|since| passed(since) > LAST_CALL) => {
                self.last_call.set(None);
                if in_head { Verdict::Close } else { Verdict::Drain }
            }
            // Told to end in order, it has not: nobody is there.
            Verdict::Drain if passed(self.since.get()) > patience.head => Verdict::Close,
            Verdict::Live if !in_head && passed(self.since.get()) > patience.idle => {
                self.since.set(now);
                Verdict::Drain
            }
            _ => return,
        };
        self.end_with(verdict);
    }

    /// The worker stops: what is under way is answered, and nothing else.
    pub(super) fn stop(&self, now: Round) {
        let in_head = self.in_head.get() && !self.is_http2.get();
        self.since.set(now);
        if self.is_idle() && (in_head || self.is_new.get()) {
            self.last_call.set(Some(now));
        } else {
            self.end_with(Verdict::Drain);
        }
    }

    fn end_with(&self, verdict: Verdict) {
        self.verdict.set(verdict);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// What becomes of it; who asks is woken when that changes.
    pub(super) fn verdict(&self, context: &Context<'_>) -> Verdict {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        self.verdict.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience { head: 4, idle: 10, stall: 6 };

    fn judged(life: &Life, now: Round) -> Verdict {
        life.judge(now, &PATIENCE);
        life.verdict.get()
    }

    #[test]
    fn an_idle_connection_drains_and_is_closed_if_that_does_not_end_it() {
        let life = Life::new(0);
        assert_eq!(judged(&life, 10), Verdict::Live);
        assert_eq!(judged(&life, 11), Verdict::Drain);
        assert_eq!(judged(&life, 15), Verdict::Drain);
        assert_eq!(judged(&life, 16), Verdict::Close);
    }

    #[test]
    fn a_slow_head_is_closed_however_many_bytes_come() {
        let life = Life::new(0);
        life.read(2);
        life.read(5);
        assert_eq!(judged(&life, 6), Verdict::Live);
        life.read(6);
        assert_eq!(judged(&life, 7), Verdict::Close);
    }

    #[test]
    fn a_request_may_take_its_time_while_its_client_takes_bytes() {
        let life = Life::new(0);
        life.read(0);
        life.begin(false);
        assert_eq!(judged(&life, 1000), Verdict::Live);
        life.stalls(1000);
        life.wrote();
        life.stalls(1004);
        assert_eq!(judged(&life, 1010), Verdict::Live);
        assert_eq!(judged(&life, 1011), Verdict::Close);
    }

    #[test]
    fn a_connection_is_idle_from_its_last_answer() {
        let life = Life::new(0);
        life.begin(false);
        life.end(true, 100);
        assert_eq!(judged(&life, 110), Verdict::Live);
        assert_eq!(judged(&life, 111), Verdict::Drain);
    }

    #[test]
    fn an_answer_is_awaited_from_the_end_of_the_request_to_its_own() {
        let life = Life::new(0);
        life.begin(false);
        assert!(!life.awaits_answer(), "its body may still come");
        life.whole();
        assert!(life.awaits_answer());
        life.end(true, 0);
        assert!(!life.awaits_answer());
        life.begin(true);
        life.whole();
        assert!(!life.awaits_answer(), "HTTP/2 reads on by itself");
    }

    #[test]
    fn who_only_resets_is_closed_and_who_resets_now_and_then_is_not() {
        let life = Life::new(0);
        for at in 0..3 * CANCELLED_MAX {
            life.begin(true);
            life.end(at % 3 == 0, 0);
            if at % 3 != 0 {
                life.begin(true);
                life.end(true, 0);
            }
        }
        assert_eq!(judged(&life, 1), Verdict::Live);
        for _ in 0..=CANCELLED_MAX {
            life.begin(true);
            life.end(false, 0);
        }
        assert_eq!(judged(&life, 1), Verdict::Close);
    }

    #[test]
    fn at_a_stop_a_first_request_and_a_head_have_a_moment_to_come() {
        let used = Life::new(0);
        used.begin(false);
        used.end(true, 0);
        used.stop(1);
        assert_eq!(used.verdict.get(), Verdict::Drain, "it may be told between two requests");
        let in_head = |life: &Life| life.read(1);
        for (begins, ends) in [(in_head as fn(&Life), Verdict::Close), (|_| {}, Verdict::Drain)] {
            let (comes, silent) = (Life::new(0), Life::new(0));
            [&comes, &silent].into_iter().for_each(begins);
            [&comes, &silent].into_iter().for_each(|life| life.stop(1));
            assert_eq!(judged(&comes, 2), Verdict::Live);
            comes.begin(true);
            assert_eq!(judged(&comes, 1000), Verdict::Drain, "it is answered, and nothing else");
            assert_eq!(judged(&silent, 2), Verdict::Live);
            assert_eq!(judged(&silent, 3), ends);
        }
    }

    #[test]
    fn no_deadline_is_early() {
        assert!(ROUND * (rounds(Duration::from_millis(999)) - 1) >= Duration::from_millis(999));
        assert_eq!(rounds(Duration::MAX), Round::MAX);
    }
}
