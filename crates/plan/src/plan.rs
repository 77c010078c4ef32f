//! The plan: a checked graph, ordered, placed and sized. The runtime only carries it out.

mod host;
mod machine;
mod requirement;

pub use host::{Host, HostPlan, HostTls, RemoteCall, RemoteEnd, RemoteLink};
pub use machine::{
    LinkClass, LinkProfile, LinkTuning, SHORT_MAX, SMALL_MAX, SlotLayout, TargetMachine, TunedPair,
};
pub use requirement::{Bound, Isolation, RequiredOf, Requirement};

use std::collections::BTreeSet;

use crate::catalogue::{Direction, Kind, MessageType, ParameterValue, Port, RunsIn, Scalar};
use crate::{Item, LineStarts, Span};

/// A graph, ready to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the graph.
    pub name: String,
    /// Whether the services outlive the core, which can then be started again.
    pub hold: bool,
    /// Whether every cycle of the core publishes its messages although no node observes the run.
    pub observe: bool,
    /// Fault domains in the order in which they stop: first the realtime ones, those that command
    /// before those that obey; then the services, readers before writers. Services start in the
    /// reverse order, and the realtime domains run after that.
    pub domains: Vec<Domain>,
    /// All nodes, in the order of the spec.
    pub nodes: Vec<Node>,
    /// All links that carry messages.
    pub links: Vec<Link>,
    /// All links that carry packets, in the order of ports and, at one port, of the spec.
    pub flow_links: Vec<FlowLink>,
    /// The hosts that the graph runs on, and the links between them, which are not in the lists
    /// above.
    pub hosts: HostPlan,
    /// What the graph requires of itself, of its domains and of its links in a run.
    pub requirements: Vec<Requirement>,
    /// Where the plan differs from what the spec asked, and why; a sentence each.
    pub notes: Vec<String>,
    /// `None` in the plan of a good graph; only such a plan can run. The plan of a faulty graph has
    /// parts only: the nodes that can be examined alone, the links between them that carry
    /// messages, and in this list the other nodes.
    pub left_out: Option<Vec<LeftOut>>,
    /// The text that it was made from.
    pub text: SpecText,
}

/// A node of a faulty graph that is not in its plan, because the node itself is faulty.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Name.
    pub name: String,
    /// Its kind, if that is known.
    pub kind: Option<&'static Kind>,
    /// Like [`Node::domain`].
    pub domain: usize,
}

/// Takes the place of a domain's index in the parts of a faulty graph: the node's domain is not
/// known and could be any.
pub const NOWHERE: usize = usize::MAX;

/// The text that a plan was made from.
#[derive(Clone, Debug, Default)]
pub struct SpecText {
    /// The file, as the user named it.
    pub file: String,
    /// Its lines.
    pub lines: LineStarts,
}

impl SpecText {
    /// The line of a place in the spec, from 1; `None` if the place is on the command line.
    pub fn line(&self, span: Span) -> Option<usize> {
        (span.source == 0).then(|| self.lines.line(span.start as usize))
    }
}

/// A fault domain: one OS process.
#[derive(Clone, Debug)]
pub struct Domain {
    /// Name.
    pub name: String,
    /// The user that it runs as; `None`: the user who starts the graph.
    pub user: Option<String>,
    /// Place of `user` in the spec.
    pub user_span: Span,
    /// The host that it runs on, if the graph has hosts: index into [`HostPlan::all`].
    pub host: Option<usize>,
    /// What it promises, which also decides what runs it.
    pub role: Role,
}

/// What a domain promises.
#[derive(Clone, Debug)]
pub enum Role {
    /// Cycles, fail-stop: a fault in it stops the graph.
    Realtime(Realtime),
    /// It never disturbs other domains: it may block and fail, and is restarted by its policy.
    Service(ServiceDomain),
}

/// A realtime domain.
#[derive(Clone, Debug)]
pub struct Realtime {
    /// Nominal spacing of cycles. An input-released domain has the period of the domain that it
    /// follows.
    pub period_ns: u64,
    /// Latest end of a cycle, counted from its release.
    pub deadline_ns: u64,
    /// SCHED_FIFO priority, 1 to 99.
    pub priority: u8,
    /// What to do about overruns.
    pub overrun: Overrun,
    /// Its threads.
    pub threads: Vec<Thread>,
}

