//! One session of zenoh, from its opening to its end, with the thread that sends over it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sinew_hosts::stamp_key;
use zenoh::key_expr::KeyExpr;
use zenoh::liveliness::LivelinessToken;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;
use zenoh::{Config, Session, Wait};

use crate::configuration::{
    End, alive_key, configuration, end_name, end_number, heard, host_of, incoming_key, outgoing_key,
};
use crate::exchange;
use crate::frame::STAMP_LEN_MAX;
use crate::not_taken::NotTaken;
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
        let listened = shared.listened(*way).map_err(|error| format!("cannot listen: {error}"))?;
        let end = end_name(end_number(setting, &setting.host), fastrand::u64(1..));
        let config = Config::from_json5(&configuration(setting, *way, &end, &listened))
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
        let keys = (0..setting.outgoing.len()).map(|it| outgoing_key(setting, it));
        let keys = keys.chain([stamp_key(&setting.graph, &setting.host)]);
        // Declared within this process only. To declare a publisher would give its key a number on
        // the network.
        let keys = keys.map(|key| session.declare_keyexpr(key).wait());
        let keys = keys.collect::<Result<Vec<_>, _>>().map_err(said)?;
        let line = waiting.begin_line();
        let (for_thread, to) = (Arc::clone(shared), session.clone());
        let sends = thread::Builder::new()
            .name("mirror-sends".into())
            .spawn(move || send(&for_thread, (at, line), &to, &keys))
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
        let subscriber = session.declare_subscriber(heard(&incoming_key(setting, port)));
        let take = move |payload: &zenoh::bytes::ZBytes| {
            let inbox = &shared.inboxes[port];
            match inbox.fits(payload.len(), shared.seal.len()) {
                true => shared.arrive(port, &payload.to_bytes()),
                false => shared.refuse(inbox.peer, NotTaken::Malformed),
            }
        };
        let take = move |it: zenoh::sample::Sample| guarded(|| take(it.payload()));
        subscriber.allowed_origin(Locality::Remote).callback(take).background().wait()?;
    }
    for peer in shared.peers_by(way) {
        let name = &setting.peers[peer].name;
        let for_stamps = Arc::clone(shared);
        let subscriber = session.declare_subscriber(heard(&stamp_key(&setting.graph, name)));
        let take = move |payload: &zenoh::bytes::ZBytes| match payload.len()
            <= STAMP_LEN_MAX + for_stamps.seal.len()
        {
            true => for_stamps.hear(peer, &payload.to_bytes()),
            false => for_stamps.refuse(peer, NotTaken::Malformed),
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

/// The work of the sending thread of a way, until another line begins. The last key is that of the
/// stamps. They go before messages: a stamp that waits behind messages makes commands of others
/// old.
fn send(shared: &Shared, (at, line): (usize, u64), session: &Session, keys: &[KeyExpr<'static>]) {
    let waiting = &shared.ways[at].1;
    let period = shared.setting.stamps();
    let put = |key: usize, bytes: Vec<u8>, priority| {
        let put = session.put(&keys[key], bytes).congestion_control(CongestionControl::Drop);
        let put = put.priority(priority).express(true).allowed_destination(Locality::Remote);
        put.wait().is_ok()
    };
    let mut due = Instant::now();
    loop {
        match waiting.next(line, due) {
            Next::Message(port, bytes) => {
                if !put(port, bytes, Priority::InteractiveHigh) {
                    waiting.refused();
                }
            }
            Next::Stamp => {
                let is_said = put(keys.len() - 1, shared.stamp(), Priority::RealTime);
                due = Instant::now() + if is_said { period } else { period.max(REFUSED) };
            }
            Next::Over => return,
        }
    }
}

/// The other ends of a session's connections. May wait for zenoh.
pub(crate) fn ends(session: &Session) -> Vec<End> {
    let end = |link: zenoh::session::Link| End {
        host: host_of(&link.zid().to_string()),
        address: link.dst().address().as_str().parse().ok(),
    };
    session.info().links().wait().map(end).collect()
}

/// Whether a session has a connection to a router. May wait for zenoh.
pub(crate) fn has_router(session: &Session) -> bool {
    session.info().routers_zid().wait().next().is_some()
}
