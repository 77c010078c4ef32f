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

    /// Whether anybody else has it.
    pub(crate) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// Begins a flow with a packet at output `port` (index into the kind's ports), and waits for
    /// its reply. Dropped before that, the flow is cancelled. Its deadline counts from its first
    /// wait.
    pub async fn open(&self, port: usize, packet: Value, limits: impl Into<FlowLimits>) -> Reply {
        self.begin(limits.into()).open(port, packet).await
    }

    /// Begins a flow that pays for what the source does with its reply, too.
    pub fn begin(&self, limits: FlowLimits) -> Begun {
        let current = self.0.borrow();
        let flow = Flow::new(Rc::clone(&current.program));
        flow.limit(limits);
        Begun { flow, source: current.node }
    }

    /// What goes on in the newest program, with so much work, and sends packets through the outputs
    /// of the source.
    ///
    /// # Errors
    /// Too many children of this worker are under way (503).
    pub fn beside(&self, work: u64) -> Result<Offshoot, Error> {
        let current = self.0.borrow();
        Offshoot::of_source(&current.program, current.node, work)
    }

    /// Waits until what is under way in this worker must end, for its domain does: whoever still
    /// waits for an answer is told so now.
    pub async fn must_end(&self) {
        let closing = Rc::clone(&self.0.borrow().program.base.closing);
        closing.wait().await;
    }

    /// What to wait for before a flow is begun for this connection (a number that the source has
    /// for it): the worker looks around between flows that compute. `None`: it may begin at once.
    #[inline]
    pub fn turn(&self, connection: usize) -> Option<Local<'static, ()>> {
        self.0.borrow().program.base.turns.wait(connection)
    }

    /// Whether flows wait for their turn for longer than that: then the worker has more to do than
    /// it can.
    #[inline]
    pub fn is_behind(&self, limit: Duration) -> bool {
        self.0.borrow().program.base.turns.is_behind(limit)
    }

    /// Whether a packet at output `port` may come to what ends the run or tells of it.
    pub fn is_reserved(&self, port: usize, packet: &Value) -> bool {
        let current = self.0.borrow();
        current.program.is_reserved(current.node, port, packet)
    }

    /// Counts what the source did not take, for want of room.
    pub fn refused(&self) {
        let current = self.0.borrow();
        current.program.entry(current.node).figures().refused();
    }

    /// Says that the worker has come further, for a source whose work is more than flows.
    #[inline]
    pub fn lives(&self) {
        self.0.borrow().program.base.at_work.end();
    }

    /// Tells the log of an error that the source itself met with a reply.
    pub fn tell(&self, error: &Error) {
        let current = self.0.borrow();
        Flow::new(Rc::clone(&current.program)).tell(current.node, error);
    }

    /// Ends the run: the job that it was for is done, or has failed with this. Every domain stops
    /// in order, and the exit status of the run tells. Outside a run it does nothing.
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

    /// Threads for what blocks.
    pub fn pool(&self) -> Pool {
        self.0.borrow().program.pool.clone()
    }

    /// Tells the log what is to be known of the source.
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

    /// Says what the source made of the reply, in HTTP's terms; for spans.
    #[inline]
    pub fn answered(&self, status: u16) {
        if let Some(trace) = self.flow.trace() {
            trace.answered(status);
        }
    }

    /// Counts and tells an error that the source itself met with the reply.
    pub fn fail(&self, error: &Error) {
        self.flow.program.entry(self.source).figures().failed();
        self.flow.trace_failed(error);
        self.flow.tell(self.source, error);
    }
}

/// What a source is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Word {
    /// To begin flows.
    Serve,
    /// To stop: an edit has brought another one, which serves whoever comes.
    Yield,
    /// To stop: nobody serves any more.
    End,
}

/// Tells a source when it is to stop.
#[derive(Clone)]
pub struct StopSignal(watch::Receiver<Word>);

/// Says it.
pub struct Stopper(watch::Sender<Word>);

impl StopSignal {
    /// A stop, and what says it.
    pub fn new() -> (Stopper, StopSignal) {
        let (sender, receiver) = watch::channel(Word::Serve);
        (Stopper(sender), StopSignal(receiver))
    }

    /// Whether it is to stop.
    pub fn is_set(&self) -> bool {
        *self.0.borrow() > Word::Serve
    }

    /// Whether the domain goes on without it, after an edit: nothing hurries then.
    pub fn yields(&self) -> bool {
        *self.0.borrow() == Word::Yield
    }

    /// Waits until it is to stop.
    pub async fn wait(&mut self) {
        // A sender that is gone says no more: that is a stop too.
        let _ = self.0.wait_for(|word| *word > Word::Serve).await;
    }

    /// Waits until nobody serves any more.
    pub async fn wait_for_end(&mut self) {
        // As above.
        let _ = self.0.wait_for(|word| *word == Word::End).await;
    }
}

impl Stopper {
    /// Nobody is to serve any more. A source that has ended need not hear it.
    pub fn end(&self) {
        self.0.send_replace(Word::End);
    }

    /// After an edit the domain goes on without this source.
    pub fn make_way(&self) {
        self.0.send_replace(Word::Yield);
    }
}