/// A service domain.
#[derive(Clone, Debug)]
pub struct ServiceDomain {
    /// Indices into [`Plan::nodes`]; each node has a thread of its own, except flow nodes.
    pub nodes: Vec<usize>,
    /// The threads that run its flows.
    pub flows: Flows,
    /// How often it is restarted.
    pub restart: Restart,
    /// How long it may take to create its nodes.
    pub start_deadline_ns: u64,
    /// A node without a heartbeat for this long counts as hung.
    pub heartbeat_ns: u64,
    /// How long it may take to stop before it is killed.
    pub stop_deadline_ns: u64,
    /// What it may use.
    pub limits: ServiceLimits,
    /// The CPUs on which all its threads and its child processes run: ascending, at least one.
    /// `None`: the CPUs that the core leaves free.
    pub cpus: Option<Vec<u32>>,
    /// The other operating system under which its nodes run, if there is one.
    pub guest: Option<Guest>,
}

/// Another operating system on the same chip, and the image that runs there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// The image's file, relative to the folder of the spec.
    pub image: String,
    /// Place of the image in the spec.
    pub image_span: Span,
    /// The board that it runs on.
    pub board: Board,
    /// Size of the memory that both systems see.
    pub memory_bytes: u64,
    /// Nominal spacing of its nodes' cycles.
    pub period_ns: u64,
}

/// The threads that run the flows of a service domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flows {
    /// Threads among which connections are divided; `None`: one for each CPU of the domain, either
    /// its own CPUs or those that the core leaves free.
    pub workers: Option<u32>,
    /// Threads for work that blocks.
    pub blocking: PoolSize,
}

/// How many threads a pool has. The pool adapts its size between two bounds; in a fixed one all
/// three numbers are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSize {
    /// At the start.
    pub start: u32,
    /// Never fewer.
    pub min: u32,
    /// Never more.
    pub max: u32,
}

impl PoolSize {
    /// Always this many threads.
    pub const fn fixed(threads: u32) -> PoolSize {
        PoolSize { start: threads, min: threads, max: threads }
    }

    /// Whether the size never changes.
    pub fn is_fixed(self) -> bool {
        self.min == self.max
    }
}

/// A restart policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// The ends after which it restarts.
    pub policy: RestartPolicy,
    /// Pause before the first restart; it doubles with each further restart within the window.
    pub backoff_ns: u64,
    /// Longest pause.
    pub backoff_max_ns: u64,
    /// This many restarts within the window are made; at the next end the service is given up.
    pub restarts_max: u32,
    /// Restarts older than this do not count.
    pub window_ns: u64,
}

/// What a service may use; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Memory of all its processes, bytes.
    pub memory_bytes: Option<u64>,
    /// Share of one CPU, in hundredths; 200 is two CPUs.
    pub cpu_percent: Option<u32>,
    /// Open descriptors of one process.
    pub descriptors: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// When overruns become a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// More than a number of overruns in a row are a fault.
    Stop {
        /// This many in a row are still accepted.
        consecutive_max: u32,
    },
    /// Overruns are only counted.
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
    /// A message on this link (index into [`Plan::links`]), or one period without a message.
    Input(usize),
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name, unique in the graph.
    pub name: String,
    /// Its kind.
    pub kind: &'static Kind,
    /// Index into [`Plan::domains`], or [`NOWHERE`].
    pub domain: usize,
    /// Index into that domain's threads; 0 in a service domain, where each node has its own thread.
    pub thread: usize,
    /// One value for each of the kind's parameters, in their order.
    pub values: Vec<ParameterValue>,
    /// Place of each value in the spec; for a default, the place of the node's name.
    pub spans: Vec<Span>,
    /// The entries of each value that is a list of texts, with their places; empty for other
    /// values.
    pub entries: Vec<Vec<Item>>,
    /// For each value of which some part comes from outside, the text of the spec, which may be
    /// shown.
    pub written: Vec<Option<String>>,
    /// One for each actuator port of the kind.
    pub actuators: Vec<Actuator>,
    /// The port for new values of its tunable parameters while it runs, all at once. No link
    /// reaches it. It has a field for each of these parameters and comes after the ports of the
    /// kind.
    pub tuning: Option<&'static Port>,
    /// Line of the spec on which the node begins, from 1.
    pub line: u32,
}

