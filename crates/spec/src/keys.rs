//! Every key of a spec: its shape, limits, default and meaning. The reader, the errors and the JSON
//! schema all use these tables, so they cannot disagree.

mod host;

use self::Shape::{
    Fields, Integers, ListOf, MapOf, MapOfLists, Name, Names, Percent, PortName, PowerOfTwo,
};
pub use self::host::HOSTS_MAX;
pub(crate) use self::host::{AFTER_NS, HOST};
use sinew_plan::catalogue::ParameterType;
use sinew_plan::option_enum;
use sinew_plan::plan::{Board, Delivery, Full, Isolation, RestartPolicy, Sync, Transport, Wait};

/// Shortest period, ns: with a shorter one the release of a cycle costs as much as the cycle.
pub const PERIOD_NS_MIN: u64 = 10_000;
/// Longest period, ns: a stop must be noticed within this time.
pub const PERIOD_NS_MAX: u64 = 10_000_000_000;
/// Most messages in a link.
pub const CAPACITY_MAX: u32 = 65_536;
/// Most nodes in a graph.
pub const NODES_MAX: usize = 100_000;
/// Most nodes on one realtime thread: a cycle's record names the failed one in 16 bits.
pub const THREAD_NODES_MAX: usize = 65_534;
/// Longest name of a graph, domain or node, in bytes.
pub const NAME_LEN_MAX: usize = 64;
/// Most messages that a graph declares.
pub const MESSAGES_MAX: usize = 256;
/// Most fields of a declared message.
pub const FIELDS_MAX: usize = 256;
/// Most words of an enum in a declared message, because its value is one byte.
pub const LABELS_MAX: usize = 256;
/// Longest array in a declared message.
pub const ARRAY_MAX: u32 = 65_536;
/// Most cycles that an actuator may go on without a fresh command.
pub const AFTER_MAX: i64 = 1_000_000;
/// Highest CPU number that a spec may write; the machine's own CPUs are checked separately.
pub const CPU_MAX: i64 = 65_535;

/// Name of a graph if neither it nor its file has one.
pub(crate) const GRAPH_NAME: &str = "graph";
/// Name of the domain of a bare list of nodes.
pub const SERVICES: &str = "services";
/// Least memory of a service, bytes: with less no process of this program gets ready.
pub const MEMORY_BYTES_MIN: u64 = 8 << 20;
/// Least limit of open descriptors: a process opens this many before its first link.
pub const DESCRIPTORS_MIN: i64 = 16;
/// Least limit of processes and threads: the node's thread, and the one that watches it.
pub const PROCESSES_MIN: i64 = 2;

/// The form of a key's value.
pub(crate) enum Shape {
    /// Letters, digits, `_` and `-`.
    Name,
    /// A name of a port, possibly of one element: `in[0]`.
    PortName,
    /// A single value of the same type as a parameter of a kind.
    Value(ParameterType),
    /// Hundredths with a `%`, within limits (both included).
    Percent { min: u32, max: u32 },
    /// A power of two, up to a limit.
    PowerOfTwo { max: u32 },
    /// A list of names.
    Names,
    /// A list of whole numbers within limits (both included): at least one, and none twice.
    Integers { min: i64, max: i64 },
    /// A whole number within limits (both included), the word `auto`, or a mapping with these keys,
    /// which means `auto` with these bounds.
    AutoOr { min: i64, max: i64, table: &'static Table },
    /// A mapping with these keys.
    Fields(&'static Table),
    /// A list of such mappings.
    ListOf(&'static Table),
    /// A mapping from names to such mappings.
    MapOf(&'static Table),
    /// A mapping from names of messages to mappings from fields to their types.
    Messages,
    /// A mapping from names to lists of such mappings.
    MapOfLists(&'static Table),
}

/// A key.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// Whether the spec must give it.
    pub(crate) required: bool,
    /// The value if it is not given, as the spec would write it.
    pub(crate) default: Option<&'static str>,
    pub(crate) doc: &'static str,
}

/// The keys of a mapping.
pub(crate) struct Table {
    /// The name of the mapping in errors: `unknown key 'x' in a domain`.
    pub(crate) what: &'static str,
    pub(crate) keys: &'static [Key],
}

impl Table {
    /// The key whose value is a mapping with this key: probably the user forgot that level.
    pub(crate) fn inner_of(&self, name: &str) -> Option<&'static Key> {
        let holds = |key: &&'static Key| match key.shape {
            Fields(inner) | Shape::AutoOr { table: inner, .. } => {
                inner.keys.iter().any(|inner| inner.name == name)
            }
            _ => false,
        };
        self.keys.iter().find(holds)
    }
}

const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key { name, shape, required: true, default: None, doc }
}

const fn optional(name: &'static str, shape: Shape, doc: &'static str) -> Key {
    Key { name, shape, required: false, default: None, doc }
}

const fn default(
    name: &'static str,
    shape: Shape,
    default: &'static str,
    doc: &'static str,
) -> Key {
    Key { name, shape, required: false, default: Some(default), doc }
}

/// One of a few words.
const fn words(words: &'static [&'static str]) -> Shape {
    Shape::Value(ParameterType::Choice(words))
}

