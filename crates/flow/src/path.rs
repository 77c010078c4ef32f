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

/// Work that a fork costs: a future, and its turns.
const FORK_WORK: u64 = 20;

/// The answer to a packet: a value, nothing, or an error.
pub type Reply = Result<Option<Value>, Error>;

/// A future of one worker, on whose thread it stays.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A node that takes packets and answers each. Each worker has one of its own, and calls it for one
/// packet at a time; flows that wait in it overlap. A panic in the node fails one flow only; the
/// node goes on for other flows.
pub trait FlowNode {
    /// The files that it was made of: an edit of one is an edit of the node.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Called once, in the worker, before the first packet: gives the node what it may use of its
    /// worker.
    fn attach(&mut self, _site: &NodeContext) {}

    /// What is known of a packet's way before [`FlowNode::handle`] gets it. Called only when there
    /// is no room for all flows: a packet that is on its way to [`Ahead::Reserved`] has a place of
    /// its own.
    fn ahead(&self, _packet: &Value) -> Ahead {
        Ahead::Unknown
    }

    /// What to do about a packet at input `input` (index into the kind's ports). It must not block
    /// the thread: work that takes time is a [`Step::Wait`], work that blocks goes to [`At::pool`].
    fn handle<'a>(&'a self, at: At<'a>, input: usize, packet: Value) -> Step<'a>;
}

/// What is known of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Nothing: any output may get it.
    Unknown,
    /// This output (index into the kind's ports) gets it.
    Output(usize),
    /// This node ends the run or tells of it: load must not keep the packet out.
    Reserved,
    /// The packet never comes to such a node.
    Ordinary,
}

/// What a node does about a packet.
pub enum Step<'a> {
    /// Answers the packet; `None` is an empty answer.
    Reply(Option<Value>),
    /// Passes the packet on through this output (index into the kind's ports). The reply from there
    /// is the answer. If the output leads nowhere, the packet itself is the answer.
    Pass(usize, Value),
    /// Fails. The `error` port, if it leads anywhere, gives the answer.
    Fail(Error),
    /// Needs time first. If it is dropped before its end, the flow was cancelled.
    Wait(Local<'a, Step<'a>>),
}

impl<'a> Step<'a> {
    /// Needs time first.
    pub fn wait(future: impl Future<Output = Step<'a>> + 'a) -> Step<'a> {
        Step::Wait(Box::pin(future))
    }

    /// The step that a computation gives. It is there at once, unless the computation takes longer
    /// than a slice and lets other flows have the worker ([`Flow::turn`]).
    pub fn compute(work: impl Future<Output = Step<'a>> + 'a) -> Step<'a> {
        let mut work: Local<'a, Step<'a>> = Box::pin(work);
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(step) => step,
            Poll::Pending => Step::Wait(work),
        }
    }

    /// Passes `made` on through this output; fails if it is an error.
    pub fn pass(port: usize, made: Result<Value, Error>) -> Step<'a> {
        made.map_or_else(Step::Fail, |packet| Step::Pass(port, packet))
    }

    /// Answers with a reply that came from elsewhere.
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

    /// Whether its node waits for something other than replies of other nodes. If so, the node is
    /// noted as the place where the flow waits.
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

    /// The same with a thing around the packet: the nodes that the packet comes to before the reply
    /// is back find the thing by [`At::around`], and no other nodes do.
    pub fn call_within(
        self,
        port: usize,
        packet: Value,
        thing: Rc<dyn Any>,
    ) -> impl Future<Output = Reply> + 'a {
        self.call_in(port, packet, self.calls.around(thing))
    }

    /// The things around this packet, innermost first. Nodes that wait for its reply have put them
    /// there.
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
                // Other nodes had the worker meanwhile.
                program.base.at_work.begin(program.entry(self.node).mark());
                polled
            })
            .await
        }
    }

    /// Waits until `is_there`, for something that another branch of this flow brings and signals
    /// with [`At::wake_branches`]. `false` as soon as no branch is left that could bring it.
    pub async fn wait_for_branches(self, is_there: impl Fn() -> bool) -> bool {
        self.flow.branches.wait(is_there).await
    }

    /// Wakes the branches of this flow that wait for another branch, so that they look again.
    pub fn wake_branches(self) {
        self.flow.branches.wake();
    }

    /// Sends a packet through an output in a child of this flow, which goes on by itself. The child
    /// sees the values of its parent, not the other way round. It draws from the same work, and has
    /// a deadline of its own. Its errors are counted as this node's and logged; its replies are
    /// dropped.
    ///
    /// # Errors
    /// Too many children of this worker are under way, or the flow has no work left (503).
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

    /// Begins flows that this node runs for several other flows.
    pub fn beginning(self) -> Beginning {
        Beginning { program: Rc::clone(&self.flow.program), node: self.node }
    }

    /// The context of this node's span. The node sends it to whomever it asks, over HTTP or
    /// otherwise, so that their work is part of the same trace. `None` if spans are not asked for.
    pub fn context(self) -> Option<SpanContext> {
        self.flow.context()
    }

    /// Whether some earlier node has put something around this packet.
    pub fn is_within(self) -> bool {
        self.calls.things().next().is_some()
    }

    /// Writes a line about this node's work to the log.
    pub fn say(self, what: fmt::Arguments<'_>) {
        let name = self.flow.program.entry(self.node).name();
        self.flow.program.base.teller.say(format_args!("node '{name}': {what}"));
    }

    /// Threads for work that blocks.
    pub fn pool(self) -> &'a Pool {
        &self.flow.program.pool
    }
}

