//! The one node of ROS that a service domain is, over DDS or over Zenoh. All nodes of the domain
//! share it.

mod dds;
mod zenoh;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ros2_client::dds::{Publisher, Server, Subscription};
use ros2_client::qos::{History, QosProfile, WhenFull};
use ros2_client::{Gid, MessageInfo, Name, NodeName, ReadError, WriteError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sinew_core::{Fault, fault};

use self::dds::Dds;
pub(crate) use self::zenoh::ParameterServices;
use self::zenoh::{Zenoh, ZenohReader, ZenohService, ZenohWriter};
use crate::definition::{Definition, RosMessage};
use crate::messages::{TriggerRequest, TriggerResponse};
use crate::settings::Settings;
use crate::values::Values;

/// Most requests that wait at a service of ROS, as in rclcpp.
const REQUESTS: usize = 10;
/// Most requests that one poll answers: a flood must not hold up the heartbeat.
const ANSWERED_MAX: usize = 16;

/// Time between two notes of what a topic has done.
pub(crate) const NOTE: Duration = Duration::from_secs(1);

/// The sessions of this process. Nodes with the same settings share one.
static SESSIONS: Mutex<Vec<(Settings, Weak<Session>)>> = Mutex::new(Vec::new());

/// What the nodes of a domain share.
pub(crate) struct Session {
    way: Way,
    node_name: NodeName,
    /// The values of the parameters.
    pub(crate) values: Arc<Values>,
    /// What the topics have done. By the name of the node: words, each with its number.
    ledger: Mutex<BTreeMap<String, Vec<(&'static str, u64)>>>,
}

/// How it reaches other nodes.
enum Way {
    Dds(Box<Dds>),
    Zenoh(Zenoh),
}

/// Locks, poisoned or not: a lock is held for single steps, none of which leaves its data half
/// done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    /// The session with these settings: the one that another node of this process has begun, or a
    /// new one.
    ///
    /// # Errors
    /// The network refuses it.
    pub(crate) fn join(settings: &Settings) -> Result<Arc<Session>, Fault> {
        let mut sessions = locked(&SESSIONS);
        sessions.retain(|(_, session)| session.strong_count() > 0);
        let same = sessions.iter().find(|(other, _)| other == settings);
        if let Some(session) = same.and_then(|(_, session)| session.upgrade()) {
            return Ok(session);
        }
        let session = Arc::new(Session::begin(settings)?);
        sessions.push((settings.clone(), Arc::downgrade(&session)));
        Ok(session)
    }

    fn begin(settings: &Settings) -> Result<Session, Fault> {
        let values = Arc::new(Values::new(&settings.declared));
        let way = match &settings.router {
            None => Way::Dds(Box::new(Dds::begin(settings, &values)?)),
            Some(router) => Way::Zenoh(Zenoh::begin(settings, router)?),
        };
        let (node_name, ledger) = (settings.node_name()?, Mutex::default());
        Ok(Session { way, node_name, values, ledger })
    }

    /// The full name of a topic or a service: `/x` stands for itself, `x` is in the namespace of
    /// the node, `~/x` below its name.
    ///
    /// # Errors
    /// The text is not a valid name.
    pub(crate) fn name_of(&self, text: &str) -> Result<Name, Fault> {
        name_of(&self.node_name, text)
    }

    /// The node's full name.
    pub(crate) fn node_name(&self) -> String {
        self.node_name.fully_qualified_name()
    }

    /// The domain in which the node is found, as text for people.
    pub(crate) fn place(&self) -> String {
        match &self.way {
            Way::Dds(dds) => format!("domain {} of DDS", dds.domain()),
            Way::Zenoh(zenoh) => format!("domain {} of rmw_zenoh", zenoh.domain()),
        }
    }

    /// Begins to publish at a topic.
    ///
    /// # Errors
    /// The name is not valid, or the network refuses it.
    pub(crate) fn publish<M: RosMessage + Serialize>(
        &self,
        topic: &str,
        qos: &QosProfile,
    ) -> Result<TopicWriter<M>, Fault> {
        let name = self.name_of(topic)?;
        Ok(match &self.way {
            Way::Dds(dds) => TopicWriter::Dds(dds.publish(&name, qos)?),
            Way::Zenoh(zenoh) => TopicWriter::Zenoh(zenoh.publish::<M>(&name, qos)?),
        })
    }

    /// Begins to listen at a topic.
    ///
    /// # Errors
    /// As for [`Session::publish`].
    pub(crate) fn subscribe<M: RosMessage + DeserializeOwned + 'static>(
        &self,
        topic: &str,
        qos: &QosProfile,
    ) -> Result<TopicReader<M>, Fault> {
        let name = self.name_of(topic)?;
        Ok(match &self.way {
            Way::Dds(dds) => TopicReader::Dds(Box::new(dds.subscribe(&name, qos)?)),
            Way::Zenoh(zenoh) => TopicReader::Zenoh(zenoh.subscribe::<M>(&name, qos)?),
        })
    }

    /// Offers a service that is triggered: `std_srvs/srv/Trigger`.
    ///
    /// # Errors
    /// As for [`Session::publish`].
    pub(crate) fn offer(&self, service: &str) -> Result<TriggerServer, Fault> {
        let name = self.name_of(service)?;
        Ok(match &self.way {
            Way::Dds(dds) => TriggerServer::Dds(Box::new(dds.offer(&name)?)),
            Way::Zenoh(zenoh) => TriggerServer::Zenoh(zenoh.offer(&name)?),
        })
    }

    /// The services of the parameters, which the caller has to answer. `None`: they answer by
    /// themselves.
    ///
    /// # Errors
    /// The network refuses them.
    pub(crate) fn parameters(&self) -> Result<Option<ParameterServices>, Fault> {
        match &self.way {
            Way::Dds(_) => Ok(None),
            Way::Zenoh(zenoh) => zenoh.parameters(&self.values).map(Some),
        }
    }

    /// What is known of a writer whose messages do not say their type. `None`: nothing.
    pub(crate) fn writer(&self, gid: Gid) -> Option<Foreign> {
        match &self.way {
            Way::Dds(dds) => dds.writer(gid),
            Way::Zenoh(_) => None,
        }
    }

    /// The router that the session needs, if any, and whether it is connected. May block for a
    /// moment.
    pub(crate) fn router(&self) -> Option<(&str, bool)> {
        match &self.way {
            Way::Dds(_) => None,
            Way::Zenoh(zenoh) => Some(zenoh.router()),
        }
    }

    /// Keeps what the topic of a node has done so far.
    ///
    /// # Errors
    /// The session does not work any more.
    pub(crate) fn note(&self, node: &str, figures: Vec<(&'static str, u64)>) -> Result<(), Fault> {
        locked(&self.ledger).insert(node.to_owned(), figures);
        self.check()
    }

    /// Checks that the session still works.
    ///
    /// # Errors
    /// It does not work any more: only a new process helps.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match &self.way {
            Way::Dds(dds) => {
                let sessions = locked(&SESSIONS);
                let is_dds = |(settings, session): &&(Settings, Weak<Session>)| {
                    settings.router.is_none() && session.strong_count() > 0
                };
                dds.check(sessions.iter().filter(is_dds).count())
            }
            Way::Zenoh(zenoh) => zenoh.check(),
        }
    }

    /// What all topics have done.
    pub(crate) fn notes(&self) -> BTreeMap<String, Vec<(&'static str, u64)>> {
        locked(&self.ledger).clone()
    }
}

