//! The ends of the node: where messages go out and come in, and services.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ros2_client::qos::{Durability, History, QosProfile, Reliability};
use ros2_client::{MessageInfo, ROSTime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sinew_core::{Fault, fault};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::qos::CongestionControl;
use zenoh::query::{Query, Queryable};
use zenoh_ext::{AdvancedPublisher, AdvancedPublisherBuilderExt, CacheConfig, MissDetectionConfig};

use super::wire::{Attachment, MESSAGE_MAX, Subject, bytes_of, heard, is_in, message_of, unix_ns};
use super::{Zenoh, refused};
use crate::session::{ANSWERED_MAX, Foreign, Origin, REQUESTS, Received, locked};

/// How often a writer that keeps messages repeats the number of its last one, if there was a new
/// one; as in rmw_zenoh.
const LAST: Duration = Duration::from_millis(500);
/// Longest attachment that is read, in bytes.
const ATTACHMENT_MAX: usize = 256;

/// Where messages go out.
pub(crate) struct ZenohWriter {
    publisher: AdvancedPublisher<'static>,
    gid: [u8; 16],
    sent: Cell<i64>,
    _token: LivelinessToken,
}

impl ZenohWriter {
    pub(super) fn declare(
        zenoh: &Zenoh,
        subject: &Subject,
        qos: &QosProfile,
    ) -> Result<ZenohWriter, Fault> {
        let is_reliable = matches!(qos.reliability, Reliability::Reliable { .. });
        let reliability = match is_reliable {
            true => zenoh::qos::Reliability::Reliable,
            false => zenoh::qos::Reliability::BestEffort,
        };
        let publisher = zenoh.session.declare_publisher(subject.key(zenoh.domain));
        let publisher = publisher.congestion_control(CongestionControl::Drop);
        let mut publisher = publisher.reliability(reliability).advanced();
        if qos.durability == Durability::TransientLocal {
            let kept = CacheConfig::default().max_samples(depth(qos));
            publisher = publisher.publisher_detection().cache(kept);
            if is_reliable {
                let last = MissDetectionConfig::default().sporadic_heartbeat(LAST);
                publisher = publisher.sample_miss_detection(last);
            }
        }
        let said =
            |error: zenoh::Error| refused(&format!("cannot publish at {}", subject.name), &error);
        let publisher = publisher.wait().map_err(said)?;
        let (token, gid) = zenoh.show("MP", subject, qos).map_err(said)?;
        Ok(ZenohWriter { publisher, gid, sent: Cell::new(0), _token: token })
    }

    /// Sends one message. Zenoh drops it if a connection has no room for it.
    ///
    /// # Errors
    /// Zenoh has failed.
    pub(crate) fn publish<M: Serialize>(&self, message: &M) -> Result<(), Fault> {
        let bytes = bytes_of(message).ok_or_else(|| fault!("cannot publish: it is too long"))?;
        self.sent.set(self.sent.get() + 1);
        let attachment = Attachment::now(self.sent.get(), self.gid).write();
        let sent = self.publisher.put(bytes).attachment(attachment).wait();
        sent.map_err(|error| refused("cannot publish", &error))
    }
}

fn depth(qos: &QosProfile) -> usize {
    match qos.history {
        History::KeepLast { depth } => depth,
        History::KeepAll => usize::MAX,
    }
}

/// Where messages come in.
pub(crate) struct ZenohReader {
    arrived: Arc<Mutex<VecDeque<Arrived>>>,
    /// When it began to listen.
    begun: Instant,
    own: Foreign,
    _subscriber: Subscriber<()>,
    _token: LivelinessToken,
}

/// A message that waits to be taken.
struct Arrived {
    at: ROSTime,
    /// The same moment by the monotonic clock.
    heard: Instant,
    /// The type and the hash that its key names.
    said: Foreign,
    /// `None`: there is no attachment, or it is too long.
    attachment: Option<ZBytes>,
    /// `None`: it is too long.
    payload: Option<ZBytes>,
}

impl ZenohReader {
    /// Listens to all types at the topic, so that messages of another type are counted and
    /// reported.
    pub(super) fn declare(
        zenoh: &Zenoh,
        subject: &Subject,
        qos: &QosProfile,
    ) -> Result<ZenohReader, Fault> {
        let said =
            |error: zenoh::Error| refused(&format!("cannot subscribe to {}", subject.name), &error);
        let (arrived, begun) = (Arc::<Mutex<VecDeque<Arrived>>>::default(), Instant::now());
        let (queue, room) = (Arc::clone(&arrived), depth(qos));
        let domain = zenoh.domain;
        let take = move |it: zenoh::sample::Sample| {
            if !is_in(domain, it.key_expr().as_str()) {
                return;
            }
            let short = |bytes: &&ZBytes, max| bytes.len() <= max;
            let attachment = it.attachment().filter(|it| short(it, ATTACHMENT_MAX)).cloned();
            let payload = Some(it.payload()).filter(|it| short(it, MESSAGE_MAX)).cloned();
            let (at, heard) = (ROSTime::from_nanos(unix_ns()), Instant::now());
            let said = said_by(it.key_expr().as_str());
            let mut queue = locked(&queue);
            // The oldest is dropped. Later the gap in the numbers counts it as lost.
            if queue.len() >= room {
                queue.pop_front();
            }
            queue.push_back(Arrived { at, heard, said, attachment, payload });
        };
        let subscriber = zenoh.session.declare_subscriber(heard(&subject.key_of_all(domain)));
        let subscriber = subscriber.callback(take).wait().map_err(said)?;
        let (token, _) = zenoh.show("MS", subject, qos).map_err(said)?;
        let own = said_by(&subject.key(zenoh.domain));
        Ok(ZenohReader { arrived, begun, own, _subscriber: subscriber, _token: token })
    }

    /// The next message.
    pub(crate) fn take<M: DeserializeOwned>(&self) -> Received<M> {
        let Some(it) = locked(&self.arrived).pop_front() else { return Received::Nothing };
        let attachment = it.attachment.and_then(|it| Attachment::read(&it.to_bytes()));
        let Some(attachment) = attachment else { return Received::Unreadable };
        let Attachment { number, sent_unix_ns, gid } = attachment;
        let heard_ns = it.heard.saturating_duration_since(self.begun).as_nanos() as i64;
        let took_ns = Some(heard_ns.saturating_sub(sent_unix_ns));
        let is_other = it.said != self.own;
        let info = MessageInfo::new(Some(it.at), None, number, gid.into(), None);
        let origin = Origin { info, said: Some(it.said), took_ns };
        match it.payload.and_then(|it| message_of(&it.to_bytes())) {
            _ if is_other => Received::Other(origin),
            Some(message) => Received::Message(message, origin),
            None => Received::Unreadable,
        }
    }
}

/// The type and its hash: the last two parts of a key.
fn said_by(key: &str) -> Foreign {
    let mut parts = key.rsplit('/').map(str::to_owned);
    let hash = parts.next();
    Foreign { type_name: parts.next().unwrap_or_default(), hash }
}

/// A service.
pub(crate) struct ZenohService {
    asked: Arc<Mutex<VecDeque<Query>>>,
    key: String,
    _queryable: Queryable<()>,
    _token: LivelinessToken,
}

impl ZenohService {
    pub(super) fn declare(
        zenoh: &Zenoh,
        subject: &Subject,
        qos: &QosProfile,
    ) -> Result<ZenohService, Fault> {
        let said = |error: zenoh::Error| refused(&format!("cannot offer {}", subject.name), &error);
        let asked = Arc::<Mutex<VecDeque<Query>>>::default();
        let queue = Arc::clone(&asked);
        let (domain, key) = (zenoh.domain, subject.key(zenoh.domain));
        let take = move |query: Query| {
            if !is_in(domain, query.key_expr().as_str()) {
                return;
            }
            let mut queue = locked(&queue);
            // The request that has waited longest is dropped, as in rmw_zenoh.
            if queue.len() >= REQUESTS {
                queue.pop_front();
            }
            queue.push_back(query);
        };
        let queryable = zenoh.session.declare_queryable(heard(&key)).complete(true);
        let queryable = queryable.callback(take).wait().map_err(said)?;
        let (token, _) = zenoh.show("SS", subject, qos).map_err(said)?;
        Ok(ZenohService { asked, key, _queryable: queryable, _token: token })
    }

    /// Answers the requests that have come since the last poll.
    pub(crate) fn answer<Q: DeserializeOwned, A: Serialize>(&self, mut done: impl FnMut(Q) -> A) {
        for _ in 0..ANSWERED_MAX {
            let Some(query) = locked(&self.asked).pop_front() else { return };
            // A malformed request gets no answer.
            let attachment = query.attachment().filter(|it| it.len() <= ATTACHMENT_MAX);
            let attachment = attachment.and_then(|it| Attachment::read(&it.to_bytes()));
            let payload = query.payload().filter(|it| it.len() <= MESSAGE_MAX);
            let asked = payload.and_then(|it| message_of(&it.to_bytes()));
            let Some((Attachment { number, gid, .. }, asked)) = attachment.zip(asked) else {
                continue;
            };
            let Some(answer) = bytes_of(&done(asked)) else { continue };
            let attachment = Attachment::now(number, gid).write();
            // A caller that is gone by now gets no answer.
            let _ = query.reply(&self.key, answer).attachment(attachment).wait();
        }
    }
}
