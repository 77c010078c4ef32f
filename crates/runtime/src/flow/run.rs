//! A flow, and the loop that takes it along its path.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::program::{Program, Target};
use super::{At, Error, Reply, Step, Value};
use crate::panics;

/// One isolated traversal of flow nodes by one packet, until its reply is back at the source.
pub struct Flow {
    id: u64,
    pub(super) program: Rc<Program>,
    /// When it must have ended; known once it waits for the first time.
    deadline: Cell<Option<Instant>>,
    /// `None` until somebody sets a value.
    values: RefCell<Option<Rc<Values>>>,
}

/// Values of a flow, and behind them those of its parent.
struct Values {
    own: RefCell<Vec<(ByteString, Value)>>,
    parent: Option<Rc<Values>>,
}

impl Values {
    fn get(&self, name: &str) -> Option<Value> {
        let own = self.own.borrow();
        let found = own.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        found.or_else(|| self.parent.as_ref()?.get(name))
    }
}

impl Flow {
    /// A flow through a program.
    pub fn new(program: Rc<Program>) -> Flow {
        let id = program.next_id();
        Flow { id, program, deadline: Cell::new(None), values: RefCell::new(None) }
    }

    /// Its number, unique in its domain's life.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// When it must have ended; `None` while it has not waited yet.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }

    /// A value of this flow, or of the nearest parent that has one of this name.
    pub fn get(&self, name: &str) -> Option<Value> {
        self.values.borrow().as_ref()?.get(name)
    }

    /// Sets a value, for this flow and the children that it forks.
    pub fn set(&self, name: ByteString, value: Value) {
        let values = self.own_values(None);
        let mut own = values.own.borrow_mut();
        match own.iter_mut().find(|(own, _)| *own == name) {
            Some((_, place)) => *place = value,
            None => own.push((name, value)),
        }
    }

    fn own_values(&self, parent: Option<Rc<Values>>) -> Rc<Values> {
        let mut values = self.values.borrow_mut();
        let new = || Rc::new(Values { own: RefCell::default(), parent });
        Rc::clone(values.get_or_insert_with(new))
    }

    /// A flow that sees the values of this one.
    pub(super) fn child(&self) -> Flow {
        let child = Flow::new(Rc::clone(&self.program));
        child.own_values(Some(self.own_values(None)));
        child
    }

    /// Runs from the output of a node until the reply is there, `limit` at most. A panic of a node
    /// is an error of this flow alone.
    pub async fn run(&self, node: usize, port: usize, packet: Value, limit: Duration) -> Reply {
        let mut running = pin!(AssertUnwindSafe(self.pass(node, port, packet)).catch_unwind());
        // A flow that never waits needs neither clock nor timer.
        let first = poll_fn(|context| Poll::Ready(running.as_mut().poll(context))).await;
        let ended = match first {
            Poll::Ready(ended) => ended,
            Poll::Pending => {
                let deadline = Instant::now() + limit;
                self.deadline.set(Some(deadline));
                match tokio::time::timeout_at(deadline.into(), running).await {
                    Ok(ended) => ended,
                    Err(_) => return Err(too_late(limit)),
                }
            }
        };
        ended.unwrap_or_else(|_| Err(Error::new(format_args!("panic: {}", panics::take()))))
    }

    /// Sends a packet through an output, and waits for the reply.
    pub(super) async fn pass(&self, node: usize, port: usize, packet: Value) -> Reply {
        match self.program.targets(node, port) {
            [] => Ok(Some(packet)),
            [one] => self.take(*one, packet).await,
            several => self.join(several, packet).await,
        }
    }

    /// The loop that takes a packet from node to node.
    async fn take(&self, target: Target, packet: Value) -> Reply {
        let program = &*self.program;
        let (mut target, mut packet) = (target, packet);
        let mut begun = program.ticks();
        loop {
            let Target { node, input } = target;
            let entry = program.entry(node);
            let mut step = entry.node().handle(At { flow: self, node }, input, packet);
            let (port, next) = loop {
                match step {
                    Step::Wait(waiting) => {
                        let _waits = entry.figures().waits();
                        step = waiting.await;
                    }
                    Step::Reply(reply) => {
                        entry.figures().record(program.ticks().wrapping_sub(begun));
                        return Ok(reply);
                    }
                    Step::Pass(port, next) => break (port, next),
                    Step::Fail(error) => break entry.failed(error)?,
                }
            };
            let ended = program.ticks();
            entry.figures().record(ended.wrapping_sub(begun));
            begun = ended;
            packet = next;
            target = match program.targets(node, port) {
                [] => return Ok(Some(packet)),
                [one] => *one,
                several => return self.join(several, packet).await,
            };
        }
    }

    /// Sends a packet to several nodes at once, and joins their replies.
    async fn join(&self, targets: &[Target], packet: Value) -> Reply {
        let branch = |target: &Target| self.take(*target, packet.clone()).boxed_local();
        join_replies(join_all(targets.iter().map(branch)).await)
    }
}

/// One reply of several: any error makes one error; of the rest nothing is nothing, one is itself,
/// several are a list in their order.
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

#[cold]
fn too_late(limit: Duration) -> Error {
    Error::new(format_args!("the flow has not ended within {limit:?}, its deadline"))
        .with_status(504)
}