impl Node {
    /// The place of a parameter's value; for a default, the place of the node's name.
    ///
    /// # Panics
    /// If the kind has no such parameter.
    pub fn span_of(&self, parameter: &str) -> Span {
        self.spans[self.place_of(parameter)]
    }

    /// The place of byte `offset` of text `at` in a parameter that is a list of texts.
    ///
    /// # Panics
    /// Like [`Node::span_of`].
    pub fn span_in(&self, parameter: &str, at: usize, offset: usize) -> Span {
        let entry = self.entries[self.place_of(parameter)].get(at);
        entry.map_or(self.span_of(parameter), |entry| entry.span_at(offset))
    }

    fn tuning_at(&self, port: usize) -> Option<&'static Port> {
        self.tuning.filter(|_| port == self.kind.ports.len())
    }

    fn place_of(&self, parameter: &str) -> usize {
        let place = self.kind.parameters.iter().position(|row| row.name == parameter);
        place.unwrap_or_else(|| panic!("{} has no parameter '{parameter}'", self.kind.name))
    }
}

/// What an actuator port does when no commands arrive.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    /// Index into [`Plan::nodes`].
    pub node: usize,
    /// Index into the kind's ports; for `out[i]` the index of `out[]` plus `i`.
    pub port: usize,
}

/// A link between flow nodes: a call and its answer. It may cross to another service domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLink {
    /// The end that passes the packet on and gets the reply.
    pub from: End,
    /// The end that takes the packet and answers it.
    pub to: End,
}

/// The one number of a writer's message that crosses a link in place of the whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePart {
    /// As the spec writes it: `position_rad`, or `force_n[2]`.
    pub field: String,
    /// Bytes from the start of the message.
    pub offset: u32,
    /// Its type in that message. If the link's message holds another scalar, it is converted.
    pub scalar: Scalar,
}

/// A link, with everything decided.
#[derive(Clone, Debug)]
pub struct Link {
    /// The writer.
    pub from: End,
    /// The reader.
    pub to: End,
    /// What crosses.
    pub message: &'static MessageType,
    /// The part of the writer's message that crosses, if not all of it: only between nodes of the
    /// core.
    pub part: Option<MessagePart>,
    /// Whether both ends share a thread. The link is then a plain slot, and of the options below
    /// only `delay` has a meaning.
    pub fused: bool,
    /// How it crosses.
    pub transport: Transport,
    /// How both sides exclude each other.
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
    /// The tuning that a machine profile gives for it; `None`: the default.
    pub tuning: Option<LinkTuning>,
    /// Of a link into the core from the node that stands for other hosts: a message is dropped once
    /// the stamp in front of it is older than this. `None`: messages have no stamp.
    pub after_ns: Option<u64>,
}

impl Link {
    /// Bytes of the stamp in front of a message that has one: the time, ns of its monotonic clock,
    /// at which the receiving host sent the stamp to the writer.
    pub const STAMP_BYTES: u32 = 8;

    /// Bytes that cross for each message.
    pub fn crossing_bytes(&self) -> u32 {
        self.message.size + if self.after_ns.is_some() { Link::STAMP_BYTES } else { 0 }
    }
}

/// Declares an option: an enum whose words are the words of the spec.
#[macro_export]
macro_rules! option_enum {
    ($(#[$doc:meta])* $vis:vis $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$vdoc])* $variant,)* }
        impl $name {
            /// Every choice with its word in the spec.
            $vis const ALL: &'static [($name, &'static str)] = &[$(($name::$variant, $word),)*];
            /// The words of all choices.
            $vis const WORDS: &'static [&'static str] = &[$($word,)*];
            /// The word in the spec.
            $vis fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
    };
}

option_enum! {
    /// How a link crosses.
    pub Transport {
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
        /// Memory that a guest's operating system sees too.
        CarveOut = "carve_out",
    }
}

