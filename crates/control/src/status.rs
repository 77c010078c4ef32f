//! A run as others see it: its status at a moment, and its events one by one. Both are plain data,
//! as sent over the control socket. Clients use the same types.

mod logged;
mod stop;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sinew_core::clock::now_ns;
use sinew_core::privileges::{Asked, Obtained};
use sinew_plan::plan::Domain;

use crate::outside;

pub use self::logged::Logged;
pub use self::stop::{DomainStop, StopStatus};

/// Declares a state: an enum whose words are the same in JSON and on the screen. Its default is the
/// first of them.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }
        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Its word.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }
        impl Default for $name {
            fn default() -> $name {
                $name::ALL[0]
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

words! {
    /// The phase of a run.
    Phase {
        /// Its domains get ready.
        Starting = "starting",
        /// The core runs.
        Running = "running",
        /// The core has stopped; the services go on.
        Held = "held",
        /// Its domains stop.
        Stopping = "stopping",
    }
}

words! {
    /// What a domain promises.
    DomainRole {
        /// Its fault stops the graph.
        Realtime = "realtime",
        /// It fails alone.
        Service = "service",
        /// It fails alone, and its nodes run under another operating system.
        Guest = "guest",
    }
}

impl DomainRole {
    /// What a planned domain promises.
    pub fn of(domain: &Domain) -> DomainRole {
        match domain.service() {
            Some(service) if service.guest.is_some() => DomainRole::Guest,
            Some(_) => DomainRole::Service,
            None => DomainRole::Realtime,
        }
    }
}

words! {
    /// The state of a domain.
    DomainState {
        /// Others must start before it.
        Waiting = "waiting",
        /// It creates its nodes and links.
        Starting = "starting",
        /// It waits for the order to run.
        Ready = "ready",
        /// It runs.
        Running = "running",
        /// It was told to stop.
        Stopping = "stopping",
        /// It has ended, and is restarted after a pause.
        Backoff = "backoff",
        /// It says that the job is done.
        Finished = "finished",
        /// It has ended, and its policy does not start it again.
        Ended = "ended",
        /// It has ended more often than its policy allows.
        GivenUp = "given_up",
        /// It has ended with a fault that stops the graph.
        Faulted = "faulted",
    }
}

words! {
    /// What an event is about.
    EventKind {
        /// The process of a domain was started.
        Started = "started",
        /// A domain is ready.
        Ready = "ready",
        /// A domain has ended.
        Ended = "ended",
        /// A domain has faulted.
        Faulted = "faulted",
        /// A service is to be started again.
        Restarting = "restarting",
        /// A service is not started any more.
        GivenUp = "given_up",
        /// A domain, or the graph, is told to stop.
        Stopping = "stopping",
        /// A domain wrote a line.
        Output = "output",
        /// A node of the core said something.
        Log = "log",
        /// A cycle was late.
        Late = "late",
        /// Somebody asked for something through the control socket.
        Request = "request",
        /// The core has stopped: why, and how long that took.
        Stopped = "stopped",
        /// A service announced the address at which people reach it.
        Address = "address",
        /// A service raised an alarm.
        Alarm = "alarm",
        /// The graph was edited, and the edited one now runs.
        Edited = "edited",
        /// An edit was refused, and the previous graph goes on: why.
        EditRefused = "edit_refused",
        /// Parameters of the core were set while it runs: old and new values.
        Tuned = "tuned",
        /// Values of parameters were written to the spec.
        Saved = "saved",
        /// Values of parameters should have been written to the spec, and were not: why.
        NotSaved = "not_saved",
        /// Another host of the graph is heard, or is no longer heard.
        Host = "host",
        /// Anything else that people should know.
        Note = "note",
    }
}

words! {
    /// The state of another host of the graph, as seen from here.
    HostState {
        /// It was not heard since this host started.
        Unheard = "unheard",
        /// It sends its time again and again.
        Heard = "heard",
        /// It was heard before, and is no longer.
        Silent = "silent",
        /// It has another graph: nothing from it is accepted.
        OtherGraph = "other_graph",
        /// Two programs have its name, or this host's. The one that was there first is obeyed.
        Two = "two",
    }
}

/// A run at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the graph.
    pub graph: String,
    /// The host whose part of the graph it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The spec's file, as the user named it.
    pub file: String,
    /// The process that supervises it.
    pub pid: u32,
    /// Its phase.
    pub phase: Phase,
    /// Time since its start.
    pub elapsed_ms: u64,
    /// Its domains, in the order of the plan.
    pub domains: Vec<DomainStatus>,
    /// Its links, in the order of the plan.
    pub links: Vec<LinkStatus>,
    /// What the plan decided differently from the spec, one sentence each.
    pub notes: Vec<String>,
    /// The last stop of the core, if there was one.
    pub stop: Option<StopStatus>,
}

/// A domain at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DomainStatus {
    /// Its name.
    pub name: String,
    /// What it promises.
    pub role: DomainRole,
    /// Its state.
    pub state: DomainState,
    /// Its process, if there is one.
    pub pid: Option<u32>,
    /// The user that it runs as.
    pub user: String,
    /// Time since the start of its process; 0 without one.
    pub up_ms: u64,
    /// How often it was started again.
    pub restarts: u32,
    /// Why it last ended.
    pub last_reason: Option<String>,
    /// Time until it is started again.
    pub next_restart_ms: Option<u64>,
    /// The address at which people reach it.
    pub address: Option<String>,
    /// Resident memory of its process, KiB.
    pub resident_kib: Option<u64>,
    /// The threads of a realtime domain.
    pub threads: Vec<ThreadStatus>,
    /// Its nodes.
    pub nodes: Vec<NodeStatus>,
    /// Its limits.
    pub limits: Vec<LimitStatus>,
    /// For a service with flows: its threads for work that blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolStatus>,
    /// For the service that handles the other hosts of the graph: what it knows about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostStatus>,
}

