//! Messages between the dashboard and its page over the WebSocket `/ws`.
//!
//! ```text
//! GET /       the page, with its scripts beside it
//! GET /ws     the WebSocket
//! GET /scope/KEY.csv, /scope/KEY.mcap   what a scope shows, as a file
//! ```
//!
//! `Host` must name this server (a loopback name or address with our port, or one of `hosts`), and
//! for `/ws` there must be an `Origin` with the same host; otherwise the answer is 403 with a
//! sentence.
//!
//! **Server to page, text.** JSON objects, distinguished by `type`; see [`Text`].
//!
//! ```text
//! {"type":"hello", ...}                              [Hello], first of all, once
//! {"type":"status","status":{...}}                   twice a second; like `sinew top --json`
//! {"type":"events","events":[...],"missed":0}        at first the last ones, then as they come
//! {"type":"figures","threads":[...], ...}            [Figures], twice a second
//! {"type":"stop","reason":"...", ...}                [Stop], when one has been measured; again
//!                                                    as more of it is known
//! {"type":"done","id":7,"text":"the core stops"}     the order with this id was carried out
//! {"type":"error","id":7,"text":"..."}               it was not; no id if it could not be read
//! {"type":"tap","line":{"step":{...}}}              a line of this viewer's tap; see [`TapLine`]
//! {"type":"untapped","text":"..."}                   its tap has ended, and why
//! {"type":"tunables","tunables":[...]}               what can be set; again when it changes
//! {"type":"scope", ...}                              what this viewer's scope shows; see [`scope`]
//! {"type":"pong","at":123.5}                         answers a ping, and repeats its number
//! {"type":"ended","text":"the run has ended"}        the last word before the server closes
//! ```
//!
//! **Server to page, binary.** Little endian, no padding; the first byte is the type.
//!
//! ```text
//! motion, 30 Hz                          image, 15 Hz, to whoever asked for it
//!  0  u8   1                              0  u8   2
//!  1  u8   version, 1                     1  u8   version, 1
//!  2  u16  threads                        2  u16  0
//!  4  u32  sequence, from 1               4  u32  the camera's sequence
//!  8  f64  now, monotonic ms              8  f64  when it was taken, monotonic ms
//! 16  for each thread, 32 bytes:         16  a JPEG
//!      0  f64  number of its last cycle; -1 before the first
//!      8  f32  latency of a cycle, us: the greatest since the last frame
//!     12  f32  jitter of a release, us: likewise
//!     16  u32  overruns since the core's start
//!     20  u32  skipped periods since the core's start
//!     24  u32  cycles that the dashboard itself was too slow for
//!     28  u32  flags: see FLAG_*; each is set if it held for a cycle since the last frame
//!     then the elements of all signals, f32, in the order of hello
//!     then u16 count, and count times three f32: points of the traced path since the last
//!     frame, m, oldest first, at most PATH_POINTS_MAX
//! ```
//!
//! ```text
//! values, 10 Hz, to whoever asked for them
//!  0  u8   3
//!  1  u8   version, 1
//!  2  u16  ports
//!  4  u32  sequence, from 1
//!  8  f64  now, monotonic ms
//! 16  for each port of hello, 16 bytes:
//!      0  f64  start of the cycle that brought its newest message, monotonic ms; -1: none has
//!              been written in this life of the core
//!      8  u32  messages since the core's start, or the dashboard's if that was later
//!     12  u32  flags: see VALUE_*
//!     then the numbers of all ports that are shown, f64, at the places that hello says
//! ```
//!
//! The numbers of cycles begin again at 0 when the core was reset: everything before a falling
//! number belongs to a former life of the core. A slow viewer misses frames, never texts.
//!
//! **Page to server, text.** JSON objects of at most [`ORDER_LEN_MAX`] bytes; see [`PageOrder`].
//!
//! ```text
//! {"do":"ping","at":123.5}                           without a token
//! {"do":"view","image":true,"values":true}           likewise: to get images and values, or not
//! {"do":"scope", ...}                                likewise; see [`scope`]
//! {"do":"check","id":1,"token":"..."}                whether the token is right: done or error
//! {"do":"halt","id":2,"token":"..."}                 the core stops, with safe outputs
//! {"do":"reset","id":3,"token":"..."}                the core starts again
//! {"do":"restart","id":4,"token":"...","domain":"camera"}
//! {"do":"choose","id":5,"token":"...","path":1}      an index into hello.paths
//! {"do":"pause","id":6,"token":"..."}                the planner slows to a standstill
//! {"do":"resume","id":7,"token":"..."}
//! {"do":"set","id":10,"token":"...","settings":["pid.kp=2.5"],"save":false}
//! {"do":"tap","id":8,"token":"...","domain":"api","node":"router"}
//! {"do":"untap","id":9,"token":"..."}
//! ```
//!
//! A tap shows the paths of [`TAP_WAYS_PER_S`] flows a second that come to the node, or without a
//! node, that begin in the domain. A viewer has at most one tap: another one replaces it.
//!
//! A wrong token is answered with an error, one second later; after [`WRONG_TOKENS_MAX`] of them
//! the connection is closed.
//!
//! **Closing.** 1000 the run has ended; 1001 the dashboard ends (a restart: connect again); 1003 a
//! binary message came; 1008 too many wrong tokens, or too many messages that are not orders; 1009
//! a message is too long; 1013 there are `viewers_max` viewers already, or this one received
//! nothing for [`STALLED_MAX`].

