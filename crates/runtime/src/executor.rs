//! The cycle: what a thread does between its release and its next sleep.
//!
//! Everything that can be decided beforehand was decided when the executor was assembled: the order
//! of the nodes, the slot of every port, which links to read before a node and to write after it.

use std::ops::Range;

use sinew_spec::plan::Full;

use crate::clock::{Clock, now_ns};
use crate::fault::{Cause, Fault};
use crate::node::{Cycle, Io, Node, Slots};
use crate::trace::Record;
use crate::transport::{Received, Receiver, Sender, Sent};

/// The nodes of one thread, wired up.
pub struct Executor {
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: Slots,
    /// The signals of all nodes.
    pub(crate) values: Vec<f64>,
    /// Delayed links within this thread: from slot, to slot.
    pub(crate) delayed: Vec<(usize, usize)>,
    /// Delayed links from other threads, awaited at the end of the cycle.
    pub(crate) feedback: Vec<Input>,
    pub(crate) clock: Clock,
    pub(crate) record: Record,
    /// Step that is being carried out.
    pub(crate) at: usize,
}

/// A node with all that surrounds it in a cycle.
pub(crate) struct Step {
    pub(crate) node: Box<dyn Node>,
    pub(crate) name: String,
    /// Index of the node in the plan.
    pub(crate) index: usize,
    /// Place of the node in the thread's order, and so in the record.
    pub(crate) place: usize,
    /// Slot of each port.
    pub(crate) ports: Vec<usize>,
    /// Start of each signal among the node's own, and the end of the last one.
    pub(crate) signals: Vec<usize>,
    /// Where the node's signals lie among those of all nodes.
    pub(crate) values: Range<usize>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) finite: Vec<Finite>,
}

/// A link from another thread.
pub(crate) struct Input {
    pub(crate) slot: usize,
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
    pub(crate) slot: usize,
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
    pub(crate) slot: usize,
    pub(crate) after: u32,
    pub(crate) safe: Vec<u8>,
    /// Cycles since the last fresh command.
    pub(crate) missed: u64,
}

/// An output slot whose numbers must be finite.
pub(crate) struct Finite {
    pub(crate) slot: usize,
    pub(crate) port: &'static str,
    /// Bytes of the slot that hold doubles, then bytes that hold floats.
    pub(crate) doubles: Vec<Range<usize>>,
    pub(crate) floats: Vec<Range<usize>>,
}

impl Executor {
    /// One cycle. The feedback is awaited until the monotonic clock shows `until_ns`.
    ///
    /// # Errors
    /// What a node says, and what its links say; [`Executor::node`] names the node.
    pub fn cycle(&mut self, cycle: &Cycle, until_ns: u64) -> Result<(), Fault> {
        let start = self.clock.ticks();
        let mut begin = start;
        self.receive_late(cycle)?;
        for (at, step) in self.steps.iter_mut().enumerate() {
            self.at = at;
            if step.receive(&mut self.slots, cycle, &mut self.record)? {
                begin = self.clock.ticks();
            }
            let mut io = Io {
                slots: &mut self.slots,
                ports: &step.ports,
                signals: &step.signals,
                values: &mut self.values[step.values.clone()],
                cycle: cycle.number,
            };
            step.node.update(&mut io, cycle)?;
            step.check_finite(&self.slots, cycle)?;
            let end = self.clock.ticks();
            self.record.executed(step.place, begin - start, end - start);
            begin = end;
            if step.send(&self.slots, cycle, until_ns, &mut self.record)? {
                begin = self.clock.ticks();
            }
        }
        self.carry_delayed(cycle);
        self.await_feedback(cycle, until_ns)?;
        self.record.ended(self.clock.ticks() - start);
        Ok(())
    }

