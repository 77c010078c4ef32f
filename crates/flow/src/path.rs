//! What a flow node is, and what it sees.

pub(crate) mod beside;
pub(crate) mod branches;
pub(crate) mod children;
pub(crate) mod outlet;
pub(crate) mod program;
pub(crate) mod retirement;
pub(crate) mod run;
pub(crate) mod turns;

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sinew_control::Supervisor;
use sinew_core::fault::Fault;
use sinew_otlp::SpanContext;
use sinew_spec::plan::Plan;

use crate::path::branches::Calls;
use crate::path::children::Child;
use crate::path::program::Program;
use crate::resource::{ByName, Resources};
use crate::{
    Error, Flow, FlowLimits, MessageInput, MessageOutput, Outlet, Pool, StopSignal, Value,
};

/// What a fork costs: a future, and its turns.
const FORK_WORK: u64 = 20;

/// The answer to a packet: a value, nothing, or an error.
pub type Reply = Result<Option<Value>, Error>;

/// A future of one worker, on whose thread it stays.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A node that takes packets and answers each. Each worker has one of its own, and calls it for one
/// packet at a time; flows that wait in it overlap. A panic in it is its failure in one flow; for
/// others it goes on.
pub trait FlowNode {
    /// The files that it was made of: an edit of one is an edit of the node.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Once, in the worker, before the first packet: what the node may use of its worker.
    fn attach(&mut self, _site: &NodeContext) {}

    /// What is known of the way of a packet before [`FlowNode::handle`] gets it. Asked only when
    /// there is no room for all flows: what [`Ahead::Reserved`] lies before has a place of its own.
    fn ahead(&self, _packet: &Value) -> Ahead {
        Ahead::Unknown
    }

    /// What to do about a packet at input `input` (index into the kind's ports). It must not block
    /// the thread: what takes time is a [`Step::Wait`], what blocks goes to [`At::pool`].
    fn handle<'a>(&'a self, at: At<'a>, input: usize, packet: Value) -> Step<'a>;
}

/// What is known of the way of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Nothing: any output may get it.
    Unknown,
    /// This output (index into the kind's ports) gets it.
    Output(usize),
    /// It ends the run or tells of it: load must not keep it out.
    Reserved,
    /// It does not, whatever comes.
    Ordinary,
}

/// What a node does about a packet.
pub enum Step<'a> {
    /// Answers it; `None`: with nothing.
    Reply(Option<Value>),
    /// Passes it on through this output (index into the kind's ports); the reply that comes back is
    /// the answer. Where the output leads nowhere, the packet itself is.
    Pass(usize, Value),
    /// Cannot. The `error` port, if it leads anywhere, gives the answer.
    Fail(Error),
    /// Needs time first. Dropped before its end, the flow is cancelled.
    Wait(Local<'a, Step<'a>>),
}

impl<'a> Step<'a> {
    /// Needs time first.
    pub fn wait(future: impl Future<Output = Step<'a>> + 'a) -> Step<'a> {
        Step::Wait(Box::pin(future))
    }

    /// What a computation comes to: at once, unless it takes longer than a slice and lets others
    /// have the worker ([`Flow::turn`]).
    pub fn compute(work: impl Future<Output = Step<'a>> + 'a) -> Step<'a> {
        let mut work: Local<'a, Step<'a>> = Box::pin(work);
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(step) => step,
            Poll::Pending => Step::Wait(work),
        }
    }

    /// Passes on what was made, through this output; or fails.
    pub fn pass(port: usize, made: Result<Value, Error>) -> Step<'a> {
        made.map_or_else(Step::Fail, |packet| Step::Pass(port, packet))
    }

    /// Answers with the reply of somebody else.
    pub fn answer(reply: Reply) -> Step<'a> {
        reply.map_or_else(Step::Fail, Step::Reply)
    }
}

/// Where a packet is: its flow, and the node that has it.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub(crate) flow: &'a Flow,
    pub(crate) node: usize,
    pub(crate) calls: &'a Calls,
}

