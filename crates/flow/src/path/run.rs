//! A flow, and the loop that takes it along its path.
//!
//! What a flow owns is in one future, in one worker. To drop that future is to cancel the flow and
//! all its branches, wherever they wait. Only children that it forked go on.

mod ending;
pub(crate) mod taps;
mod traced;

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::join_all;
use sinew_otlp::SpanContext;
use tokio::task::yield_now;

use crate::budget::{Budget, spent};
use crate::path::branches::{Branches, Calls};
use crate::path::program::{Entry, Program, Target};
use crate::spans::NodeSpan;
use crate::values::FlowValues;
use crate::{At, Document, Error, FlowLimits, Local, Reply, Step, Value, WORK_DEFAULT};

use self::ending::Over;
use self::traced::Watched;

/// Work that a look at one packet may take, enough for a packet of about a hundred kilobytes.
const EYE_WORK: u64 = 20_000;

/// One isolated traversal of flow nodes by one packet, until its reply is back at the source.
pub struct Flow {
    id: u64,
    pub(crate) program: Rc<Program>,
    /// What it may take.
    limits: Cell<FlowLimits>,
    /// Set when it waits for the first time, or when somebody asks.
    deadline: Cell<Option<Instant>>,
    budget: Budget,
    /// Since when it has had its worker, in ticks.
    turned: Cell<u64>,
    /// `None` until somebody sets a value.
    values: RefCell<Option<FlowValues>>,
    /// What a node has left for the source.
    left: RefCell<Option<Box<dyn Any>>>,
    /// Why it must end. `is_heard` says whether a node that waited has been told.
    over: Cell<Over>,
    is_heard: Cell<bool>,
    /// The node that waited last.
    waits_in: Cell<Option<usize>>,
    pub(crate) branches: Branches,
    /// What looks at it, if anything does.
    watched: OnceCell<Box<Watched>>,
}

/// Where a packet is now.
struct Place<'a> {
    node: usize,
    calls: &'a Calls,
    /// When the node got the packet, in ticks.
    begun: u64,
    /// The node's span, if anybody asks for spans.
    span: Option<Box<NodeSpan<'a>>>,
}

impl Place<'_> {
    /// The node has failed with this error.
    #[cold]
    fn failed(&mut self, error: &Error) {
        if let Some(span) = &mut self.span {
            span.failed(error);
        }
    }
}

/// What the loop goes on with.
enum Turn<'a> {
    /// A packet at this input.
    Packet(usize, Value),
    /// The step that a node gave after it had waited, or its failure.
    Step(Step<'a>),
}

/// How far a flow came without waiting.
enum Started<'a> {
    /// It has its reply, since this time in ticks.
    Replied(Reply, u64),
    /// The rest needs time. It is boxed, so that a flow that never waits stays small.
    Waits(Local<'a, Reply>),
}

/// Why a packet goes no further without waiting.
enum End<'a> {
    /// It is answered.
    Reply(Reply),
    /// Its node needs time.
    Wait(Local<'a, Step<'a>>),
    /// It goes to several nodes at once.
    Several(&'a [Target], Value),
    /// It goes on when other flows have had their turn.
    Turn(Target, Value),
}

impl Flow {
    /// A flow through a program; it has not begun.
    pub(crate) fn new(program: Rc<Program>) -> Flow {
        let id = program.next_id();
        let limits = FlowLimits { deadline: Duration::MAX, work: WORK_DEFAULT };
        let (limits, deadline) = (Cell::new(limits), Cell::new(None));
        let (budget, turned) = (Budget::of(WORK_DEFAULT), Cell::new(0));
        let (values, branches) = (RefCell::new(None), Branches::default());
        let (left, waits_in) = (RefCell::new(None), Cell::new(None));
        let (over, is_heard) = (Cell::new(Over::No), Cell::new(false));
        Flow {
            id,
            program,
            limits,
            deadline,
            budget,
            turned,
            values,
            left,
            over,
            is_heard,
            waits_in,
            branches,
            watched: OnceCell::new(),
        }
    }

