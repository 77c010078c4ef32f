//! What the threads of a mirror share.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sinew_hosts::{ECHOES_MAX, Echo, MessageHeader, SentStamps, message_key, number, stamp_key};

use crate::arrivals::Arrivals;
use crate::calls::Calls;
use crate::frame::StampFrame;
use crate::front::Front;
use crate::inbox::Inbox;
use crate::news::News;
use crate::not_taken::{NotTaken, NotTakenCounts, NotTakenTally};
use crate::seal::Seal;
use crate::seen::{HostState, Seen};
use crate::setting::{self, IncomingPort, Setting, Way};
use crate::waiting::Waiting;

/// Everything that outlives a connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) setting: Setting,
    /// This host's number, and its life.
    pub(crate) own: (u64, u64),
    pub(crate) inboxes: Vec<Inbox>,
    /// The ways that it speaks by, and what waits at each.
    pub(crate) ways: Vec<(Way, Waiting)>,
    pub(crate) arrivals: Arrivals,
    pub(crate) calls: Calls,
    pub(crate) news: News,
    pub(crate) seal: Seal,
    /// Where a host with certificates listens.
    front: Option<Front>,
    peers: Vec<Peer>,
    router: Mutex<HostState>,
    /// The number of the key of this host's stamps.
    stamp_key: u64,
    /// Stamp frames that were made.
    frames: AtomicU64,
    sent: Mutex<SentStamps>,
}

/// What is kept of each other host.
#[derive(Debug)]
struct Peer {
    /// Its number, and that of the key of its stamps.
    number: u64,
    stamp_key: u64,
    seen: Mutex<Seen>,
    not_taken: NotTakenTally,
}

