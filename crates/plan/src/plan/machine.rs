//! What the compiler knows of the machine that it plans for: its CPUs and, if it was measured,
//! which shape of link suits them best.

use std::fmt;

pub use sinew_link::{SHORT_MAX, SMALL_MAX};

use super::{Link, Plan, Sync, Transport};
use crate::option_enum;

option_enum! {
    /// The classes of links that are shaped alike: what is best for one may be bad for another.
    pub LinkClass {
        /// At most [`SHORT_MAX`] messages, of at most [`SMALL_MAX`] bytes each.
        Small = "small",
        /// At most [`SHORT_MAX`] messages, which are longer.
        Short = "short",
        /// More messages, of any size.
        Long = "long",
    }
}

impl LinkClass {
    /// The class of links that hold `capacity` messages of `message_size` bytes.
    pub fn of(message_size: u32, capacity: u32) -> LinkClass {
        match (capacity <= SHORT_MAX, message_size <= SMALL_MAX) {
            (true, true) => LinkClass::Small,
            (true, false) => LinkClass::Short,
            (false, _) => LinkClass::Long,
        }
    }
}

/// What the compiler must know of the machine it plans for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetMachine {
    /// The CPUs that this process may use, ascending; at least one.
    pub cpus: Vec<u32>,
    /// How links between them are shaped.
    pub profile: LinkProfile,
}

impl TargetMachine {
    /// A machine of which only the CPUs are known; `cpus` must be ascending.
    pub fn of(cpus: Vec<u32>) -> TargetMachine {
        TargetMachine { cpus, profile: LinkProfile::None }
    }
}

/// What a machine profile says of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkProfile {
    /// There is no profile, or none is wanted.
    #[default]
    None,
    /// There is a profile that must not be used; a sentence that says why and what to do.
    Refused(String),
    /// What was measured.
    Measured {
        /// The file, as it is shown to users.
        file: String,
        /// When it was measured, as it is shown to users.
        time: String,
        /// Each pair of CPUs, once.
        pairs: Vec<TunedPair>,
    },
}

/// What suits the links between two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunedPair {
    /// The CPUs, ascending.
    pub cpus: [u32; 2],
    /// Whether the hypervisor moved the CPUs nearer to each other or further apart during the
    /// measurement.
    pub distance_changed: bool,
    /// The tuning for each class, in the order of [`LinkClass::ALL`]; `None`: the default.
    pub suited: [Option<LinkTuning>; LinkClass::ALL.len()],
}

impl TunedPair {
    /// The tuning for links of this class; `None`: the default.
    pub fn suits(&self, class: LinkClass) -> Option<LinkTuning> {
        self.suited[class as usize]
    }
}

option_enum! {
    /// How the slots of a queue say that they are full.
    pub SlotLayout {
        /// The writer's position says it, in a cache line of its own.
        Index = "index",
        /// A sequence number beside the payload says it.
        Sequence = "sequence",
    }
}

/// The shape of a link, and how its sides poll and treat cache lines. It affects speed only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkTuning {
    /// The layout of a queue; the other deliveries have one layout only.
    pub layout: SlotLayout,
    /// Number of polls at the start of each wait that have one PAUSE between them.
    pub eager_polls: u32,
    /// Time between two polls after those, ns; 0 means one PAUSE.
    pub gap_ns: u32,
    /// A writer prefetches cache lines some messages before it writes them; in a short link only
    /// for messages that are longer than a cache line.
    pub fetches_ahead: bool,
    /// A writer tells its core to give up the lines of a message, so that the reader's core gets
    /// them sooner.
    pub hands_over: bool,
}

impl LinkTuning {
    /// How it polls, in words.
    pub fn polls(&self) -> String {
        match (self.eager_polls, self.gap_ns) {
            (_, 0) => "a PAUSE".into(),
            (0, gap) => format!("{gap} ns"),
            (eager, gap) => format!("{eager} PAUSEs, then {gap} ns"),
        }
    }

    /// All but the layout, in words: this much applies to a link of any delivery.
    pub fn manner(&self) -> String {
        let ahead = if self.fetches_ahead { "fetches ahead" } else { "does not fetch ahead" };
        let over = if self.hands_over { "hands over" } else { "does not hand over" };
        format!("between polls {}, {ahead}, {over}", self.polls())
    }
}

impl fmt::Display for LinkTuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} layout, {}", self.layout.word(), self.manner())
    }
}

impl Plan {
    /// The class of a link.
    pub fn class(&self, link: &Link) -> LinkClass {
        let message = &self.nodes[link.from.node].kind.ports[link.from.port].message;
        LinkClass::of(message.size, link.capacity)
    }

    /// The CPUs of the writer's and the reader's thread, ascending, if a machine profile can shape
    /// the link: a lock-free link in memory, between threads of the core with a CPU each.
    pub fn shaped_between(&self, link: &Link) -> Option<[u32; 2]> {
        let memory = matches!(link.transport, Transport::InProcess | Transport::SharedMemory);
        if link.fused || !memory || link.sync != Sync::LockFree {
            return None;
        }
        let cpu = |node: usize| {
            let node = &self.nodes[node];
            self.domains[node.domain].threads().get(node.thread)?.cpu
        };
        let (from, to) = (cpu(link.from.node)?, cpu(link.to.node)?);
        (from != to).then_some([from.min(to), from.max(to)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuning_is_told_in_words() {
        let tuning = LinkTuning {
            layout: SlotLayout::Index,
            eager_polls: 4,
            gap_ns: 50,
            fetches_ahead: true,
            hands_over: false,
        };
        let expected = "index layout, between polls 4 PAUSEs, then 50 ns, fetches ahead, does not \
                        hand over";
        assert_eq!(tuning.to_string(), expected);
        let other = LinkTuning { eager_polls: 0, ..tuning };
        assert!(other.to_string().starts_with("index layout, between polls 50 ns, "));
        let other = LinkTuning { gap_ns: 0, layout: SlotLayout::Sequence, ..tuning };
        assert!(other.to_string().starts_with("sequence layout, between polls a PAUSE, "));
    }
}
