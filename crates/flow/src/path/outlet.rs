//! How a source begins flows, and how it learns that it is to stop.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use sinew_control::Request;
use sinew_control::status::cut;
use sinew_core::fault::{Cause, Fault};
use tokio::sync::watch;

use crate::{Error, Flow, FlowLimits, Local, Offshoot, Pool, Program, Reply, Value};

/// Where a source's packets go: into the newest program of its worker.
#[derive(Clone)]
pub struct Outlet(Rc<RefCell<Current>>);

/// The program, and the source's place in it.
struct Current {
    program: Rc<Program>,
    node: usize,
}

impl Outlet {
    pub(crate) fn new(program: Rc<Program>, node: usize) -> Outlet {
        Outlet(Rc::new(RefCell::new(Current { program, node })))
    }

    /// From now on flows begin in `program`, at its node `node`.
    pub(crate) fn lead(&self, program: &Rc<Program>, node: usize) {
        *self.0.borrow_mut() = Current { program: Rc::clone(program), node };
    }

    /// Whether a clone of it still exists.
    pub(crate) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// Begins a flow with a packet at output `port` (index into the kind's ports), and waits for
    /// its reply. If this future is dropped before that, the flow is cancelled. The flow's deadline
    /// counts from its first wait.
    pub async fn open(&self, port: usize, packet: Value, limits: impl Into<FlowLimits>) -> Reply {
        self.begin(limits.into()).open(port, packet).await
    }

    /// Begins a flow. What the source does with the reply may also draw from the flow's work.
    pub fn begin(&self, limits: FlowLimits) -> Begun {
        let current = self.0.borrow();
        let flow = Flow::new(Rc::clone(&current.program));
        flow.limit(limits);
        Begun { flow, source: current.node }
    }

    /// A child that goes on in the newest program, with this much work, and sends packets through
    /// the outputs of the source.
    ///
    /// # Errors
    /// Too many children of this worker are under way (503).
    pub fn beside(&self, work: u64) -> Result<Offshoot, Error> {
        let current = self.0.borrow();
        Offshoot::of_source(&current.program, current.node, work)
    }

    /// Waits until everything that is under way in this worker must end because its domain ends.
    /// Whoever still waits for an answer must be told so now.
    pub async fn must_end(&self) {
        let closing = Rc::clone(&self.0.borrow().program.base.closing);
        closing.wait().await;
    }

    /// What to wait for before a flow is begun for this connection (a number that the source gives
    /// it): between flows that compute, the worker looks at sockets and clocks. `None` if the flow
    /// may begin at once.
    #[inline]
    pub fn turn(&self, connection: usize) -> Option<Local<'static, ()>> {
        self.0.borrow().program.base.turns.wait(connection)
    }

    /// Whether flows have waited for their turn for longer than `limit`: then the worker has more
    /// to do than it can.
    #[inline]
    pub fn is_behind(&self, limit: Duration) -> bool {
        self.0.borrow().program.base.turns.is_behind(limit)
    }

    /// Whether a packet at output `port` may come to a node that ends the run or tells of it.
    pub fn is_reserved(&self, port: usize, packet: &Value) -> bool {
        let current = self.0.borrow();
        current.program.is_reserved(current.node, port, packet)
    }

    /// Counts something that the source refused because there was no room.
    pub fn refused(&self) {
        let current = self.0.borrow();
        current.program.entry(current.node).figures().refused();
    }

    /// Gives a sign of the worker's life, for a source that also works outside flows.
    #[inline]
    pub fn lives(&self) {
        self.0.borrow().program.base.at_work.end();
    }

    /// Logs an error of the source itself in handling a reply.
    pub fn tell(&self, error: &Error) {
        let current = self.0.borrow();
        Flow::new(Rc::clone(&current.program)).tell(current.node, error);
    }

    /// Ends the run: its job is done, or has failed with `error`. Every domain stops in order, and
    /// the exit status of the run tells which it was. Outside a run it does nothing.
    ///
    /// # Errors
    /// The supervisor does not answer.
    pub async fn finish(&self, error: Option<&Error>) -> Result<(), Fault> {
        let program = Rc::clone(&self.0.borrow().program);
        let Some(supervisor) = program.base.supervisor.clone() else { return Ok(()) };
        let error = error.map(|error| cut(error.to_string()));
        let order = move || supervisor.order(&Request::Finish { error });
        let said = program.pool.run_first(order).await.map_err(|error| error.to_string());
        let refused = |text: String| Fault::new(Cause::System, format_args!("{text}"));
        said.and_then(|said| said).map(drop).map_err(refused)
    }

    /// Threads for work that blocks.
    pub fn pool(&self) -> Pool {
        self.0.borrow().program.pool.clone()
    }

    /// Writes a line about the source to the log.
    pub fn say(&self, what: fmt::Arguments<'_>) {
        let current = self.0.borrow();
        let name = current.program.entry(current.node).name();
        current.program.base.teller.say(format_args!("node '{name}': {what}"));
    }
}

/// A flow that a source has begun.
pub struct Begun {
    flow: Flow,
    source: usize,
}

impl Begun {
    /// Sends its packet through output `port`, and waits for the reply.
    pub async fn open(&self, port: usize, packet: Value) -> Reply {
        let reply = self.flow.open(self.source, port, packet).await;
        if let Err(error) = &reply {
            self.flow.tell(self.source, error);
        }
        reply
    }

    /// The flow.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// Notes, for spans, the HTTP status that the source made of the reply.
    #[inline]
    pub fn answered(&self, status: u16) {
        if let Some(trace) = self.flow.trace() {
            trace.answered(status);
        }
    }

    /// Counts and logs an error of the source itself in handling the reply.
    pub fn fail(&self, error: &Error) {
        self.flow.program.entry(self.source).figures().failed();
        self.flow.trace_failed(error);
        self.flow.tell(self.source, error);
    }
}

/// What a source is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Word {
    /// To begin flows.
    Serve,
    /// To stop: an edit has put another source in its place, which serves new callers.
    Yield,
    /// To stop: nobody serves any more.
    End,
}

/// The source's end: says when it is to stop.
#[derive(Clone)]
pub struct StopSignal(watch::Receiver<Word>);

/// The other end: tells the source to stop.
pub struct Stopper(watch::Sender<Word>);

impl StopSignal {
    /// The two ends of a stop.
    pub fn new() -> (Stopper, StopSignal) {
        let (sender, receiver) = watch::channel(Word::Serve);
        (Stopper(sender), StopSignal(receiver))
    }

    /// Whether the source is to stop.
    pub fn is_set(&self) -> bool {
        *self.0.borrow() > Word::Serve
    }

    /// Whether the domain goes on without the source, after an edit: then there is no hurry.
    pub fn yields(&self) -> bool {
        *self.0.borrow() == Word::Yield
    }

    /// Waits until the source is to stop.
    pub async fn wait(&mut self) {
        // An error means that the sender is gone, which also means stop.
        let _ = self.0.wait_for(|word| *word > Word::Serve).await;
    }

    /// Waits until nobody serves any more.
    pub async fn wait_for_end(&mut self) {
        // An error means that the sender is gone, which also means the end.
        let _ = self.0.wait_for(|word| *word == Word::End).await;
    }
}

impl Stopper {
    /// Nobody is to serve any more. It does not matter if the source has already ended.
    pub fn end(&self) {
        self.0.send_replace(Word::End);
    }

    /// After an edit the domain goes on without this source.
    pub fn make_way(&self) {
        self.0.send_replace(Word::Yield);
    }
}
