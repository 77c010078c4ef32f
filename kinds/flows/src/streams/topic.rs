//! `topic`: hands messages from publishers to all subscribers, across workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sinew_core::catalogue::{Kind, Parameter, ParameterType};
use sinew_core::fault::Fault;
use sinew_core::{Made, Parameters, Refusal};
use sinew_flow::{
    Error, FLOW, FlowEntry, Make, NodeContext, OpenResource, Resource, Resources, Value,
};
use sinew_spec::suggest;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, Notify, broadcast};

use crate::script::refused_for_now;

pub(crate) const NODE: FlowEntry = FlowEntry { kind: &INFO, make: Make::Resource(make) };

static INFO: Kind = Kind {
    name: "topic",
    doc: "Passes the messages of nodes 'publish' of its domain to all present subscribers: nodes \
          'subscribe', and websockets. These nodes name it; it has no ports.",
    parameters: &[
        Parameter::new("capacity", ParameterType::Integer { min: 1, max: 65_536 }).or("64").doc(
            "Most messages that wait for the slowest subscriber; rounded up to a power of two.",
        ),
        Parameter::new("when_full", ParameterType::Choice(&["wait", "drop"])).or("wait").doc(
            "When this many wait: the publisher waits (wait), or the slowest subscriber loses its \
             oldest message, which is counted and logged (drop).",
        ),
        Parameter::new(
            "message_size_max",
            ParameterType::Size { min_bytes: 16, max_bytes: 1 << 20 },
        )
        .or("64KiB")
        .doc("Longest message, as JSON."),
        Parameter::new("subscribers_max", ParameterType::Integer { min: 1, max: 1_000_000 })
            .or("16384")
            .doc("Most subscribers; one more is refused with 503."),
    ],
    ..FLOW
};

/// The limits that the parameters give.
#[derive(Clone, Copy)]
struct TopicLimits {
    capacity: usize,
    waits: bool,
    message_size_max: usize,
    subscribers_max: usize,
}

fn make(parameters: &Parameters<'_>) -> Made<dyn Resource> {
    Ok(Box::new(TopicLimits {
        capacity: (parameters.integer("capacity") as usize).next_power_of_two(),
        waits: parameters.text("when_full") == "wait",
        message_size_max: parameters.size("message_size_max") as usize,
        subscribers_max: parameters.integer("subscribers_max") as usize,
    }))
}

impl Resource for TopicLimits {
    /// After an edit, a topic with the same name and limits stays the same topic.
    fn open(self: Box<Self>, name: &str, resources: &Resources) -> Result<OpenResource, Fault> {
        let TopicLimits { capacity, waits, message_size_max, subscribers_max } = *self;
        let key = format!("{name} {capacity} {waits} {message_size_max} {subscribers_max}");
        Ok(resources.share(&key, || FlowTopic::new(*self)))
    }
}

/// The topic that a node names in this parameter.
pub(crate) struct NamedTopic {
    name: String,
    /// Set when the node is attached to a worker.
    topic: Option<Arc<FlowTopic>>,
}

impl NamedTopic {
    /// Finds the topic in the graph.
    ///
    /// # Errors
    /// There is no topic of this name.
    pub(crate) fn of(parameters: &Parameters<'_>, parameter: &str) -> Result<NamedTopic, Refusal> {
        let name = parameters.text(parameter);
        let topics = parameters.neighbours().filter(|node| node.kind.name == INFO.name);
        let names = topics.map(|node| node.name.as_str());
        if names.clone().any(|topic| topic == name) {
            return Ok(NamedTopic { name: name.to_owned(), topic: None });
        }
        let message = format!("there is no topic '{name}' in this domain");
        let help = match names.clone().next() {
            Some(_) => suggest(name, names),
            None => format!("add '- {{kind: topic, name: {name}}}'"),
        };
        let follows = parameters.is_left_out(INFO.name, Some(name));
        Err(Refusal::new(parameters.span(parameter), message, help).following(follows))
    }

    /// Takes the topic that all workers share.
    pub(crate) fn attach(&mut self, site: &NodeContext) {
        self.topic = site.resource(&self.name);
    }

    /// The topic.
    ///
    /// # Panics
    /// Before [`NamedTopic::attach`]: a node is attached before its first packet.
    pub(crate) fn get(&self) -> &Arc<FlowTopic> {
        self.topic.as_ref().expect("a node is attached before its first packet")
    }
}

