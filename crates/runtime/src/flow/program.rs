//! A program: the flow nodes of a domain in one worker, and where their outputs lead. Made once;
//! flows only follow it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bytestring::ByteString;
use sinew_spec::plan::Plan;

use super::figures::{Figures, NodeFigures};
use super::{Error, FlowNode, Pool, Site, Value};
use crate::clock::Clock;

/// Where a link leads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) node: usize,
    pub(super) input: usize,
}

/// The flow nodes of a domain, in one worker.
pub struct Program {
    entries: Vec<Entry>,
    ids: Rc<Cell<u64>>,
    clock: Clock,
    pub(super) pool: Pool,
}

/// A node of a program.
pub(super) struct Entry {
    name: ByteString,
    /// `None` for a source, which takes no packets.
    node: Option<Box<dyn FlowNode>>,
    /// For each output where it leads.
    links: Vec<Vec<Target>>,
    /// The output that gets this node's errors, if it leads anywhere.
    error: Option<usize>,
    figures: Arc<NodeFigures>,
}

/// A node by its index of the plan, `None` for a source; and what it may use.
pub(crate) type Part = (usize, Option<Box<dyn FlowNode>>, Site);

/// What a program is made with, beside its nodes.
#[derive(Clone)]
pub(crate) struct Base {
    /// The next flow's number.
    pub(crate) ids: Rc<Cell<u64>>,
    pub(crate) clock: Clock,
    pub(crate) figures: Arc<Figures>,
}

impl Program {
    /// Puts the nodes together; `nodes` are those of one domain, by index of the plan, each with
    /// what it may use.
    pub(crate) fn new(plan: &Plan, nodes: Vec<Part>, base: &Base, pool: Pool) -> Program {
        let places: Vec<usize> = nodes.iter().map(|(index, ..)| *index).collect();
        let place = |node| places.iter().position(|&index| index == node);
        let mut entries: Vec<Entry> = Vec::with_capacity(nodes.len());
        for (at, (index, mut node, site)) in nodes.into_iter().enumerate() {
            if let Some(node) = &mut node {
                node.attach(&site);
            }
            let error = plan.nodes[index].kind.port_index("error");
            entries.push(Entry {
                name: plan.nodes[index].name.as_str().into(),
                node,
                links: Vec::new(),
                error,
                figures: base.figures.node(at),
            });
        }
        for link in &plan.flow_links {
            let (Some(from), Some(to)) = (place(link.from.node), place(link.to.node)) else {
                continue;
            };
            let links = &mut entries[from].links;
            if links.len() <= link.from.port {
                links.resize_with(link.from.port + 1, Vec::new);
            }
            links[link.from.port].push(Target { node: to, input: link.to.port });
        }
        for entry in &mut entries {
            let leads = |port: &usize| entry.links.get(*port).is_some_and(|all| !all.is_empty());
            entry.error = entry.error.filter(leads);
        }
        Program { entries, ids: Rc::clone(&base.ids), clock: base.clock, pool }
    }

    pub(super) fn next_id(&self) -> u64 {
        self.ids.replace(self.ids.get() + 1)
    }

    /// The place of the node with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == *name)
    }

    #[inline]
    pub(super) fn entry(&self, node: usize) -> &Entry {
        &self.entries[node]
    }

    /// Where an output leads.
    #[inline]
    pub(super) fn targets(&self, node: usize, port: usize) -> &[Target] {
        self.entries[node].links.get(port).map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub(super) fn ticks(&self) -> u64 {
        self.clock.ticks()
    }
}

impl Entry {
    /// The node.
    ///
    /// # Panics
    /// For a source: the compiler lets no link lead to one.
    #[inline]
    pub(super) fn node(&self) -> &dyn FlowNode {
        self.node.as_deref().expect("no link leads to a source")
    }

    #[inline]
    pub(super) fn figures(&self) -> &NodeFigures {
        &self.figures
    }

    /// What becomes of an error of this node: a packet for its `error` port, else the answer.
    #[cold]
    pub(super) fn failed(&self, error: Error) -> Result<(usize, Value), Error> {
        let error = error.of(&self.name);
        self.figures.failed();
        let Some(port) = self.error else { return Err(error) };
        Ok((port, error.to_value()))
    }
}
