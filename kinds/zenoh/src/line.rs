//! One session of zenoh, from its opening to its end, with the thread that sends over it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sinew_hosts::stamp_key;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;
use zenoh::{Config, Session, Wait};

use crate::configuration::{alive_key, configuration, end_name, incoming_key, outgoing_key};
use crate::exchange;
use crate::setting::Way;
use crate::shared::Shared;
use crate::waiting::Next;

/// Time until a stamp is tried again while zenoh refuses stamps, at least.
const REFUSED: Duration = Duration::from_millis(100);

/// A session, and what was declared in it.
pub(crate) struct Line {
    /// The index of its way.
    at: usize,
    session: Session,
    alive: LivelinessToken,
    sends: thread::JoinHandle<()>,
    /// Present where calls cross.
    calls: Option<thread::JoinHandle<()>>,
}

impl Line {
    /// Opens the line of a way. Returns at once, whether or not another host is there. With a
    /// router it returns when the router is there, or after a second without it.
    pub(crate) fn open(shared: &Arc<Shared>, at: usize) -> Result<Line, String> {
        let setting = &shared.setting;
        let (way, waiting) = &shared.ways[at];
        let end = end_name(shared.own.0, fastrand::u64(1..));
        let config = Config::from_json5(&configuration(setting, *way, &end))
            .map_err(|error| format!("zenoh refuses this setting: {error}"))?;
        let failed = |error: zenoh::Error| match (way, &setting.listen, &setting.router) {
            (Way::Router, _, Some(it)) => {
                format!("cannot reach the router at '{it}'; the host goes on trying")
            }
            (_, Some(it), _) => format!("cannot listen at '{it}': {error}"),
            _ => format!("cannot begin: {error}"),
        };
        let session = zenoh::open(config).wait().map_err(failed)?;
        let said = |error: zenoh::Error| format!("zenoh: {error}");
        hear(shared, *way, &session).map_err(said)?;
        let key = alive_key(&setting.graph, &setting.host);
        let alive = session.liveliness().declare_token(key).wait().map_err(said)?;
        // Stamps go before messages: a stamp that waits behind messages makes commands of others
        // old.
        let stamp_key = stamp_key(&setting.graph, &setting.host);
        let stamps = publisher(&session, stamp_key, Priority::RealTime).map_err(said)?;
        let ports = (0..setting.outgoing.len())
            .map(|it| publisher(&session, outgoing_key(setting, it), Priority::InteractiveHigh));
        let ports = ports.collect::<Result<Vec<_>, _>>().map_err(said)?;
        let line = waiting.begin_line();
        let for_thread = Arc::clone(shared);
        let sends = thread::Builder::new()
            .name("mirror-sends".into())
            .spawn(move || send(&for_thread, (at, line), &stamps, &ports))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        let calls = exchange::begin(shared, at, &session)?;
        Ok(Line { at, session, alive, sends, calls })
    }

    /// Its session, to be asked without holding the line.
    pub(crate) fn session(&self) -> Session {
        self.session.clone()
    }

    /// Closes the line. Returns whether that was done within `time`; if not, it is done some time
    /// later.
    pub(crate) fn close(self, shared: &Shared, time: Duration) -> bool {
        let (way, waiting) = &shared.ways[self.at];
        waiting.begin_line();
        shared.calls.ways[self.at].1.begin_line();
        let (done, closed) = mpsc::channel();
        let close = move || {
            // The errors help nobody: token and session are gone in any case.
            let _ = self.alive.undeclare().wait();
            let _ = self.session.close().wait();
            let _ = self.sends.join();
            let _ = self.calls.map(thread::JoinHandle::join);
            let _ = done.send(());
        };
        let thread = thread::Builder::new().name("mirror-closes".into()).spawn(close);
        let is_closed = thread.is_ok() && closed.recv_timeout(time).is_ok();
        for mut peer in shared.peers_by(*way).map(|it| shared.peer(it)) {
            (peer.is_linked, peer.is_alive) = (false, false);
        }
        if *way == Way::Router {
            shared.set_router(false);
        }
        is_closed
    }
}