impl Shared {
    pub(crate) fn new(setting: &Setting, life: u64, seal: Seal, front: Option<Front>) -> Shared {
        let (own, ports) = ((number(&setting.host), life), setting.outgoing.len());
        let inbox = |port: &IncomingPort| {
            // The setting was checked, so the peer is there.
            let peer = setting.peer(&port.from).unwrap_or_default();
            let IncomingPort { from, node, port: name, hash, .. } = port;
            let key = number(&message_key(&setting.graph, from, node, name, *hash));
            Inbox::new(port, (peer, key), own)
        };
        let peer = |peer: &setting::Peer| Peer {
            number: number(&peer.name),
            stamp_key: number(&stamp_key(&setting.graph, &peer.name)),
            seen: Mutex::default(),
            not_taken: NotTakenTally::default(),
        };
        Shared {
            own,
            inboxes: setting.incoming.iter().map(inbox).collect(),
            ways: setting.ways().into_iter().map(|it| (it, Waiting::new(ports))).collect(),
            arrivals: Arrivals::default(),
            calls: Calls::new(setting, own),
            news: News::default(),
            seal,
            front,
            peers: setting.peers.iter().map(peer).collect(),
            router: Mutex::new(HostState::Unheard),
            stamp_key: number(&stamp_key(&setting.graph, &setting.host)),
            frames: AtomicU64::new(0),
            sent: Mutex::default(),
            setting: setting.clone(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        (self.setting.now_ns)()
    }

    /// Where zenoh listens for a way.
    ///
    /// # Errors
    /// No port is free.
    pub(crate) fn listened(&self, way: Way) -> io::Result<Vec<String>> {
        match (way, &self.front) {
            (Way::Router, _) => Ok(vec![]),
            (Way::Direct, None) => Ok(self.setting.listened()),
            (Way::Direct, Some(front)) => front.lead(),
        }
    }

    /// What is known of a peer.
    pub(crate) fn peer(&self, peer: usize) -> MutexGuard<'_, Seen> {
        self.peers[peer].seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = MutexGuard<'_, Seen>> {
        (0..self.peers.len()).map(|it| self.peer(it))
    }

    /// The indices of the peers that are spoken with by one way.
    pub(crate) fn peers_by(&self, way: Way) -> impl Iterator<Item = usize> {
        let peers = self.setting.peers.iter().enumerate();
        peers.filter(move |(_, it)| self.setting.way(it) == way).map(|(at, _)| at)
    }

    /// Whether the router is there.
    pub(crate) fn router(&self) -> HostState {
        *self.router.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The router is connected, or is not.
    pub(crate) fn set_router(&self, is_linked: bool) {
        let mut router = self.router.lock().unwrap_or_else(PoisonError::into_inner);
        *router = match (is_linked, *router) {
            (true, _) => HostState::Heard,
            (false, HostState::Heard) => HostState::Silent,
            (false, before) => before,
        };
    }

    /// The stamps that this host has sent.
    pub(crate) fn sent(&self) -> MutexGuard<'_, SentStamps> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what is not taken of a peer, and tells the first of its kind.
    pub(crate) fn refuse(&self, peer: usize, refusal: NotTaken) {
        if let Some(text) = self.peers[peer].not_taken.note(refusal) {
            let name = &self.setting.peers[peer].name;
            self.news.tell(format!("in the name of host '{name}' came {text}"));
        }
    }

    /// What was not taken of a peer.
    pub(crate) fn not_taken(&self, peer: usize) -> NotTakenCounts {
        self.peers[peer].not_taken.counts()
    }

    /// Checks that a header is what a peer sends under a key, before anything else is judged: the
    /// transport may have delivered it under the key of another port or host.
    pub(crate) fn is_of(
        &self,
        peer: usize,
        key: u64,
        header: &MessageHeader,
    ) -> Result<(), NotTaken> {
        match (header.host, header.key) == (self.peers[peer].number, key) {
            true if header.life == 0 => Err(NotTaken::Lifeless),
            true => Ok(()),
            false => Err(NotTaken::Misplaced),
        }
    }

    /// Bytes came as a stamp frame of a peer.
    pub(crate) fn hear(&self, peer: usize, bytes: &[u8]) {
        if let Err(refusal) = self.heard(peer, bytes) {
            self.refuse(peer, refusal);
        }
    }

    fn heard(&self, peer: usize, bytes: &[u8]) -> Result<(), NotTaken> {
        let Peer { number, stamp_key, .. } = self.peers[peer];
        let frame = StampFrame::read(self.seal.open(bytes)?)?;
        self.is_of(peer, stamp_key, &frame.header)?;
        let (sent, now) = (self.sent(), (self.now_ns(), unix_ns()));
        self.peer(peer).hear(number, &frame, (self.own, &sent), now)
    }

    /// Bytes came for an incoming port.
    pub(crate) fn arrive(&self, port: usize, bytes: &[u8]) {
        match self.arrived(&self.inboxes[port], bytes) {
            Ok(true) => self.arrivals.ring(),
            Ok(false) => {}
            Err(refusal) => self.refuse(self.inboxes[port].peer, refusal),
        }
    }

    fn arrived(&self, inbox: &Inbox, bytes: &[u8]) -> Result<bool, NotTaken> {
        let bytes = self.seal.open(bytes)?;
        let (header, message) = MessageHeader::read(bytes, inbox.bytes)?;
        self.is_of(inbox.peer, inbox.key, &header)?;
        self.allows(inbox.peer, header.life)?;
        let was_sent = |stamp_ns| self.sent().has(stamp_ns);
        inbox.arrive((&header, message), was_sent, self.now_ns())
    }

    /// Whether what comes from a life of a peer may be taken.
    pub(crate) fn allows(&self, peer: usize, life: u64) -> Result<(), NotTaken> {
        self.peer(peer).allows(life, self.setting.version, self.now_ns())
    }

    /// The last stamp of each other host that has said this version.
    pub(crate) fn echoes(&self) -> Vec<Echo> {
        self.peers().filter_map(|it| it.echo(self.setting.version)).map(|it| it.0).collect()
    }

    /// Since when a thread of a way has been sending one message: that of the longest send.
    pub(crate) fn busy(&self, way: usize) -> Option<Instant> {
        self.ways[way].1.busy().into_iter().chain(self.calls.ways[way].1.busy()).min()
    }

    /// The header of what this host sends under the key with this number.
    pub(crate) fn header(&self, key: u64, sequence: u64, echoes: Vec<Echo>) -> MessageHeader {
        let (host, life) = self.own;
        MessageHeader { host, life, key, sequence, sent_unix_ns: unix_ns(), echoes }
    }

    /// The stamp of this host, as it is to be sent now.
    pub(crate) fn stamp(&self) -> Vec<u8> {
        let version = self.setting.version;
        let peers = self.peers().flat_map(|it| it.echoes().collect::<Vec<_>>());
        let heard: Vec<_> = peers.take(ECHOES_MAX).collect();
        // A number of its own for each frame; it orders nothing else.
        let sequence = self.frames.fetch_add(1, Ordering::Relaxed) + 1;
        let echoes = heard.iter().map(|it| it.0).collect();
        // While this is held no other way makes a stamp, so stamps rise.
        let mut sent = self.sent();
        // Read close together: others calculate with both.
        let (now_ns, header) = (self.now_ns(), self.header(self.stamp_key, sequence, echoes));
        sent.note(now_ns);
        drop(sent);
        let held_ns = heard.iter().map(|it| now_ns.saturating_sub(it.1)).collect();
        let frame = StampFrame { header, stamp_ns: now_ns, version, held_ns };
        self.seal.close(frame.write())
    }
}

/// The time by the wall clock, for logs. Nothing is judged by it.
pub(crate) fn unix_ns() -> u64 {
    // A clock before 1970 is wrong anyway.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
