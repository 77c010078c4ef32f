//! What the threads of a mirror share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sinew_hosts::{Echo, MessageHeader, host_number};

use crate::arrivals::Arrivals;
use crate::calls::Calls;
use crate::frame::{STAMP_LEN_MAX, StampFrame};
use crate::inbox::Inbox;
use crate::seen::{HostState, Seen};
use crate::setting::{IncomingPort, Setting, Way};
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
    peers: Vec<Mutex<Seen>>,
    router: Mutex<HostState>,
    /// Stamp frames that were made.
    stamps: AtomicU64,
    malformed_stamps: AtomicU64,
}

impl Shared {
    pub(crate) fn new(setting: &Setting, life: u64) -> Shared {
        let (own, ports) = ((host_number(&setting.host), life), setting.outgoing.len());
        let inbox = |port: &IncomingPort| {
            // The setting was checked, so the peer is there.
            let peer = setting.peer(&port.from).unwrap_or_default();
            Inbox::new(port, peer, own)
        };
        Shared {
            own,
            inboxes: setting.incoming.iter().map(inbox).collect(),
            ways: setting.ways().into_iter().map(|it| (it, Waiting::new(ports))).collect(),
            arrivals: Arrivals::default(),
            calls: Calls::new(setting, own),
            peers: setting.peers.iter().map(|_| Mutex::default()).collect(),
            router: Mutex::new(HostState::Unheard),
            stamps: AtomicU64::new(0),
            malformed_stamps: AtomicU64::new(0),
            setting: setting.clone(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        (self.setting.now_ns)()
    }

    /// What is known of a peer.
    pub(crate) fn peer(&self, peer: usize) -> MutexGuard<'_, Seen> {
        self.peers[peer].lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whether so many bytes can be a stamp frame. If not, that is counted and the bytes are not
    /// looked at.
    pub(crate) fn is_stamp(&self, len: usize) -> bool {
        let is_stamp = len <= STAMP_LEN_MAX;
        if !is_stamp {
            // A count; it orders nothing.
            self.malformed_stamps.fetch_add(1, Ordering::Relaxed);
        }
        is_stamp
    }

    /// A stamp frame of a peer came.
    pub(crate) fn hear(&self, peer: usize, bytes: &[u8]) {
        let Ok(frame) = StampFrame::read(bytes) else {
            // A count; it orders nothing.
            self.malformed_stamps.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let number = host_number(&self.setting.peers[peer].name);
        self.peer(peer).hear(number, &frame, self.own, (self.now_ns(), unix_ns()));
    }

    /// A message for an incoming port came.
    pub(crate) fn arrive(&self, port: usize, bytes: &[u8]) {
        let inbox = &self.inboxes[port];
        let joined = self.peer(inbox.peer).joined(self.setting.version);
        if inbox.arrive(bytes, joined, self.now_ns()) {
            self.arrivals.ring();
        }
    }

    /// The last stamp of each other host that has said this version.
    pub(crate) fn echoes(&self) -> Vec<Echo> {
        self.peers().filter_map(|it| it.echo(self.setting.version)).map(|it| it.0).collect()
    }

    /// Since when a thread of a way has been sending one message: that of the longest send.
    pub(crate) fn busy(&self, way: usize) -> Option<Instant> {
        self.ways[way].1.busy().into_iter().chain(self.calls.ways[way].1.busy()).min()
    }

    /// The stamp of this host, as it is to be sent now.
    pub(crate) fn stamp(&self) -> Vec<u8> {
        let version = self.setting.version;
        let heard: Vec<_> = self.peers().filter_map(|it| it.echo(version)).collect();
        // Read close together: others calculate with both.
        let (now_ns, sent_unix_ns) = (self.now_ns(), unix_ns());
        let header = MessageHeader {
            life: self.own.1,
            // A number of its own for each frame; it orders nothing else.
            sequence: self.stamps.fetch_add(1, Ordering::Relaxed) + 1,
            sent_unix_ns,
            echoes: heard.iter().map(|it| it.0).collect(),
        };
        let held_ns = heard.iter().map(|it| now_ns.saturating_sub(it.1)).collect();
        StampFrame { header, stamp_ns: now_ns, version, held_ns }.write()
    }

    pub(crate) fn malformed_stamps(&self) -> u64 {
        self.malformed_stamps.load(Ordering::Relaxed)
    }
}

/// The time by the wall clock, for logs. Nothing is judged by it.
pub(crate) fn unix_ns() -> u64 {
    // A clock before 1970 is wrong anyway.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}
