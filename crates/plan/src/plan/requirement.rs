//! What a graph asks of its links, its domains and itself.

use std::fmt;

use super::{Link, Plan, Transport};
use crate::option_enum;

option_enum! {
    /// How the nodes at both ends of a link are kept apart. Each level includes those before it.
    pub Isolation {
        /// Nothing: they may share a thread.
        None = "none",
        /// Each has a thread of its own.
        Thread = "thread",
        /// Each has a process of its own: a failure of one does not reach the other.
        Process = "process",
        /// The link could lead to another host.
        Host = "host",
    }
}

impl Isolation {
    /// Whether it holds what `other` asks for.
    pub fn holds(self, other: Isolation) -> bool {
        self as u8 >= other as u8
    }
}

/// What a requirement applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredOf {
    /// The core as a whole.
    Graph,
    /// A domain: index into [`Plan::domains`].
    Domain(usize),
    /// A link: index into [`Plan::links`].
    Link(usize),
}

/// What is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// 99 of 100 latencies are at most this many ns. For a link: from the end of the writer's
    /// update to the start of the update that takes the message. For a domain or the graph: of a
    /// cycle.
    Latency(u64),
    /// The largest observed latency is at most this many ns.
    LatencyMax(u64),
    /// Both ends are isolated at least this much. For a domain or the graph: the ends of all links
    /// that leave a domain.
    Isolation(Isolation),
    /// CPU time, in hundredths of one CPU. Only a run can show it.
    Cpu(u32),
}

/// A requirement of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// What it applies to.
    pub of: RequiredOf,
    /// What is required.
    pub bound: Bound,
    /// Line of the spec, from 1.
    pub line: u32,
}

impl Requirement {
    /// The name, in messages, of what the requirement applies to: `link planner.out -> ik.in`.
    pub fn subject(&self, plan: &Plan) -> String {
        match self.of {
            RequiredOf::Graph => "the graph".to_owned(),
            RequiredOf::Domain(domain) => format!("domain '{}'", plan.domains[domain].name),
            RequiredOf::Link(link) => format!("link {}", plan.link_name(link)),
        }
    }
}

impl fmt::Display for Bound {
    /// As the spec writes it: `latency 10 us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |ns: u64| ns as f64 / 1e3;
        match *self {
            Bound::Latency(ns) => write!(f, "latency {} us", micros(ns)),
            Bound::LatencyMax(ns) => write!(f, "latency_max {} us", micros(ns)),
            Bound::Isolation(isolation) => write!(f, "isolation {}", isolation.word()),
            Bound::Cpu(percent) => write!(f, "cpu {percent} %"),
        }
    }
}

impl Plan {
    /// The name of a link: `planner.out -> ik.in`.
    pub fn link_name(&self, link: usize) -> String {
        let Link { from, to, .. } = self.links[link];
        format!("{} -> {}", self.end_name(from), self.end_name(to))
    }

    /// How the ends of a link are isolated from each other.
    pub fn isolation(&self, link: &Link) -> Isolation {
        let crosses = self.nodes[link.from.node].domain != self.nodes[link.to.node].domain;
        match (link.fused, crosses, link.transport) {
            (true, ..) => Isolation::None,
            (false, false, _) => Isolation::Thread,
            (false, true, Transport::Tcp) => Isolation::Host,
            (false, true, _) => Isolation::Process,
        }
    }

    /// The links that a requirement of isolation applies to.
    pub fn isolated(&self, of: RequiredOf) -> impl Iterator<Item = usize> {
        let domain = |node: usize| self.nodes[node].domain;
        (0..self.links.len()).filter(move |&at| {
            let ends = [domain(self.links[at].from.node), domain(self.links[at].to.node)];
            match of {
                RequiredOf::Link(link) => link == at,
                RequiredOf::Domain(domain) => ends[0] != ends[1] && ends.contains(&domain),
                RequiredOf::Graph => ends[0] != ends[1],
            }
        })
    }

    /// The links that do not have the isolation that is required of them.
    pub fn less_isolated(&self, of: RequiredOf, asked: Isolation) -> Vec<usize> {
        let lacks = |&at: &usize| !self.isolation(&self.links[at]).holds(asked);
        self.isolated(of).filter(lacks).collect()
    }
}