/// A whole number in limits (both included).
const fn integer(min: i64, max: i64) -> Shape {
    Shape::Value(ParameterType::Integer { min, max })
}

/// A time with its unit, in limits (both included).
const fn duration(min_ns: u64, max_ns: u64) -> Shape {
    Shape::Value(ParameterType::Duration { min_ns, max_ns })
}

/// Most restarts within a window.
pub(crate) const RESTARTS_MAX: u32 = 1_000_000;
/// Longest pause and longest window of restarts, ns.
pub(crate) const PAUSE_NS_MAX: u64 = 3_600_000_000_000;
const PAUSE: Shape = duration(1_000_000, PAUSE_NS_MAX);
/// How long a service may take to start or to stop.
const PATIENCE: Shape = duration(100_000_000, 600_000_000_000);
/// How long a service may be silent. A sleeping one sends a heartbeat every 100 ms; with a limit of
/// less than a few of those, a busy machine alone would look like a hang.
const SILENCE: Shape = duration(500_000_000, 600_000_000_000);

option_enum! {
    /// What starts the cycles of a domain or thread, in the words of the spec.
    pub(crate) Trigger {
        Timer = "timer",
        Input = "input",
    }
}

option_enum! {
    /// What happens on overruns, in the words of the spec.
    pub(crate) Policy {
        Stop = "stop",
        Count = "count",
    }
}

/// The whole spec.
pub(crate) static GRAPH: Table = Table {
    what: "the graph",
    keys: &[
        optional("name", Name, "Name of the graph. Default: that of its file, as `ping`."),
        default(
            "hold",
            Shape::Value(ParameterType::Bool),
            "false",
            "After the core has stopped, for whatever reason, the services go on, and 'sinew \
             reset' starts the core again. Without it, the run ends with the core.",
        ),
        optional(
            "requires",
            Fields(&REQUIRES_CYCLES),
            "What the graph requires of the whole core.",
        ),
        optional(
            "messages",
            Shape::Messages,
            "Messages of this graph, each a mapping from fields to their types: f64, f32, bool, \
             u8 to u64, i8 to i64, an array such as f64[6], or the list of an enum's words, which \
             stand for 0, 1, 2 and so on. The unit stands last in the name of a field.",
        ),
        optional("hosts", MapOf(&HOST), "Machines that the graph runs on. Default: one."),
        optional("host", Name, "Host of domains that name none. Default: the only one."),
        required("domains", MapOf(&DOMAIN), "The fault domains: one OS process each."),
        optional("domain", Name, "Domain of flow nodes that name none. Default: the only one."),
        required("nodes", ListOf(&NODE), "The nodes, with the links they write to."),
    ],
};

