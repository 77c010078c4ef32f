//! A program: the flow nodes of a domain in one worker, and where their outputs lead. It is made
//! once; flows only follow it.

use std::any::Any;
use std::cell::Cell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::ops::ControlFlow::{self, Break, Continue};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytestring::ByteString;
use futures_util::FutureExt;
use sinew_control::Supervisor;
use sinew_core::clock::Clock;
use sinew_core::panics;
use sinew_spec::catalogue::{Direction, Kind};
use sinew_spec::plan::{End, Node, Plan};

use crate::at_work::{AtWork, NOBODY};
use crate::budget::SLICE;
use crate::figures::{Figures, NodeFigures};
use crate::path::children::Children;
use crate::path::retirement::Retirement;
use crate::path::turns::Turns;
use crate::tell::Teller;
use crate::{Ahead, At, Error, FlowNode, Local, NodeContext, Pool, Reply, Step, Value, spans};

/// Where a link leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) node: usize,
    pub(crate) input: usize,
}

/// The flow nodes of a domain, in one worker.
pub struct Program {
    entries: Vec<Entry>,
    pub(crate) base: Base,
    pub(crate) pool: Pool,
    /// Whether anybody asks for spans.
    pub(crate) is_traced: bool,
    /// Says when what would not end by itself is to end.
    pub(crate) retirement: Retirement,
}

/// A node of a program.
pub(crate) struct Entry {
    name: ByteString,
    /// `None` for a source, which takes no packets.
    node: Option<Box<dyn FlowNode>>,
    /// Where each output leads.
    links: Vec<Vec<Target>>,
    /// The output that gets this node's errors, if it leads anywhere.
    error: Option<usize>,
    figures: Arc<NodeFigures>,
    /// The number by which the crew knows it.
    mark: u32,
    kind: &'static Kind,
}

/// A node: its index of the plan, the node itself (`None` for a source), and what it may use.
pub(crate) type Part = (usize, Option<Box<dyn FlowNode>>, NodeContext);

/// Makes the node that stands in for an input of a node in another domain; `None` if nothing can.
pub(crate) type StandIn = Rc<dyn Fn(&Plan, End) -> Option<Box<dyn FlowNode>>>;

/// What a program needs beside its nodes; the programs of a worker share it.
#[derive(Clone)]
pub(crate) struct Base {
    /// The next flow's number, and the step from it to the following one.
    ids: Rc<Cell<u64>>,
    ids_step: u64,
    pub(crate) clock: Clock,
    /// How long a flow keeps this worker, in ticks.
    slice_ticks: u64,
    pub(crate) figures: Arc<Figures>,
    pub(crate) children: Rc<Children>,
    pub(crate) teller: Teller,
    pub(crate) at_work: AtWork,
    pub(crate) turns: Rc<Turns>,
    /// Says when this worker's flows must end because its domain ends.
    pub(crate) closing: Rc<Retirement>,
    /// Watches this domain; `None` outside a run.
    pub(crate) supervisor: Option<Supervisor>,
    /// Makes the nodes that stand in for nodes of other domains.
    pub(crate) stand_in: StandIn,
    /// Whether anybody looks at packets.
    pub(crate) is_looked_at: Arc<AtomicBool>,
}

impl Base {
    /// The base of worker `number` of `workers`.
    pub(crate) fn new(
        (number, workers): (usize, usize),
        clock: Clock,
        figures: Arc<Figures>,
        teller: Teller,
        at_work: AtWork,
    ) -> Base {
        let (ids, ids_step) = (Rc::new(Cell::new(number as u64 + 1)), workers as u64);
        let slice_ticks = clock.ticks_of(SLICE);
        let (children, turns) = (Rc::default(), Rc::new(Turns::new(clock)));
        let closing = Rc::default();
        let supervisor = None;
        Base {
            ids,
            ids_step,
            clock,
            slice_ticks,
            figures,
            children,
            teller,
            at_work,
            turns,
            closing,
            supervisor,
            stand_in: Rc::new(|_, _| None),
            is_looked_at: Arc::default(),
        }
    }
}

