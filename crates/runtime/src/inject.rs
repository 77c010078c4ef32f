//! Faults on purpose, for `sinew drill`: what is to happen, to whom and when. The process of a
//! domain lets it happen.

use std::sync::atomic::Ordering;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use sinew_core::sys::Region;

/// A fault that is to happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injection {
    /// To whom.
    pub target: Target,
    /// When: the number of the cycle of the node's thread, for a link that of its writer's thread,
    /// for a service that of its heartbeat.
    pub at_cycle: u64,
    /// What.
    pub what: What,
}

/// To whom a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A node: index into [`Plan::nodes`](sinew_spec::plan::Plan::nodes).
    Node(usize),
    /// A link between threads or processes, at its writing end: index into
    /// [`Plan::links`](sinew_spec::plan::Plan::links).
    Link(usize),
}

/// What happens. The first eleven happen to nodes, the others to links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It panics instead of its update.
    Panic,
    /// It returns an error instead of its update.
    Error,
    /// It raises SIGSEGV with the default action. (A raised one: this crate has no wild pointer to
    /// follow. The kernel ends the process in the same way.)
    Segv,
    /// It sends SIGKILL to its own process, in the middle of a cycle.
    Kill,
    /// It sends SIGSTOP to its own process, in the middle of a cycle.
    Stop,
    /// It never comes back from its update; it sleeps.
    Hang,
    /// After its update there is a NaN in each output that holds numbers.
    NotFinite,
    /// It is busy for so many periods before its update.
    Late {
        /// Periods; of a service, tenths of a second: so often it beats as it waits.
        cycles: u32,
    },
    /// It refuses to start.
    FailStart,
    /// The writing end is closed; what is written afterwards goes nowhere, and the writer is told
    /// that it went well.
    PeerGone,
    /// So many messages are held back and lost; the writer is told that they went well.
    Stalled {
        /// How many.
        messages: u64,
    },
    /// Garbage stands in all words of the region, for ten cycles new one in each; nothing else is
    /// sent any more. (A byte stream has no region: it stalls.)
    Hostile,
}

impl Injection {
    /// Those that happen to `target`.
    pub(crate) fn of(injections: &[Injection], target: Target) -> Vec<Injection> {
        injections.iter().filter(|injection| injection.target == target).cloned().collect()
    }
}

/// Writes garbage into all words of a region.
pub(crate) fn spoil(region: &Region, random: &mut Rng) {
    for word in region.words() {
        // Relaxed: garbage is ordered after nothing.
        word.store(random.u32(..), Ordering::Relaxed);
    }
}