/// A domain. Without `realtime` it is a service.
pub(crate) static DOMAIN: Table = Table {
    what: "a domain",
    keys: &[
        optional(
            "realtime",
            Fields(&REALTIME),
            "Runs its nodes in cycles, fail-stop. Without it the domain is a service: its nodes \
             may block and fail, and it is restarted.",
        ),
        optional(
            "threads",
            ListOf(&THREAD),
            "Threads of a realtime domain. Default: all nodes of the domain fused on one thread.",
        ),
        optional("restart", Fields(&RESTART), "When and how often a service comes back."),
        default(
            "start_deadline",
            PATIENCE,
            "10s",
            "How long a service may take until it is ready.",
        ),
        default(
            "heartbeat",
            SILENCE,
            "2s",
            "A node of the service without a heartbeat for this long counts as hanging: the \
             service is killed, and restarted by its policy.",
        ),
        default(
            "stop_deadline",
            PATIENCE,
            "3s",
            "How long a service may take to stop before it is killed.",
        ),
        optional("limits", Fields(&LIMITS), "What a service may use. Default: no limit."),
        optional(
            "cpus",
            Integers { min: 0, max: CPU_MAX },
            "CPUs for the service and all processes that it starts. Default: the CPUs that the \
             core does not use.",
        ),
        optional("flows", Fields(&FLOWS), "Threads for the flows of a service."),
        optional("requires", Fields(&REQUIRES_CYCLES), "What the graph requires of the domain."),
        optional(
            "user",
            Name,
            "User that the domain runs as. Default: the user that starts the graph.",
        ),
        optional("host", Name, "Host that it runs on. Default: that of the graph."),
        optional(
            "guest",
            Fields(&GUEST),
            "Runs its nodes under another operating system on the same chip. The domain is a \
             service to the others: it may fail, and is restarted; but its nodes may command \
             actuators.",
        ),
    ],
};

/// One step of a guest's clock.
pub(crate) const GUEST_STEP_NS: u64 = 1_000_000;

/// Limits of the memory that a guest and Linux share.
const SHARED_MEMORY: Shape =
    Shape::Value(ParameterType::Size { min_bytes: 128 << 10, max_bytes: 256 << 20 });

pub(crate) static GUEST: Table = Table {
    what: "a guest",
    keys: &[
        required(
            "image",
            Shape::Value(ParameterType::Path),
            "The ELF file that runs there, relative to the folder of the spec. It says which kinds \
             of nodes it has.",
        ),
        default("board", words(Board::WORDS), "virt", "The board that it runs on."),
        default("memory", SHARED_MEMORY, "16MiB", "Memory that both systems see; a power of two."),
        default(
            "period",
            duration(GUEST_STEP_NS, 1_000 * GUEST_STEP_NS),
            "1ms",
            "Nominal spacing of the cycles of its nodes; whole milliseconds.",
        ),
    ],
};

/// Keys of a domain that only a realtime domain has.
pub(crate) const OF_REALTIME: &[&str] = &["threads"];
/// Keys of a domain that only a service has.
pub(crate) const OF_SERVICE: &[&str] = &[
    "restart",
    "start_deadline",
    "heartbeat",
    "stop_deadline",
    "limits",
    "cpus",
    "flows",
    "guest",
];

pub(crate) static RESTART: Table = Table {
    what: "restart",
    keys: &[
        default(
            "policy",
            words(RestartPolicy::WORDS),
            "on_failure",
            "After which ends it restarts. on_failure: faults, crashes and hangs; never: none; \
             always: all except the stop of the graph.",
        ),
        default("backoff", PAUSE, "100ms", "Pause before the first restart; doubles with each."),
        default("backoff_max", PAUSE, "5s", "Longest pause."),
        default(
            "restarts_max",
            integer(1, RESTARTS_MAX as i64),
            "10",
            "Most restarts within the window; after them the service is given up.",
        ),
        default("window", PAUSE, "60s", "Older restarts do not count."),
    ],
};

pub(crate) static FLOWS: Table = Table {
    what: "flows",
    keys: &[
        optional(
            "workers",
            integer(1, 1024),
            "Threads that share the connections. Default: one for each CPU of the domain: its \
             'cpus', or those that the core does not use.",
        ),
        default(
            "blocking",
            Shape::AutoOr { min: 1, max: BLOCKING_MAX, table: &BLOCKING },
            "auto",
            "Threads for work that blocks: a fixed number, or 'auto' for as many as the work \
             needs.",
        ),
    ],
};

