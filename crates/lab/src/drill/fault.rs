//! The faults that a drill injects, and the sorts of parts that can have them.

use crate::words::words;

words! {
    /// The fault that is injected.
    pub enum DrilledFault {
        /// The node panics.
        Panic = "panic",
        /// It returns an error.
        Error = "error",
        /// It raises SIGSEGV, with the default action.
        Segv = "segv",
        /// For a guest's node: its processor meets an undefined instruction.
        Undefined = "undefined",
        /// SIGKILL: by the node, in the middle of its cycle, or from outside.
        Kill = "kill",
        /// SIGSTOP, by the node in the middle of its cycle, or from outside.
        Stop = "stop",
        /// SIGSTOP from outside, and SIGCONT 30 ms later.
        Freeze30 = "freeze_30ms",
        /// The same for 50 ms.
        Freeze50 = "freeze_50ms",
        /// The same for 80 ms.
        Freeze80 = "freeze_80ms",
        /// The same for a second.
        Freeze1000 = "freeze_1s",
        /// The node never returns.
        Hang = "hang",
        /// It writes numbers that are not finite.
        NotFinite = "not_finite",
        /// It is late by a delay that the graph bears.
        LateBorne = "late_borne",
        /// It is late by a longer delay.
        Late = "late",
        /// It does not start.
        FailStart = "fail_start",
        /// The writer of a link has closed it, but goes on running.
        PeerGone = "peer_gone",
        /// The writer of a link sends nothing any more.
        Stalled = "stalled",
        /// Requests to a service over HTTP, as fast as they are answered.
        Flood = "flood",
        /// No file of the process can grow: each write fails as on a full disk.
        FullDisk = "full_disk",
        /// The link's region contains garbage.
        Hostile = "hostile",
        /// Nothing passes between two hosts for 100 ms.
        Cut100 = "cut_100ms",
        /// The same for 2 s.
        Cut2000 = "cut_2s",
        /// The same for ever.
        Cut = "cut",
        /// Messages of another host come late, and some of them later.
        Slow = "slow",
        /// Another host is killed, with all its domains, and started again.
        HostKilled = "host_killed",
        /// Somebody else sends messages of another host again.
        SentAgain = "sent_again",
        /// For 2 s nothing passes in one direction between two hosts, then in the other.
        Half = "half",
        /// A second program with the name of another host runs beside the first.
        Twin = "twin",
        /// Somebody else sends messages under keys that are not theirs.
        Misplaced = "misplaced",
        /// Another host runs another version of the graph for a while.
        Skew = "skew",
        /// Somebody without a part in the graph connects, and sends garbage.
        Stranger = "stranger",
    }
}

/// What can happen inside a node.
pub(super) const OF_NODES: [DrilledFault; 10] = [
    DrilledFault::Panic,
    DrilledFault::Error,
    DrilledFault::Segv,
    DrilledFault::Kill,
    DrilledFault::Stop,
    DrilledFault::Hang,
    DrilledFault::NotFinite,
    DrilledFault::LateBorne,
    DrilledFault::Late,
    DrilledFault::FailStart,
];
/// What can also happen inside a node of a guest.
pub(super) const OF_GUESTS: [DrilledFault; 2] = [DrilledFault::Undefined, DrilledFault::Hostile];
/// What can happen to the process of a domain from outside.
pub(super) const OF_DOMAINS: [DrilledFault; 6] = [
    DrilledFault::Kill,
    DrilledFault::Stop,
    DrilledFault::Freeze30,
    DrilledFault::Freeze50,
    DrilledFault::Freeze80,
    DrilledFault::Freeze1000,
];
/// What can happen to a service from outside and lasts for a while.
pub(super) const OF_SERVICES: [DrilledFault; 2] = [DrilledFault::Flood, DrilledFault::FullDisk];
/// What can happen to a link that crosses.
pub(super) const OF_LINKS: [DrilledFault; 3] =
    [DrilledFault::PeerGone, DrilledFault::Stalled, DrilledFault::Hostile];
/// Words that stand for several faults when drills are chosen.
pub(super) const FAMILIES: [(&str, &[DrilledFault]); 2] = [
    ("cut", &[DrilledFault::Cut100, DrilledFault::Cut2000, DrilledFault::Cut]),
    (
        "freeze",
        &[
            DrilledFault::Freeze30,
            DrilledFault::Freeze50,
            DrilledFault::Freeze80,
            DrilledFault::Freeze1000,
        ],
    ),
];

impl DrilledFault {
    /// Whether the struck part goes on by itself.
    pub(super) fn comes_back(self) -> bool {
        self == DrilledFault::Late || self.frozen_ns().is_some()
    }

    /// Whether the fault hits a service from outside and lasts for a while.
    pub(super) fn lasts(self) -> bool {
        OF_SERVICES.contains(&self)
    }

    /// For how long a process is frozen, ns.
    pub(super) fn frozen_ns(self) -> Option<u64> {
        let ms = match self {
            DrilledFault::Freeze30 => 30,
            DrilledFault::Freeze50 => 50,
            DrilledFault::Freeze80 => 80,
            DrilledFault::Freeze1000 => 1000,
            _ => return None,
        };
        Some(ms * 1_000_000)
    }
}
