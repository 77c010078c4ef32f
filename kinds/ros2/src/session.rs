//! A participant in DDS and the one node of ROS in it. All nodes of a service domain share it: a
//! domain is one node of ROS.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ros2_client::dds::rustdds::{DomainParticipant, DomainParticipantBuilder};
use ros2_client::dds::{Context, Node, Publisher, Server, ServiceMapping, Subscription};
use ros2_client::qos::{History, QosProfile, WhenFull};
use ros2_client::{Gid, MessageTypeName, Name, NodeName, NodeOptions, ServiceTypeName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sinew_core::{Fault, fault};

use crate::definition::{Definition, RosMessage};
use crate::messages::{TriggerRequest, TriggerResponse};
use crate::settings::Settings;
use crate::values::{Declared, Values};

/// Requests of a service of ROS that may wait; as rclcpp has it.
const REQUESTS: usize = 10;

/// Between two notes of what a topic has done.
pub(crate) const NOTE: Duration = Duration::from_secs(1);
/// So a thread of DDS is called, as far as the kernel keeps its name.
const THREAD: &str = "RustDDS";
/// Threads of a participant: discovery, and all that it sends and receives.
const THREADS: usize = 2;

/// The sessions of this process, in which others may take part.
static SESSIONS: Mutex<Vec<(Settings, Weak<Session>)>> = Mutex::new(Vec::new());

/// What the nodes of a domain share.
pub(crate) struct Session {
    context: Context,
    participant: DomainParticipant,
    node: Mutex<Node>,
    node_name: NodeName,
    /// It ends with the node.
    spinner: JoinHandle<()>,
    begun: Instant,
    /// Of the parameters.
    pub(crate) values: Arc<Values>,
    /// What the topics have done: by name of the node, a word and its number each.
    ledger: Mutex<BTreeMap<String, Vec<(&'static str, u64)>>>,
}

/// A lock that is held for single steps, none of which leaves what it guards half done.
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
        let mut builder = DomainParticipantBuilder::new(settings.domain);
        if let Some(network) = settings.network {
            is_ours(network)?;
            builder = builder.with_only_networks([network]);
        }
        let domain = settings.domain;
        let refused = |what: &dyn std::fmt::Display| fault!("no DDS in domain {domain}: {what}");
        let participant = builder.build().map_err(|error| refused(&error))?;
        let context = Context::from_domain_participant(participant.clone());
        let context = context.map_err(|error| refused(&error))?;
        let values = Arc::new(Values::new(&settings.declared));
        let options = options(&settings.declared, &values);
        let node_name = settings.node_name()?;
        let node = context.new_node(node_name.clone(), options);
        let mut node = node.map_err(|error| refused(&error))?;
        let (spinner, begun) = (spin(&mut node)?, Instant::now());
        let (node, ledger) = (Mutex::new(node), Mutex::default());
        Ok(Session { context, participant, node, node_name, spinner, begun, values, ledger })
    }

    /// The full name of a topic or a service: `/x` stands for itself, `x` is in the namespace of
    /// the node, `~/x` below its name.
    ///
    /// # Errors
    /// It is no name.
    pub(crate) fn name_of(&self, text: &str) -> Result<Name, Fault> {
        name_of(&self.node_name, text)
    }

    /// The node's full name.
    pub(crate) fn node_name(&self) -> String {
        self.node_name.fully_qualified_name()
    }

    /// Begins to publish at a topic.
    ///
    /// # Errors
    /// It is no name, or DDS refuses it.
    pub(crate) fn publish<M: RosMessage + Serialize>(
        &self,
        topic: &str,
        qos: &QosProfile,
    ) -> Result<Publisher<M>, Fault> {
        let name = self.name_of(topic)?;
        let mut node = locked(&self.node);
        let topic = node.create_topic(&name, type_name(M::DEFINITION), qos);
        topic
            .and_then(|topic| node.create_publisher(&topic, Some(qos.clone())))
            .map_err(|error| fault!("cannot publish at {name}: {error}"))
    }

    /// Begins to listen at a topic.
    ///
    /// # Errors
    /// As for [`Session::publish`].
    pub(crate) fn subscribe<M: RosMessage + DeserializeOwned + 'static>(
        &self,
        topic: &str,
        qos: &QosProfile,
    ) -> Result<Subscription<M>, Fault> {
        let name = self.name_of(topic)?;
        let mut node = locked(&self.node);
        let topic = node.create_topic(&name, type_name(M::DEFINITION), qos);
        topic
            .and_then(|topic| node.create_subscription(&topic, Some(qos.clone())))
            .map_err(|error| fault!("cannot subscribe to {name}: {error}"))
    }

    /// Offers a service that is triggered: `std_srvs/srv/Trigger`.
    ///
    /// # Errors
    /// As for [`Session::publish`].
    pub(crate) fn offer(
        &self,
        service: &str,
    ) -> Result<Server<TriggerRequest, TriggerResponse>, Fault> {
        let name = self.name_of(service)?;
        let qos = QosProfile::publisher_default()
            .reliability_reliable(WhenFull::DEFAULT)
            .history(History::KeepLast { depth: REQUESTS });
        let ty = ServiceTypeName::new("std_srvs", "Trigger");
        let mut node = locked(&self.node);
        node.create_server(ServiceMapping::Enhanced, &name, &ty, qos.clone(), qos)
            .map_err(|error| fault!("cannot offer {name}: {error}"))
    }

    /// What another participant says of a writer of its own: the name of its type as DDS knows it,
    /// and the hash, if it tells one. `None`: nobody here has heard of it.
    pub(crate) fn writer(&self, gid: Gid) -> Option<Foreign> {
        let found = self.participant.discovered_writers();
        let found =
            found.into_iter().find(|it| Gid::from(it.writer_proxy.remote_writer_guid) == gid);
        found.map(|writer| Foreign {
            type_name: writer.publication_topic_data.type_name,
            hash: told_hash(&writer.user_data),
        })
    }

    /// Says what the topic of a node has done so far.
    ///
    /// # Errors
    /// DDS has ended in this process.
    pub(crate) fn note(&self, node: &str, figures: Vec<(&'static str, u64)>) -> Result<(), Fault> {
        locked(&self.ledger).insert(node.to_owned(), figures);
        self.check()
    }

    /// Whether DDS still works. The threads of rustdds end without a word when a signal interrupts
    /// their wait, as it does in a process that was stopped and goes on (rustdds 0.15.1); then
    /// nothing crosses any more, and only a new process helps.
    ///
    /// # Errors
    /// It does not.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let sessions = locked(&SESSIONS).iter().filter(|it| it.1.strong_count() > 0).count();
        if self.begun.elapsed() > NOTE
            && (self.spinner.is_finished() || threads()? < THREADS * sessions)
        {
            return Err(fault!(
                "DDS has ended in this process, as it does when the process was stopped for a \
                 while: it must start again"
            ));
        }
        Ok(())
    }

    /// What all topics have done.
    pub(crate) fn notes(&self) -> BTreeMap<String, Vec<(&'static str, u64)>> {
        locked(&self.ledger).clone()
    }

    /// The number of its domain of DDS.
    pub(crate) fn domain(&self) -> u16 {
        self.context.domain_id()
    }
}