impl<'a> At<'a> {
    /// The flow.
    pub fn flow(self) -> &'a Flow {
        self.flow
    }

    /// Whether an output leads anywhere.
    pub fn is_linked(self, port: usize) -> bool {
        !self.flow.program.targets(self.node, port).is_empty()
    }

    /// Whether its node waits for something else than the reply of others; noted as the place where
    /// the flow waits.
    pub(crate) fn waits_itself(self) -> bool {
        let waits = !self.calls.is_open();
        if waits {
            self.flow.waits_in(self.node);
        }
        waits
    }

    /// Sends a packet through an output, and waits for the reply.
    pub fn call(self, port: usize, packet: Value) -> impl Future<Output = Reply> + 'a {
        self.call_in(port, packet, self.calls.within())
    }

    /// The same with something around it: all nodes that the packet comes to before the reply is
    /// back find it by [`At::around`], and no others.
    pub fn call_within(
        self,
        port: usize,
        packet: Value,
        thing: Rc<dyn Any>,
    ) -> impl Future<Output = Reply> + 'a {
        self.call_in(port, packet, self.calls.around(thing))
    }

    /// What lies around this packet, from the inside: what those that wait for its reply have
    /// put there.
    pub fn around<T: Any>(self) -> impl Iterator<Item = &'a T> {
        self.calls.things().filter_map(|thing| thing.downcast_ref())
    }

    fn call_in(self, port: usize, packet: Value, calls: Calls) -> impl Future<Output = Reply> + 'a {
        let call = self.calls.begin(&self.flow.branches);
        async move {
            let _call = call;
            let mut reply = pin!(self.flow.pass(self.node, port, packet, calls));
            let program = &*self.flow.program;
            poll_fn(|context| {
                let polled = reply.as_mut().poll(context);
                // It was with others meanwhile.
                program.base.at_work.begin(program.entry(self.node).mark());
                polled
            })
            .await
        }
    }

    /// Waits until `is_there`, for what another branch of this flow brings and says with
    /// [`At::wake_branches`]; false as soon as no branch is left that could.
    pub async fn wait_for_branches(self, is_there: impl Fn() -> bool) -> bool {
        self.flow.branches.wait(is_there).await
    }

    /// Lets the branches of this flow look that wait for another one.
    pub fn wake_branches(self) {
        self.flow.branches.wake();
    }

    /// Sends a packet through an output in a child of this flow, which goes on by itself: it sees
    /// the values of its parent, not the other way round, draws from the same work, and has a
    /// deadline of its own. Its errors are counted as this node's and told in the log, its replies
    /// are dropped.
    ///
    /// # Errors
    /// Too many children of this worker are under way, or the flow has done its work (503).
    pub fn fork(self, port: usize, packet: Value, limit: Duration) -> Result<(), Error> {
        self.flow.spend(FORK_WORK)?;
        let begun = self.flow.program.base.children.begin()?;
        let (child, node) = (self.flow.child(), self.node);
        if self.flow.program.is_watched() {
            child.begin_watched_below(node, self.flow);
        }
        let running = async move {
            let figures = child.program.entry(node).figures();
            let _open = (figures.waits(), begun);
            if let Err(error) = child.run(node, port, packet, limit).await {
                figures.failed();
                child.tell(node, &error);
            }
        };
        tokio::task::spawn_local(running);
        Ok(())
    }

    /// Where flows of their own begin that a node begins for several others.
    pub fn beginning(self) -> Beginning {
        Beginning { program: Rc::clone(&self.flow.program), node: self.node }
    }

    /// Where the span of this node stands, for whom it asks, over HTTP or otherwise: what they do
    /// for it is part of the same trace. `None` if nobody asks for spans.
    pub fn context(self) -> Option<SpanContext> {
        self.flow.context()
    }

    /// Whether some node further back has put something around this packet.
    pub fn is_within(self) -> bool {
        self.calls.things().next().is_some()
    }

    /// Tells the log what is to be known of this node's work.
    pub fn say(self, what: fmt::Arguments<'_>) {
        let name = self.flow.program.entry(self.node).name();
        self.flow.program.base.teller.say(format_args!("node '{name}': {what}"));
    }

    /// Threads for what blocks.
    pub fn pool(self) -> &'a Pool {
        &self.flow.program.pool
    }
}

/// The outputs of a node, for flows that are none of those whose packets it gets.
#[derive(Clone)]
pub struct Beginning {
    program: Rc<Program>,
    node: usize,
}

impl Beginning {
    /// A flow of its own: it sees no other's values, and has time and work of its own. It counts as
    /// a child of this worker.
    ///
    /// # Errors
    /// Too many children are under way (503).
    pub fn begin(&self, limits: FlowLimits) -> Result<OwnFlow, Error> {
        let open = self.program.base.children.begin()?;
        let flow = Flow::new(Rc::clone(&self.program));
        flow.limit(limits);
        if flow.program.is_watched() {
            flow.begin_watched(self.node, None, None);
        }
        Ok(OwnFlow { flow, node: self.node, limits, _open: open })
    }
}