/// The name of the router among hosts; no host has it. The only thing known of a router is whether
/// it is connected (`Heard`), never was (`Unheard`) or is no longer (`Silent`).
pub const ROUTER: &str = "(router)";

/// Another host of the graph, as it is seen from here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Whether it is heard.
    pub state: HostState,
    /// Time since it last sent its time.
    pub heard_ms: Option<u64>,
    /// Round trip from here to there and back, as far as its messages show.
    pub round_trip_us: Option<u64>,
    /// The difference of its clock to the clock here, while it is heard. No decision depends on it.
    #[serde(default)]
    pub clock: Option<HostClock>,
    /// Messages of it that were dropped for their age.
    pub late: u64,
    /// Messages from it that did not arrive, or found no room here.
    pub lost: u64,
    /// What came in its name and was refused: without our stamp, malformed, of a second program.
    pub refused: u64,
    /// The same by its reason, without the reasons that were never met.
    #[serde(default)]
    pub refused_as: BTreeMap<String, u64>,
    /// What came under the key of another port or host than the one that it names. It was dropped.
    #[serde(default)]
    pub misplaced: u64,
    /// Messages that came before both hosts had heard each other. They were dropped.
    #[serde(default)]
    pub early: u64,
}

impl HostStatus {
    /// Adds the counts of an earlier report.
    pub fn add_counts(&mut self, before: &HostStatus) {
        let HostStatus { late, lost, refused, refused_as, misplaced, early, .. } = before;
        let sums = [
            (&mut self.late, late),
            (&mut self.lost, lost),
            (&mut self.refused, refused),
            (&mut self.misplaced, misplaced),
            (&mut self.early, early),
        ];
        sums.into_iter().for_each(|(sum, count)| *sum = sum.saturating_add(*count));
        for (reason, count) in refused_as {
            let sum = self.refused_as.entry(reason.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

/// The difference between the clocks of another host and of this one, from the best of the latest
/// round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostClock {
    /// When that was measured, by the monotonic clock here.
    pub at_ns: u64,
    /// Its monotonic clock minus the one here.
    pub monotonic_offset_ns: i64,
    /// Its wall clock minus the one here.
    pub day_offset_ns: i64,
    /// The possible error of both offsets: half of the round trip.
    pub uncertainty_ns: u64,
}

/// A realtime thread at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadStatus {
    /// Cycles so far, as the thread counts them. It also counts overruns and skipped.
    pub cycles: u64,
    /// Cycles whose records were overwritten before the supervisor read them. Their latency is not
    /// known.
    #[serde(default)]
    pub records_lost: u64,
    /// Cycles past the deadline or without their feedback.
    pub overruns: u64,
    /// Whole periods lost.
    pub skipped: u64,
    /// Cycle latency of the last cycle; `None` before the first.
    pub latency_ns_last: Option<u64>,
    /// The longest cycle latency so far.
    pub latency_ns_max: Option<u64>,
    /// The CPU that it is planned for.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// The SCHED_FIFO priority that it is planned for.
    #[serde(default)]
    pub priority: u8,
    /// What the kernel gave it.
    pub privileges: PrivilegesStatus,
}

/// What a thread asked of the kernel, and what it got; in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrivilegesStatus {
    /// What the plan asks for.
    pub asked: String,
    /// What was read back from the kernel.
    pub obtained: String,
    /// What is missing and how to get it. Empty if nothing is missing.
    pub missing: Vec<String>,
}

impl PrivilegesStatus {
    /// The same in words.
    pub fn of(asked: &Asked, obtained: &Obtained) -> PrivilegesStatus {
        let cpu = |cpu: Option<u32>| cpu.map_or("any CPU".into(), |cpu| format!("CPU {cpu}"));
        let locked = if obtained.locked_kib > 0 { "locked" } else { "unlocked" };
        let (policy, priority) = (obtained.policy_name(), obtained.priority);
        PrivilegesStatus {
            asked: format!("SCHED_FIFO {}, {}, locked", asked.priority, cpu(asked.cpu)),
            obtained: format!("{policy} {priority}, {}, {locked}", cpu(obtained.cpu)),
            missing: obtained.missing(asked),
        }
    }
}

/// A node at a moment. A realtime node has no counters of its own, so they are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Heartbeats.
    pub beats: u64,
    /// Messages that it took.
    pub received: u64,
    /// Messages that it was too slow for.
    pub lost: u64,
    /// Messages that it sent.
    pub sent: u64,
    /// Messages that it could not send.
    pub dropped: u64,
    /// The figures of a flow node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<FlowStatus>,
}