/// The outputs of a node, for flows other than those whose packets it gets.
#[derive(Clone)]
pub struct Beginning {
    program: Rc<Program>,
    node: usize,
}

impl Beginning {
    /// Begins a separate flow: it sees no other flow's values, and has time and work of its own. It
    /// counts as a child of this worker.
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

    /// Logs an error that nobody else learns of.
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
    /// One entry for each port of the kind: the end of a link from a node of the core, if there is
    /// one.
    pub inputs: Vec<Option<MessageInput>>,
    /// One entry for each port of the kind: the links of an output to nodes of the core.
    pub outputs: Vec<Vec<MessageOutput>>,
    /// The node by index of the plan that its domain was started with; `None` if an edit added it.
    pub(crate) born: Option<usize>,
    /// Watches this domain and the core; `None` outside a run.
    pub supervisor: Option<Supervisor>,
    /// What all workers share.
    pub resources: Resources,
    /// The resources of the graph.
    pub(crate) opened: ByName,
    /// The graph.
    pub plan: Arc<Plan>,
}

impl NodeContext {
    /// A value that this node's parts in all workers share; the first to ask makes it.
    pub fn share<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.resources.share(&self.plan.nodes[self.node].name, make)
    }

    /// The resource of the graph with this name; `None` if there is none of this type.
    pub fn resource<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        Arc::clone(self.opened.get(name)?).downcast().ok()
    }

    /// The context of a node in a worker of its own, without links to the core.
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

    /// Tries, before any process is started, to get what only one can have, such as a port. The
    /// returned value holds it until all sources have tried, so that no two take the same.
    ///
    /// # Errors
    /// The parameter that asks for something that is not available, and why.
    fn try_open(&self) -> Result<Option<Held>, (&'static str, Fault)> {
        Ok(None)
    }

    /// Opens what it needs, before the domain is ready: one part for each worker, from the first;
    /// workers past the last part have none.
    ///
    /// # Errors
    /// Something that it needs is not available, for example because a port is in use.
    fn open(self: Box<Self>, workers: usize) -> Result<Vec<Box<dyn Opened>>, Fault>;

    /// The same after an edit of the graph that ends other sources of this kind. `held` is what
    /// these hold ([`Opened::held`]). They serve until this source does.
    ///
    /// # Errors
    /// As for [`Source::open`]; then the other sources go on.
    fn open_after(
        self: Box<Self>,
        workers: usize,
        _held: &[Held],
    ) -> Result<Vec<Box<dyn Opened>>, Fault> {
        self.open(workers)
    }
}

/// What a source may take over from the one that it replaces, such as a listening socket.
pub type Held = Arc<dyn Any + Send + Sync>;

/// A source's part in one worker.
pub trait Opened: Send {
    /// What the replacement of this source may take over. Asked once, before it serves.
    fn held(&self) -> Option<Held> {
        None
    }

    /// The address where people reach it, if there is one. It is told to whoever runs the graph,
    /// once for all workers.
    fn address(&self) -> Option<String> {
        None
    }

    /// Begins flows through `outlet` until it is told to stop. Then it begins no more, and ends
    /// when the flows that it began have ended.
    fn serve(
        self: Box<Self>,
        outlet: Outlet,
        stop: StopSignal,
    ) -> Local<'static, Result<(), Fault>>;
}
