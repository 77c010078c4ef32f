//! A step of the cycle: a node with all that surrounds it. Inputs bring what crossed from other
//! threads, guards keep commands that are too old from an actuator, outputs send what was written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sinew_plan::catalogue::{Scalar, Signal};
use sinew_plan::plan::Full;

use super::finite::{Finite, are_finite};
use super::tuning::Tuning;
use crate::clock::{now_ns, sleep_until};
use crate::fault::{Cause, Fault};
use crate::node::{Cycle, Node, Wiring};
use crate::panics;
use crate::slots::{Slot, Slots};
use crate::trace::{ActuatorHolds, Record};
use crate::transport::{Received, Receiver, Sender, Sent};

/// Looks during a wait for a peer that was silent before.
const SILENT_NAPS: u64 = 10;

/// A node with all that surrounds it in a cycle.
pub(crate) struct Step {
    pub(crate) node: Box<dyn Node>,
    pub(crate) name: String,
    /// Index of the node in the plan.
    pub(crate) index: usize,
    /// Place of the node in the thread's order, and so in the record.
    pub(crate) place: usize,
    pub(crate) wiring: Wiring,
    pub(crate) around: Around,
    pub(crate) inputs: Vec<Input>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) tuning: Option<Box<Tuning>>,
    /// What links take of its messages in place of the whole.
    pub(crate) parts: Vec<PartCopy>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) numbers: Vec<Numbers>,
    pub(crate) signals: &'static [Signal],
}

/// What there is to do around a node's work: one word to look at in every cycle.
#[derive(Clone, Copy, Default)]
pub(crate) struct Around(u8);

impl Around {
    /// Before the work: something comes over links, or a guard judges.
    pub(crate) const FED: Around = Around(1);
    /// New values of its parameters may come.
    pub(crate) const TUNED: Around = Around(2);
    /// After the work: what the node wrote is sent on.
    pub(crate) const HEARD: Around = Around(4);

    #[inline]
    pub(crate) fn has(self, what: Around) -> bool {
        self.0 & what.0 != 0
    }
}

/// A link from another thread.
pub(crate) struct Input {
    pub(crate) slot: Slot,
    pub(crate) receiver: Box<dyn Receiver>,
    /// The writing node.
    pub(crate) from: String,
    /// Feedback only: whether the last cycle waited for it in vain.
    pub(crate) missing: bool,
    pub(crate) closed: bool,
    /// Place of this end among those of the thread.
    pub(crate) end: usize,
    /// For a link from a service: what keeps the service from harming this thread.
    pub(crate) lock: Option<Lock>,
}

/// The lock between a service and the core: what a service sends is checked in a separate place,
/// and only a sound message gets to the node. Nothing that the service does is a fault here.
pub(crate) struct Lock {
    /// Where what crossed waits until it has been checked.
    pub(crate) staging: Slot,
    /// The message in it: all of it, or what follows its stamp.
    pub(crate) message: Slot,
    /// Oldest stamp of a message that passes, ns. `None`: messages have no stamp.
    pub(crate) after_ns: Option<u64>,
    pub(crate) finite: Option<Finite>,
    /// Messages that the link can hold.
    pub(crate) capacity: u32,
    pub(crate) broken: bool,
}

/// A link to another thread.
pub(crate) struct Output {
    pub(crate) slot: Slot,
    pub(crate) sender: Box<dyn Sender>,
    pub(crate) full: Full,
    /// The safe value of the actuator port at the other end.
    pub(crate) safe: Option<Vec<u8>>,
    /// After a fault: the safe value has not gone out yet.
    pub(crate) owes_safe: bool,
    /// The reading node.
    pub(crate) to: String,
    pub(crate) closed: bool,
    /// Place of this end among those of the thread.
    pub(crate) end: usize,
    /// Whether a service reads it: then nothing that the service does may stop this thread.
    pub(crate) to_service: bool,
    /// Whether its reader has broken the link: nothing is sent any more.
    pub(crate) broken: bool,
}

/// What keeps an actuator port from obeying a command that is too old.
pub(crate) struct Guard {
    pub(crate) slot: Slot,
    /// Where the command comes from, if this thread writes it. The port has a place of its own, so
    /// that a safe value in it is seen by nobody else.
    pub(crate) from: Option<Slot>,
    pub(crate) after: u32,
    /// The safe value: of the port's own size, as both are laid out from one message type.
    pub(crate) safe: Slot,
    /// Cycles since the last fresh command.
    pub(crate) missed: u64,
    pub(crate) holds: ActuatorHolds,
}

/// One number of a message that has a place of its own, for the links that take it.
pub(crate) struct PartCopy {
    pub(crate) from: Slot,
    /// Bytes from the start of the message.
    pub(crate) offset: usize,
    pub(crate) scalar: Scalar,
    pub(crate) to: Slot,
    /// Its type there.
    pub(crate) as_scalar: Scalar,
}

