//! The hosts of a graph, and the links between them.

use super::{Delivery, Plan};
use crate::Span;
use crate::catalogue::{MessageType, RunsIn};

/// What a plan knows of hosts; empty if its graph names none.
///
/// The plan of a whole graph knows all hosts and has all domains, and it cannot run. The part of
/// one host has that host's domains and one more domain, whose only node stands for the other
/// hosts.
#[derive(Clone, Debug, Default)]
pub struct HostPlan {
    /// All hosts, in the order of the spec.
    pub all: Vec<Host>,
    /// The host whose part this is; `None`: this is the plan of the whole graph.
    pub own: Option<usize>,
    /// The links between hosts; in a part, only those that begin or end at its host.
    pub links: Vec<RemoteLink>,
    /// The links between hosts that carry packets; in a part, only those of its host.
    pub calls: Vec<RemoteCall>,
    /// A hash over all links between hosts: two parts with the same number fit together.
    pub version: u64,
}

/// A machine of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name.
    pub name: String,
    /// The host's place in the spec.
    pub span: Span,
    /// Where the other hosts reach it: `NAME:PORT`.
    pub address: Option<String>,
    /// Where it listens: `ADDRESS:PORT`; `None`: it does not listen, because it has no address.
    pub listen: Option<String>,
    /// The router that it calls: `NAME:PORT`. Two hosts that call the same router connect through
    /// it.
    pub router: Option<String>,
    /// The certificates for TLS with the other hosts; `None`: connections are not encrypted.
    pub tls: Option<HostTls>,
    /// A file with the secret with which the hosts of the graph seal what they send.
    pub key: Option<String>,
}

/// Files of a host's certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTls {
    /// Certificates that sign those of the other hosts.
    pub ca: String,
    /// Its own certificate, which names the host.
    pub certificate: String,
    /// The private key of that certificate.
    pub key: String,
}

/// A link between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteLink {
    /// The writer.
    pub from: RemoteEnd,
    /// The reader.
    pub to: RemoteEnd,
    /// What crosses.
    pub message: &'static MessageType,
    /// Which messages the reader gets: all that are not lost on the way, or the newest.
    pub delivery: Delivery,
    /// Messages that each side can hold; a power of two.
    pub capacity: u32,
    /// Of a link into the core: a message whose stamp is older than this is dropped.
    pub after_ns: Option<u64>,
    /// In a part: the port of the node that stands for the other hosts.
    pub port: usize,
}

/// A link between two hosts that carries packets: a call, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCall {
    /// The end that passes the packet on and gets the reply.
    pub from: RemoteEnd,
    /// The end that takes the packet and answers it.
    pub to: RemoteEnd,
    /// In a part: the port of the node that stands for the other hosts.
    pub port: usize,
}

/// An end of a link between hosts. It gives the node's name, because in a part the node has no
/// index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemoteEnd {
    /// Index into [`HostPlan::all`].
    pub host: usize,
    /// Name of the node.
    pub node: String,
    /// Name of its port.
    pub port: String,
}

impl Plan {
    /// Whether this is the plan of a whole graph with hosts, and not the part of one: it cannot
    /// run.
    pub fn is_whole(&self) -> bool {
        !self.hosts.all.is_empty() && self.hosts.own.is_none()
    }

    /// The host whose part this is.
    pub fn own_host(&self) -> Option<&Host> {
        Some(&self.hosts.all[self.hosts.own?])
    }

    /// Whether a node stands for the other hosts.
    pub fn is_of_hosts(&self, node: usize) -> bool {
        self.nodes[node].kind.runs_in == RunsIn::Hosts
    }

    /// What an end of a link between hosts is called: `node.port at host`.
    pub fn remote_name(&self, end: &RemoteEnd) -> String {
        format!("{}.{} at {}", end.node, end.port, self.hosts.all[end.host].name)
    }
}
