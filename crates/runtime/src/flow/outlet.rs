//! How a source begins flows, and how it learns that it is to stop.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Error, Flow, Program, Reply, Value};

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
    pub(super) fn lead(&self, program: &Rc<Program>, node: usize) {
        *self.0.borrow_mut() = Current { program: Rc::clone(program), node };
    }

    /// Whether anybody else has it.
    pub(super) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.0) > 1
    }

    /// Begins a flow with a packet at output `port` (index into the kind's ports), and waits for
    /// its reply. Dropped before that, the flow is cancelled. `limit` is its deadline, counted from
    /// when it waits for the first time.
    pub async fn open(&self, port: usize, packet: Value, limit: Duration) -> Reply {
        let (program, node) = {
            let current = self.0.borrow();
            (Rc::clone(&current.program), current.node)
        };
        let flow = Flow::new(program);
        let reply = flow.open(node, port, packet, limit).await;
        if let Err(error) = &reply {
            flow.tell(node, error);
        }
        reply
    }

    /// Tells the log of an error that the source itself met with a reply.
    pub fn tell(&self, error: &Error) {
        let current = self.0.borrow();
        Flow::new(Rc::clone(&current.program)).tell(current.node, error);
    }
}

/// Tells a source when it is to stop.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A stop, and what says it.
    pub fn new() -> (watch::Sender<bool>, Stop) {
        let (sender, receiver) = watch::channel(false);
        (sender, Stop(receiver))
    }

    /// Whether it is to stop.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is to stop.
    pub async fn wait(&mut self) {
        // A sender that is gone says no more: that is a stop too.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