    /// Its number, unique in its domain's life.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Draws from the work that this flow may do.
    ///
    /// # Errors
    /// Less than this was left (503).
    pub fn spend(&self, work: u64) -> Result<(), Error> {
        if self.budget.draw(work) { Ok(()) } else { Err(spent(self.limits.get().work)) }
    }

    /// The work that it may still do.
    pub fn work_left(&self) -> u64 {
        self.budget.left()
    }

    /// From now on it may do this much work.
    pub fn allow(&self, work: u64) {
        self.limit(FlowLimits { work, ..self.limits.get() });
    }

    /// Whether it has had its worker for a slice of time, so that others should have theirs.
    pub fn is_due(&self) -> bool {
        self.program.is_slice_over(self.turned.get(), self.program.ticks())
    }

    /// Lets other flows have the worker, if this flow has had it for a slice of time. To be called
    /// only within a run of this flow or within [`Flow::in_time`], which begin a new slice;
    /// elsewhere it would wait for ever.
    pub async fn turn(&self) {
        while self.is_due() {
            yield_now().await;
        }
    }

    /// A field of a document. Its price is drawn from the flow's work.
    ///
    /// # Errors
    /// As for [`Document::field`]; or the flow has no work left.
    pub fn field(&self, document: &dyn Document, name: &str) -> Result<Value, Error> {
        self.spend(document.price(name))?;
        document.field(name)
    }

    /// If the packet is a document with a field that takes long to make, makes that field now, on a
    /// thread for work that blocks, because this worker cannot stop in the middle of it. The price
    /// is drawn at once. An error of the field is told to whoever asks for the field. That the flow
    /// has too little work left for it is also told only then, because perhaps nobody asks.
    ///
    /// # Errors
    /// Too much work waits for such a thread already (503).
    pub async fn prepare(&self, packet: &Value) -> Result<(), Error> {
        let Some((document, field)) = heavy(packet) else { return Ok(()) };
        if document.price(field) > self.work_left() {
            return Ok(());
        }
        self.spend(document.price(field))?;
        let document = Arc::clone(document);
        self.program.pool.run_slow(move || drop(document.field(field))).await
    }

    /// A value with its documents made into mappings. Their price is drawn from the flow's work.
    ///
    /// # Errors
    /// As for [`Flow::field`].
    pub fn resolve(&self, value: &Value) -> Result<Value, Error> {
        self.spend(value.price())?;
        value.resolve()
    }

