//! How a run is seen and reached: what it says of itself ([`status`], [`counters`]), and a Unix
//! socket on which it answers what it is asked, one JSON object per line each way.
//!
//! ```text
//! > {"sinew": 1, "request": "status"}
//! < {"sinew":1,"status":{"graph":"arm","pid":4711,...}}
//! > {"sinew": 1, "request": "stop"}
//! < {"sinew":1,"done":{"text":"stopping","newest":17}}
//! > {"sinew": 1, "request": "halt", "reason": "a hand in the cell"}
//! < {"sinew":1,"done":{"text":"the core stops","newest":18}}
//! > {"sinew": 1, "request": "restart", "domain": "camera"}
//! < {"sinew":1,"error":"no domain 'camera'; its domains: control, plant"}
//! > {"sinew": 1, "request": "log", "after": 15, "follow": false}
//! < {"sinew":1,"event":{"number":16,...}}
//! < {"sinew":1,"event":{"number":17,...}}
//! < {"sinew":1,"end":17}
//! ```
//!
//! With `follow` there is no end: every further event follows as it happens. Events that the run no
//! longer keeps come as `{"sinew":1,"missed":7}`.
//!
//! The socket stands in a folder that only its owner may enter ([`place`]), has mode 0600, and the
//! kernel is asked who is at the other end: another user cannot attach. What a peer sends is
//! hostile input all the same: everything about it is bounded ([`Server`]).

pub mod client;
pub mod counters;
pub mod hosts;
pub mod outside;
mod peer;
pub mod place;
mod server;
mod spec;
pub mod status;
mod supervisor;
pub mod tap;
pub mod traces;

use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sinew_plan::Brought;

pub use self::peer::{Caller, HANDED_MAX, PeerId};
pub use self::server::{Incoming, PEERS_MAX, Server};
use crate::status::{Event, FlowFigures, HostStatus, PoolStatus, Status};
use crate::tap::{TapLine, TapRequest};
use crate::traces::RunLayout;

pub use spec::{Spec, WrittenImages, WrittenTuning};
pub use supervisor::Supervisor;

/// Version of the protocol: the first key of every line. Whoever speaks another one is told so.
pub const VERSION: u64 = 1;

/// Bytes of a request with its newline. Ours take 60, and what is known of 23 other hosts 10 000; a
/// longer one is refused, and its sender with it.
pub const REQUEST_LEN_MAX: usize = 16_384;

/// What is asked of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// What it looks like now: [`Answer::Status`].
    Status {},
    /// What stands in the records of the core's cycles, and where they are: [`Answer::Traces`].
    Traces {},
    /// To stop in order: [`Answer::Done`] at once; the end comes later.
    Stop {},
    /// To stop the core, with safe outputs at the next cycle boundary: [`Answer::Done`] at once. In
    /// a graph that holds, the services go on, and [`Request::Reset`] starts the core again; any
    /// other graph ends.
    Halt {
        /// Why, in a few words.
        #[serde(default)]
        reason: Option<String>,
    },
    /// To start the core again after it has stopped, for whatever reason, in a graph that holds.
    Reset {},
    /// From a service only: where people find what it serves.
    Announce {
        /// Such as `http://127.0.0.1:8600/`.
        address: String,
    },
    /// From a service only: something that people should know at once; it becomes an event.
    Alarm {
        /// What and why, in a sentence.
        text: String,
    },
    /// From a service only: for the edited graph that it is to prepare: [`Answer::Edition`].
    Edition {},
    /// From a service only: whether it has all that an edited graph needs.
    Prepared {
        /// Of the edited graph.
        number: u32,
        /// Why it cannot have it.
        #[serde(default)]
        refused: Option<String>,
    },
    /// From a service only: its flows begin in the edited graph now.
    Swapped {
        /// Of the edited graph.
        number: u32,
        /// So many have begun in the graph before, and end there.
        flows: u64,
    },
    /// From a service only: what some of its flow nodes have done so far.
    Figures {
        /// A few of them; a request is short.
        nodes: Vec<FlowFigures>,
    },
    /// From a service only: its threads for work that blocks.
    Pool {
        /// What they are at now.
        pool: PoolStatus,
    },
    /// From a service only: what it knows of the other hosts of the graph.
    Hosts {
        /// All of them.
        hosts: Vec<HostStatus>,
    },
    /// From a service only: that the job of the run is done, or has failed: the run stops in order,
    /// and its exit status tells.
    Finish {
        /// Why it has failed.
        #[serde(default)]
        error: Option<String>,
    },
    /// To restart a service: [`Answer::Done`] at once; that it is ready again is an event.
    Restart {
        /// The service's domain.
        domain: String,
    },
    /// What may be set while the core runs: [`Answer::Tunables`].
    Tunables {},
    /// To set parameters between two cycles, those of a node all at once: [`Answer::Done`] once
    /// they are on their way, or none is.
    Set {
        /// `NODE.PARAMETER=VALUE` each, at most [`SETTINGS_MAX`].
        settings: Vec<String>,
        /// Whether the spec is to have them too; an event tells what came of that.
        #[serde(default)]
        save: bool,
    },
    /// Of a domain, at its socket for taps: to see packets, [`Answer::Tap`] for each, until the
    /// connection ends.
    Tap(TapRequest),
    /// As above: the packet that is held goes on, and is held before its next node.
    Step {},
    /// As above: the packet that is held goes on.
    Go {},
    /// What happened: [`Answer::Event`] for each, then [`Answer::End`].
    Log {
        /// Number of the last event that is known; 0 for all that the run keeps.
        #[serde(default)]
        after: u64,
        /// Whether to go on with what happens later; then there is no end.
        #[serde(default)]
        follow: bool,
    },
}

