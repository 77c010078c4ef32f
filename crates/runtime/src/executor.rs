//! The cycle: what a thread does between its release and its next sleep.
//!
//! Everything that can be decided beforehand was decided when the executor was assembled: the order
//! of the nodes, the slot of every port, which links to read before a node and to write after it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use sinew_spec::plan::{Full, Plan};

use crate::assemble::{Assembly, Ends};
use crate::board::FaultAt;
use crate::clock::{Clock, now_ns};
use crate::fault::{Cause, Fault};
use crate::finite::Finite;
use crate::node::{Cycle, Io, Node, NodeEntry, Wiring};
use crate::panics;
use crate::slots::{Slot, Slots};
use crate::trace::Record;
use crate::transport::{Received, Receiver, Sender, Sent};

/// The nodes of one thread, wired up.
pub struct Executor {
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: Slots,
    /// The signals of all nodes.
    pub(crate) values: Vec<f64>,
    /// Delayed links within this thread: from slot, to slot.
    pub(crate) delayed: Vec<(Slot, Slot)>,
    /// Delayed links from other threads, awaited at the end of the cycle.
    pub(crate) feedback: Vec<Input>,
    pub(crate) clock: Clock,
    pub(crate) record: Record,
    /// Step that is being carried out; after a cycle, the one in which it failed.
    pub(crate) at: Option<usize>,
}

/// A node with all that surrounds it in a cycle.
pub(crate) struct Step {
    pub(crate) node: Box<dyn Node>,
    pub(crate) name: String,
    /// Index of the node in the plan.
    pub(crate) index: usize,
    /// Place of the node in the thread's order, and so in the record.
    pub(crate) place: usize,
    pub(crate) wiring: Wiring,
    pub(crate) inputs: Vec<Input>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) numbers: Vec<Numbers>,
}

/// A link from another thread.
pub(crate) struct Input {
    pub(crate) slot: Slot,
    pub(crate) receiver: Box<dyn Receiver>,
    /// The writing node.
    pub(crate) from: String,
    /// Feedback only: whether the last cycle ended without it, and whether it had time to wait.
    pub(crate) late: bool,
    pub(crate) missing: bool,
    pub(crate) closed: bool,
}

/// A link to another thread.
pub(crate) struct Output {
    pub(crate) slot: Slot,
    pub(crate) sender: Box<dyn Sender>,
    pub(crate) full: Full,
    /// The safe value of the actuator port at the other end.
    pub(crate) safe: Option<Vec<u8>>,
    /// The reading node.
    pub(crate) to: String,
    pub(crate) closed: bool,
}

/// What keeps an actuator port from obeying a command that is too old.
pub(crate) struct Guard {
    pub(crate) slot: Slot,
    /// Where the command comes from, if this thread writes it. The port has a place of its own, so
    /// that a safe value in it is seen by nobody else.
    pub(crate) from: Option<Slot>,
    pub(crate) after: u32,
    pub(crate) safe: Vec<u8>,
    /// Cycles since the last fresh command.
    pub(crate) missed: u64,
}

/// An output slot whose numbers must be finite.
pub(crate) struct Numbers {
    pub(crate) slot: Slot,
    pub(crate) port: &'static str,
    pub(crate) finite: Finite,
}

impl Executor {
    /// The executor of a graph that is a single thread: to test a whole chain of nodes in a loop of
    /// one's own, or to measure it.
    ///
    /// # Errors
    /// What a node says to `make` or `start`.
    ///
    /// # Panics
    /// If the plan has more than one domain or thread.
    pub fn fused(plan: &Plan, table: &[NodeEntry], base: &Path) -> Result<Executor, FaultAt> {
        let threads: usize = plan.domains.iter().map(|domain| domain.threads.len()).sum();
        assert_eq!(threads, 1, "the graph is not a single thread");
        let assembly = Assembly { plan, table, base, clock: Clock::calibrate() };
        assembly.thread(0, 0, &mut Ends::default()).map(|(executor, _)| executor)
    }

    /// What the last cycle left behind, as far as it is not the thread's business.
    pub fn record(&mut self) -> &Record {
        self.record.signals_from(&self.values);
        &self.record
    }

