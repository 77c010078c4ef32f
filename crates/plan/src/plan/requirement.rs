//! What a graph asks of its links, its domains and itself.

use std::fmt;

use super::{Link, Plan, Transport};
use crate::option_enum;

option_enum! {
    /// What stands between the nodes at both ends of a link. Each holds what those before it hold.
    pub Isolation {
        /// Nothing: they may share a thread.
        None = "none",
        /// Each has a thread of its own.
        Thread = "thread",
        /// Each has a process of its own: what one breaks, the other does not see.
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

/// Of what something is required.
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
    /// 99 of 100 latencies are at most so many ns. Of a link: from the end of the writer's update
    /// to the start of the update that takes the message. Of a domain or the graph: of a cycle.
    Latency(u64),
    /// No latency is more, of those that were observed.
    LatencyMax(u64),
    /// At least so much stands between both ends; of a domain or the graph: of the links that leave
    /// a domain.
    Isolation(Isolation),
    /// CPU time, in hundredths of one CPU. It needs a run to be seen.
    Cpu(u32),
}

/// A requirement of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Of what.
    pub of: RequiredOf,
    /// What.
    pub bound: Bound,
    /// Line of the spec, from 1.
    pub line: u32,
}

impl Requirement {
    /// `link planner.out -> ik.in`, as messages name what it is required of.
    pub fn subject(&self, plan: &Plan) -> String {
        match self.of {
            RequiredOf::Graph => "the graph".to_owned(),
            RequiredOf::Domain(domain) => format!("domain '{}'", plan.domains[domain].name),
            RequiredOf::Link(link) => format!("link {}", plan.link_name(link)),
        }
    }
}

impl fmt::Display for Bound {
    /// As the spec says it: `latency 10 us`.
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
    /// What a link is called: `planner.out -> ik.in`.
    pub fn link_name(&self, link: usize) -> String {
        let Link { from, to, .. } = self.links[link];
        format!("{} -> {}", self.end_name(from), self.end_name(to))
    }

    /// What stands between the ends of a link.
    pub fn isolation(&self, link: &Link) -> Isolation {
        let crosses = self.nodes[link.from.node].domain != self.nodes[link.to.node].domain;
        match (link.fused, crosses, link.transport) {
            (true, ..) => Isolation::None,
            (false, false, _) => Isolation::Thread,
            (false, true, Transport::Tcp) => Isolation::Host,
            (false, true, _) => Isolation::Process,
        }
    }

    /// The links of which a requirement of isolation speaks.
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
