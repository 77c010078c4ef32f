//! The node of ROS over DDS: a participant, and the node in it.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use ros2_client::dds::rustdds::{DomainParticipant, DomainParticipantBuilder};
use ros2_client::dds::{Context, Node, Publisher, Server, ServiceMapping, Subscription};
use ros2_client::qos::QosProfile;
use ros2_client::{Gid, MessageTypeName, Name, NodeOptions, ServiceTypeName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sinew_core::{Fault, fault};

use super::{Foreign, NOTE, locked, trigger_qos};
use crate::definition::{Definition, RosMessage};
use crate::messages::{TriggerRequest, TriggerResponse};
use crate::settings::Settings;
use crate::values::{Declared, Values};

/// The beginning of the name of each thread of DDS, as far as the kernel keeps names.
const THREAD: &str = "RustDDS";
/// Threads of a participant: one for discovery, one for all that it sends and receives.
const THREADS: usize = 2;

/// A participant in DDS and the one node of ROS in it.
pub(super) struct Dds {
    context: Context,
    participant: DomainParticipant,
    node: Mutex<Node>,
    /// The thread that serves the node, and ends with it.
    spinner: JoinHandle<()>,
    begun: Instant,
}

impl Dds {
    /// # Errors
    /// The network refuses it.
    pub(super) fn begin(settings: &Settings, values: &Arc<Values>) -> Result<Dds, Fault> {
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
        let options = options(&settings.declared, values);
        let node = context.new_node(settings.node_name()?, options);
        let mut node = node.map_err(|error| refused(&error))?;
        let (spinner, begun) = (spin(&mut node)?, Instant::now());
        Ok(Dds { context, participant, node: Mutex::new(node), spinner, begun })
    }

    pub(super) fn publish<M: RosMessage + Serialize>(
        &self,
        name: &Name,
        qos: &QosProfile,
    ) -> Result<Publisher<M>, Fault> {
        let mut node = locked(&self.node);
        let topic = node.create_topic(name, type_name(M::DEFINITION), qos);
        topic
            .and_then(|topic| node.create_publisher(&topic, Some(qos.clone())))
            .map_err(|error| fault!("cannot publish at {name}: {error}"))
    }

    pub(super) fn subscribe<M: RosMessage + DeserializeOwned + 'static>(
        &self,
        name: &Name,
        qos: &QosProfile,
    ) -> Result<Subscription<M>, Fault> {
        let mut node = locked(&self.node);
        let topic = node.create_topic(name, type_name(M::DEFINITION), qos);
        topic
            .and_then(|topic| node.create_subscription(&topic, Some(qos.clone())))
            .map_err(|error| fault!("cannot subscribe to {name}: {error}"))
    }

    pub(super) fn offer(
        &self,
        name: &Name,
    ) -> Result<Server<TriggerRequest, TriggerResponse>, Fault> {
        let ty = ServiceTypeName::new("std_srvs", "Trigger");
        let mut node = locked(&self.node);
        let qos = trigger_qos();
        node.create_server(ServiceMapping::Enhanced, name, &ty, qos.clone(), qos)
            .map_err(|error| fault!("cannot offer {name}: {error}"))
    }

    /// What another participant says of a writer of its own: the name of its type as DDS knows it,
    /// and the hash, if it tells one. `None`: this participant has not discovered such a writer.
    pub(super) fn writer(&self, gid: Gid) -> Option<Foreign> {
        let found = self.participant.discovered_writers();
        let found =
            found.into_iter().find(|it| Gid::from(it.writer_proxy.remote_writer_guid) == gid);
        found.map(|writer| Foreign {
            type_name: writer.publication_topic_data.type_name,
            hash: told_hash(&writer.user_data),
        })
    }

    /// Checks that DDS still works in this process, which has `participants` participants. The
    /// threads of rustdds end silently when a signal interrupts their wait, as it does in a process
    /// that was stopped and continued (rustdds 0.15.1). Then nothing crosses any more, and only a
    /// new process helps.
    ///
    /// # Errors
    /// DDS does not work any more.
    pub(super) fn check(&self, participants: usize) -> Result<(), Fault> {
        if self.begun.elapsed() > NOTE
            && (self.spinner.is_finished() || threads()? < THREADS * participants)
        {
            return Err(fault!(
                "DDS has ended in this process, as it does when the process was stopped for a \
                 while: it must start again"
            ));
        }
        Ok(())
    }

    /// The number of its domain.
    pub(super) fn domain(&self) -> u16 {
        self.context.domain_id()
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

/// Checks that the address is of this machine. DDS would run with any address, without an error,
/// and no other participant would ever discover this one.
fn is_ours(network: IpAddr) -> Result<(), Fault> {
    let bound = UdpSocket::bind((network, 0));
    bound.map(|_| ()).map_err(|error| {
        fault!(
            "'network' is {network}, which this machine does not have: {error}; write an \
                address of one of its interfaces, or nothing for all"
        )
    })
}

/// The node's parameters, and the functions that judge and keep what others set.
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

/// Starts the thread that serves the node: discovery of other nodes, and the services of
/// parameters. The thread ends with the node.
fn spin(node: &mut Node) -> Result<JoinHandle<()>, Fault> {
    let spinner = node.spinner().map_err(|error| fault!("the node of ROS: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| fault!("no thread for the node of ROS: {error}"))?;
    let name = "ros2 node".to_owned();
    let thread = thread::Builder::new().name(name).spawn(move || {
        // It ends with the node, or because DDS has ended, which every writer and reader notices.
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
    // A thread that has ended meanwhile has no name.
    Ok(names.filter(|name| name.as_ref().is_ok_and(|name| name.starts_with(THREAD))).count())
}
