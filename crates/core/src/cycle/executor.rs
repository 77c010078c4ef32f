//! The cycle: what a thread does between its release and its next sleep.
//!
//! Everything that can be decided beforehand was decided when the executor was assembled: the order
//! of the nodes, the slot of every port, which links to read before a node and to write after it.

use super::step::{Around, Input, Step};
use super::taps::Taps;
use crate::clock::{Clock, now_ns, sleep_until};
use crate::fault::{Cause, Fault};
use crate::node::{Cycle, Io};
use crate::slots::{Slot, Slots};
use crate::sys::allocations;
use crate::trace::{Failed, Record};

/// Most messages of late feedback that a cycle takes from one link: a peer that floods it must not
/// hold the cycle up.
const DRAINED_MAX: usize = 16;

/// How long safe outputs wait for locks in all. A living peer holds a lock only for one copy; past
/// this time the reader's guard has to act.
const LOCKS_NS_MAX: u64 = 2_000_000;
const LOCKS_NAP_NS: u64 = 50_000;

/// The nodes of one thread, wired up.
pub struct Executor {
    pub(crate) steps: Vec<Step>,
    /// Steps that a fault has ended: room for all of them was made at the start.
    pub(crate) given_up: Vec<Step>,
    pub(crate) slots: Slots,
    /// The signals of all nodes.
    pub(crate) values: Vec<f64>,
    /// Delayed links within this thread: from slot, to slot.
    pub(crate) delayed: Vec<(Slot, Slot)>,
    /// Delayed links from other threads, awaited at the end of the cycle.
    pub(crate) feedback: Vec<Input>,
    pub(crate) clock: Clock,
    pub(crate) record: Record,
    pub(crate) taps: Taps,
    /// Step that is being carried out; after a cycle, the one in which it failed.
    pub(crate) at: Option<usize>,
    /// Whether that step's node is at work: a failure then is the node's, otherwise only that of
    /// one of its links.
    pub(crate) updating: bool,
    /// Step whose machine still moved when [`Executor::look_for_rest`] looked last.
    pub(crate) restless: Option<usize>,
}

impl Executor {
    /// The cycles that follow are life `life` of the core. After a reset, what services had sent
    /// before is dropped and counted as lost: an old request must not move a machine now.
    pub fn begin_life(&mut self, life: u32) {
        self.record.begin_life(life);
        if life > 0 {
            let inputs = self.steps.iter_mut().flat_map(|step| &mut step.inputs);
            inputs.for_each(|input| input.drop_old(&mut self.slots, &mut self.record));
        }
    }

    /// An empty record of its cycles: what it will leave behind.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// One cycle. The feedback is awaited until the monotonic clock shows `until_ns`.
    ///
    /// # Errors
    /// A node or one of its links fails; [`Executor::node`] names the node.
    pub fn cycle(&mut self, cycle: &Cycle, until_ns: u64) -> Result<(), Fault> {
        self.cycle_since(self.clock.ticks(), cycle, until_ns)
    }

    /// As [`Executor::cycle`], for a cycle that began when the counter showed `start`.
    pub(crate) fn cycle_since(
        &mut self,
        start: u64,
        cycle: &Cycle,
        until_ns: u64,
    ) -> Result<(), Fault> {
        let clock = self.clock;
        // Every reading of the counter ends one thing and begins the next. They are few: each takes
        // 10 ns, and a cycle of four nodes on two threads may take 250.
        let mut now = start;
        self.at = None;
        if !self.feedback.is_empty() && self.drain_feedback(cycle)? {
            now = clock.ticks();
        }
        for (at, step) in self.steps.iter_mut().enumerate() {
            self.at = Some(at);
            if step.around.has(Around::FED) {
                step.receive(&mut self.slots, cycle, &mut self.record)?;
                now = clock.ticks();
            }
            let begin = now;
            // The node whose log lines come now.
            cycle.place.set(step.place);
            let before = allocations();
            // This counts as part of the node's work: the counter is not read for it.
            if step.around.has(Around::TUNED) {
                step.tune(&mut self.slots, cycle, &mut self.updating)?;
            }
            self.updating = true;
            let mut io = Io {
                wiring: &step.wiring,
                slots: &mut self.slots,
                values: &mut self.values,
                cycle: cycle.number,
            };
            step.node.update(&mut io, cycle)?;
            self.record.allocated(step.place, allocations() - before);
            step.check_finite(&self.slots, &self.values, cycle)?;
            self.updating = false;
            now = clock.ticks();
            self.record.executed(step.place, begin, now);
            if step.around.has(Around::HEARD) {
                step.send(&mut self.slots, cycle, until_ns, &mut self.record)?;
                now = clock.ticks();
            }
        }
        self.at = None;
        if !self.taps.is_empty() {
            self.tap(cycle);
            now = clock.ticks();
        }
        self.carry_delayed(cycle);
        if !self.feedback.is_empty() {
            self.await_feedback(cycle, until_ns)?;
            now = clock.ticks();
        }
        self.record.ended(now.saturating_sub(start));
        Ok(())
    }

    /// Index in the plan of the node in which the last cycle failed. `None` if it did not fail, or
    /// failed at its feedback.
    pub fn node(&self) -> Option<usize> {
        self.steps.get(self.at?).map(|step| step.index)
    }

    /// Where the last cycle failed, for its record.
    pub(crate) fn failed(&self, cause: Cause) -> Failed {
        let place = self.at.and_then(|at| self.steps.get(at)).map(|step| step.place);
        Failed { cause, place, in_link: !self.updating }
    }