/// Where messages of a type go out.
pub(crate) enum TopicWriter<M: Serialize> {
    Dds(Publisher<M>),
    Zenoh(ZenohWriter),
}

impl<M: RosMessage + Serialize> TopicWriter<M> {
    /// Sends one message. Returns whether there was room for it.
    ///
    /// # Errors
    /// The network has failed.
    pub(crate) fn publish(&self, message: M) -> Result<bool, Fault> {
        match self {
            TopicWriter::Dds(publisher) => match publisher.publish(message) {
                Ok(()) => Ok(true),
                Err(WriteError::WouldBlock { .. }) => Ok(false),
                Err(error) => Err(fault!("cannot publish: {error}")),
            },
            TopicWriter::Zenoh(writer) => writer.publish(&message).map(|()| true),
        }
    }
}

/// Where messages of a type come in.
pub(crate) enum TopicReader<M: DeserializeOwned> {
    Dds(Box<Subscription<M>>),
    Zenoh(ZenohReader),
}

/// What a poll of a topic finds.
pub(crate) enum Received<M> {
    /// Nothing new.
    Nothing,
    /// Bytes that are not a message of this type, or do not name their sender.
    Unreadable,
    /// A message that itself names another type.
    Other(Origin),
    /// A message.
    Message(M, Origin),
}