/// An output slot whose numbers must be finite.
pub(crate) struct Numbers {
    pub(crate) slot: Slot,
    pub(crate) port: &'static str,
    pub(crate) finite: Finite,
}

impl Step {
    /// Notes what there is to do around the node's work, once the step is complete.
    pub(crate) fn settled(mut self) -> Step {
        let so = |what: Around, is_so: bool| if is_so { what.0 } else { 0 };
        let fed = so(Around::FED, !self.inputs.is_empty() || !self.guards.is_empty());
        let tuned = so(Around::TUNED, self.tuning.is_some());
        let heard = so(Around::HEARD, !self.outputs.is_empty() || !self.parts.is_empty());
        self.around = Around(fed | tuned | heard);
        self
    }

    /// Hands the node new values of its parameters, if there are any; sets `updating` when the node
    /// is at work.
    // Not inlined: the cycle's code is faster when it is small.
    #[inline(never)]
    pub(crate) fn tune(
        &mut self,
        slots: &mut Slots,
        cycle: &Cycle,
        updating: &mut bool,
    ) -> Result<(), Fault> {
        match &mut self.tuning {
            Some(tuning) => tuning.pass(&mut *self.node, slots, cycle.number, updating),
            None => Ok(()),
        }
    }

    /// Stops the node. Its panic must not keep other nodes from coming to rest.
    pub(crate) fn stop(&mut self) -> Result<(), Fault> {
        catch_unwind(AssertUnwindSafe(|| self.node.stop())).map_err(|_| {
            let fault = panics::take();
            Fault::new(fault.cause, format_args!("node '{}' as it stopped: {fault}", self.name))
        })
    }

    /// Takes what came over links, then lets the guards judge.
    pub(crate) fn receive(
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
    pub(crate) fn check_finite(
        &self,
        slots: &Slots,
        values: &[f64],
        cycle: &Cycle,
    ) -> Result<(), Fault> {
        for numbers in &self.numbers {
            if slots.is_new(numbers.slot, cycle.number)
                && !numbers.finite.holds(slots.words(numbers.slot))
            {
                return Err(not_finite("port", numbers.port));
            }
        }
        let all = self.wiring.signals[0]..self.wiring.signals_end();
        if are_finite(&values[all]) { Ok(()) } else { Err(self.signal_not_finite(values)) }
    }

    /// Not inlined, so that the cycle's code stays small.
    #[cold]
    #[inline(never)]
    fn signal_not_finite(&self, values: &[f64]) -> Fault {
        let of = |at: &usize| &values[self.wiring.signals[*at]..self.wiring.signals[at + 1]];
        let at = (0..self.signals.len()).find(|at| !are_finite(of(at)));
        not_finite("signal", at.map_or("", |at| self.signals[at].name))
    }

    /// Sends what was written in this cycle.
    pub(crate) fn send(
        &mut self,
        slots: &mut Slots,
        cycle: &Cycle,
        until_ns: u64,
        record: &mut Record,
    ) -> Result<(), Fault> {
        for part in &self.parts {
            part.take(slots, cycle.number);
        }
        for output in &mut self.outputs {
            if slots.is_new(output.slot, cycle.number) {
                output.send(slots.bytes(output.slot), until_ns, cycle.stopping, record)?;
            } else if !output.to_service && !output.broken {
                output.sender.flush()?;
            }
        }
        Ok(())
    }
}

impl PartCopy {
    fn take(&self, slots: &mut Slots, cycle: u64) {
        if !slots.is_new(self.from, cycle) {
            return;
        }
        let mut number = [0; 8];
        let bytes = &slots.bytes(self.from)[self.offset..];
        if self.scalar == self.as_scalar {
            let len = self.scalar.bytes() as usize;
            number[..len].copy_from_slice(&bytes[..len]);
        } else {
            self.as_scalar.put(self.scalar.number(bytes).unwrap_or_default(), &mut number);
        }
        let to = slots.bytes_mut(self.to);
        to.copy_from_slice(&number[..to.len()]);
        slots.mark_new(self.to, cycle);
    }
}

/// Not inlined, so that the cycle's code stays small.
#[cold]
#[inline(never)]
fn not_finite(what: &str, name: &str) -> Fault {
    Fault::new(Cause::NotFinite, format_args!("a number on {what} '{name}' is not finite"))
}

impl Input {
    /// Takes a message and marks it as new in cycle `cycle`. Returns whether there was one.
    #[inline]
    fn receive(
        &mut self,
        slots: &mut Slots,
        cycle: u64,
        record: &mut Record,
    ) -> Result<bool, Fault> {
        if let Some(lock) = &mut self.lock {
            let arrived = lock.pass(&mut *self.receiver, slots, self.end, record);
            if arrived {
                slots.copy(lock.message, self.slot);
                slots.mark_new(self.slot, cycle);
            }
            return Ok(arrived);
        }
        if self.closed {
            return Ok(false);
        }
        let received = self.receiver.receive(slots.bytes_mut(self.slot));
        // Nothing more is taken from a peer that lies.
        match received.inspect_err(|_| self.closed = true)? {
            Received::New { lost } => {
                slots.mark_new(self.slot, cycle);
                record.lost(self.end, lost);
                Ok(true)
            }
            Received::None => Ok(false),
            Received::Closed => {
                self.closed = true;
                Ok(false)
            }
        }
    }