/// The word for a number that is found by measurement.
pub(crate) const AUTO: &str = "auto";
/// Most threads for work that blocks.
const BLOCKING_MAX: i64 = 1024;
/// Least size of a pool that adapts: slow work takes half of its threads, which leaves at least one
/// to other work.
const BLOCKING_FLOOR: i64 = 2;

pub(crate) static BLOCKING: Table = Table {
    what: "blocking",
    keys: &[
        default("min", integer(BLOCKING_FLOOR, BLOCKING_MAX), "2", "Fewest threads."),
        default(
            "max",
            integer(BLOCKING_FLOOR, BLOCKING_MAX),
            "512",
            "Most threads. Default: 512, or what 'limits: {processes}' allows.",
        ),
        optional(
            "start",
            integer(BLOCKING_FLOOR, BLOCKING_MAX),
            "Threads at the start. Default: 8, within its bounds.",
        ),
    ],
};

pub(crate) static LIMITS: Table = Table {
    what: "limits",
    keys: &[
        optional(
            "memory",
            Shape::Value(ParameterType::Size { min_bytes: MEMORY_BYTES_MIN, max_bytes: 1 << 40 }),
            "Memory of all its processes.",
        ),
        optional("cpu", Percent { min: 1, max: 100_000 }, "Share of one CPU; 200% is two CPUs."),
        optional(
            "descriptors",
            integer(DESCRIPTORS_MIN, 1_048_576),
            "Open descriptors of one process.",
        ),
        optional("processes", integer(PROCESSES_MIN, 4_194_304), "Processes and threads."),
    ],
};

pub(crate) static REALTIME: Table = Table {
    what: "a realtime domain",
    keys: &[
        optional(
            "period",
            duration(PERIOD_NS_MIN, PERIOD_NS_MAX),
            "Nominal spacing of cycles. A domain with trigger: input takes it from the domain \
             that releases it.",
        ),
        optional(
            "deadline",
            duration(1_000, PERIOD_NS_MAX),
            "Latest end of a cycle after its release. Default: period.",
        ),
        default("priority", integer(1, 99), "80", "SCHED_FIFO priority of its threads."),
        optional("overrun", Fields(&OVERRUN), "When cycles past the deadline are a fault."),
        default(
            "trigger",
            words(Trigger::WORDS),
            "timer",
            "What starts a cycle: the clock, or a message from another domain.",
        ),
    ],
};

pub(crate) static OVERRUN: Table = Table {
    what: "overrun",
    keys: &[
        default("policy", words(Policy::WORDS), "stop", "Stop the graph, or only count."),
        default(
            "consecutive_max",
            integer(0, 1_000_000),
            "3",
            "With policy stop: this many overruns in a row are tolerated.",
        ),
    ],
};

pub(crate) static THREAD: Table = Table {
    what: "a thread",
    keys: &[
        optional(
            "cpu",
            integer(0, CPU_MAX),
            "CPU to run on. Default: a separate CPU, from the highest down, while there are \
             enough.",
        ),
        required("nodes", Names, "Names of the nodes that run on it."),
        optional(
            "trigger",
            words(Trigger::WORDS),
            "What starts a cycle. Default: a message, if a node of this thread reads one from \
             another thread of the domain without delay; else what the domain says.",
        ),
    ],
};

/// A node, apart from the parameters of its kind.
pub(crate) static NODE: Table = Table {
    what: "a node",
    keys: &[
        required("kind", Name, "What sort of node it is."),
        optional("name", Name, "Unique name. Default: the kind."),
        optional("domain", Name, "Domain it runs in. Default: the only one."),
        optional("ports", MapOfLists(&LINK), "For each output port, where it leads."),
        optional("safe", MapOf(&SAFE), "For each actuator port, its safe value."),
    ],
};

/// The kind of a node that is a block.
pub(crate) const BLOCK_KIND: &str = "block";
/// The help text for it.
pub(crate) const BLOCK_DOC: &str = "Flow nodes that are one node from outside. Their names and \
    links stay inside; what comes to an input of the block goes to the inner ports behind it, and \
    what these inner ports send leaves where the block's output leads. In the plan only the inner \
    nodes are left, named 'block/node': a block costs nothing.";

