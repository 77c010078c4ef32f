//! Watches the session. A session whose connection is open but says nothing is closed and opened
//! again. Zenoh has ways to end up there, and does not come out of all of them by itself.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use zenoh::Session;

use crate::configuration::{End, LEASE, end_number};
use crate::line::{self, Line};
use crate::reach::Reach;
use crate::setting::Way;
use crate::shared::Shared;

/// If a peer with an open connection is silent for this long, or one message is being sent for this
/// long, the session is opened again.
const DEAD: Duration = LEASE.saturating_mul(10);
/// Time between two openings at first; it doubles after each one that has not helped.
const PAUSE_MIN: Duration = Duration::from_secs(5);
/// The longest such time: a peer of another kind must not keep all others from talking.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Longest wait for the end of a session; zenoh takes long while it dials a host that is not there.
const CLOSE: Duration = Duration::from_secs(3);

/// A mirror's session for one of its ways, and its state.
pub(crate) struct Watched {
    pub(crate) shared: Arc<Shared>,
    /// The index of the way.
    at: usize,
    state: Mutex<Care>,
    wake: Condvar,
}

struct Care {
    /// `None` while it is being opened again, or if it could not be.
    line: Option<Line>,
    is_over: bool,
    reopened: u64,
    trouble: Option<String>,
}

impl Watched {
    /// Opens the session. One to a router is opened by the watching thread, for a router may be
    /// away.
    pub(crate) fn open(shared: &Arc<Shared>, at: usize) -> Result<Watched, String> {
        let is_direct = shared.ways[at].0 == Way::Direct;
        let line = is_direct.then(|| Line::open(shared, at)).transpose()?;
        let care = Care { line, is_over: false, reopened: 0, trouble: None };
        let (state, wake) = (Mutex::new(care), Condvar::new());
        Ok(Watched { shared: Arc::clone(shared), at, state, wake })
    }

    fn care(&self) -> MutexGuard<'_, Care> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often the session was opened again, and why it could not be, if it could not.
    pub(crate) fn reopened(&self) -> (u64, Option<String>) {
        let care = self.care();
        (care.reopened, care.trouble.clone())
    }

    /// Ends the session and the watching.
    pub(crate) fn close(&self) {
        let mut care = self.care();
        care.is_over = true;
        let line = care.line.take();
        drop(care);
        self.wake.notify_all();
        if let Some(line) = line {
            line.close(&self.shared, CLOSE);
        }
    }

    /// Watches until [`close`](Watched::close).
    pub(crate) fn watch(&self) {
        let (setting, way) = (&self.shared.setting, self.shared.ways[self.at].0);
        let mut doubts = Doubts::new(self.shared.peers_by(way).count());
        let dialled = setting.dialled().filter(|_| way == Way::Direct);
        let mut reach = Reach::new(dialled);
        if self.care().line.is_none() {
            self.renew();
        }
        loop {
            let care = self.care();
            let waited = self.wake.wait_timeout_while(care, LEASE, |care| !care.is_over);
            let care = waited.unwrap_or_else(PoisonError::into_inner).0;
            if care.is_over {
                return;
            }
            let session = care.line.as_ref().map(Line::session);
            // The lock is not held while the session is asked: only this thread waits for the
            // answer.
            drop(care);
            let Some(session) = session else {
                self.renew();
                continue;
            };
            let ends = if way == Way::Direct { line::ends(&session) } else { vec![] };
            let (now, peers) = (Instant::now(), self.look(&session, &ends));
            drop(session);
            reach.look(&self.shared, &ends, now);
            let is_crowded = self.is_crowded(&ends, &peers);
            let busy = self.shared.busy(self.at).map(|it| it.elapsed());
            if doubts.is_dead(now, &peers, busy, is_crowded) {
                if is_crowded {
                    self.tell_crowd(ends.len());
                }
                self.reopen();
            }
        }
    }

    /// For each peer of the way: whether a connection to it is open, and how long it has been
    /// silent. With a router, a peer is connected if the router shows its token.
    fn look(&self, session: &Session, ends: &[End]) -> Vec<(bool, Option<u64>)> {
        let way = self.shared.ways[self.at].0;
        let is_router = way == Way::Router;
        let has_router = is_router && line::has_router(session);
        if is_router {
            self.shared.set_router(has_router);
        }
        let now_ns = self.shared.now_ns();
        let look = |at: usize| {
            let setting = &self.shared.setting;
            let number = end_number(setting, &setting.peers[at].name);
            let mut peer = self.shared.peer(at);
            let has_end = ends.iter().any(|it| it.host == Some(number));
            peer.is_linked = has_end || has_router && peer.is_alive;
            (peer.is_linked, peer.silent_ns(now_ns))
        };
        self.shared.peers_by(way).map(look).collect()
    }