pub mod scope;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sinew_control::Tunable;
use sinew_control::status::{Event, Status};
use sinew_control::tap::TapLine;

use self::scope::{ScopePicture, ScopeWanted};

/// Version of the protocol, in [`Hello`] and in each binary message.
pub const VERSION: u8 = 1;
/// First byte of a binary message with the arm's motion and the cycles' figures.
pub const MOTION: u8 = 1;
/// First byte of a binary message with an image.
pub const IMAGE: u8 = 2;

/// First byte of a binary message with the newest messages of ports.
pub const VALUES: u8 = 3;

/// Flag of a port: a message came since the last frame with values.
pub const VALUE_FRESH: u32 = 1;
/// Flag of a port: the other end of its link is gone.
pub const VALUE_CLOSED: u32 = 2;
/// Flag of an actuator's port: the actuator uses its safe value instead of a message, because none
/// came for as long as its `after` says, or because the core stops.
pub const VALUE_SAFE: u32 = 4;

/// Most ports whose messages are shown; hello says how many more there are.
pub const PORTS_MAX: usize = 200;
/// Most numbers of all these messages; a port that does not fit is left out as a whole.
pub const NUMBERS_MAX: usize = 1000;
/// Most numbers of one field; the others of an array are left out.
pub const FIELD_NUMBERS_MAX: usize = 16;

/// Flag of a thread: there was a cycle since the last frame.
pub const FLAG_FRESH: u32 = 1;
/// Flag of a thread: a cycle ended past its deadline.
pub const FLAG_OVERRUN: u32 = 2;
/// Flag of a thread: a cycle ended without its feedback.
pub const FLAG_FEEDBACK_MISSING: u32 = 4;
/// Flag of a thread: a cycle ran with safe outputs, because the core stops.
pub const FLAG_STOPPING: u32 = 8;
/// Flag of a thread: a cycle failed.
pub const FLAG_FAILED: u32 = 16;
/// Flag of a thread: a cycle ran because its input did not come.
pub const FLAG_WITHOUT_INPUT: u32 = 32;

/// Most points of the traced path in one frame; of more, only every n-th is sent.
pub const PATH_POINTS_MAX: usize = 16;
/// Most bytes of a message from the page. An order takes about 100.
pub const ORDER_LEN_MAX: usize = 4096;
/// A connection that sends this many wrong tokens is closed.
pub const WRONG_TOKENS_MAX: u32 = 5;
/// A viewer that receives nothing for this long is closed: its memory is better used for another.
pub const STALLED_MAX: Duration = Duration::from_secs(5);

/// Flows whose paths a tap shows per second: people read slowly.
pub const TAP_WAYS_PER_S: u32 = 2;
/// Lines of a tap per second; further ones come later, and if there are more than the domain keeps,
/// they are lost and counted.
pub const TAP_LINES_PER_S: u64 = 200;

