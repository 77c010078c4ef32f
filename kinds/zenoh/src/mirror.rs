//! The mirror of one host.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use sinew_hosts::{Stamps, Turn, number};

use crate::arrivals::Arrivals;
use crate::certificate;
use crate::configuration::outgoing_key;
use crate::exchange::Exchange;
use crate::front::Front;
use crate::inbox::IncomingCounts;
use crate::not_taken::NotTakenCounts;
use crate::seal::Seal;
use crate::seen::{HostSeen, HostState};
use crate::setting::Setting;
use crate::shared::Shared;
use crate::watch::Watched;

/// Carries what one host says to the others, and what they say.
///
/// It works in turns, so that old messages do not count as new after this host was stopped for a
/// while ([`Stamps`]): [`begin`](Mirror::begin), then read and [`send`](Mirror::send) all that is
/// there, then [`end`](Mirror::end).
pub struct Mirror {
    shared: Arc<Shared>,
    /// The session of each way, and the thread that watches it.
    watched: Vec<(Arc<Watched>, thread::JoinHandle<()>)>,
    stamps: Stamps,
    turn: Option<Turn>,
    /// The number of the key of each outgoing port, and messages sent so far.
    outgoing: Vec<(u64, u64)>,
    arrivals: Arrivals,
}

/// What became of messages since the mirror was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounts {
    /// Those that came, of all incoming ports.
    pub incoming: IncomingCounts,
    /// Those of this host that were never given to the network: the sending thread hung, or zenoh
    /// had no session.
    pub unsent: u64,
    /// Sessions that were dead and opened again.
    pub reopened: u64,
    /// Why there is no session, if there is none.
    pub trouble: Option<String>,
}

impl Mirror {
    /// Opens it. Returns at once, whether or not another host is there: hosts join as they come.
    ///
    /// # Errors
    /// The setting is wrong, the secret or a file of TLS is missing, no longer valid or of another
    /// host, or the mirror cannot listen where it should.
    pub fn open(setting: &Setting) -> Result<Mirror, String> {
        setting.check()?;
        if let Some(tls) = &setting.tls {
            certificate::check(tls, &setting.own_names(), setting.listen.is_some())?;
        }
        let cannot = |error| {
            let address = setting.listen.as_deref().unwrap_or_default();
            format!("cannot listen at '{address}': {error}")
        };
        let front = setting.tls.as_ref().map(|_| Front::open(&setting.listened())).transpose();
        let front = front.map_err(cannot)?;
        if front.is_none() {
            // Only for a short error text; zenoh's own is longer.
            let mut listened = setting.listened().into_iter();
            listened.try_for_each(|it| TcpListener::bind(it).map(drop)).map_err(cannot)?;
        }
        let seal = Seal::read(setting.secret.as_deref())?;
        // A life is never zero: that is the life in an empty header.
        let shared = Arc::new(Shared::new(setting, fastrand::u64(1..), seal, front));
        let arrivals = shared.arrivals.clone();
        let outgoing =
            (0..setting.outgoing.len()).map(|it| (number(&outgoing_key(setting, it)), 0));
        let mut mirror = Mirror {
            shared,
            watched: vec![],
            stamps: Stamps::default(),
            turn: None,
            outgoing: outgoing.collect(),
            arrivals,
        };
        (0..mirror.shared.ways.len()).try_for_each(|at| mirror.watch(at))?;
        Ok(mirror)
    }

    /// Opens the session of a way, and starts the thread that watches it.
    fn watch(&mut self, at: usize) -> Result<(), String> {
        let watched = Arc::new(Watched::open(&self.shared, at)?);
        let for_thread = Arc::clone(&watched);
        let watcher = thread::Builder::new()
            .name("mirror-watches".into())
            .spawn(move || for_thread.watch())
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        self.watched.push((watched, watcher));
        Ok(())
    }

    /// The number of this life of this host.
    pub fn life(&self) -> u64 {
        self.shared.own.1
    }

    /// Begins a turn. To be called before the first message is read.
    pub fn begin(&mut self) {
        let version = self.shared.setting.version;
        let heard: Vec<_> = self.shared.peers().filter_map(|it| it.echo(version)).collect();
        heard.into_iter().for_each(|(echo, _)| self.stamps.hear(echo));
        self.turn = Some(self.stamps.begin());
    }