/// Upper ends of the ranges in which the times of flow nodes are counted, in ns. Longer times are
/// counted in one more range at the end.
pub const FLOW_TIMES_NS: [u64; 16] = [
    1_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// The figures of a flow node since its process was started. They come from its workers and are at
/// most half a second old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Packets that it has finished; for a source: flows that have ended.
    pub packets: u64,
    /// Packets at which it failed; for a source: flows that ended with an error.
    pub errors: u64,
    /// What a source refused for lack of room: connections and requests of a listener.
    #[serde(default)]
    pub refused: u64,
    /// Packets that wait in it; for a source: flows under way.
    pub in_flight: u64,
    /// Packets per second, recently.
    pub packets_per_s: f64,
    /// How long it had a packet: half of the packets took no longer. Waits for a reply are
    /// included. Rounded upwards, to an eighth. `None` with fewer than ten packets beyond it.
    pub time_ns_p50: Option<u64>,
    /// The same for 99 of 100.
    pub time_ns_p99: Option<u64>,
    /// The longest time; `None` before the first packet.
    pub time_ns_max: Option<u64>,
    /// The sum of all times, to a sixteenth.
    #[serde(default)]
    pub time_ns_sum: u64,
    /// Packets by the ranges of [`FLOW_TIMES_NS`]. The last entry counts those that took longer.
    #[serde(default)]
    pub times: [u64; FLOW_TIMES_NS.len() + 1],
}