impl Program {
    /// Joins the nodes; `nodes` are those of one domain, by index of the plan, each with what it
    /// may use.
    pub(crate) fn new(plan: &Plan, nodes: Vec<Part>, base: &Base, pool: Pool) -> Program {
        let places: HashMap<usize, usize> =
            nodes.iter().enumerate().map(|(place, (index, ..))| (*index, place)).collect();
        let mut entries: Vec<Entry> = Vec::with_capacity(nodes.len());
        for (index, mut node, site) in nodes {
            if let Some(node) = &mut node {
                node.attach(&site);
            }
            let planned = &plan.nodes[index];
            entries.push(Entry {
                name: planned.name.as_str().into(),
                node,
                links: Vec::new(),
                error: planned.kind.port_index("error"),
                figures: base.figures.node(&planned.name),
                mark: site.born.map_or(NOBODY, |born| born as u32),
                kind: planned.kind,
            });
        }
        for link in &plan.flow_links {
            let Some(&from) = places.get(&link.from.node) else { continue };
            let Some((to, input)) = (match places.get(&link.to.node) {
                Some(&to) => Some((to, link.to.port)),
                None => (base.stand_in)(plan, link.to).map(|node| {
                    entries.push(Entry::stand_in(&plan.nodes[link.to.node], node));
                    (entries.len() - 1, 0)
                }),
            }) else {
                continue;
            };
            let links = &mut entries[from].links;
            if links.len() <= link.from.port {
                links.resize_with(link.from.port + 1, Vec::new);
            }
            links[link.from.port].push(Target { node: to, input });
        }
        for entry in &mut entries {
            let leads = |port: &usize| entry.links.get(*port).is_some_and(|all| !all.is_empty());
            entry.error = entry.error.filter(leads);
        }
        let (is_traced, retirement) = (spans::is_on(), Retirement::default());
        Program { entries, base: base.clone(), pool, is_traced, retirement }
    }

    /// Whether anybody looks at flows that begin now.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.is_traced || self.is_looked_at()
    }

    /// Whether anybody looks at packets of flows that begin now.
    #[inline]
    pub(crate) fn is_looked_at(&self) -> bool {
        // Relaxed: a flow that begins just now may see a change or not.
        self.base.is_looked_at.load(Ordering::Relaxed)
    }

    pub(crate) fn next_id(&self) -> u64 {
        let Base { ids, ids_step, .. } = &self.base;
        ids.replace(ids.get() + ids_step)
    }

    /// How many flows are under way: those that this worker's sources have begun, and children.
    pub(crate) fn flows(&self) -> u64 {
        let sources = self.entries.iter().filter(|entry| entry.node.is_none());
        let begun: u64 = sources.map(|source| source.figures.waiting()).sum();
        begun + self.base.children.open() as u64
    }

    /// The place and the input at which packets for an input of a node enter.
    pub(crate) fn entrance(&self, node: &str, input: &str) -> Option<(usize, usize)> {
        let node = self.find(node)?;
        let entry = self.entry(node);
        let input = entry.kind.port_index(input)?;
        let takes = entry.node.is_some() && entry.kind.port(input).direction == Direction::In;
        takes.then_some((node, input))
    }

    /// The place of the node with this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == *name)
    }

    /// Whether a packet that leaves a node through this output may come to a node that ends the run
    /// or tells of it.
    pub(crate) fn is_reserved(&self, node: usize, port: usize, packet: &Value) -> bool {
        let mut seen = vec![false; self.entries.len()];
        let mut next: Vec<usize> = self.targets(node, port).iter().map(|it| it.node).collect();
        while let Some(node) = next.pop() {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            let entry = self.entry(node);
            match entry.node().ahead(packet) {
                Ahead::Reserved => return true,
                Ahead::Ordinary => {}
                Ahead::Output(port) => next.extend(entry.targets(port).iter().map(|it| it.node)),
                Ahead::Unknown => next.extend(entry.links.iter().flatten().map(|it| it.node)),
            }
        }
        false
    }

    /// Puts something around a node.
    pub(crate) fn wrap(
        &mut self,
        node: usize,
        wrap: impl FnOnce(&'static Kind, Box<dyn FlowNode>) -> Box<dyn FlowNode>,
    ) {
        let entry = &mut self.entries[node];
        entry.node = entry.node.take().map(|node| wrap(entry.kind, node));
    }

    #[inline]
    pub(crate) fn entry(&self, node: usize) -> &Entry {
        &self.entries[node]
    }

    /// Where an output leads.
    #[inline]
    pub(crate) fn targets(&self, node: usize, port: usize) -> &[Target] {
        self.entries[node].targets(port)
    }

    #[inline]
    pub(crate) fn ticks(&self) -> u64 {
        self.base.clock.ticks()
    }

    /// Whether a flow that has had the worker since `begun` (in ticks) has used up its slice.
    #[inline]
    pub(crate) fn is_slice_over(&self, begun: u64, now: u64) -> bool {
        now.wrapping_sub(begun) > self.base.slice_ticks
    }
}