option_enum! {
    /// What a guest runs on.
    pub Board {
        /// A Cortex-A15 that QEMU emulates.
        Virt = "virt",
    }
}

/// What a guest's domain needs on a board, in addition to what its nodes need. With less it never
/// gets ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardNeeds {
    /// Private memory of the emulator, bytes.
    pub memory_bytes: u64,
    /// Threads and processes of the agent and the emulator.
    pub threads: u64,
    /// Descriptors of the agent, which opens more than the emulator; each node adds one.
    pub descriptors: u64,
}

impl Board {
    /// What a guest's domain needs on this board: measured with ever lower limits, plus some
    /// margin.
    pub fn needs(self) -> BoardNeeds {
        match self {
            // QEMU 7.2 gets ready from 272 MiB on where RLIMIT_DATA stands in for a cgroup: 64 MiB
            // are the guest's, 32 MiB hold translated code. A cgroup counts only pages that are
            // touched, some 90 MiB. Of the 4 threads 3 are QEMU's; 31 descriptors are enough for
            // one node.
            Board::Virt => BoardNeeds { memory_bytes: 288 << 20, threads: 4, descriptors: 32 },
        }
    }
}

option_enum! {
    /// How both sides of shared bytes exclude each other.
    pub Sync {
        /// Atomic loads and stores.
        LockFree = "lock_free",
        /// A mutex and a condition variable.
        Mutex = "mutex",
    }
}

option_enum! {
    /// Which messages the reader gets.
    pub Delivery {
        /// Every one, in order.
        Queue = "queue",
        /// The newest.
        Latest = "latest",
        /// Every one, as long as the reader is fast enough; the writer never waits.
        Broadcast = "broadcast",
    }
}

option_enum! {
    /// How a side waits.
    pub Wait {
        /// Polls.
        Spin = "spin",
        /// Polls, and gives up the CPU between polls.
        Yield = "yield",
        /// Sleeps in the kernel until woken.
        Park = "park",
        /// Polls for a while, then sleeps.
        SpinThenPark = "spin_then_park",
    }
}

option_enum! {
    /// The ends after which a service is restarted.
    pub RestartPolicy {
        /// After none.
        Never = "never",
        /// After faults, deaths and hangs.
        OnFailure = "on_failure",
        /// After all ends except the stop of the graph.
        Always = "always",
    }
}

option_enum! {
    /// What the writer does when a queue is full.
    pub Full {
        /// Faults.
        Fault = "fault",
        /// Waits until its deadline, then faults.
        Wait = "wait",
        /// Drops the new message and counts it.
        Drop = "drop",
    }
}

impl Domain {
    /// Its times and threads, if it is a realtime domain.
    pub fn realtime(&self) -> Option<&Realtime> {
        match &self.role {
            Role::Realtime(realtime) => Some(realtime),
            Role::Service(_) => None,
        }
    }

    /// Its policy and limits, if it is a service domain.
    pub fn service(&self) -> Option<&ServiceDomain> {
        match &self.role {
            Role::Realtime(_) => None,
            Role::Service(service) => Some(service),
        }
    }

    /// The other operating system that its nodes run under, if there is one.
    pub fn guest(&self) -> Option<&Guest> {
        self.service()?.guest.as_ref()
    }

    /// Its realtime threads; empty for a service domain.
    pub fn threads(&self) -> &[Thread] {
        self.realtime().map_or(&[], |realtime| &realtime.threads)
    }
}

impl Plan {
    /// Whether a node runs in a service domain.
    pub fn is_service(&self, node: usize) -> bool {
        self.domains[self.nodes[node].domain].service().is_some()
    }

    /// Whether a node runs under the operating system of a guest.
    pub fn is_guest(&self, node: usize) -> bool {
        self.domains[self.nodes[node].domain].guest().is_some()
    }

    /// Whether a node takes part in flows.
    pub fn is_flow(&self, node: usize) -> bool {
        self.nodes[node].kind.runs_in.is_flow()
    }

    /// Whether a node is shown the whole run.
    pub fn observes(&self, node: usize) -> bool {
        self.nodes[node].kind.runs_in == RunsIn::Observer
    }