/// A text message from the server to the page.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Text<'a> {
    /// What stays the same as long as this server runs.
    Hello(&'a Hello),
    /// The run, as it is now.
    Status {
        /// As `sinew top --json` shows it.
        status: &'a Status,
    },
    /// Events of the run.
    Events {
        /// Oldest first.
        events: &'a [Event],
        /// Number of earlier events that are no longer stored.
        missed: u64,
    },
    /// What the cycles cost.
    Figures(&'a CycleCosts),
    /// How long a stop took.
    Stop(&'a StopTimes),
    /// An order was carried out.
    Done {
        /// The id of the order.
        id: u64,
        /// The result.
        text: &'a str,
    },
    /// An order was not carried out, or a message was not an order.
    Error {
        /// The id of the order, if it could be read.
        id: Option<u64>,
        /// What is wrong, and what was expected.
        text: &'a str,
    },
    /// A line of the viewer's tap.
    Tap {
        /// The line, as the domain writes it.
        line: &'a TapLine,
    },
    /// The viewer's tap has ended by itself.
    Untapped {
        /// The reason, and what to do.
        text: &'a str,
    },
    /// What can be set while the core runs.
    Tunables {
        /// In the order of the plan.
        tunables: &'a [Tunable],
    },
    /// What the viewer's scope shows.
    Scope(&'a ScopePicture),
    /// Answers a ping.
    Pong {
        /// The number in the ping.
        at: f64,
    },
    /// The server closes.
    Ended {
        /// The reason.
        text: &'a str,
    },
}

impl Text<'_> {
    /// The text as JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a bug: our own types are JSON objects")
    }
}

/// What stays the same as long as this server runs.
#[derive(Clone, Debug, Serialize)]
pub struct Hello {
    /// [`VERSION`].
    pub protocol: u8,
    /// Version of Sinew.
    pub sinew: &'static str,
    /// Name of the graph.
    pub graph: String,
    /// The spec's file, as the user named it.
    pub file: String,
    /// Different after every start of this server.
    pub life: String,
    /// The monotonic clock now, ms: other times are to be compared with this.
    pub now_ms: f64,
    /// The threads of the core, in the order of motion and figures.
    pub threads: Vec<ThreadInfo>,
    /// The signals of their nodes, in the order of motion.
    pub signals: Vec<SignalInfo>,
    /// The ports whose messages the records of the core show, in the order of values.
    pub ports: Vec<PortInfo>,
    /// How many more ports are not shown: see [`PORTS_MAX`] and [`NUMBERS_MAX`].
    pub ports_left_out: usize,
    /// The graph, for the page to draw: `domains`, `nodes`, `links` and `flow_links`. Nodes and
    /// links are in the order of figures, links also in the order of status. A node's `flow` is
    /// "source" where flows begin, "node" elsewhere in flows, and null for other nodes. For a node
    /// that does not take part in the run, such as a test, `runs` is false. `flow_links` carry
    /// packets, and have no figures.
    pub picture: serde_json::Value,
    /// The arm to draw, if the spec names one.
    pub arm: Option<Arm>,
    /// The signal that moves its joints: an index into `signals`.
    pub joints_signal: Option<usize>,
    /// The signal whose path is traced: an index into `signals`.
    pub path_signal: Option<usize>,
    /// The paths that can be chosen; the planner begins with the first.
    pub paths: Vec<String>,
    /// The buckets of every histogram.
    pub histogram: HistogramInfo,
    /// Whether the planner takes orders: choose, pause, resume.
    pub commands: bool,
    /// Whether the core can be reset after it has stopped.
    pub holds: bool,
    /// Whether there are images.
    pub camera: bool,
}

/// A thread of the core.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadInfo {
    /// Name of its domain.
    pub domain: String,
    /// Its place in the domain.
    pub thread: usize,
    /// Nominal spacing of its cycles.
    pub period_us: f64,
    /// Latest end of a cycle after its release.
    pub deadline_us: f64,
    /// Whether the clock releases it; otherwise a message does.
    pub timed: bool,
    /// Its nodes, in the order in which they are updated.
    pub nodes: Vec<String>,
}

