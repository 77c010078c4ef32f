//! The plan: a checked graph, ordered, placed and sized. The runtime only carries it out.

use crate::catalogue::{Kind, MessageType, Port, Value};

/// What the compiler must know of the machine it plans for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that this process may use, ascending; never empty.
    pub cpus: Vec<u32>,
}

/// A graph, ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the graph.
    pub name: String,
    /// Fault domains in the order in which they stop: who commands before who obeys.
    pub domains: Vec<Domain>,
    /// All nodes, in the order of the spec.
    pub nodes: Vec<Node>,
    /// All links.
    pub links: Vec<Link>,
    /// What the plan decided otherwise than the spec asked, and why; a sentence each.
    pub notes: Vec<String>,
}

/// A fault domain: one OS process.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Name.
    pub name: String,
    /// Nominal spacing of cycles. Of an input-released domain: that of the domain it follows.
    pub period_ns: u64,
    /// Latest end of a cycle after its release.
    pub deadline_ns: u64,
    /// SCHED_FIFO priority, 1 to 99.
    pub priority: u8,
    /// What to do about overruns.
    pub overrun: Overrun,
    /// Its threads.
    pub threads: Vec<Thread>,
}

/// When overruns become a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// More than so many in a row are a fault.
    Stop {
        /// So many are still borne.
        consecutive_max: u32,
    },
    /// They are only counted.
    Count,
}

/// An executor thread.
#[derive(Clone, Debug)]
pub struct Thread {
    /// CPU to run on; `None` leaves it to the kernel (fewer CPUs than realtime threads).
    pub cpu: Option<u32>,
    /// What starts a cycle.
    pub release: Release,
    /// Indices into [`Plan::nodes`], in the order in which they are updated.
    pub nodes: Vec<usize>,
}

/// What starts a cycle of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The monotonic clock, every period of the domain.
    Timer,
    /// A message on this link (index into [`Plan::links`]), or one period without any.
    Input(usize),
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, unique in the graph.
    pub name: String,
    /// Its kind.
    pub kind: &'static Kind,
    /// Index into [`Plan::domains`].
    pub domain: usize,
    /// Index into that domain's threads.
    pub thread: usize,
    /// One value for each of the kind's parameters, in their order.
    pub values: Vec<Value>,
    /// One for each actuator port of the kind.
    pub actuators: Vec<Actuator>,
    /// Line of the spec on which the node begins, from 1.
    pub line: u32,
}

/// What an actuator port does when commands stay away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actuator {
    /// Index into the kind's ports.
    pub port: usize,
    /// Index into the port's safe values.
    pub safe: usize,
    /// Cycles without a fresh command before the safe value takes its place.
    pub after: u32,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Index into [`Plan::nodes`].
    pub node: usize,
    /// Index into the kind's ports.
    pub port: usize,
}

/// A link, with everything decided.
#[derive(Clone, Debug)]
pub struct Link {
    /// Who writes.
    pub from: End,
    /// Who reads.
    pub to: End,
    /// What crosses.
    pub message: &'static MessageType,
    /// Whether both ends share a thread: then the link is a plain slot, and of the options below
    /// only `delay` has a meaning.
    pub fused: bool,
    /// How it crosses.
    pub transport: Transport,
    /// How both sides keep out of each other's way.
    pub sync: Sync,
    /// Which messages the reader gets.
    pub delivery: Delivery,
    /// How a side waits.
    pub wait: Wait,
    /// Messages the link can hold; a power of two.
    pub capacity: u32,
    /// What the writer does when a queue is full.
    pub full: Full,
    /// Whether the reader sees the message one cycle later; this is what closes a loop.
    pub delay: bool,
}

/// Declares an option of a link: an enum whose words are those of the spec.
macro_rules! option_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// Every choice with its word in the spec.
            pub const ALL: &'static [($name, &'static str)] = &[$(($name::$variant, $word),)*];
            /// The word in the spec.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
    };
}

option_enum! {
    /// How a link crosses.
    Transport {
        /// Memory of one process.
        InProcess = "in_process",
        /// Memory that two processes map.
        SharedMemory = "shared_memory",
        /// A pipe.
        Pipe = "pipe",
        /// A Unix stream socket.
        Unix = "unix",
        /// A TCP connection over loopback.
        Tcp = "tcp",
    }
}

option_enum! {
    /// How both sides of shared bytes keep out of each other's way.
    Sync {
        /// Atomic loads and stores.
        LockFree = "lock_free",
        /// A mutex and a condition variable.
        Mutex = "mutex",
    }
}

option_enum! {
    /// Which messages the reader gets.
    Delivery {
        /// Every one, in order.
        Queue = "queue",
        /// The newest.
        Latest = "latest",
        /// Every one that it is fast enough for; the writer never waits.
        Broadcast = "broadcast",
    }
}

option_enum! {
    /// How a side waits.
    Wait {
        /// Polls.
        Spin = "spin",
        /// Polls and gives the CPU away in between.
        Yield = "yield",
        /// Sleeps in the kernel until woken.
        Park = "park",
        /// Polls a while, then sleeps.
        SpinThenPark = "spin_then_park",
    }
}

option_enum! {
    /// What the writer does when a queue is full.
    Full {
        /// Faults.
        Fault = "fault",
        /// Waits until its deadline, then faults.
        Wait = "wait",
        /// Drops the new message and counts it.
        Drop = "drop",
    }
}

impl Plan {
    /// The port at an end of a link.
    pub fn port(&self, end: End) -> &'static Port {
        &self.nodes[end.node].kind.ports[end.port]
    }
}