impl Entry {
    /// The entry of a node that stands in for a node of another domain.
    fn stand_in(of: &Node, node: Box<dyn FlowNode>) -> Entry {
        Entry {
            name: of.name.as_str().into(),
            node: Some(node),
            links: Vec::new(),
            error: None,
            // The node itself is counted in its own domain.
            figures: Arc::default(),
            mark: NOBODY,
            kind: of.kind,
        }
    }

    pub(crate) fn name(&self) -> &ByteString {
        &self.name
    }

    pub(crate) fn kind(&self) -> &'static Kind {
        self.kind
    }

    #[inline]
    pub(crate) fn mark(&self) -> u32 {
        self.mark
    }

    #[inline]
    pub(crate) fn figures(&self) -> &NodeFigures {
        &self.figures
    }

    /// The node.
    ///
    /// # Panics
    /// If this is a source. The compiler lets no link lead to a source.
    #[inline]
    pub(crate) fn node(&self) -> &dyn FlowNode {
        self.node.as_deref().expect("no link leads to a source")
    }

    /// Where an output leads.
    #[inline]
    pub(crate) fn targets(&self, port: usize) -> &[Target] {
        self.links.get(port).map_or(&[], Vec::as_slice)
    }

    /// Waits for the time that the node needs, and returns its next step.
    pub(crate) async fn wait<'a>(&'a self, at: At<'a>, waiting: Local<'a, Step<'a>>) -> Step<'a> {
        let (_waits, at_work) = (self.figures.waits(), &at.flow.program.base.at_work);
        let mut waiting = AssertUnwindSafe(waiting).catch_unwind();
        let mut must_end = pin!(at.flow.must_end());
        let stepped = poll_fn(|context| {
            at_work.begin(self.mark);
            let polled = waiting.poll_unpin(context);
            at_work.end();
            // A node that waits for replies learns of the end by these.
            if polled.is_pending()
                && at.waits_itself()
                && must_end.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(Step::Fail(at.flow.ended_early())));
            }
            polled
        });
        stepped.await.unwrap_or_else(|panic| self.panicked(at, &*panic))
    }

    /// Turns a panic of the node into a failure. It is logged here, once, because a node behind the
    /// `error` port may not report it.
    #[cold]
    pub(crate) fn panicked<'a>(&self, at: At<'a>, panic: &(dyn Any + Send)) -> Step<'a> {
        let error = Error::new(panics::take_or(panic)).of(&self.name);
        at.flow.tell(at.node, &error);
        Step::Fail(error.told())
    }

    /// Turns an error of this node into a packet for its `error` port, or into the answer if the
    /// port leads nowhere.
    #[cold]
    pub(crate) fn failed(&self, error: Error) -> ControlFlow<Reply, (usize, Value)> {
        self.figures.failed();
        let error = error.of(&self.name);
        match self.error {
            Some(port) => Continue((port, error.to_value())),
            None => Break(Err(error)),
        }
    }
}