/// A line from a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What it looks like.
    Status(Box<Status>),
    /// What may be set while the core runs, in the order of the plan.
    Tunables(Vec<Tunable>),
    /// What stands in the records. With the line come descriptors of the traces, for reading only,
    /// in the order of its threads: [`client::traces`] takes them.
    Traces(Box<RunLayout>),
    /// It does what it was asked to.
    Done {
        /// What it does.
        text: String,
        /// Number of the newest event before that: what comes of it has higher ones.
        newest: u64,
    },
    /// It does not: why, what was expected, what to do instead.
    Error(String),
    /// Something happened.
    Event(Event),
    /// So many events are kept no more.
    Missed(u64),
    /// No more events yet; the number of the newest.
    End(u64),
    /// What a tap shows.
    Tap(TapLine),
    /// An edited graph.
    Edition {
        /// From 1.
        number: u32,
        /// The text of the spec.
        text: String,
        /// Nodes that read files which were edited.
        touched: Vec<String>,
        /// What it takes from outside, as it was read for this edit.
        #[serde(default, with = "spec::written_outside")]
        outside: Vec<Brought>,
    },
}

/// Most parameters that one request sets.
pub const SETTINGS_MAX: usize = 64;

/// A parameter that may be set while the core runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tunable {
    /// Its node.
    pub node: String,
    /// Its name.
    pub parameter: String,
    /// What it is now, as the spec writes it.
    pub value: String,
    /// Unit, or empty.
    pub unit: String,
    /// What it takes, in words.
    pub takes: String,
    /// Least value, if it is a number.
    pub min: Option<f64>,
    /// Greatest value, if it is a number.
    pub max: Option<f64>,
    /// A sentence.
    pub doc: String,
}

/// A line with its version.
#[derive(Serialize, Deserialize)]
struct Line<T> {
    sinew: u64,
    #[serde(flatten)]
    what: T,
}

fn to_line<T: Serialize>(what: T) -> Vec<u8> {
    let line = Line { sinew: VERSION, what };
    let mut bytes = serde_json::to_vec(&line).expect("a bug: our own types are JSON objects");
    bytes.push(b'\n');
    bytes
}

/// What a line asks for.
///
/// # Errors
/// What is wrong with it, and what was expected.
fn parse_request(line: &[u8]) -> Result<Request, String> {
    const EXPECTED: &str = r#"expected a line such as {"sinew": 1, "request": "status"}"#;
    let Keys(mut object) =
        serde_json::from_slice(line).map_err(|error| format!("{error}; {EXPECTED}"))?;
    match object.remove("sinew") {
        Some(version) if version == VERSION => {}
        Some(other) => {
            return Err(format!(
                "version {other} of the protocol is asked for, this run speaks {VERSION}; use the \
                 sinew that it was started with"
            ));
        }
        None => return Err(format!("no version; {EXPECTED}")),
    }
    serde_json::from_value(Value::Object(object)).map_err(|error| format!("{error}; {EXPECTED}"))
}

/// A JSON object in which no key stands twice: a reader that takes the last of two, and one that
/// takes the first, would see two orders. An object within it is no request and is refused.
struct Keys(Map<String, Value>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Keys, D::Error> {
        from.deserialize_map(Keys(Map::new()))
    }
}