/// A writer of another participant.
pub(crate) struct Foreign {
    /// Such as `geometry_msgs::msg::dds_::Twist_`.
    pub(crate) type_name: String,
    /// Such as `RIHS01_9c45…`.
    pub(crate) hash: Option<String>,
}

impl Foreign {
    /// Whether it means this type: by its name, and by its hash if it tells one.
    pub(crate) fn means(&self, definition: &Definition, hash: &str) -> bool {
        self.type_name == definition.dds_name() && self.hash.as_ref().is_none_or(|it| it == hash)
    }
}

/// The hash in the user data of an endpoint: `typehash=RIHS01_…;` among others, behind a length.
fn told_hash(user_data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(user_data);
    let (_, rest) = text.split_once("typehash=")?;
    let hash = rest.split(';').next().unwrap_or_default();
    hash.starts_with("RIHS01_").then(|| hash.to_owned())
}

fn type_name(definition: &Definition) -> MessageTypeName {
    MessageTypeName::new(definition.package, definition.name)
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
            "'{text}' is no name of ROS; write letters, digits and '_', in parts with '/' between \
             them, each beginning with a letter, such as joint_states, /tf or ~/stop"
        )
    })
}

/// DDS would run on without a word, and nobody would ever see it.
fn is_ours(network: IpAddr) -> Result<(), Fault> {
    let bound = UdpSocket::bind((network, 0));
    bound.map(|_| ()).map_err(|error| {
        fault!(
            "'network' is {network}, which this machine does not have: {error}; write an \
                address of one of its interfaces, or nothing for all"
        )
    })
}

/// The node's parameters, and who judges what others want to set.
fn options(declared: &[Declared], values: &Arc<Values>) -> NodeOptions {
    let (judge, keeper) = (Arc::clone(values), Arc::clone(values));
    let options = NodeOptions::new()
        .enable_rosout(false)
        .parameter_validator(Box::new(move |name, value| judge.judge(name, value)))
        .parameter_set_action(Box::new(move |name, value| {
            keeper.keep(name, value);
            Ok(())
        }));
    declared
        .iter()
        .fold(options, |options, it| options.declare_parameter(&it.name, it.value.clone()))
}

/// Lets the node live: discovery of nodes and services of parameters are its own work. It ends with
/// the node.
fn spin(node: &mut Node) -> Result<JoinHandle<()>, Fault> {
    let spinner = node.spinner().map_err(|error| fault!("the node of ROS: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| fault!("no thread for the node of ROS: {error}"))?;
    let name = "ros2 node".to_owned();
    let thread = thread::Builder::new().name(name).spawn(move || {
        // It ends with the node, or because DDS has ended, which every end of it notices.
        let _ = runtime.block_on(spinner.spin());
    });
    thread.map_err(|error| fault!("no thread for the node of ROS: {error}"))
}

/// How many threads of DDS this process has.
fn threads() -> Result<usize, Fault> {
    let unreadable =
        |error: std::io::Error| fault!("cannot see the threads of this process: {error}");
    let threads = fs::read_dir("/proc/self/task").map_err(unreadable)?;
    let names = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("comm")));
    // One that has ended meanwhile has no name.
    Ok(names.filter(|name| name.as_ref().is_ok_and(|name| name.starts_with(THREAD))).count())
}