    /// One cycle. The feedback is awaited until the monotonic clock shows `until_ns`.
    ///
    /// # Errors
    /// What a node says, and what its links say; [`Executor::node`] names the node.
    pub fn cycle(&mut self, cycle: &Cycle, until_ns: u64) -> Result<(), Fault> {
        let clock = self.clock;
        let start = clock.ticks();
        // Every reading of the counter ends one thing and begins the next.
        let mut now = start;
        self.at = None;
        self.receive_late(cycle)?;
        for (at, step) in self.steps.iter_mut().enumerate() {
            self.at = Some(at);
            if step.is_fed() {
                step.receive(&mut self.slots, cycle, &mut self.record)?;
                now = clock.ticks();
            }
            let begin = now;
            let mut io = Io {
                wiring: &step.wiring,
                slots: &mut self.slots,
                values: &mut self.values,
                cycle: cycle.number,
            };
            step.node.update(&mut io, cycle)?;
            step.check_finite(&self.slots, cycle)?;
            now = clock.ticks();
            self.record.executed(step.place, begin, now);
            if step.is_heard() {
                step.send(&self.slots, cycle, until_ns, &mut self.record)?;
                now = clock.ticks();
            }
        }
        self.at = None;
        self.carry_delayed(cycle);
        if !self.feedback.is_empty() {
            self.await_feedback(cycle, until_ns)?;
            now = clock.ticks();
        }
        self.record.ended(now.saturating_sub(start));
        Ok(())
    }

    /// Index in the plan of the node in which the last cycle failed. `None` if it did not fail, or
    /// at its feedback.
    pub fn node(&self) -> Option<usize> {
        self.steps.get(self.at?).map(|step| step.index)
    }

    /// The node that took the longest in the last cycle.
    pub fn slowest_node(&self) -> &str {
        let slowest = self.steps.iter().max_by_key(|step| self.record.execution_ticks(step.place));
        slowest.map_or("", |step| &step.name)
    }

    /// A node whose feedback the last cycle awaited in vain.
    pub fn missing_feedback(&self) -> Option<&str> {
        self.feedback.iter().find(|input| input.missing).map(|input| input.from.as_str())
    }

    /// Whether a link has lost its other end. No fault of this domain: whoever ended the peer knows
    /// why, and this domain stops.
    pub(crate) fn is_link_closed(&self) -> bool {
        let closed = |step: &Step| {
            step.inputs.iter().any(|input| input.closed)
                || step.outputs.iter().any(|output| output.closed)
        };
        self.steps.iter().any(closed) || self.feedback.iter().any(|input| input.closed)
    }

    /// Feedback that came after the last cycle had given up.
    fn receive_late(&mut self, cycle: &Cycle) -> Result<(), Fault> {
        for input in self.feedback.iter_mut().filter(|input| input.late) {
            input.receive_feedback(&mut self.slots, cycle.number, &mut self.record)?;
        }
        Ok(())
    }

    fn carry_delayed(&mut self, cycle: &Cycle) {
        for &(from, to) in &self.delayed {
            if self.slots.is_new(from, cycle.number) {
                self.slots.copy(from, to);
                self.slots.mark_new(to, cycle.number + 1);
            }
        }
    }