    /// The node that took the longest in the last cycle, and how long in ticks.
    pub fn slowest_node(&self) -> (&str, u64) {
        let steps = self.steps.iter();
        let times = steps.map(|step| (&*step.name, self.record.execution_ticks(step.place)));
        times.max_by_key(|&(_, ticks)| ticks).unwrap_or(("", 0))
    }

    /// A node whose feedback the last cycle awaited in vain.
    pub fn missing_feedback(&self) -> Option<&str> {
        self.feedback.iter().find(|input| input.missing).map(|input| input.from.as_str())
    }

    /// Whether a link has lost its other end. That is no fault of this domain: whoever ended the
    /// peer knows why, and this domain stops.
    pub(crate) fn is_link_closed(&self) -> bool {
        let closed = |step: &Step| {
            step.inputs.iter().any(|input| input.closed)
                || step.outputs.iter().any(|output| output.closed)
        };
        self.steps.iter().any(closed) || self.feedback.iter().any(|input| input.closed)
    }

    /// Takes feedback that came after the last cycle had given up waiting, so that the feedback
    /// awaited at the end of this cycle is its own. Returns whether there was any.
    // Not inlined: the cycle's code is faster when it is small.
    #[inline(never)]
    fn drain_feedback(&mut self, cycle: &Cycle) -> Result<bool, Fault> {
        let mut any = false;
        for input in &mut self.feedback {
            let mut left = DRAINED_MAX;
            while left > 0
                && input.receive_feedback(&mut self.slots, cycle.number, &mut self.record)?
            {
                left -= 1;
                any = true;
            }
        }
        Ok(any)
    }

    /// Puts the messages of the cycle into the record, if somebody observes the run.
    pub(crate) fn tap(&mut self, cycle: &Cycle) {
        self.taps.take(&mut self.record, &self.slots, &self.steps, cycle.number);
    }

    fn carry_delayed(&mut self, cycle: &Cycle) {
        for &(from, to) in &self.delayed {
            if self.slots.is_new(from, cycle.number) {
                self.slots.copy(from, to);
                self.slots.mark_new(to, cycle.number + 1);
            }
        }
    }

    // Not inlined: the cycle's code is faster when it is small.
    #[inline(never)]
    fn await_feedback(&mut self, cycle: &Cycle, until_ns: u64) -> Result<(), Fault> {
        for input in &mut self.feedback {
            let was_silent = std::mem::take(&mut input.missing);
            // What arrives now is new in the next cycle.
            let next = cycle.number + 1;
            while !input.closed
                && !input.receive_feedback(&mut self.slots, next, &mut self.record)?
            {
                let in_time = now_ns() < until_ns;
                if !in_time || !input.wait_for(until_ns, was_silent) {
                    input.missing = in_time;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Writes the safe value to every actuator at the other end of a link. This is the first thing
    /// that happens after a fault, so nothing here can fail, and no link waits for another: those
    /// with `sync: mutex` whose lock somebody holds are tried again when all other links have their
    /// safe value, for [`LOCKS_NS_MAX`] in all.
    pub(crate) fn safe_outputs(&mut self) {
        let outputs = self.steps.iter_mut().flat_map(|step| &mut step.outputs);
        outputs.for_each(|output| output.owes_safe = output.safe.is_some());
        let until_ns = now_ns() + LOCKS_NS_MAX;
        while !self.pay_safe() && now_ns() < until_ns {
            // The holder of a lock may need this CPU to release it.
            sleep_until(now_ns() + LOCKS_NAP_NS);
        }
    }

    /// Sends the safe values that are still owed; returns whether none is left.
    fn pay_safe(&mut self) -> bool {
        let mut paid = true;
        for output in self.steps.iter_mut().flat_map(|step| &mut step.outputs) {
            if let (true, Some(safe)) = (output.owes_safe, &output.safe) {
                // A full or broken link cannot be mended here; the reader's own guard acts then.
                output.owes_safe = output.sender.try_send(safe).is_none();
                paid &= !output.owes_safe;
            }
        }
        paid
    }

    /// Keeps only the nodes that hold actuators, so that they can come to rest after a fault;
    /// a node that faulted itself goes too.
    ///
    /// # Errors
    /// As for [`Executor::stop`].
    pub(crate) fn keep_actuators(&mut self) -> Result<(), Fault> {
        let (at, updating) = (self.at.take(), std::mem::take(&mut self.updating));
        // A node whose peer lies is sound, and needed: only its link is given up.
        let faulted = at.filter(|_| updating);
        let mut stopped = Ok(());
        let (mut at, mut kept) = (0, 0);
        while kept < self.steps.len() {
            let keep = !self.steps[kept].guards.is_empty() && Some(at) != faulted;
            at += 1;
            if keep {
                kept += 1;
                continue;
            }
            // What the node holds is freed when the actuators are at rest, because that may take
            // time.
            let mut step = self.steps.remove(kept);
            stopped = stopped.and(step.stop());
            step.outputs.iter_mut().for_each(|output| output.sender.hang_up());
            self.given_up.push(step);
        }
        // These nodes have not been asked yet whether they are at rest.
        self.restless = (!self.steps.is_empty()).then_some(0);
        self.record.clear();
        self.delayed.clear();
        self.feedback.clear();
        stopped
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

#[cfg(test)]
mod tests;
