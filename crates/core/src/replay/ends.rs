//! The ends of links that a replayed thread has: reading ones give what was recorded, writing ones
//! lead nowhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::{End, Plan};

use crate::cycle::assemble::MakeEnds;
use crate::fault::{Cause, Fault};
use crate::trace::{Failed, Record, Tap};
use crate::transport::{Received, Receiver, Sender, Sent};

/// What an end and the replayer share. One thread uses both, but ends must be able to move between
/// threads.
type Shared<T> = Arc<Mutex<T>>;

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is behind the ends of a thread.
pub(super) struct Ends<'a> {
    plan: &'a Plan,
    nodes: &'a [usize],
    past: Recorded,
}

/// What was recorded, in the place where the ends find it.
pub(super) struct Recorded {
    /// For each tap that leads in: its place, its port, and what came.
    inlets: Vec<(usize, End, Shared<Inlet>)>,
    /// For each node: why a link of it is to fail.
    outlets: Vec<Shared<Option<Cause>>>,
}

/// What came in at a port.
#[derive(Default)]
struct Inlet {
    message: Vec<u8>,
    is_new: bool,
    is_closed: bool,
}

impl<'a> Ends<'a> {
    /// For a thread with these nodes.
    pub(super) fn new(plan: &'a Plan, nodes: &'a [usize], taps: &[Tap]) -> Ends<'a> {
        let inlets = taps.iter().enumerate().filter(|(_, tap)| tap.direction == Direction::In);
        let inlets = inlets.map(|(at, tap)| {
            let message = vec![0; tap.size as usize];
            (at, tap.end, Arc::new(Mutex::new(Inlet { message, ..Inlet::default() })))
        });
        let outlets = nodes.iter().map(|_| Shared::default());
        let past = Recorded { inlets: inlets.collect(), outlets: outlets.collect() };
        Ends { plan, nodes, past }
    }

    /// What came in at a port.
    fn fed(&self, to: End) -> Option<Box<dyn Receiver>> {
        let inlet = self.past.inlets.iter().find(|(_, end, _)| *end == to);
        inlet.map(|(_, _, inlet)| Box::new(Fed(Arc::clone(inlet))) as Box<dyn Receiver>)
    }

    /// What is to be fed, when all ends are made.
    pub(super) fn recorded(self) -> Recorded {
        self.past
    }
}

impl MakeEnds for Ends<'_> {
    fn sender(&mut self, link: usize) -> Result<Box<dyn Sender>, Fault> {
        let from = self.plan.links[link].from.node;
        let place = self.nodes.iter().position(|&node| node == from);
        let place = place.expect("the link leads out of the thread");
        Ok(Box::new(Outlet(Arc::clone(&self.past.outlets[place]))))
    }

    fn receiver(&mut self, link: usize) -> Result<Box<dyn Receiver>, Fault> {
        let fed = self.fed(self.plan.links[link].to);
        Ok(fed.expect("a port with a link from elsewhere is a tap"))
    }

    fn tuning(&mut self, node: usize) -> Result<Option<Box<dyn Receiver>>, Fault> {
        Ok(self.plan.tuning(node).and_then(|(end, _)| self.fed(end)))
    }

    fn are_stamped(&self) -> bool {
        false
    }
}

impl Recorded {
    /// Makes ready what came in during a cycle.
    pub(super) fn feed(&self, past: &Record) {
        for (at, _, inlet) in &self.inlets {
            let mut inlet = lock(inlet);
            inlet.is_closed = past.is_closed(*at);
            let message = past.message(*at);
            inlet.is_new = message.is_some();
            if let Some(message) = message {
                inlet.message.copy_from_slice(message);
            }
        }
        let failed = past.failed().filter(|failed| failed.in_link);
        for (place, outlet) in self.outlets.iter().enumerate() {
            let here = |failed: &Failed| failed.place == Some(place);
            *lock(outlet) = failed.filter(here).map(|failed| failed.cause);
        }
    }
}

/// Gives the message that was recorded, once.
struct Fed(Shared<Inlet>);

impl Receiver for Fed {
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Fault> {
        let mut inlet = lock(&self.0);
        if std::mem::take(&mut inlet.is_new) {
            into.copy_from_slice(&inlet.message);
            return Ok(Received::New { lost: 0 });
        }
        Ok(if inlet.is_closed { Received::Closed } else { Received::None })
    }

    fn wait(&mut self, _: u64) -> bool {
        lock(&self.0).is_new
    }
}

/// Takes what is written, and fails where the recorded link did: with a full queue the writing node
/// had done its work, and the nodes after it had not.
struct Outlet(Shared<Option<Cause>>);

impl Outlet {
    fn answer(&self) -> Result<(), Fault> {
        match *lock(&self.0) {
            Some(cause) => Err(Fault::new(cause, format_args!("a link failed, as recorded"))),
            None => Ok(()),
        }
    }
}

impl Sender for Outlet {
    fn send(&mut self, _: &[u8]) -> Result<Sent, Fault> {
        self.answer().map(|()| Sent::Done)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.answer()
    }

    fn wait_room(&mut self, _: u64) -> bool {
        false
    }

    fn close(&mut self) {}
}
