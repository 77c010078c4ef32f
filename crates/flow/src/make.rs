//! Makes the flow nodes of a graph: in a worker, or alone for tests.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use sinew_core::Parameters;
use sinew_core::clock::Clock;
use sinew_core::fault::{Cause, Fault};
use sinew_core::refusal::Refusal;
use sinew_spec::catalogue::Kind;
use sinew_spec::plan::Plan;

use crate::at_work::AtWork;
use crate::entry::{FlowEntry, Make, entry};
use crate::path::program::Base;
#[cfg(test)]
use crate::path::run::taps::Taps;
use crate::resource::{ByName, Resources};
use crate::tell::Teller;
use crate::{
    Figures, Flow, FlowLimits, FlowNode, NodeContext, NodeFigures, Outlet, Pool, Program, Reply,
    Value,
};

/// Makes the flow nodes `nodes` (indices of the plan) and joins them; each gets the context that
/// `site` returns for it.
pub(crate) fn program(
    plan: &Plan,
    nodes: &[usize],
    table: &[FlowEntry],
    folder: &Path,
    base: &Base,
    site: impl Fn(usize) -> NodeContext,
) -> Result<Program, (usize, Vec<Refusal>)> {
    let mut made = Vec::with_capacity(nodes.len());
    let mut pool = None;
    for &index in nodes {
        let node = node(plan, index, table, folder).map_err(|refusals| (index, refusals))?;
        let site = site(index);
        pool.get_or_insert_with(|| site.pool.clone());
        made.push((index, node, site));
    }
    let pool = pool.expect("a program has nodes");
    Ok(Program::new(plan, made, base, pool))
}

/// Makes and opens the resources among the flow nodes `nodes` (indices of the plan).
///
/// # Errors
/// The node that cannot be made or opened, and why.
pub(crate) fn resources(
    plan: &Plan,
    nodes: &[usize],
    table: &[FlowEntry],
    folder: &Path,
    resources: &Resources,
) -> Result<ByName, (usize, Fault)> {
    let mut opened = BTreeMap::new();
    for &index in nodes {
        let node = &plan.nodes[index];
        let Make::Resource(make) = entry(table, node).make else { continue };
        let made = make(&Parameters::of(plan, node, folder)).map_err(|refusals| {
            let first = refusals.first().map(Refusal::to_string).unwrap_or_default();
            (index, Fault::new(Cause::Error, format_args!("{first}")))
        })?;
        let open = made.open(&node.name, resources).map_err(|fault| (index, fault))?;
        opened.insert(node.name.clone(), open);
    }
    Ok(Arc::new(opened))
}

/// Makes a node; `None` for a source or resource, which takes no packets.
fn node(
    plan: &Plan,
    index: usize,
    table: &[FlowEntry],
    folder: &Path,
) -> Result<Option<Box<dyn FlowNode>>, Vec<Refusal>> {
    let node = &plan.nodes[index];
    match entry(table, node).make {
        Make::Node(make) => make(&Parameters::of(plan, node, folder)).map(Some),
        Make::Source(_) | Make::Resource(_) => Ok(None),
    }
}

/// The flow nodes of a graph without a worker, source or process around them: for tests, benchmarks
/// and `sinew test`. Flows that wait need a tokio runtime with a clock, and its `LocalSet`.
pub struct FlowFixture {
    pub(crate) program: Rc<Program>,
    figures: Arc<Figures>,
}

impl FlowFixture {
    /// Makes all flow nodes of a plan.
    ///
    /// # Errors
    /// Why a node cannot be made.
    ///
    /// # Panics
    /// If the plan has no flow nodes, or was made with another table; if the kernel refuses a
    /// thread.
    pub fn new(
        plan: &Arc<Plan>,
        table: &[FlowEntry],
        folder: &Path,
    ) -> Result<FlowFixture, Vec<Refusal>> {
        FlowFixture::with_sites(plan, table, folder, |_, _| {})
    }