/// A node of kind `block`.
pub(crate) static BLOCK: Table = Table {
    what: "a block",
    keys: &[
        required("kind", Name, BLOCK_DOC),
        optional("name", Name, "Unique name. Default: the kind."),
        optional("domain", Name, "Domain its nodes run in. Default: the only one."),
        required("nodes", ListOf(&NODE), "Its nodes, with the links among them."),
        optional(
            "inputs",
            MapOfLists(&INNER),
            "For each input of the block, the inputs inside that its packets go to.",
        ),
        optional(
            "outputs",
            MapOfLists(&INNER),
            "For each output of the block, the outputs inside whose packets leave through it.",
        ),
        optional("ports", MapOfLists(&LINK), "For each output, where it leads."),
    ],
};

/// A port of a node, without options: inside a block, or where packets go.
pub(crate) static INNER: Table = Table {
    what: "a port",
    keys: &[required("name", Name, "Name of the node."), required("port", PortName, "Its port.")],
};

pub(crate) static SAFE: Table = Table {
    what: "a safe value",
    keys: &[
        required("value", Name, "Name of the safe value."),
        required(
            "after",
            integer(1, AFTER_MAX),
            "Cycles without a fresh command before it takes the command's place.",
        ),
    ],
};

/// A latency that may be required; the clock cannot resolve a shorter one.
const BEARABLE: Shape = duration(100, PERIOD_NS_MAX);

const ISOLATION: Key = optional(
    "isolation",
    words(Isolation::WORDS),
    "Least separation of the nodes at both ends: none, a thread each, a process each, or a \
     transport that could lead to another host (tcp). On a domain or the graph: for the links that \
     leave a domain.",
);

/// What may be required of a link.
pub(crate) static REQUIRES: Table = Table {
    what: "requires",
    keys: &[
        optional(
            "latency",
            BEARABLE,
            "Limit for 99 of 100 messages, from the end of the writer's update to the start of the \
             reader's update that takes the message.",
        ),
        optional("latency_max", BEARABLE, "Limit for every message that a run observes."),
        ISOLATION,
    ],
};

/// What may be required of a domain or the graph.
pub(crate) static REQUIRES_CYCLES: Table = Table {
    what: "requires",
    keys: &[
        optional("latency", BEARABLE, "Limit for the cycle latency of 99 of 100 cycles."),
        optional(
            "latency_max",
            BEARABLE,
            "Limit for the cycle latency of every cycle that a run observes.",
        ),
        ISOLATION,
        optional(
            "cpu",
            Percent { min: 1, max: 100_000 },
            "CPU time of its processes, as a share of one CPU; 200% is two CPUs.",
        ),
    ],
};

/// The end of a link and its options.
pub(crate) static LINK: Table = Table {
    what: "a link",
    keys: &[
        required("name", Name, "Node that reads."),
        required("port", PortName, "Its input port."),
        optional(
            "field",
            Shape::Value(ParameterType::Text),
            "The one number of the writer's message that the reader takes, such as position_rad, \
             or force_n[2] of an array. Only between nodes of the core.",
        ),
        optional(
            "transport",
            words(Transport::WORDS),
            "How it crosses. Default: in_process inside a domain, shared_memory between domains, \
             carve_out to and from a guest.",
        ),
        default("sync", words(Sync::WORDS), "lock_free", "How both sides exclude each other."),
        default(
            "delivery",
            words(Delivery::WORDS),
            "queue",
            "Which messages arrive. From the core to a service: latest, or broadcast.",
        ),
        default(
            "wait",
            words(Wait::WORDS),
            "spin",
            "How a side waits for the other. Between services: park. A link between the core and \
             a service has none.",
        ),
        default(
            "capacity",
            PowerOfTwo { max: CAPACITY_MAX },
            "8",
            "Messages that a queue or broadcast link can hold; a power of two.",
        ),
        default(
            "full",
            words(Full::WORDS),
            "fault",
            "What the writer of a full queue does. Where a service writes: drop.",
        ),
        default(
            "delay",
            integer(0, 1),
            "0",
            "1: the reader sees the message one cycle later. Each loop of links needs one such \
             link.",
        ),
        host::AFTER,
        optional("requires", Fields(&REQUIRES), "What the graph requires of the link."),
    ],
};