/// The threads of a service's flows for work that blocks, at a moment. Times are means over the
/// pieces of work that ended in the last half second; `None` if none did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// How many there are.
    pub threads: u32,
    /// Least number of threads; the same as `max` if the number is fixed.
    pub min: u32,
    /// Greatest number of threads.
    pub max: u32,
    /// Pieces of work that wait for a thread.
    pub waiting: u64,
    /// Pieces of work that have ended.
    pub done: u64,
    /// Mean time on a CPU.
    pub cpu_ns: Option<u64>,
    /// Mean wait for something outside: neither for a CPU nor for another pool.
    pub outside_ns: Option<u64>,
    /// Mean wait for a thread.
    pub queued_ns: Option<u64>,
    /// How often the number of threads has changed.
    pub changes: u64,
    /// Its last change.
    pub last_change: Option<PoolChange>,
    /// The reason for the current number.
    pub why: String,
}

/// A change of the number of threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolChange {
    /// Threads before.
    pub before: u32,
    /// Threads after.
    pub after: u32,
    /// How long ago.
    pub ago_ms: u64,
    /// What was observed at that time.
    pub why: String,
}

/// The figures of one flow node, as its service sends them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowFigures {
    /// The node.
    pub name: String,
    /// Its figures.
    pub status: FlowStatus,
}

/// A limit of a domain: what was asked for, and what was read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// What is limited.
    pub what: String,
    /// The limit in the spec.
    pub asked: String,
    /// The limit read back from the kernel.
    pub got: String,
    /// Whether the kernel enforces the limit.
    pub enforced: bool,
    /// How to get what is missing.
    pub remedy: Option<String>,
}

/// A link at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// `node.port` that writes.
    pub from: String,
    /// `node.port` that reads.
    pub to: String,
    /// How it crosses; `fused` within a thread.
    pub transport: String,
    /// Which messages the reader gets.
    pub delivery: String,
    /// Messages that it can hold.
    pub capacity: u32,
    /// Messages in it now; `None` if it cannot be known from outside.
    pub fill: Option<u32>,
    /// Messages written so far; `None` if it cannot be known from outside.
    pub written: Option<u64>,
    /// Messages that the reader was too slow for; `None` if not counted for this link alone.
    pub lost: Option<u64>,
    /// Messages that the writer found no room for; `None` if not counted for this link alone.
    pub dropped: Option<u64>,
    /// Whether one end broke the link's rules or is gone.
    pub broken: bool,
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// From 1, without gaps; never the same twice in a run.
    pub number: u64,
    /// When, by the monotonic clock.
    pub time_ns: u64,
    /// When, by the wall clock; for people, never for calculations.
    pub unix_ms: u64,
    /// The domain.
    pub domain: Option<String>,
    /// What it is about.
    pub what: EventKind,
    /// In words; [`Events::TEXT_MAX`] bytes at most.
    pub text: String,
    /// For [`EventKind::Stopped`]: the stop in figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopStatus>,
    /// For [`EventKind::Log`]: who logged it, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<Logged>,
}

/// The last events of a run.
#[derive(Clone, Debug, Default)]
pub struct Events {
    kept: VecDeque<Event>,
    newest: u64,
}

impl Events {
    /// Most events that are kept: enough for the story of a crash loop. Older ones are dropped, and
    /// a reader sees by the numbers how many it missed.
    pub const KEPT_MAX: usize = 1000;
    /// Most bytes of a text. A longer text is cut and ends in `...`. A service may write anything.
    pub const TEXT_MAX: usize = 1024;

    /// No events yet.
    pub fn new() -> Events {
        Events::default()
    }

    /// Adds an event that happened now.
    pub fn add(&mut self, what: EventKind, domain: Option<&str>, text: impl Into<String>) {
        self.keep(what, domain, text.into());
    }

    /// Adds a line that a node of a domain logged.
    pub fn add_logged(&mut self, domain: &str, logged: Logged, line: impl fmt::Display) {
        let Logged { node, level, cycle } = &logged;
        let text = format!("{}: cycle {cycle}: in node '{node}': {line}", level.word());
        self.keep(EventKind::Log, Some(domain), text).logged = Some(logged);
    }