    /// The same, with what `furnish` gives each node (by its index of the plan) to use.
    ///
    /// # Errors
    /// As for [`FlowFixture::new`].
    ///
    /// # Panics
    /// As for [`FlowFixture::new`].
    pub fn with_sites(
        plan: &Arc<Plan>,
        table: &[FlowEntry],
        folder: &Path,
        furnish: impl Fn(usize, &mut NodeContext),
    ) -> Result<FlowFixture, Vec<Refusal>> {
        let nodes: Vec<usize> = (0..plan.nodes.len()).filter(|&node| plan.is_flow(node)).collect();
        FlowFixture::of(plan, &nodes, table, folder, &FlowFixture::base(), furnish)
    }

    pub(crate) fn base() -> Base {
        let (clock, figures) = (Clock::calibrate(), Arc::<Figures>::default());
        Base::new((0, 1), clock, figures, Teller::direct(), AtWork::new())
    }

    /// Makes these flow nodes (indices of the plan).
    pub(crate) fn of(
        plan: &Arc<Plan>,
        nodes: &[usize],
        table: &[FlowEntry],
        folder: &Path,
        base: &Base,
        furnish: impl Fn(usize, &mut NodeContext),
    ) -> Result<FlowFixture, Vec<Refusal>> {
        let pool = Pool::start(1).expect("a thread");
        let shared = Resources::of_trial();
        let opened = resources(plan, nodes, table, folder, &shared);
        let opened = opened.map_err(|(_, fault)| vec![fault.into()])?;
        let site = |node: usize| {
            let mut site = NodeContext::alone(node, plan, &pool, (&shared, &opened));
            furnish(node, &mut site);
            site
        };
        let program = program(plan, nodes, table, folder, base, site);
        let program = program.map_err(|(_, refusals)| refusals)?;
        Ok(FlowFixture { program: Rc::new(program), figures: Arc::clone(&base.figures) })
    }

    /// Puts something around a node, before the first flow. A source or resource stays as it is.
    ///
    /// # Panics
    /// If flows have begun, or there is no such node.
    pub fn wrap(
        &mut self,
        name: &str,
        wrap: impl FnOnce(&'static Kind, Box<dyn FlowNode>) -> Box<dyn FlowNode>,
    ) {
        let program = Rc::get_mut(&mut self.program).expect("no flow has begun");
        let node = program.find(name).unwrap_or_else(|| panic!("no node '{name}'"));
        program.wrap(node, wrap);
    }

    /// Lets these taps look at flows that begin from now on.
    #[cfg(test)]
    pub(crate) fn show_to(&mut self, taps: &Arc<Taps>) {
        let program = Rc::get_mut(&mut self.program).expect("no flow has begun");
        program.base.is_looked_at = taps.begin_here();
    }

    /// Begins a flow with a packet at an output (index into the kind's ports) of a node, as a
    /// source would, and waits for its reply.
    ///
    /// # Panics
    /// If there is no such node.
    pub async fn open(
        &self,
        node: &str,
        port: usize,
        packet: Value,
        limits: impl Into<FlowLimits>,
    ) -> Reply {
        self.send(&self.flow(), node, port, packet, limits).await
    }

    /// A flow that has not begun.
    pub fn flow(&self) -> Flow {
        Flow::new(Rc::clone(&self.program))
    }

    /// Begins `flow` as [`FlowFixture::open`] does. The caller can look at the flow's values before
    /// and after.
    ///
    /// # Panics
    /// As for [`FlowFixture::open`].
    pub async fn send(
        &self,
        flow: &Flow,
        node: &str,
        port: usize,
        packet: Value,
        limits: impl Into<FlowLimits>,
    ) -> Reply {
        let node = self.program.find(node).unwrap_or_else(|| panic!("no node '{node}'"));
        flow.limit(limits.into());
        flow.open(node, port, packet).await
    }

    /// Ends, as a stop does, what would not end by itself.
    pub fn retire(&self) {
        self.program.retirement.begin();
    }

    /// Where a source begins its flows, for a caller that serves it without a worker.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn outlet(&self, node: &str) -> Outlet {
        let node = self.program.find(node).unwrap_or_else(|| panic!("no node '{node}'"));
        Outlet::new(Rc::clone(&self.program), node)
    }

    /// What a node has counted.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn figures(&self, node: &str) -> Arc<NodeFigures> {
        assert!(self.program.find(node).is_some(), "no node '{node}'");
        self.figures.node(node)
    }

    /// How many flows are under way, children among them.
    pub fn flows(&self) -> u64 {
        self.program.flows()
    }
}