    fn await_feedback(&mut self, cycle: &Cycle, until_ns: u64) -> Result<(), Fault> {
        for input in &mut self.feedback {
            input.late = false;
            input.missing = false;
            // What arrives now is new in the next cycle.
            let next = cycle.number + 1;
            while !input.closed
                && !input.receive_feedback(&mut self.slots, next, &mut self.record)?
            {
                let in_time = now_ns() < until_ns;
                if !in_time || !input.receiver.wait(until_ns) {
                    input.late = true;
                    input.missing |= in_time;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes the safe value to every actuator at the other end of a link. This is the first thing
    /// that happens after a fault, so nothing here can fail, and nothing waits (but for the lock of
    /// a link with `sync: mutex`).
    pub(crate) fn safe_outputs(&mut self) {
        for output in self.steps.iter_mut().flat_map(|step| &mut step.outputs) {
            if let Some(safe) = &output.safe {
                // A full or broken link cannot be mended here; the reader's own guard acts then.
                let _ = output.sender.send(safe);
            }
        }
    }

    /// Keeps only the nodes that hold actuators, so that they can come to rest after a fault;
    /// a node that faulted itself goes too.
    ///
    /// # Errors
    /// As for [`Executor::stop`].
    pub(crate) fn keep_actuators(&mut self) -> Result<(), Fault> {
        let faulted = self.at.take();
        let mut stopped = Ok(());
        let mut at = 0;
        self.steps.retain_mut(|step| {
            let keep = !step.guards.is_empty() && Some(at) != faulted;
            at += 1;
            if !keep {
                stopped = stopped.clone().and(step.stop());
            }
            keep
        });
        self.record.clear();
        self.delayed.clear();
        self.feedback.clear();
        stopped
    }

    /// The node whose machine still moves, if there is one.
    pub(crate) fn restless_node(&self) -> Option<&str> {
        self.steps.iter().find(|step| !step.node.at_rest()).map(|step| step.name.as_str())
    }

    /// Stops every node, and closes the links to other threads.
    ///
    /// # Errors
    /// The first panic of a node; the others are stopped all the same.
    pub(crate) fn stop(&mut self) -> Result<(), Fault> {
        let mut stopped = Ok(());
        for step in &mut self.steps {
            stopped = stopped.and(step.stop());
            for output in &mut step.outputs {
                output.sender.close();
            }
        }
        stopped
    }
}

impl Step {
    /// Whether there is anything to do before the node's update.
    #[inline]
    fn is_fed(&self) -> bool {
        !self.inputs.is_empty() || !self.guards.is_empty()
    }

    /// Whether there is anything to do after the node's update.
    #[inline]
    fn is_heard(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// Stops the node. Its panic must not keep other nodes from coming to rest.
    fn stop(&mut self) -> Result<(), Fault> {
        catch_unwind(AssertUnwindSafe(|| self.node.stop())).map_err(|_| {
            let fault = panics::take();
            Fault::new(fault.cause, format_args!("node '{}' as it stopped: {fault}", self.name))
        })
    }

    /// Takes what came over links, then lets the guards judge.
    fn receive(
        &mut self,
        slots: &mut Slots,
        cycle: &Cycle,
        record: &mut Record,
    ) -> Result<(), Fault> {
        for input in &mut self.inputs {
            input.receive(slots, cycle.number, record)?;
        }
        for guard in &mut self.guards {
            let lost = self.inputs.iter().any(|input| input.closed && input.slot == guard.slot);
            guard.judge(slots, cycle, lost);
        }
        Ok(())
    }

    #[inline]
    fn check_finite(&self, slots: &Slots, cycle: &Cycle) -> Result<(), Fault> {
        for numbers in &self.numbers {
            if slots.is_new(numbers.slot, cycle.number)
                && !numbers.finite.holds(slots.words(numbers.slot))
            {
                let text = format_args!("a number on port '{}' is not finite", numbers.port);
                return Err(Fault::new(Cause::NotFinite, text));
            }
        }
        Ok(())
    }

    /// Sends what was written in this cycle.
    fn send(
        &mut self,
        slots: &Slots,
        cycle: &Cycle,
        until_ns: u64,
        record: &mut Record,
    ) -> Result<(), Fault> {
        for output in &mut self.outputs {
            if slots.is_new(output.slot, cycle.number) {
                output.send(slots.bytes(output.slot), until_ns, cycle.stopping, record)?;
            } else {
                output.sender.flush()?;
            }
        }
        Ok(())
    }
}

impl Input {
    /// Takes a message and marks it as new in cycle `cycle`. Whether there was one.
    #[inline]
    fn receive(
        &mut self,
        slots: &mut Slots,
        cycle: u64,
        record: &mut Record,
    ) -> Result<bool, Fault> {
        match self.receiver.receive(slots.bytes_mut(self.slot))? {
            Received::New { lost } => {
                slots.mark_new(self.slot, cycle);
                record.lost(lost);
                Ok(true)
            }
            Received::None => Ok(false),
            Received::Closed => {
                self.closed = true;
                Ok(false)
            }
        }
    }

    /// As [`Input::receive`], outside of any node's step: so the fault says where.
    fn receive_feedback(
        &mut self,
        slots: &mut Slots,
        cycle: u64,
        record: &mut Record,
    ) -> Result<bool, Fault> {
        self.receive(slots, cycle, record).map_err(|fault| {
            Fault::new(fault.cause, format_args!("feedback from node '{}': {fault}", self.from))
        })
    }
}

impl Output {
    fn send(
        &mut self,
        message: &[u8],
        until_ns: u64,
        stopping: bool,
        record: &mut Record,
    ) -> Result<(), Fault> {
        let mut sent = self.sender.send(message)?;
        if sent == Sent::Full && self.full == Full::Wait {
            while sent == Sent::Full && self.sender.wait_room(until_ns) {
                sent = self.sender.send(message)?;
            }
        }
        match sent {
            Sent::Done => Ok(()),
            Sent::Full if self.full == Full::Drop => {
                record.dropped();
                Ok(())
            }
            Sent::Closed => {
                self.closed = true;
                Ok(())
            }
            Sent::Full if stopping => Ok(()),
            Sent::Full => Err(Fault::new(
                Cause::Full,
                format_args!(
                    "the queue to node '{}' is full: it does not keep up; raise its capacity, or \
                     set 'delivery: latest' or 'full: drop'",
                    self.to
                ),
            )),
        }
    }
}

impl Guard {
    /// Puts the safe value in place of a command that is too old.
    #[inline]
    fn judge(&mut self, slots: &mut Slots, cycle: &Cycle, lost: bool) {
        if let Some(from) = self.from
            && slots.is_new(from, cycle.number)
        {
            slots.copy(from, self.slot);
            slots.mark_new(self.slot, cycle.number);
        }
        if slots.is_new(self.slot, cycle.number) {
            self.missed = 0;
        } else {
            self.missed += 1 + cycle.skipped;
        }
        if cycle.stopping || lost || self.missed > u64::from(self.after) {
            slots.bytes_mut(self.slot).copy_from_slice(&self.safe);
            slots.mark_safe(self.slot);
        }
    }
}
