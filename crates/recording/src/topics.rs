//! The topics of a graph's recording, as they follow from the plan alone. Writer and reader both
//! use this module.

use std::collections::BTreeMap;

use sinew_core::catalogue::{Direction, ParameterType, ParameterValue};
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Tap, taps};
use sinew_spec::plan::{End, Plan};

use super::schema::{schema_name, schema_text};
use super::{clock, cycle, event};

/// The description of a topic in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicHead {
    /// `/<node>/<port>`, `/<domain>/<thread>/cycle`, `/@clock/<host>` or `/@events`.
    pub name: String,
    /// Name and text of the schema of its messages.
    pub schema: (String, String),
    /// A description in words, for people who look at the file.
    pub metadata: BTreeMap<String, String>,
}

/// A topic of the core.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its description in the file.
    pub head: TopicHead,
    /// Its thread, by the place among [`ThreadId::all`].
    pub thread: usize,
    /// The content of its messages.
    pub what: TopicContent,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicContent {
    /// A message at this tap of the thread.
    Tap(usize),
    /// A cycle of the thread.
    Cycle,
}

/// Topic of the messages at a port.
pub fn port_topic(node: &str, port: &str) -> String {
    format!("/{node}/{port}")
}

/// Topic of the cycles of a thread.
pub fn cycle_topic(plan: &Plan, id: ThreadId) -> String {
    format!("/{}/{}/cycle", plan.domains[id.domain].name, id.thread)
}

/// All topics. Those of a thread are together: its taps in order, then its cycles.
pub fn topics(plan: &Plan) -> Vec<Topic> {
    let mut topics = Vec::new();
    for (thread, id) in ThreadId::all(plan).enumerate() {
        let taps = taps(plan, id.nodes(plan));
        topics.extend(taps.iter().enumerate().map(|(at, tap)| tapped(plan, thread, id, at, tap)));
        let head = TopicHead {
            name: cycle_topic(plan, id),
            schema: cycle::schema(plan, id),
            metadata: rows(thread_rows(plan, id)),
        };
        topics.push(Topic { head, thread, what: TopicContent::Cycle });
    }
    topics
}

/// For the part of a host: the topics of the other hosts' clocks, in the order of the plan.
pub fn clock_topics(plan: &Plan) -> Vec<TopicHead> {
    let own = plan.own_host().map(|own| &own.name);
    let others = plan.hosts.all.iter().map(|host| &host.name).filter(|name| Some(*name) != own);
    let of = |host: &String| TopicHead {
        name: clock::topic(host),
        schema: (clock::SCHEMA.into(), clock::SCHEMA_TEXT.into()),
        metadata: rows([("clock_of", host.clone())]),
    };
    others.filter(|_| own.is_some()).map(of).collect()
}

/// The topic of the events.
pub fn event_topic() -> TopicHead {
    TopicHead {
        name: event::TOPIC.into(),
        schema: (event::SCHEMA.into(), event::SCHEMA_TEXT.into()),
        metadata: BTreeMap::new(),
    }
}

/// Whether a topic is about the run instead of the core. A replay does not need it.
pub(crate) fn is_beside(topic: &str) -> bool {
    topic.starts_with("/@")
}

fn thread_rows(plan: &Plan, id: ThreadId) -> [(&'static str, String); 2] {
    [("domain", plan.domains[id.domain].name.clone()), ("thread", id.thread.to_string())]
}

fn rows(rows: impl IntoIterator<Item = (&'static str, String)>) -> BTreeMap<String, String> {
    rows.into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
}

/// The topic of a tap.
fn tapped(plan: &Plan, thread: usize, id: ThreadId, at: usize, tap: &Tap) -> Topic {
    let message = plan.port(tap.end).message;
    let name = |end: End| format!("{}.{}", plan.nodes[end.node].name, plan.port(end).name);
    let links = plan.links.iter().filter(|link| match tap.direction {
        Direction::In => link.to == tap.end,
        Direction::Out => link.from == tap.end,
    });
    let links = links.map(|link| format!("{} -> {}", name(link.from), name(link.to)));
    let direction = match tap.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let metadata = [
        ("direction", direction.into()),
        ("links", links.collect::<Vec<_>>().join(", ")),
        ("tap", at.to_string()),
        ("hash", format!("{:08x}", message.hash)),
    ];
    let head = TopicHead {
        name: port_topic(&plan.nodes[tap.end.node].name, plan.port(tap.end).name),
        schema: (schema_name(message), schema_text(message)),
        metadata: rows(metadata.into_iter().chain(thread_rows(plan, id))),
    };
    Topic { head, thread, what: TopicContent::Tap(at) }
}

/// The files that parameters of the core's nodes name, each once. They are attached.
pub fn files(plan: &Plan) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let core = (0..plan.nodes.len()).filter(|&node| !plan.is_service(node));
    for node in core.map(|node| &plan.nodes[node]) {
        for (parameter, value) in node.kind.parameters.iter().zip(&node.values) {
            match (parameter.ty, value) {
                (ParameterType::Path, ParameterValue::Text(name)) => files.push(name.clone()),
                (ParameterType::Paths { .. }, ParameterValue::Texts(names)) => {
                    files.extend_from_slice(names)
                }
                _ => {}
            }
        }
    }
    files.sort();
    files.dedup();
    files.retain(|name| !name.is_empty());
    files
}