/// Declares what is to be heard over a way. A callback reads bytes, puts them in their place and
/// returns: while it works, nothing else comes over that connection. A panic in it would end the
/// connection's reading for ever.
fn hear(shared: &Arc<Shared>, way: Way, session: &Session) -> zenoh::Result<()> {
    let setting = &shared.setting;
    let is_here = |port: &usize| {
        let from = shared.inboxes[*port].peer;
        setting.way(&setting.peers[from]) == way
    };
    for port in (0..setting.incoming.len()).filter(is_here) {
        let shared = Arc::clone(shared);
        let subscriber = session.declare_subscriber(incoming_key(setting, port));
        let take = move |payload: &zenoh::bytes::ZBytes| {
            if shared.inboxes[port].fits(payload.len()) {
                shared.arrive(port, &payload.to_bytes());
            }
        };
        let take = move |it: zenoh::sample::Sample| guarded(|| take(it.payload()));
        subscriber.allowed_origin(Locality::Remote).callback(take).background().wait()?;
    }
    for peer in shared.peers_by(way) {
        let name = &setting.peers[peer].name;
        let for_stamps = Arc::clone(shared);
        let subscriber = session.declare_subscriber(stamp_key(&setting.graph, name));
        let take = move |payload: &zenoh::bytes::ZBytes| {
            if for_stamps.is_stamp(payload.len()) {
                for_stamps.hear(peer, &payload.to_bytes());
            }
        };
        let take = move |it: zenoh::sample::Sample| guarded(|| take(it.payload()));
        subscriber.allowed_origin(Locality::Remote).callback(take).background().wait()?;
        let for_token = Arc::clone(shared);
        let key = alive_key(&setting.graph, name);
        let token = session.liveliness().declare_subscriber(key).history(true);
        let set = move |is_alive| for_token.peer(peer).is_alive = is_alive;
        let set = move |it: zenoh::sample::Sample| {
            guarded(|| set(matches!(it.kind(), zenoh::sample::SampleKind::Put)));
        };
        token.callback(set).background().wait()?;
    }
    Ok(())
}

fn guarded(take: impl FnOnce()) {
    // The panic was reported on standard error.
    let _ = catch_unwind(AssertUnwindSafe(take));
}

fn publisher(
    session: &Session,
    key: String,
    priority: Priority,
) -> zenoh::Result<Publisher<'static>> {
    session
        .declare_publisher(key)
        .congestion_control(CongestionControl::Drop)
        .priority(priority)
        .express(true)
        .allowed_destination(Locality::Remote)
        .wait()
}

/// The work of the sending thread of a way, until another line begins.
fn send(
    shared: &Shared,
    (at, line): (usize, u64),
    stamps: &Publisher<'_>,
    ports: &[Publisher<'_>],
) {
    let waiting = &shared.ways[at].1;
    let period = shared.setting.stamps();
    let mut due = Instant::now();
    loop {
        match waiting.next(line, due) {
            Next::Message(port, bytes) => {
                if ports[port].put(bytes).wait().is_err() {
                    waiting.refused();
                }
            }
            Next::Stamp => {
                let is_said = stamps.put(shared.stamp()).wait().is_ok();
                due = Instant::now() + if is_said { period } else { period.max(REFUSED) };
            }
            Next::Over => return,
        }
    }
}

/// The numbers of the hosts to which a session has a connection. May wait for zenoh.
pub(crate) fn linked(session: &Session) -> Vec<u64> {
    let ends = session.info().peers_zid().wait();
    ends.filter_map(|end| crate::configuration::host_of(&end.to_string())).collect()
}

/// Whether a session has a connection to a router. May wait for zenoh.
pub(crate) fn has_router(session: &Session) -> bool {
    session.info().routers_zid().wait().next().is_some()
}