/// Where a message comes from.
pub(crate) struct Origin {
    /// Its writer, its number, and when it arrived here.
    pub(crate) info: MessageInfo,
    /// What the message says of its writer. `None`: ask [`Session::writer`].
    pub(crate) said: Option<Foreign>,
    /// Time of arrival by the clock here less time of sending by the sender's clock, ns. The two
    /// clocks differ, so only a comparison of messages means anything. `None`: no time of sending.
    pub(crate) took_ns: Option<i64>,
}

impl<M: RosMessage + DeserializeOwned + 'static> TopicReader<M> {
    /// The next message.
    ///
    /// # Errors
    /// The network has failed.
    pub(crate) fn take(&self) -> Result<Received<M>, Fault> {
        match self {
            TopicReader::Dds(subscription) => match subscription.take() {
                Ok(None) => Ok(Received::Nothing),
                Ok(Some((message, info))) => {
                    Ok(Received::Message(message, Origin { info, said: None, took_ns: None }))
                }
                Err(ReadError::Deserialization { .. } | ReadError::Malformed) => {
                    Ok(Received::Unreadable)
                }
                Err(error) => Err(fault!("cannot listen: {error}")),
            },
            TopicReader::Zenoh(reader) => Ok(reader.take()),
        }
    }
}

/// A service that is triggered.
pub(crate) enum TriggerServer {
    Dds(Box<Server<TriggerRequest, TriggerResponse>>),
    Zenoh(ZenohService),
}

impl TriggerServer {
    /// Answers the requests that have come since the last poll.
    ///
    /// # Errors
    /// The network has failed.
    pub(crate) fn answer(&self, mut done: impl FnMut() -> TriggerResponse) -> Result<(), Fault> {
        let server = match self {
            TriggerServer::Dds(server) => server,
            TriggerServer::Zenoh(service) => {
                service.answer(|_: TriggerRequest| done());
                return Ok(());
            }
        };
        for _ in 0..ANSWERED_MAX {
            let asked = match server.receive_request() {
                Ok(Some((asked, _))) => asked,
                Ok(None) => break,
                // A malformed request gets no answer.
                Err(ReadError::Deserialization { .. } | ReadError::Malformed) => continue,
                Err(error) => return Err(fault!("cannot hear who triggers: {error}")),
            };
            // A caller that is gone by now gets no answer.
            let _ = server.send_response(asked, done());
        }
        Ok(())
    }
}

/// A writer of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// Such as `geometry_msgs::msg::dds_::Twist_`.
    pub(crate) type_name: String,
    /// Such as `RIHS01_9c45…`.
    pub(crate) hash: Option<String>,
}

impl Foreign {
    /// Whether it sends this type: by the type's name, and by the hash if the writer tells one.
    pub(crate) fn means(&self, definition: &Definition, hash: &str) -> bool {
        self.type_name == definition.dds_name() && self.hash.as_ref().is_none_or(|it| it == hash)
    }
}

/// How requests and answers of a service of ROS are delivered, as in rclcpp.
fn trigger_qos() -> QosProfile {
    QosProfile::publisher_default()
        .reliability_reliable(WhenFull::DEFAULT)
        .history(History::KeepLast { depth: REQUESTS })
}

/// See [`Session::name_of`].
pub(crate) fn name_of(node: &NodeName, text: &str) -> Result<Name, Fault> {
    let (space, rest) = match (text.strip_prefix("~/"), text.strip_prefix('/')) {
        (Some(rest), _) => (node.fully_qualified_name(), rest),
        (None, Some(rest)) => (String::new(), rest),
        (None, None) => (node.namespace().trim_end_matches('/').to_owned(), text),
    };
    Name::parse(&format!("{space}/{rest}")).map_err(|_| {
        fault!(
            "'{text}' is not a name of ROS; write letters, digits and '_', in parts with '/' \
             between them, each beginning with a letter, such as joint_states, /tf or ~/stop"
        )
    })
}