/// A flow that a node has begun for others.
pub struct OwnFlow {
    flow: Flow,
    node: usize,
    limits: FlowLimits,
    _open: Child,
}

impl OwnFlow {
    /// The flow.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Sends a packet through an output of its node, and waits for the reply. Its time counts from
    /// the first packet that waits.
    pub async fn send(&self, port: usize, packet: Value) -> Reply {
        self.flow.run(self.node, port, packet, self.limits.deadline).await
    }

    /// Tells the log of an error that nobody else hears.
    pub fn tell(&self, error: &Error) {
        self.flow.tell(self.node, error);
    }
}

/// What a node may use of its worker.
#[derive(Clone)]
pub struct NodeContext {
    /// The node itself, by index of the plan.
    pub node: usize,
    /// Which of the workers, from 0.
    pub worker: usize,
    /// How many there are.
    pub workers: usize,
    /// Threads for work that blocks.
    pub pool: Pool,
    /// One for each port of the kind: an input that a node of the core writes to.
    pub inputs: Vec<Option<MessageInput>>,
    /// One for each port of the kind: the links of an output to nodes of the core.
    pub outputs: Vec<Vec<MessageOutput>>,
    /// The node by index of the plan that its domain was started with; `None` if an edit brought
    /// it.
    pub(crate) born: Option<usize>,
    /// Who watches this domain and the core; `None` outside a run.
    pub supervisor: Option<Supervisor>,
    /// What all workers share.
    pub resources: Resources,
    /// The resources of the graph.
    pub(crate) opened: ByName,
    /// The graph.
    pub plan: Arc<Plan>,
}

impl NodeContext {
    /// What the workers' parts of this node share.
    pub fn share<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.resources.share(&self.plan.nodes[self.node].name, make)
    }

    /// The resource of the graph with this name; `None` if there is none of this type.
    pub fn resource<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        Arc::clone(self.opened.get(name)?).downcast().ok()
    }

    /// That of a node in a worker of its own, without links to the core.
    pub(crate) fn alone(
        node: usize,
        plan: &Arc<Plan>,
        pool: &Pool,
        (resources, opened): (&Resources, &ByName),
    ) -> NodeContext {
        let ports = plan.nodes[node].kind.ports.len();
        NodeContext {
            node,
            worker: 0,
            workers: 1,
            pool: pool.clone(),
            inputs: vec![None; ports],
            outputs: vec![Vec::new(); ports],
            born: Some(node),
            supervisor: None,
            resources: resources.clone(),
            opened: Arc::clone(opened),
            plan: Arc::clone(plan),
        }
    }
}

/// A node that begins flows. It is made once for its domain.
pub trait Source: Send {
    /// The files that it was made of: an edit of one is an edit of the node.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Tries to have what only one can have, such as a port, before any process is started. What it
    /// gives back holds that until all sources have tried, so that no two want the same.
    ///
    /// # Errors
    /// The parameter that asks for what cannot be had, and why.
    fn try_open(&self) -> Result<Option<Held>, (&'static str, Fault)> {
        Ok(None)
    }

    /// Opens what it needs, before the domain is ready: one part for each worker, from the first;
    /// workers past the last part have none.
    ///
    /// # Errors
    /// What it needs cannot be had: a port that is in use.
    fn open(self: Box<Self>, workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault>;

    /// The same after an edit of the graph, which ends other sources of this kind: `held` is what
    /// they hold ([`Opened::held`]), and they serve until this one does.
    ///
    /// # Errors
    /// As for [`Source::open`]; then they go on.
    fn open_after(
        self: Box<Self>,
        workers: usize,
        _held: &[Held],
    ) -> Result<Vec<Box<dyn Opened>>, Fault> {
        self.open(workers)
    }
}

/// What a source that takes another one's place may take over, such as a socket that listens.
pub type Held = Arc<dyn Any + Send + Sync>;

/// A source's part in one worker.
pub trait Opened: Send {
    /// What another source in the place of this one may take over; asked once, before it serves.
    fn held(&self) -> Option<Held> {
        None
    }

    /// Where people reach it, if they do: said to whoever runs the graph, once for all workers.
    fn address(&self) -> Option<String> {
        None
    }

    /// Begins flows through `outlet` until it is told to stop; then it begins no more, and ends
    /// when those that it began have ended.
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>>;
}