    /// The value of this name, of this flow or of the nearest parent that has one.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values.borrow().as_ref()?.get(name)
    }

    /// Sets a value, for this flow and the children that it forks.
    pub fn set(&self, name: ByteString, value: Value) {
        self.values().set(name, value);
    }

    /// All its values, for a caller that cannot hold the flow itself.
    pub fn values(&self) -> FlowValues {
        self.values.borrow_mut().get_or_insert_with(|| FlowValues::below(None)).clone()
    }

    /// Leaves something for the source of this flow, which may take it when the reply is there. It
    /// is for things that are not values; they stay in this worker.
    pub fn leave(&self, thing: Box<dyn Any>) {
        *self.left.borrow_mut() = Some(thing);
    }

    /// Takes what was left for the source.
    pub fn take_left(&self) -> Option<Box<dyn Any>> {
        self.left.take()
    }

    /// A flow that sees the values of this one, and draws from its work.
    pub(crate) fn child(&self) -> Flow {
        let mut child = Flow::new(Rc::clone(&self.program));
        child.limits.set(self.limits.get());
        child.budget = self.budget.share();
        child.values = RefCell::new(Some(FlowValues::below(Some(self.values()))));
        child
    }

    /// A flow that sees the values of this one, with work and time of its own.
    pub(crate) fn child_of_its_own(&self, limits: FlowLimits) -> Flow {
        let child = Flow::new(Rc::clone(&self.program));
        child.limit(limits);
        child.turned.set(self.program.ticks());
        *child.values.borrow_mut() = Some(FlowValues::below(Some(self.values())));
        child
    }

    /// A flow that sees the values of this one, with a little work of its own: a look at a packet
    /// for others draws nothing from this flow's work.
    pub(crate) fn eye(&self) -> Flow {
        self.child_of_its_own(FlowLimits { deadline: Duration::MAX, work: EYE_WORK })
    }

    /// From now on these limits hold.
    pub(crate) fn limit(&self, limits: FlowLimits) {
        self.limits.set(limits);
        self.budget.allow(limits.work);
    }

    /// Runs from the output of a source until the reply is there, and counts the flow as the
    /// source's.
    pub(crate) async fn open(&self, source: usize, port: usize, packet: Value) -> Reply {
        let (calls, entry) = (Calls::default(), self.program.entry(source));
        let (figures, mut place) = (entry.figures(), self.place(&calls, source));
        let (begun, _open) = (place.begun, figures.waits());
        if self.program.is_watched() {
            self.begin_watched(source, Some(&packet), None);
        }
        self.turned.set(begun);
        let count = |reply: Reply, ended: u64| {
            figures.record(ended.wrapping_sub(begun));
            if let Err(error) = &reply {
                figures.failed();
                self.trace_failed(error);
            }
            reply
        };
        if heavy(&packet).is_some()
            && let Err(error) =
                Box::pin(async { self.in_time(pin!(self.prepare(&packet))).await }).await
        {
            return count(Err(error), self.program.ticks());
        }
        // The time that it has waited is not counted as computing, nor as time of the first node.
        place.begun = self.program.ticks();
        let rest = match self.start(place, |place| self.begin(place, port, packet)) {
            // `ended` is the time at which the last node ended, so no further look at the clock is
            // needed.
            Started::Replied(reply, ended) => return count(reply, ended),
            Started::Waits(rest) => rest,
        };
        let reply = rest.await;
        count(reply, self.program.ticks())
    }

    /// Runs from the output of a node until the reply is there, for at most `limit`.
    pub(crate) async fn run(
        &self,
        node: usize,
        port: usize,
        packet: Value,
        limit: Duration,
    ) -> Reply {
        self.limits.set(FlowLimits { deadline: limit, ..self.limits.get() });
        let calls = Calls::default();
        let place = self.place(&calls, node);
        self.turned.set(place.begun);
        let begin = |place| self.begin(place, port, packet);
        let reply = match self.start(place, begin) {
            Started::Replied(reply, _) => reply,
            Started::Waits(rest) => rest.await,
        };
        reply.inspect_err(|error| self.trace_failed(error))
    }

    /// Runs from an input of a node until the reply is there, for a caller in another domain, in a
    /// span below `context`.
    pub(crate) async fn enter(
        &self,
        node: usize,
        input: usize,
        packet: Value,
        context: Option<SpanContext>,
    ) -> Reply {
        if self.program.is_watched() {
            self.begin_watched(node, None, context.as_ref());
        }
        let calls = Calls::default();
        let place = self.place(&calls, node);
        self.turned.set(place.begun);
        let reply = match self.start(place, |place| self.take(place, input, packet)) {
            Started::Replied(reply, _) => reply,
            Started::Waits(rest) => rest.await,
        };
        reply.inspect_err(|error| self.trace_failed(error))
    }

    /// Begins with a packet at `place`, in the span of the flow.
    #[inline]
    fn start<'a>(
        &'a self,
        place: Place<'a>,
        begin: impl FnOnce(Place<'a>) -> (Place<'a>, End<'a>),
    ) -> Started<'a> {
        let (begun, turns) = (place.begun, &self.program.base.turns);
        let trace = self.trace();
        let (place, end) = match trace {
            None => begin(place),
            Some(trace) => trace.within(|| begin(place)),
        };
        if let End::Reply(reply) = end {
            turns.spend(place.begun.wrapping_sub(begun));
            return Started::Replied(reply, place.begun);
        }
        turns.spend(self.program.ticks().wrapping_sub(begun));
        let rest = self.go_on_in_time(place, end);
        Started::Waits(match trace {
            None => Box::pin(rest),
            Some(trace) => trace.wrap(rest),
        })
    }

    /// The same as `go_on`, but stops when the flow must have ended.
    async fn go_on_in_time<'a>(&'a self, place: Place<'a>, end: End<'a>) -> Reply {
        self.in_time(pin!(self.go_on(place, end))).await
    }

    /// Sends a packet through an output, and waits for the reply.
    pub(crate) async fn pass(
        &self,
        node: usize,
        port: usize,
        packet: Value,
        calls: Calls,
    ) -> Reply {
        let mut place = self.place(&calls, node);
        if self.program.is_slice_over(self.turned.get(), place.begun) {
            self.turn().await;
            place.begun = self.program.ticks();
        }
        let rest = match self.begin(place, port, packet) {
            (_, End::Reply(reply)) => return reply,
            (place, end) => Box::pin(self.go_on(place, end)),
        };
        rest.await
    }

    /// Sends a packet from `place` through an output, and takes it as far as it goes without
    /// waiting.
    #[inline]
    fn begin<'a>(&'a self, place: Place<'a>, port: usize, packet: Value) -> (Place<'a>, End<'a>) {
        match self.program.targets(place.node, port) {
            [one] => self.take(Place { node: one.node, ..place }, one.input, packet),
            [] => (place, End::Reply(Ok(Some(packet)))),
            several => (place, End::Several(several, packet)),
        }
    }

    fn place<'a>(&self, calls: &'a Calls, node: usize) -> Place<'a> {
        Place { node, calls, begun: self.program.ticks(), span: None }
    }

    /// Hands a packet to a node, and takes it on from there as far as it goes without waiting.
    #[inline]
    fn take<'a>(
        &'a self,
        mut place: Place<'a>,
        input: usize,
        packet: Value,
    ) -> (Place<'a>, End<'a>) {
        let end = self.go(&mut place, Turn::Packet(input, packet));
        (place, end)
    }

    /// Goes on from where a packet went no further without waiting, until the reply is there.
    async fn go_on<'a>(&'a self, mut place: Place<'a>, mut end: End<'a>) -> Reply {
        loop {
            let waiting = match end {
                End::Reply(reply) => return reply,
                End::Several(targets, packet) => {
                    return self.join(targets, packet, place.calls).await;
                }
                End::Wait(waiting) => waiting,
                End::Turn(Target { node, input }, packet) => {
                    self.waits_in(node);
                    self.turn().await;
                    (place.node, place.begun) = (node, self.program.ticks());
                    end = self.go(&mut place, Turn::Packet(input, packet));
                    continue;
                }
            };
            let (entry, at) = (self.program.entry(place.node), self.at(&place));
            let step = match &place.span {
                None => entry.wait(at, waiting).await,
                Some(span) => span.wrap(entry.wait(at, waiting)).await,
            };
            end = self.go(&mut place, Turn::Step(step));
        }
    }

    /// Takes a packet as far as it goes without waiting.
    fn go<'a>(&'a self, place: &mut Place<'a>, mut turn: Turn<'a>) -> End<'a> {
        loop {
            // A panic is a failure of the node that had the packet, in this flow alone.
            match catch_unwind(AssertUnwindSafe(|| self.walk(place, turn))) {
                Ok(end) => {
                    self.program.base.at_work.end();
                    return end;
                }
                Err(panic) => {
                    let (entry, at) = (self.program.entry(place.node), self.at(place));
                    turn = Turn::Step(entry.panicked(at, &*panic));
                }
            }
        }
    }

    /// The loop that takes a packet from node to node until a node needs time.
    fn walk<'a>(&'a self, place: &mut Place<'a>, turn: Turn<'a>) -> End<'a> {
        let program = &*self.program;
        let mut entry = program.entry(place.node);
        let mut step = match turn {
            Turn::Packet(input, packet) => self.hand(place, entry, input, packet),
            Turn::Step(step) => step,
        };
        loop {
            // Checked before the match below takes the step apart: its content is large, and would
            // be moved twice.
            if !matches!(step, Step::Wait(_)) {
                let ended = program.ticks();
                entry.figures().record(ended.wrapping_sub(place.begun));
                place.begun = ended;
            }
            let (port, packet) = match step {
                Step::Pass(port, packet) => (port, packet),
                Step::Reply(reply) => return End::Reply(Ok(reply)),
                Step::Wait(waiting) => return End::Wait(waiting),
                Step::Fail(error) => {
                    place.failed(&error);
                    match entry.failed(error) {
                        Continue(next) => next,
                        Break(reply) => return End::Reply(reply),
                    }
                }
            };
            let next @ Target { node, input } = match entry.targets(port) {
                [one] => *one,
                [] => return End::Reply(Ok(Some(packet))),
                several => return End::Several(several, packet),
            };
            if program.is_slice_over(self.turned.get(), place.begun) {
                return End::Turn(next, packet);
            }
            place.node = node;
            entry = program.entry(node);
            step = self.hand(place, entry, input, packet);
        }
    }

    /// Hands a packet to the node at this place.
    #[inline]
    fn hand<'a>(
        &'a self,
        place: &mut Place<'a>,
        entry: &'a Entry,
        input: usize,
        packet: Value,
    ) -> Step<'a> {
        self.program.base.at_work.begin(entry.mark());
        if let Some(watched) = self.watched.get() {
            return self.hand_watched(watched, place, entry, input, packet);
        }
        entry.node().handle(self.at(place), input, packet)
    }

    /// The same with a span of the node and with taps; a separate function, so that the loop stays
    /// small without them.
    #[cold]
    #[inline(never)]
    fn hand_watched<'a>(
        &'a self,
        watched: &'a Watched,
        place: &mut Place<'a>,
        entry: &'a Entry,
        input: usize,
        packet: Value,
    ) -> Step<'a> {
        let (at, trace) = (self.at(place), watched.trace.as_ref());
        // Ends the span of the node before.
        place.span = None;
        place.span = trace.and_then(|it| it.node(entry.name(), entry.kind().name, place.begun));
        let handle = || match &watched.taps {
            None => entry.node().handle(at, input, packet),
            Some(taps) => taps.hand(at, entry, input, packet),
        };
        match &place.span {
            None => handle(),
            Some(span) => span.within(handle),
        }
    }

    fn at<'a>(&'a self, place: &Place<'a>) -> At<'a> {
        At { flow: self, node: place.node, calls: place.calls }
    }

    /// Sends a packet to several nodes at once, and joins their replies.
    async fn join(&self, targets: &[Target], packet: Value, around: &Calls) -> Reply {
        let calls = around.within();
        let branch = |target: &Target| {
            let (call, target, packet) = (calls.begin(&self.branches), *target, packet.clone());
            async move {
                let (_call, calls) = (call, around.within());
                self.waits_in(target.node);
                self.turn().await;
                let place = self.place(&calls, target.node);
                let (place, end) = self.take(place, target.input, packet);
                self.go_on(place, end).await
            }
            .boxed_local()
        };
        join_replies(join_all(targets.iter().map(branch)).await)
    }

    /// Logs an error that ends this flow, begun by the node `by`. Errors of the caller (status
    /// below 500) are not logged.
    pub(crate) fn tell(&self, by: usize, error: &Error) {
        if error.status() >= 500 && !error.is_told() {
            let (id, name) = (self.id, self.program.entry(by).name());
            self.program.base.teller.say(format_args!("{error} (flow {id} of '{name}')"));
        }
    }
}

/// Joins several replies into one. Any errors make one error. Otherwise no value gives nothing, one
/// value is the reply, and several values are a list in their order.
pub fn join_replies(replies: Vec<Reply>) -> Reply {
    let (mut values, mut errors) = (Vec::new(), Vec::new());
    for reply in replies {
        match reply {
            Ok(value) => values.extend(value),
            Err(error) => errors.push(error),
        }
    }
    match (errors.len(), values.len()) {
        (0, 0) => Ok(None),
        (0, 1) => Ok(values.pop()),
        (0, _) => Ok(Some(Value::list(values))),
        _ => Err(Error::joined(errors)),
    }
}

/// The document, and its field that takes long to make, if there is one.
fn heavy(packet: &Value) -> Option<(&Arc<dyn Document>, &'static str)> {
    let Value::Document(document) = packet else { return None };
    document.heavy().map(|field| (document, field))
}