/// A signal of a node.
#[derive(Clone, Debug, Serialize)]
pub struct SignalInfo {
    /// Index into the threads.
    pub thread: usize,
    /// Name of its node.
    pub node: String,
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static str,
    /// Its unit, or empty.
    pub unit: &'static str,
    /// How many numbers.
    pub count: usize,
    /// If not empty, each number is an index into these words.
    pub labels: &'static [&'static str],
    /// Index of its first number among those of motion.
    pub offset: usize,
}

/// A port whose messages are shown.
#[derive(Clone, Debug, Serialize)]
pub struct PortInfo {
    /// Index into the threads.
    pub thread: usize,
    /// Its index among the taps of that thread.
    #[serde(skip)]
    pub tap: usize,
    /// `node.port`.
    pub port: String,
    /// `in` for what came from another thread, `out` for what the node wrote.
    pub direction: &'static str,
    /// Type of its messages.
    pub message: String,
    /// The other ends of its links, as `node.port`.
    pub others: Vec<String>,
    /// The fields of a message.
    pub fields: Vec<FieldInfo>,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldInfo {
    /// Its name; empty if the message is one number only.
    pub name: String,
    /// What it is made of, such as `f64` or `bool`.
    pub scalar: String,
    /// Its unit, or empty.
    pub unit: String,
    /// Numbers in it.
    pub count: usize,
    /// How many of them are shown, beginning with the first.
    pub shown: usize,
    /// Place of its first number among those of values.
    pub offset: usize,
    /// Words for its values 0, 1, 2 and so on, if it is an enum; empty for a number without a word.
    pub labels: Vec<String>,
}

/// A serial arm, from its URDF.
#[derive(Clone, Debug, Serialize)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// From base to flange. A joint that does not move has no limits and is not in the signal.
    pub joints: Vec<Joint>,
}

/// A joint: its place relative to the one before it, and how it moves.
#[derive(Clone, Debug, Serialize)]
pub struct Joint {
    /// Its name.
    pub name: String,
    /// Whether it turns; otherwise it is fixed.
    pub moves: bool,
    /// Place in the frame of the joint before it.
    pub origin_xyz_m: [f64; 3],
    /// Orientation there: roll, pitch, yaw about the fixed axes x, y, z.
    pub origin_rpy_rad: [f64; 3],
    /// The axis that it turns about, in its own frame.
    pub axis: [f64; 3],
    /// Least angle.
    pub lower_rad: f64,
    /// Greatest angle.
    pub upper_rad: f64,
}

/// The buckets of a histogram: `counts[0]` is for values below `lowest_us`, `counts[i]` for those
/// from `lowest_us * 10^((i-1)/per_decade)` to below `lowest_us * 10^(i/per_decade)`, and the last
/// one for all greater values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HistogramInfo {
    /// Where the second bucket begins.
    pub lowest_us: f64,
    /// Buckets in a factor of ten.
    pub per_decade: u32,
    /// Number of buckets, including the first and the last.
    pub count: usize,
}

/// The cost of the cycles since the core's start, or since the dashboard's if that was later.
/// Cycles of a stop do not count.
#[derive(Clone, Debug, Serialize)]
pub struct CycleCosts {
    /// In the order of [`Hello::threads`].
    pub threads: Vec<ThreadFigures>,
    /// Execution times, in the order of the picture's nodes; `None` for a service.
    pub nodes: Vec<Option<TimeFigures>>,
    /// In the order of the picture's links.
    pub links: Vec<LinkFigures>,
    /// Number of viewers.
    pub viewers: usize,
}

/// Figures of a thread.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadFigures {
    /// Cycles, as counted by the thread itself; the same holds for overruns and skipped.
    pub cycles: u64,
    /// Cycles past the deadline or without their feedback.
    pub overruns: u64,
    /// Whole periods lost.
    pub skipped: u64,
    /// Cycles that the dashboard was too slow to see: they are in none of the times.
    pub lost: u64,
    /// Cycle latency.
    pub latency: Histogram,
    /// Activation jitter; `None` for a thread that the clock does not release.
    pub jitter: Option<Histogram>,
}