/// A message, also as JSON.
pub(crate) struct TopicMessage {
    pub(crate) value: Value,
    pub(crate) json: Bytes,
}

/// A topic that is open.
pub(crate) struct FlowTopic {
    limits: TopicLimits,
    sender: broadcast::Sender<Arc<TopicMessage>>,
    /// Publishers take turns, so that all subscribers see the same order.
    publishing: Mutex<()>,
    /// Signals that a subscriber has taken a message, or is gone.
    room: Notify,
    subscribers: AtomicUsize,
    lost: AtomicU64,
}

impl FlowTopic {
    fn new(limits: TopicLimits) -> FlowTopic {
        FlowTopic {
            limits,
            sender: broadcast::Sender::new(limits.capacity),
            publishing: Mutex::default(),
            room: Notify::new(),
            subscribers: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Hands a message to all present subscribers, as soon as there is room.
    ///
    /// # Errors
    /// The message is too long (413).
    pub(crate) async fn publish(&self, message: TopicMessage) -> Result<(), Error> {
        let (len, most) = (message.json.len(), self.limits.message_size_max);
        if len > most {
            let text = format!("a message of {len} bytes, at most {most}; raise message_size_max");
            return Err(Error::new(text).with_status(413));
        }
        let _turn = self.publishing.lock().await;
        while self.limits.waits && self.sender.len() >= self.limits.capacity {
            // If a subscriber takes a message between the check and this wait, its signal is kept.
            self.room.notified().await;
        }
        // An error means that there are no subscribers.
        let _ = self.sender.send(Arc::new(message));
        Ok(())
    }

    /// A subscription to all messages from now on.
    ///
    /// # Errors
    /// There are too many subscribers (503).
    pub(crate) fn subscribe(self: &Arc<FlowTopic>) -> Result<Subscription, Error> {
        // Relaxed: it is a count alone; no other data goes with it.
        let before = self.subscribers.fetch_add(1, Ordering::Relaxed);
        // From here on it counts as a subscriber, until it is dropped.
        let receiver = self.sender.subscribe();
        let subscription =
            Subscription { topic: Arc::clone(self), receiver: Some(receiver), lost: 0, told: None };
        let most = self.limits.subscribers_max;
        if before >= most {
            let what = format!("the topic has {most} subscribers; raise 'subscribers_max'");
            return Err(refused_for_now(503, what, 1));
        }
        Ok(subscription)
    }
}

/// A subscriber's end of a topic.
pub(crate) struct Subscription {
    topic: Arc<FlowTopic>,
    /// `Some` until this is dropped.
    receiver: Option<broadcast::Receiver<Arc<TopicMessage>>>,
    lost: u64,
    told: Option<Instant>,
}

/// Time between two lines of the log about messages that a subscriber has lost.
const TOLD_SPACING: Duration = Duration::from_secs(10);

impl Subscription {
    /// The next message; `None` when no more can come. If the future is dropped before its end,
    /// nothing is lost.
    pub(crate) async fn next(&mut self) -> Option<Arc<TopicMessage>> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.recv().await {
                Ok(message) => {
                    self.topic.room.notify_one();
                    return Some(message);
                }
                Err(RecvError::Lagged(count)) => {
                    self.lost += count;
                    // Relaxed: it is a count alone, as in `FlowTopic::subscribe`.
                    self.topic.lost.fetch_add(count, Ordering::Relaxed);
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// How many messages this subscriber has lost since the last call that told so, and how many
    /// all subscribers have lost; `None` if there is nothing to log now.
    pub(crate) fn news(&mut self) -> Option<(u64, u64)> {
        let is_time = self.told.is_none_or(|told| told.elapsed() > TOLD_SPACING);
        if self.lost == 0 || !is_time {
            return None;
        }
        self.told = Some(Instant::now());
        // Relaxed: it is a count alone, as in `FlowTopic::subscribe`.
        Some((std::mem::take(&mut self.lost), self.topic.lost.load(Ordering::Relaxed)))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Messages that it has not taken keep no publisher waiting any more.
        self.receiver.take();
        self.topic.subscribers.fetch_sub(1, Ordering::Relaxed);
        self.topic.room.notify_one();
    }
}

#[cfg(test)]
mod tests;
