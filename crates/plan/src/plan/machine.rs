//! What the compiler knows of the machine that it plans for: its CPUs and, if it was measured, how
//! links between them are shaped best.

use std::fmt;

pub use sinew_link::{SHORT_MAX, SMALL_MAX};

use super::{Link, Plan, Sync, Transport};
use crate::option_enum;

option_enum! {
    /// Which links are shaped alike: what is best for one class may be bad for another.
    pub LinkClass {
        /// [`SHORT_MAX`] messages at most, of [`SMALL_MAX`] bytes at most.
        Small = "small",
        /// [`SHORT_MAX`] longer messages at most.
        Short = "short",
        /// More messages, of any size.
        Long = "long",
    }
}

impl LinkClass {
    /// That of links that hold `capacity` messages of so many bytes.
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
    /// The CPUs that this process may use, ascending; never empty.
    pub cpus: Vec<u32>,
    /// How links between them are shaped.
    pub profile: LinkProfile,
}

impl TargetMachine {
    /// A machine of which only the CPUs are known; they are ascending.
    pub fn of(cpus: Vec<u32>) -> TargetMachine {
        TargetMachine { cpus, profile: LinkProfile::None }
    }
}

/// What a machine profile says of links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LinkProfile {
    /// There is none, or none is wanted.
    #[default]
    None,
    /// There is one that must not be used; a sentence that says why and what to do.
    Refused(String),
    /// What was measured.
    Measured {
        /// The file, as it is told to users.
        file: String,
        /// When, as it is told to users.
        time: String,
        /// Each pair of CPUs once.
        pairs: Vec<TunedPair>,
    },
}

/// What suits the links between two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TunedPair {
    /// The CPUs, ascending.
    pub cpus: [u32; 2],
    /// Whether the host moved the CPUs near to each other or far apart while this was measured.
    pub distance_changed: bool,
    /// What suits each class, in the order of [`LinkClass::ALL`]; `None`: the default.
    pub suited: [Option<LinkTuning>; LinkClass::ALL.len()],
}

impl TunedPair {
    /// What suits links of this class; `None`: the default.
    pub fn suits(&self, class: LinkClass) -> Option<LinkTuning> {
        self.suited[class as usize]
    }
}

option_enum! {
    /// How the slots of a queue say that they are full.
    pub SlotLayout {
        /// The writer's position says it, on a line of its own.
        Index = "index",
        /// A sequence beside the payload says it.
        Sequence = "sequence",
    }
}

/// The shape of a link and how its sides poll and treat cache lines: for speed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkTuning {
    /// Of a queue; the other deliveries have one layout only.
    pub layout: SlotLayout,
    /// So many polls at the start of each wait have one PAUSE between them.
    pub eager_polls: u32,
    /// Between two polls after those, ns; 0 is one PAUSE.
    pub gap_ns: u32,
    /// A writer fetches lines some messages before it writes them; in a short link only those of
    /// messages that are longer than a line.
    pub fetches_ahead: bool,
    /// A writer has its core give up the lines of a message, so that the reader's gets them sooner.
    pub hands_over: bool,
}

impl LinkTuning {
    /// Its polls, in words.
    pub fn polls(&self) -> String {
        match (self.eager_polls, self.gap_ns) {
            (_, 0) => "a PAUSE".into(),
            (0, gap) => format!("{gap} ns"),
            (eager, gap) => format!("{eager} PAUSEs, then {gap} ns"),
        }
    }

    /// All but the layout, in words: what is of use to a link of any delivery.
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

    /// The CPUs of both threads of a link that a machine profile can shape, ascending: one in
    /// memory without a lock, between threads of the core that each have a CPU of their own.
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