    /// Drops what a service has sent so far, and counts it as lost.
    pub(crate) fn drop_old(&mut self, slots: &mut Slots, record: &mut Record) {
        let Some(lock) = &mut self.lock else { return };
        // A mailbox holds no more than this, and messages that are sent meanwhile are not old.
        for _ in 0..lock.capacity {
            match self.receiver.receive(slots.bytes_mut(lock.staging)) {
                Ok(Received::New { lost }) => record.lost(self.end, lost + 1),
                // A broken link is found broken again, and counted, in the first cycle.
                Ok(Received::None | Received::Closed) | Err(_) => return,
            }
        }
    }

    /// Waits for a message; returns whether one came. A peer that was silent before may be dead,
    /// and the process that has to handle that needs a CPU. So then this thread does not occupy its
    /// CPU by polling, but looks now and then.
    pub(crate) fn wait_for(&mut self, until_ns: u64, was_silent: bool) -> bool {
        if !was_silent {
            return self.receiver.wait(until_ns);
        }
        let nap_ns = until_ns.saturating_sub(now_ns()) / SILENT_NAPS;
        loop {
            let now_ns = now_ns();
            if self.receiver.wait(now_ns) {
                return true;
            }
            if now_ns >= until_ns {
                return false;
            }
            sleep_until(until_ns.min(now_ns + nap_ns));
        }
    }

    /// As [`Input::receive`], outside of any node's step: so the fault names the writing node.
    pub(crate) fn receive_feedback(
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

impl Lock {
    /// Takes a message into the staging place. Returns whether there was one that is sound and
    /// young enough. A message that has grown old in the mailbox does not hold up those after it. A
    /// service that has closed its end may come back.
    fn pass(
        &mut self,
        receiver: &mut dyn Receiver,
        slots: &mut Slots,
        end: usize,
        record: &mut Record,
    ) -> bool {
        if self.broken {
            return false;
        }
        // A mailbox holds no more, so this ends whatever the service does.
        for _ in 0..self.capacity {
            match receiver.receive(slots.bytes_mut(self.staging)) {
                Ok(Received::New { lost }) => {
                    let is_young = self.is_young(slots);
                    let finite = self.finite.as_ref().filter(|_| is_young);
                    let whole = finite.is_none_or(|finite| finite.holds(slots.words(self.message)));
                    record.lost(end, lost + u32::from(!(whole && is_young)));
                    if is_young {
                        return whole;
                    }
                }
                Ok(Received::None | Received::Closed) => return false,
                Err(_) => {
                    self.broken = true;
                    record.broken(end);
                    return false;
                }
            }
        }
        false
    }

    /// Whether the stamp in front of the message is one that this host has given, and not too long
    /// ago. A stamp in the future was never given: it would be young for ever.
    #[inline]
    fn is_young(&self, slots: &Slots) -> bool {
        self.after_ns.is_none_or(|after_ns| {
            let age_ns = now_ns().checked_sub(slots.word_before(self.message));
            age_ns.is_some_and(|age_ns| age_ns <= after_ns)
        })
    }
}

impl Output {
    /// Sends to a service, which may be gone, hang or lie: that concerns only the service.
    fn send_out(&mut self, message: &[u8], record: &mut Record) {
        if !self.broken && self.sender.send(message).is_err() {
            self.broken = true;
            record.broken(self.end);
        }
    }

    fn send(
        &mut self,
        message: &[u8],
        until_ns: u64,
        stopping: bool,
        record: &mut Record,
    ) -> Result<(), Fault> {
        if self.to_service {
            self.send_out(message, record);
            return Ok(());
        }
        if self.broken {
            return Ok(());
        }
        let sent = self.sender.send(message);
        let mut sent = sent.inspect_err(|_| self.broken = true)?;
        if sent == Sent::Full && self.full == Full::Wait {
            while sent == Sent::Full && self.sender.wait_room(until_ns) {
                sent = self.sender.send(message).inspect_err(|_| self.broken = true)?;
            }
        }
        match sent {
            Sent::Done => Ok(()),
            Sent::Full if self.full == Full::Drop => {
                record.dropped(self.end);
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
            let is_safe = slots.words(self.slot) == slots.words(self.safe);
            self.holds = if is_safe { ActuatorHolds::Safe } else { ActuatorHolds::Command };
        } else {
            self.missed += 1 + cycle.skipped;
        }
        if cycle.stopping || lost || self.missed > u64::from(self.after) {
            slots.copy(self.safe, self.slot);
            slots.mark_safe(self.slot);
            self.holds = ActuatorHolds::Nothing;
        }
    }
}