    /// Index in the plan of the node that was being updated last.
    pub fn node(&self) -> Option<usize> {
        self.steps.get(self.at).map(|step| step.index)
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
            input.receive(&mut self.slots, cycle.number, &mut self.record)?;
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
            while !input.closed && !input.receive(&mut self.slots, next, &mut self.record)? {
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
    /// that happens after a fault, so nothing here can fail or wait.
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
    pub(crate) fn keep_actuators(&mut self) {
        let faulted = self.at;
        let mut at = 0;
        self.steps.retain_mut(|step| {
            let keep = !step.guards.is_empty() && at != faulted;
            at += 1;
            if !keep {
                step.node.stop();
            }
            keep
        });
        self.record.clear();
        self.delayed.clear();
        self.feedback.clear();
    }

    pub(crate) fn at_rest(&self) -> bool {
        self.steps.iter().all(|step| step.node.at_rest())
    }

    pub(crate) fn stop(&mut self) {
        for step in &mut self.steps {
            step.node.stop();
            for output in &mut step.outputs {
                output.sender.close();
            }
        }
    }
}

impl Step {
    /// Takes what came over links, then lets the guards judge. Whether there was anything to do.
    #[inline]
    fn receive(
        &mut self,
        slots: &mut Slots,
        cycle: &Cycle,
        record: &mut Record,
    ) -> Result<bool, Fault> {
        for input in &mut self.inputs {
            input.receive(slots, cycle.number, record)?;
        }
        for guard in &mut self.guards {
            let lost = self.inputs.iter().any(|input| input.closed && input.slot == guard.slot);
            guard.judge(slots, cycle, lost);
        }
        Ok(!self.inputs.is_empty() || !self.guards.is_empty())
    }

    #[inline]
    fn check_finite(&self, slots: &Slots, cycle: &Cycle) -> Result<(), Fault> {
        for check in &self.finite {
            if slots.is_new(check.slot, cycle.number) && !check.holds(slots.bytes(check.slot)) {
                let text = format_args!("a number on port '{}' is not finite", check.port);
                return Err(Fault::new(Cause::NotFinite, text));
            }
        }
        Ok(())
    }

    /// Sends what was written in this cycle. Whether there was anything to do.
    #[inline]
    fn send(
        &mut self,
        slots: &Slots,
        cycle: &Cycle,
        until_ns: u64,
        record: &mut Record,
    ) -> Result<bool, Fault> {
        for output in &mut self.outputs {
            if slots.is_new(output.slot, cycle.number) {
                output.send(slots.bytes(output.slot), until_ns, cycle.stopping, record)?;
            } else {
                output.sender.flush()?;
            }
        }
        Ok(!self.outputs.is_empty())
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
        if slots.is_new(self.slot, cycle.number) {
            self.missed = 0;
        } else {
            self.missed += 1 + cycle.skipped;
        }
        if cycle.stopping || lost || self.missed > u64::from(self.after) {
            slots.bytes_mut(self.slot).copy_from_slice(&self.safe);
            slots.slots[self.slot].safe = true;
        }
    }
}

impl Finite {
    #[inline]
    fn holds(&self, bytes: &[u8]) -> bool {
        let doubles = self.doubles.iter().all(|range| doubles_are_finite(&bytes[range.clone()]));
        doubles && self.floats.iter().all(|range| floats_are_finite(&bytes[range.clone()]))
    }
}

/// Whether no exponent is all ones: then adding one to it does not reach the sign's place. Without a
/// branch, so that it becomes vector code.
#[inline]
fn doubles_are_finite(bytes: &[u8]) -> bool {
    let carry = bytes.chunks_exact(8).fold(0, |carry, bytes| {
        let bits = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        carry | ((bits & 0x7ff0_0000_0000_0000) + 0x0010_0000_0000_0000)
    });
    carry >> 63 == 0
}

#[inline]
fn floats_are_finite(bytes: &[u8]) -> bool {
    let carry = bytes.chunks_exact(4).fold(0, |carry, bytes| {
        let bits = u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        carry | ((bits & 0x7f80_0000) + 0x0080_0000)
    });
    carry >> 31 == 0
}
