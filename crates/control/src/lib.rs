//! How others see a run and reach it. [`status`] and [`counters`] hold what a run says about
//! itself. A Unix socket takes requests and gives answers, one JSON object per line in each
//! direction.
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
//! With `follow` there is no end: every further event is sent as it happens. Events that the run no
//! longer keeps are sent as `{"sinew":1,"missed":7}`.
//!
//! The socket is in a folder that only its owner may enter ([`place`]), and has mode 0600. The
//! kernel is asked who is at the other end, so another user cannot attach. What a peer sends is
//! hostile input all the same, so all of it is bounded ([`Server`]).

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

/// Version of the protocol: the first key of every line. A peer with another version is told so.
pub const VERSION: u64 = 1;

/// Most bytes of a request with its newline. Our requests take 60, and the figures of 23 other
/// hosts take 10 000. A longer request is refused, and its sender is disconnected.
pub const REQUEST_LEN_MAX: usize = 16_384;

/// A request to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// For the current status: [`Answer::Status`].
    Status {},
    /// For the layout of the records of the core's cycles, and for the records: [`Answer::Traces`].
    Traces {},
    /// To stop in order. [`Answer::Done`] comes at once, the end comes later.
    Stop {},
    /// To stop the core, with safe outputs at the next cycle boundary. [`Answer::Done`] comes at
    /// once. In a graph with `hold`, the services go on, and [`Request::Reset`] starts the core
    /// again. Any other graph ends.
    Halt {
        /// Why, in a few words.
        #[serde(default)]
        reason: Option<String>,
    },
    /// To start the core again after it has stopped for any reason, in a graph with `hold`.
    Reset {},
    /// From a service only: the address at which people reach it.
    Announce {
        /// Such as `http://127.0.0.1:8600/`.
        address: String,
    },
    /// From a service only: something that people should know at once. It becomes an event.
    Alarm {
        /// What and why, in a sentence.
        text: String,
    },
    /// From a service only: for the edited graph that it must prepare: [`Answer::Edition`].
    Edition {},
    /// From a service only: whether it has everything that an edited graph needs.
    Prepared {
        /// Of the edited graph.
        number: u32,
        /// Why the service cannot prepare it.
        #[serde(default)]
        refused: Option<String>,
    },
    /// From a service only: its new flows now begin in the edited graph.
    Swapped {
        /// Of the edited graph.
        number: u32,
        /// The number of flows that began in the previous graph, and end there.
        flows: u64,
    },
    /// From a service only: what some of its flow nodes have done so far.
    Figures {
        /// Some of its nodes: a request is short.
        nodes: Vec<FlowFigures>,
    },
    /// From a service only: the state of its threads for work that blocks.
    Pool {
        /// Their state now.
        pool: PoolStatus,
    },
    /// From a service only: what it knows about the other hosts of the graph.
    Hosts {
        /// All other hosts.
        hosts: Vec<HostStatus>,
    },
    /// From a service only: the job of the run is done, or has failed. The run stops in order, and
    /// its exit status shows which.
    Finish {
        /// Why the job has failed.
        #[serde(default)]
        error: Option<String>,
    },
    /// To restart a service. [`Answer::Done`] comes at once; an event says when the service is
    /// ready.
    Restart {
        /// The service's domain.
        domain: String,
    },
    /// For the parameters that may be set while the core runs: [`Answer::Tunables`].
    Tunables {},
    /// To set parameters between two cycles, those of a node all at once. [`Answer::Done`] means
    /// that all were accepted; otherwise none is set.
    Set {
        /// `NODE.PARAMETER=VALUE` each, at most [`SETTINGS_MAX`].
        settings: Vec<String>,
        /// Whether to write the values to the spec too. An event says whether that succeeded.
        #[serde(default)]
        save: bool,
    },
    /// To a domain, at its socket for taps: to see packets, with an [`Answer::Tap`] for each, until
    /// the connection ends.
    Tap(TapRequest),
    /// At the same socket: the held packet goes on, and is held before its next node.
    Step {},
    /// At the same socket: the held packet goes on.
    Go {},
    /// For the events: [`Answer::Event`] for each, then [`Answer::End`].
    Log {
        /// Number of the last event that the client knows; 0 for all that the run keeps.
        #[serde(default)]
        after: u64,
        /// Whether to go on with later events; then there is no end.
        #[serde(default)]
        follow: bool,
    },
}

/// A line from a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The current status.
    Status(Box<Status>),
    /// The parameters that may be set while the core runs, in the order of the plan.
    Tunables(Vec<Tunable>),
    /// The layout of the records. Read-only descriptors of the traces come with the line, in the
    /// order of the threads: [`client::traces`] receives them.
    Traces(Box<RunLayout>),
    /// The request is carried out.
    Done {
        /// What the run does.
        text: String,
        /// Number of the newest event before that. Events that result from the request have higher
        /// numbers.
        newest: u64,
    },
    /// The request is refused: why, what was expected, what to do instead.
    Error(String),
    /// Something happened.
    Event(Event),
    /// This many events are no longer kept.
    Missed(u64),
    /// There are no more events yet. The number of the newest event.
    End(u64),
    /// What a tap shows.
    Tap(TapLine),
    /// An edited graph.
    Edition {
        /// Number of the edit, from 1.
        number: u32,
        /// The text of the spec.
        text: String,
        /// Nodes that read edited files.
        touched: Vec<String>,
        /// The values from outside of the spec, as they were read for this edit.
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
    /// Its current value, as the spec writes it.
    pub value: String,
    /// Unit, or empty.
    pub unit: String,
    /// The values that it takes, in words.
    pub takes: String,
    /// Least value, if it is a number.
    pub min: Option<f64>,
    /// Greatest value, if it is a number.
    pub max: Option<f64>,
    /// What the parameter does, in a sentence.
    pub doc: String,
}

/// A line together with its version.
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

/// The request in a line.
///
/// # Errors
/// What is wrong with the line, and what was expected.
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

/// A JSON object in which no key occurs twice. If one did, a reader that takes the first and one
/// that takes the last would see two different orders. A nested object is no request and is
/// refused.
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
