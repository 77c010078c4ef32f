//! The hosts of a graph, and the links between them.

use super::{Delivery, Plan};
use crate::Span;
use crate::catalogue::{MessageType, RunsIn};

/// What a plan knows of hosts; nothing, if its graph names none.
///
/// The plan of a whole graph knows all hosts and has all domains; none of it runs. The part of one
/// host has that host's domains, and one more: its only node stands for the other hosts.
#[derive(Clone, Debug, Default)]
pub struct HostPlan {
    /// All hosts, in the order of the spec.
    pub all: Vec<Host>,
    /// Of which of them this is the part; `None`: of the whole graph.
    pub own: Option<usize>,
    /// The links between hosts; in a part those that begin or end there.
    pub links: Vec<RemoteLink>,
    /// The links between hosts that carry packets; in a part likewise.
    pub calls: Vec<RemoteCall>,
    /// Counted from all links between hosts: two parts with the same number fit together.
    pub version: u64,
}

/// A machine of the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name.
    pub name: String,
    /// Where the spec says so.
    pub span: Span,
    /// Where the others reach it: `NAME:PORT`.
    pub address: Option<String>,
    /// Where it listens: `ADDRESS:PORT`; `None`: at no address, for it has none.
    pub listen: Option<String>,
    /// The router that it calls: `NAME:PORT`. Two hosts that both call one speak through it.
    pub router: Option<String>,
    /// What it shows the others, and by what it knows them; `None`: all is said in the open.
    pub tls: Option<HostTls>,
}

/// Files of a host's certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTls {
    /// Certificates that the others' are signed by.
    pub ca: String,
    /// Its own certificate, which names the host.
    pub certificate: String,
    /// The key of that.
    pub key: String,
}

/// A link between two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteLink {
    /// Who writes.
    pub from: RemoteEnd,
    /// Who reads.
    pub to: RemoteEnd,
    /// What crosses.
    pub message: &'static MessageType,
    /// Which messages the reader gets: all that are not lost on the way, or the newest.
    pub delivery: Delivery,
    /// Messages that wait at each side; a power of two.
    pub capacity: u32,
    /// Of a link into the core: a message is dropped once its stamp is older.
    pub after_ns: Option<u64>,
    /// In a part: the port of the node that stands for the other hosts.
    pub port: usize,
}

/// A link between two hosts that carries packets: a call, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCall {
    /// Who passes the packet on, and gets the reply.
    pub from: RemoteEnd,
    /// Who takes the packet, and answers.
    pub to: RemoteEnd,
    /// In a part: the port of the node that stands for the other hosts.
    pub port: usize,
}

/// An end of a link between hosts. Its node is named, for in a part it has no index.
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
    /// Whether it is of a graph with hosts and of none of them: it cannot run.
    pub fn is_whole(&self) -> bool {
        !self.hosts.all.is_empty() && self.hosts.own.is_none()
    }

    /// The host of which it is the part.
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
