//! What the workers of a domain share, and what they are told.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use sinew_control::{Spec, Supervisor};
use sinew_core::Refusal;
use sinew_core::board::FaultAt;
use sinew_core::clock::Clock;
use sinew_core::fault::{Cause, Fault};
use sinew_core::halt::Halt;
use sinew_spec::catalogue::Kind;
use sinew_spec::plan::{Plan, PoolSize};

use crate::path::run::taps::Taps;
use crate::resource::{ByName, Resources};
use crate::{FlowEntry, Lens, MessageInput, MessageOutput, Opened, Pool};

/// The flow nodes of a domain, by index of the plan.
#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) plan: Arc<Plan>,
    pub(crate) nodes: Arc<[usize]>,
    /// Its resources, already open.
    pub(crate) opened: ByName,
}

/// What sources have opened for one worker, each with the source's name.
pub(crate) type Parts = Vec<(String, Box<dyn Opened>)>;

/// What a crew is made of.
pub struct Setup {
    /// The graph.
    pub plan: Arc<Plan>,
    /// What it was compiled from.
    pub spec: Spec,
    /// Index of the domain.
    pub domain: usize,
    /// Its flow nodes, by index of the plan.
    pub nodes: Vec<usize>,
    /// Makes its nodes; the plan was made from the same table.
    pub table: Vec<FlowEntry>,
    /// All kinds of the program; an edited graph is compiled with them.
    pub kinds: Vec<&'static Kind>,
    /// Threads among which sources and connections are divided.
    pub workers: usize,
    /// Threads for work that blocks.
    pub blocking: PoolSize,
    /// Ends of links from the core, by node and port.
    pub inputs: BTreeMap<(usize, usize), MessageInput>,
    /// Ends of links into the core, by node and port.
    pub outputs: BTreeMap<(usize, usize), Vec<MessageOutput>>,
    /// Doors to other domains that its packets go to, by the domain's index of the plan.
    pub calls: BTreeMap<usize, OwnedFd>,
    /// Doors from domains whose packets it takes.
    pub called: Vec<OwnedFd>,
    /// Starts and watches this domain.
    pub supervisor: Option<Supervisor>,
    /// How people see its packets; `None` if they cannot.
    pub lens: Option<Lens>,
    /// Says when the domain is to stop.
    pub halt: Arc<Halt>,
    /// How long the domain may take to stop.
    pub stop_deadline: Duration,
}

/// What all workers are made of.
pub(crate) struct Shared {
    /// The graph of the start. Its indices name nodes towards the supervisor, and the ends of
    /// links.
    pub(crate) graph: Graph,
    pub(crate) setup: Setup,
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) resources: Resources,
    pub(crate) taps: Arc<Taps>,
}

impl Shared {
    /// Index of a node in the plan of the start.
    pub(crate) fn born(&self, name: &str) -> Option<usize> {
        let Graph { plan, nodes, .. } = &self.graph;
        nodes.iter().copied().find(|&node| plan.nodes[node].name == name)
    }
}

/// An order to a worker.
pub(crate) enum Order {
    /// To let flows begin.
    Serve,
    /// To make the nodes of an edited graph.
    Prepare(Box<Preparation>),
    /// To let flows begin in the edited graph, and to answer how many are still to end in the old
    /// one.
    Swap(mpsc::Sender<u64>),
    /// To drop the edited graph.
    Withdraw,
    /// To let no more flows begin, and to end once those that have begun have ended.
    Stop,
}

/// An edited graph on its way into a worker.
pub(crate) struct Preparation {
    pub(crate) graph: Graph,
    /// Sources that go on as they are.
    pub(crate) stay: Arc<[String]>,
    /// What all other sources have opened for this worker.
    pub(crate) parts: Parts,
    /// Gets the result: whether its nodes could be made, and otherwise why not.
    pub(crate) answer: mpsc::Sender<Result<(), String>>,
}

pub(crate) fn at(node: Option<usize>, fault: Fault) -> FaultAt {
    FaultAt { fault, node, cycle: None }
}

pub(crate) fn refused(node: usize, refusals: &[Refusal]) -> FaultAt {
    let first = refusals.first().map(ToString::to_string).unwrap_or_default();
    at(Some(node), Fault::new(Cause::Error, format_args!("{first}")))
}