    /// Adds a stop of the core.
    pub fn add_stop(&mut self, stop: StopStatus) {
        let text = stop.to_string();
        self.keep(EventKind::Stopped, None, text).stop = Some(stop);
    }

    fn keep(&mut self, what: EventKind, domain: Option<&str>, text: String) -> &mut Event {
        if self.kept.len() == Self::KEPT_MAX {
            self.kept.pop_front();
        }
        self.newest += 1;
        let text = outside::hidden(text);
        // A clock before 1970 is wrong anyway.
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.kept.push_back(Event {
            number: self.newest,
            time_ns: now_ns(),
            unix_ms: unix.as_millis() as u64,
            domain: domain.map(str::to_owned),
            what,
            text: cut(text),
            stop: None,
            logged: None,
        });
        self.kept.back_mut().expect("it has just come")
    }

    /// Number of the newest one; 0 before the first.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// The events after number `after` that are still kept, oldest first.
    pub fn after(&self, after: u64) -> impl Iterator<Item = &Event> {
        let newer = self.newest.saturating_sub(after);
        let skipped = self.kept.len() - self.kept.len().min(newer as usize);
        self.kept.range(skipped..)
    }

    /// How many events after number `after` are no longer kept.
    pub fn missed(&self, after: u64) -> u64 {
        self.newest.saturating_sub(after).saturating_sub(self.kept.len() as u64)
    }
}

/// Cuts a text and replaces control characters. The text comes from outside, and control characters
/// could change the terminal of the reader.
pub fn cut(text: String) -> String {
    const END: &str = "...";
    let mut text = text.replace(|c: char| c.is_control(), "\u{fffd}");
    if text.len() > Events::TEXT_MAX {
        text.truncate(text.floor_char_boundary(Events::TEXT_MAX - END.len()));
        text.push_str(END);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(events: &Events, after: u64) -> Vec<u64> {
        events.after(after).map(|event| event.number).collect()
    }

    #[test]
    fn a_reader_gets_what_it_has_not_seen() {
        let mut events = Events::new();
        assert_eq!((numbers(&events, 0), events.missed(0)), (vec![], 0));
        (0..3).for_each(|_| events.add(EventKind::Note, None, "now"));
        assert_eq!(numbers(&events, 0), [1, 2, 3]);
        assert_eq!(numbers(&events, 2), [3]);
        // A client may ask for any number.
        assert_eq!((numbers(&events, u64::MAX), events.missed(u64::MAX)), (vec![], 0));
    }

    #[test]
    fn what_a_reader_missed_is_counted() {
        let mut events = Events::new();
        let all = Events::KEPT_MAX as u64 + 7;
        (0..all).for_each(|_| events.add(EventKind::Note, None, "now"));
        assert_eq!(events.missed(0), 7);
        assert_eq!(events.missed(3), 4);
        assert_eq!(events.missed(7), 0);
        assert_eq!(numbers(&events, 0).first(), Some(&8));
        assert_eq!(numbers(&events, all - 1), [all]);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let mut events = Events::new();
        events.add(EventKind::Output, Some("camera"), "µ".repeat(Events::TEXT_MAX));
        let event = events.after(0).next().expect("an event");
        assert!(event.text.len() <= Events::TEXT_MAX && event.text.ends_with("µ..."));
    }

    #[test]
    fn a_text_plays_with_no_terminal() {
        let mut events = Events::new();
        events.add(EventKind::Alarm, Some("monitor"), "a\u{1b}[2J\nb");
        assert_eq!(events.after(0).next().expect("an event").text, "a\u{fffd}[2J\u{fffd}b");
    }

    #[test]
    fn a_word_is_the_same_in_json_and_on_the_screen() {
        let json = serde_json::to_string(&DomainState::GivenUp).expect("JSON");
        assert_eq!(json, format!("\"{}\"", DomainState::GivenUp));
    }
}