impl<'de> Visitor<'de> for Keys {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Keys, A::Error> {
        while let Some((key, value)) = entries.next_entry::<String, Value>()? {
            if self.0.contains_key(&key) {
                return Err(A::Error::custom(format_args!("key '{key}' stands twice")));
            }
            self.0.insert(key, value);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_back_from_its_line() {
        let requests = [
            Request::Status {},
            Request::Traces {},
            Request::Stop {},
            Request::Halt { reason: Some("a hand in the cell".into()) },
            Request::Reset {},
            Request::Announce { address: "http://127.0.0.1:8600/".into() },
            Request::Alarm { text: "too hot".into() },
            Request::Edition {},
            Request::Prepared { number: 3, refused: Some("port 80 is in use".into()) },
            Request::Swapped { number: 3, flows: 37 },
            Request::Finish { error: Some("no such file".into()) },
            Request::Restart { domain: "camera".into() },
            Request::Tap(TapRequest {
                node: Some("greet".into()),
                filter: Some("packet.a == 1".into()),
                per_s: 5,
                way: true,
                pause: false,
            }),
            Request::Tunables {},
            Request::Set { settings: vec!["pid.kp=2".into()], save: true },
            Request::Step {},
            Request::Go {},
            Request::Log { after: u64::MAX, follow: true },
        ];
        for request in requests {
            let line = to_line(&request);
            assert_eq!(line.last(), Some(&b'\n'));
            assert_eq!(parse_request(&line), Ok(request));
        }
        let short = parse_request(br#"{"sinew": 1, "request": "log"}"#);
        assert_eq!(short, Ok(Request::Log { after: 0, follow: false }));
        let short = parse_request(br#"{"sinew": 1, "request": "halt"}"#);
        assert_eq!(short, Ok(Request::Halt { reason: None }));
    }

    #[test]
    fn an_answer_comes_back_from_its_line() {
        let answers = [
            Answer::Done { text: "stopping".into(), newest: 3 },
            Answer::Error("no domain 'x'".into()),
            Answer::Tunables(vec![Tunable { min: Some(-1.5), ..Tunable::default() }]),
            Answer::Missed(7),
            Answer::End(u64::MAX),
            Answer::Tap(TapLine::Lost(3)),
            Answer::Edition {
                number: 1,
                text: "name: \"ü\"\n".into(),
                touched: vec![],
                outside: vec![],
            },
        ];
        for answer in answers {
            let line: Line<Answer> = serde_json::from_slice(&to_line(&answer)).expect("a line");
            assert_eq!((line.sinew, line.what), (VERSION, answer));
        }
    }

    #[test]
    fn garbage_is_answered_with_what_was_expected() {
        let deep = format!("{{\"sinew\": {}", "[".repeat(REQUEST_LEN_MAX));
        let cases: [(&[u8], &str); 16] = [
            (b"", "EOF while parsing a value"),
            (b"\0\xff\xfe", "expected value"),
            (b"status", "expected value"),
            (b"[1]", "expected a JSON object"),
            (b"{}", "no version"),
            (br#"{"sinew": 2, "request": "status"}"#, "version 2"),
            (br#"{"sinew": "1", "request": "status"}"#, "version \"1\""),
            (br#"{"sinew": 1, "request": "explode"}"#, "unknown variant `explode`"),
            (br#"{"sinew": 1, "request": "restart"}"#, "missing field `domain`"),
            (br#"{"sinew": 1, "request": "halt", "reason": 5}"#, "expected a string"),
            (br#"{"sinew": 1, "request": "reset", "domain": "core"}"#, "unknown field `domain`"),
            (br#"{"sinew": 1, "request": "status", "x": 1}"#, "unknown field `x`"),
            (br#"{"sinew": 1, "request": "tap", "nod": "a"}"#, "unknown field `nod`"),
            (br#"{"sinew": 1, "request": "status", "request": "stop"}"#, "'request' stands twice"),
            (br#"{"sinew": 2, "request": "stop", "sinew": 1}"#, "'sinew' stands twice"),
            (deep.as_bytes(), "recursion limit"),
        ];
        for (line, expected) in cases {
            let error = parse_request(line).expect_err("garbage");
            assert!(error.contains(expected), "{error}");
            assert!(error.contains("\"request\"") || error.contains("use the sinew"), "{error}");
        }
    }
}