    /// Whether all places for connections are taken and a host that is missed has none. Opened
    /// again, the host comes first: hosts try to connect more often than other programs.
    fn is_crowded(&self, ends: &[End], peers: &[(bool, Option<u64>)]) -> bool {
        ends.len() >= self.shared.setting.places() && peers.iter().any(|(is_linked, _)| !is_linked)
    }

    fn tell_crowd(&self, count: usize) {
        self.shared.news.tell(format!(
            "all {count} places for connections are taken, and a host has none; all connections \
             are opened anew; let programs that look on connect to a router"
        ));
    }

    fn reopen(&self) {
        let Some(line) = self.care().line.take() else { return };
        line.close(&self.shared, CLOSE);
        self.care().reopened += 1;
        self.renew();
    }

    fn renew(&self) {
        let opened = Line::open(&self.shared, self.at);
        let mut care = self.care();
        match opened {
            Ok(line) if care.is_over => {
                drop(care);
                line.close(&self.shared, CLOSE);
            }
            Ok(line) => (care.line, care.trouble) = (Some(line), None),
            Err(trouble) => care.trouble = Some(trouble),
        }
    }
}

/// Decides whether a session is dead.
struct Doubts {
    /// Since when each peer's connection is open, as far as was seen.
    linked: Vec<Option<Instant>>,
    /// When the session was found dead last.
    last: Option<Instant>,
    pause: Duration,
}

impl Doubts {
    fn new(peers: usize) -> Doubts {
        Doubts { linked: vec![None; peers], last: None, pause: PAUSE_MIN }
    }

    /// Judges by each peer's connection and silence, by how long one message has been in sending,
    /// and by whether there is no place for a peer.
    fn is_dead(
        &mut self,
        now: Instant,
        peers: &[(bool, Option<u64>)],
        busy: Option<Duration>,
        is_crowded: bool,
    ) -> bool {
        let mut is_dead = is_crowded || busy.is_some_and(|it| it >= DEAD);
        for (&(is_linked, silent_ns), since) in peers.iter().zip(&mut self.linked) {
            let linked = is_linked.then(|| *since.get_or_insert(now));
            *since = linked;
            let is_old = linked.is_some_and(|it| now.duration_since(it) >= DEAD);
            let is_silent = silent_ns.is_none_or(|it| u128::from(it) >= DEAD.as_nanos());
            is_dead |= is_old && is_silent;
        }
        if !is_dead {
            if self.last.is_some_and(|it| now.duration_since(it) > PAUSE_MAX) {
                (self.last, self.pause) = (None, PAUSE_MIN);
            }
            return false;
        }
        if let Some(last) = self.last {
            if now.duration_since(last) < self.pause {
                return false;
            }
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        self.last = Some(now);
        self.linked.fill(None);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    const NEVER: [u64; 0] = [];

    /// The seconds at which it is found dead in five minutes, by looks half a second apart.
    fn dead(mut of: impl FnMut(u64) -> ((bool, Option<u64>), Option<Duration>)) -> Vec<u64> {
        let (start, mut doubts) = (Instant::now(), Doubts::new(1));
        let mut look = |ms: &u64| {
            let (peer, busy) = of(*ms);
            doubts.is_dead(start + MS * *ms as u32, &[peer], busy, false)
        };
        let looks = (0..300_000).step_by(500).collect::<Vec<u64>>();
        looks.into_iter().filter(|ms| look(ms)).map(|ms| ms / 1000).collect()
    }

    #[test]
    fn an_open_connection_that_says_nothing_is_dead_and_tried_ever_more_seldom() {
        assert_eq!(dead(|_| ((true, None), None)), [5, 10, 20, 40, 80, 140, 200, 260]);
        let old = Some(DEAD.as_nanos() as u64);
        assert_eq!(dead(|_| ((true, old), None))[..2], [5, 10]);
    }

    #[test]
    fn who_is_heard_or_not_connected_is_left_alone() {
        assert_eq!(dead(|_| ((true, Some(1_000_000)), None)), NEVER);
        assert_eq!(dead(|_| ((false, None), None)), NEVER);
        // The connection comes and goes.
        assert_eq!(dead(|ms| ((ms % 4_000 != 0, None), None)), NEVER);
    }

    #[test]
    fn a_message_that_is_sent_for_ever_is_a_dead_session() {
        assert_eq!(dead(|_| ((false, None), Some(DEAD)))[..2], [0, 5]);
    }
}