    /// Sends a message of an outgoing port, with the stamps of the turn before. Never waits for the
    /// network. Returns whether there was room. If not, the oldest message that waits is dropped
    /// for it, and counted.
    ///
    /// # Panics
    /// If the message has another length than those of the port.
    pub fn send(&mut self, outgoing: usize, message: &[u8]) -> bool {
        let port = &self.shared.setting.outgoing[outgoing];
        assert_eq!(message.len(), port.bytes, "bytes of '{}.{}'", port.node, port.port);
        let (key, sequence) = &mut self.outgoing[outgoing];
        *sequence += 1;
        let header = self.shared.header(*key, *sequence, self.stamps.echoes().to_vec());
        let bytes = self.shared.seal.close(header.write(message));
        // There is at least one way.
        let (first, others) = (&self.shared.ways[0].1, &self.shared.ways[1..]);
        let had_room = others.iter().all(|(_, waiting)| waiting.put(outgoing, bytes.clone()));
        first.put(outgoing, bytes) && had_room
    }

    /// Ends the turn. To be called after the last message was read.
    pub fn end(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.stamps.end(turn);
        }
    }

    /// The next message of an incoming port that is fresh now, and the stamp of this host that it
    /// bears, ns by the setting's clock. Without an age limit the stamp may be of any age.
    ///
    /// # Panics
    /// If `bytes` has another length than the messages of the port.
    pub fn receive(&mut self, incoming: usize, bytes: &mut [u8]) -> Option<u64> {
        let shared = &self.shared;
        let port = &shared.setting.incoming[incoming];
        assert_eq!(bytes.len(), port.bytes, "bytes of '{}.{}'", port.node, port.port);
        shared.inboxes[incoming].take(shared.now_ns(), bytes)
    }

    /// Sleeps until something has come since the last call, at most for `time`. Returns whether
    /// something has; if so, each incoming port is to be emptied.
    pub fn wait(&mut self, time: Duration) -> bool {
        self.arrivals.wait(time)
    }

    /// The same wait for another thread.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.clone()
    }

    /// Its calls, for other threads.
    pub fn exchange(&self) -> Exchange {
        Exchange::of(&self.shared)
    }

    /// The other hosts, in the setting's order.
    pub fn hosts(&self) -> Vec<HostSeen> {
        let (setting, now_ns) = (&self.shared.setting, self.shared.now_ns());
        let peers = self.shared.peers().zip(&setting.peers);
        peers.map(|(seen, peer)| seen.show(&peer.name, setting.version, now_ns)).collect()
    }

    /// The state of the router, if this host calls one: `Heard` while it is connected.
    pub fn router(&self) -> Option<HostState> {
        self.shared.setting.router.as_ref().map(|_| self.shared.router())
    }

    /// What became of all messages.
    pub fn counted(&self) -> MirrorCounts {
        let shared = &self.shared;
        let mut incoming = IncomingCounts::default();
        shared.inboxes.iter().for_each(|it| incoming.add(&it.counts()));
        let sessions: Vec<_> = self.watched.iter().map(|it| it.0.reopened()).collect();
        MirrorCounts {
            incoming,
            unsent: shared.ways.iter().map(|(_, waiting)| waiting.unsent()).sum(),
            reopened: sessions.iter().map(|it| it.0).sum(),
            trouble: sessions.into_iter().find_map(|it| it.1),
        }
    }

    /// What was not taken of each other host, in the setting's order: messages, stamps and calls.
    pub fn not_taken(&self) -> Vec<NotTakenCounts> {
        (0..self.shared.setting.peers.len()).map(|it| self.shared.not_taken(it)).collect()
    }

    /// What the log is to say of the other hosts since the last call.
    pub fn news(&self) -> Vec<String> {
        self.shared.news.take()
    }

    /// What became of the messages of one incoming port.
    pub fn counted_at(&self, incoming: usize) -> IncomingCounts {
        self.shared.inboxes[incoming].counts()
    }

    /// Closes it; the others see that at once. Blocks for a few seconds at most.
    pub fn close(self) {
        drop(self);
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.watched.iter().for_each(|(watched, _)| watched.close());
        // A thread that is not finished is closing a session, which may take long; it ends by
        // itself.
        for (_, watcher) in self.watched.drain(..).filter(|(_, watcher)| watcher.is_finished()) {
            let _ = watcher.join();
        }
    }
}