/// A time that was measured repeatedly. A percentile is given only with ten values beyond it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TimeFigures {
    /// Number of values.
    pub count: u64,
    /// The greatest value; `None` without values.
    pub max_us: Option<f64>,
    /// Half of them are below.
    pub p50_us: Option<f64>,
    /// 99 % are below.
    pub p99_us: Option<f64>,
    /// 99.9 % are below.
    pub p99_9_us: Option<f64>,
}

/// Like [`TimeFigures`], with the buckets of [`HistogramInfo`].
#[derive(Clone, Debug, Serialize)]
pub struct Histogram {
    /// The figures of the times.
    #[serde(flatten)]
    pub times: TimeFigures,
    /// Number of values in each bucket.
    pub counts: Vec<u64>,
}

/// Figures of a link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkFigures {
    /// Messages written per second; `None` if it cannot be known from outside.
    pub rate_per_s: Option<f64>,
    /// Share of its capacity that is in use, 0 to 1; `None` if it cannot be known from outside.
    pub fill: Option<f64>,
    /// Messages that never reached the reader, because it was too slow or there was no room.
    pub lost: Option<u64>,
    /// Whether an end broke its rules or is gone.
    pub broken: bool,
}

/// How long a stop of the core took. All times except the first are counted from `asked_ms`; a
/// state that was reached earlier has a negative time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StopTimes {
    /// Who or what stopped it, in words.
    pub reason: String,
    /// When the supervisor was asked, or learned of the fault; monotonic ms.
    pub asked_ms: f64,
    /// Until the outputs of all actuators were safe.
    pub safe_output_us: Option<f64>,
    /// Until every brake was closed, as the drives report: signals named `brake` with the word
    /// `closed`. `None` if there are none, or not yet.
    pub brakes_closed_us: Option<f64>,
    /// Until everything that moves was at rest.
    pub at_rest_us: Option<f64>,
}

/// An order of the page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum PageOrder {
    /// Asks for an answer.
    Ping {
        /// Any number; it is repeated in the answer.
        at: f64,
    },
    /// Sets what is sent.
    View {
        /// Whether images are wanted.
        image: bool,
        /// Whether the values of ports are wanted.
        #[serde(default)]
        values: bool,
    },
    /// Checks the token.
    Check(Signed),
    /// Stops the core, with safe outputs at the next cycle boundary.
    Halt(Signed),
    /// Starts the core again.
    Reset(Signed),
    /// Restarts a service.
    Restart {
        /// Is repeated in the answer.
        id: u64,
        /// The run's secret.
        token: String,
        /// The service's domain.
        domain: String,
    },
    /// Follows another path.
    Choose {
        /// Is repeated in the answer.
        id: u64,
        /// The run's secret.
        token: String,
        /// Index into [`Hello::paths`].
        path: u32,
    },
    /// Slows down to a standstill.
    Pause(Signed),
    /// Continues.
    Resume(Signed),
    /// Sets parameters of the core: all of these, or none.
    Set {
        /// Is repeated in the answer.
        id: u64,
        /// The run's secret.
        token: String,
        /// `NODE.PARAMETER=VALUE` each.
        settings: Vec<String>,
        /// Whether they are also written to the spec; an event reports the result.
        #[serde(default)]
        save: bool,
    },
    /// Shows the paths of flows.
    Tap {
        /// Is repeated in the answer.
        id: u64,
        /// The run's secret.
        token: String,
        /// The domain of the flows.
        domain: String,
        /// Only flows that come to this node; `None`: all.
        #[serde(default)]
        node: Option<String>,
    },
    /// Stops showing them.
    Untap(Signed),
    /// Shows traces on a scope.
    Scope(Box<ScopeWanted>),
    /// Waits for the scope's next trigger.
    Arm {
        /// Is repeated in the answer.
        id: u64,
    },
    /// Closes the scope.
    Unscope {
        /// Is repeated in the answer.
        id: u64,
    },
}

/// An order without further fields.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// Is repeated in the answer.
    pub id: u64,
    /// The run's secret.
    pub token: String,
}