    /// Removes from the domains the nodes that do nothing in a run: tests, and flow nodes that only
    /// tests reach. Nodes with a link to the core stay, because that link exists from the start.
    pub fn leave_out_tests(&mut self) {
        let of_test = |node: usize| self.nodes[node].kind.runs_in == RunsIn::Test;
        let is_input = |port: &Port| port.is_flow() && port.direction == Direction::In;
        let takes = |node: usize| self.nodes[node].kind.ports.iter().any(is_input);
        let mut runs: Vec<bool> = (0..self.nodes.len())
            .map(|node| !self.is_flow(node) || !(takes(node) || of_test(node)))
            .collect();
        for link in &self.links {
            (runs[link.from.node], runs[link.to.node]) = (true, true);
        }
        let mut reached: Vec<usize> = (0..runs.len()).filter(|&node| runs[node]).collect();
        while let Some(node) = reached.pop() {
            for link in self.flow_links_of(node) {
                if !std::mem::replace(&mut runs[link.to.node], true) {
                    reached.push(link.to.node);
                }
            }
        }
        for domain in &mut self.domains {
            if let Role::Service(service) = &mut domain.role {
                service.nodes.retain(|&node| runs[node]);
            }
        }
    }

    /// The flow links that leave a node, in the order of its ports.
    pub fn flow_links_of(&self, node: usize) -> &[FlowLink] {
        let first = self.flow_links.partition_point(|link| link.from.node < node);
        let rest = &self.flow_links[first..];
        &rest[..rest.partition_point(|link| link.from.node == node)]
    }

    /// Whether a node or `observe` asks to see the run: then every cycle of the core publishes its
    /// messages.
    pub fn is_observed(&self) -> bool {
        self.observe || (0..self.nodes.len()).any(|node| self.observes(node))
    }

    /// Whether a link joins the core and a service.
    pub fn leaves_core(&self, link: &Link) -> bool {
        self.is_service(link.from.node) != self.is_service(link.to.node)
    }

    /// Whether the reader's thread awaits a link at the end of its cycle, as feedback. The clock
    /// must release the reader's thread, and an input the writer's thread; the link must bring the
    /// result one cycle later. A writer with a clock of its own does not answer a particular cycle.
    pub fn is_feedback(&self, link: &Link) -> bool {
        let release = |node: usize| {
            let Node { domain, thread, .. } = self.nodes[node];
            self.domains[domain].threads().get(thread).map(|thread| thread.release)
        };
        let by_input = matches!(release(link.from.node), Some(Release::Input(_)));
        link.delay && !link.fused && by_input && release(link.to.node) == Some(Release::Timer)
    }

    /// The domain of the guest whose memory holds a link, if the link leads to or from a guest.
    pub fn carve_out(&self, link: &Link) -> Option<usize> {
        let end = [link.from.node, link.to.node].into_iter().find(|&node| self.is_guest(node));
        end.map(|node| self.nodes[node].domain)
    }

    /// Pairs of domains of which the first sends packets to nodes of the second.
    pub fn doors(&self) -> BTreeSet<(usize, usize)> {
        let domain = |end: End| self.nodes[end.node].domain;
        let pairs = self.flow_links.iter().map(|link| (domain(link.from), domain(link.to)));
        pairs.filter(|(from, to)| from != to).collect()
    }

    /// The name of an end of a link: `node.port`.
    pub fn end_name(&self, end: End) -> String {
        let node = &self.nodes[end.node];
        match node.tuning_at(end.port) {
            Some(port) => format!("{}.{}", node.name, port.name),
            None => format!("{}.{}", node.name, node.kind.port_name(end.port)),
        }
    }

    /// The port at an end of a link; it may be the port where a node is tuned.
    pub fn port(&self, end: End) -> &'static Port {
        let node = &self.nodes[end.node];
        node.tuning_at(end.port).unwrap_or_else(|| node.kind.port(end.port))
    }

    /// The end and port where a node is tuned while it runs, if it can be tuned.
    pub fn tuning(&self, node: usize) -> Option<(End, &'static Port)> {
        let row = &self.nodes[node];
        Some((End { node, port: row.kind.ports.len() }, row.tuning?))
    }
}
