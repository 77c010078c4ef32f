//! The loop of a realtime thread: wait for the release, run the cycle, judge it, leave a record. It
//! also holds what happens on a fault: safe outputs, stop, report.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use sinew_plan::plan::{Overrun, Realtime, Wait};

use super::executor::Executor;
use crate::board::FaultAt;
use crate::clock::{Clock, Moment, now_ns, sleep_until};
use crate::fault::{Cause, Fault};
use crate::halt::Halt;
use crate::log;
use crate::node::Cycle;
use crate::pace::Pace;
use crate::panics;
use crate::trace::{self, ActuatorHolds, CycleHead};

/// How long a stopping domain waits for its actuators to come to rest.
pub const REST_NS_MAX: u64 = 2_000_000_000;

/// Periods that a stop takes, besides the time to come to rest. A stop is noticed at a release;
/// then comes a last cycle with safe values, and one more release may be under way.
pub const STOP_PERIODS_MAX: u64 = 3;

/// An input-released thread that polls naps in the first half of its period, when nothing can come.
/// Polling all the time was measured to be worse: on a CPU that a realtime thread never leaves, the
/// kernel takes 50 ms of every second for the other threads. With a longer nap, a late wake-up of
/// this thread would be a late answer. Below this period the thread polls all the time.
const NAP_PERIOD_NS_MIN: u64 = 500_000;
const NAP_GUARD_NS_MIN: u64 = 150_000;
const NAP_GUARD_NS_MAX: u64 = 5_000_000;

/// How long a thread of a free run waits for its input or feedback: longer than any machine delays
/// a thread, shorter than the parent waits for a thread that leaves no record.
const FREE_DEADLINE_NS: u64 = 1_000_000_000;

/// What starts a cycle.
#[derive(Clone, Copy, Debug)]
pub enum ReleaseSource {
    /// The clock.
    Timer,
    /// Input `input` of step `step`, whose link waits as `wait` says.
    Input {
        /// Place of the node in its thread.
        step: usize,
        /// Place of the link among those that it reads.
        input: usize,
        /// How the link waits.
        wait: Wait,
    },
}

/// Times and policy of a domain.
#[derive(Clone, Copy, Debug)]
pub struct CycleTimes {
    period_ns: u64,
    deadline_ns: u64,
    overrun: Overrun,
    /// Cycles of a free run.
    free_cycles: Option<u64>,
}

impl CycleTimes {
    /// The times of a domain at this pace.
    pub fn of(domain: &Realtime, pace: Pace) -> CycleTimes {
        let Realtime { period_ns, deadline_ns, overrun, .. } = *domain;
        match pace {
            Pace::AsPlanned => CycleTimes { period_ns, deadline_ns, overrun, free_cycles: None },
            Pace::Free { cycles } => CycleTimes {
                period_ns,
                deadline_ns: FREE_DEADLINE_NS,
                overrun: Overrun::Stop { consecutive_max: 0 },
                free_cycles: Some(cycles),
            },
        }
    }
}

/// A realtime thread.
pub struct Cyclic {
    executor: Executor,
    release: ReleaseSource,
    times: CycleTimes,
    clock: Clock,
    trace: trace::Writer,
    halt: Arc<Halt>,
    cycle: Cycle,
    /// Release time of the next cycle; for an input-released thread, when its input is due.
    next_ns: u64,
    overruns: u32,
    /// Whether the last cycle was released without input.
    silent: bool,
    /// When the domain began to stop.
    stopping_since_ns: Option<u64>,
    /// Only actuators are left: this thread or another one of the domain faulted.
    fallen_back: bool,
}

/// When a cycle was released, when it began, and by what.
struct Released {
    planned_ns: u64,
    start: Moment,
    no_input: bool,
}

/// Where code begins that runs only after a fault, so that it can be in memory before one. What
/// panics need is in memory after [`panics::rehearse`].
pub fn code_of_faults() -> [usize; 10] {
    [
        Cyclic::fail as fn(&mut Cyclic, Fault) as usize,
        Cyclic::overrun_fault as fn(&Cyclic, &Released, u64) -> Fault as usize,
        Cyclic::fall_back as fn(&mut Cyclic) as usize,
        Executor::safe_outputs as fn(&mut Executor) as usize,
        Executor::keep_actuators as fn(&mut Executor) -> Result<(), Fault> as usize,
        Executor::look_for_rest as fn(&mut Executor) as usize,
        Executor::stop as fn(&mut Executor) -> Result<(), Fault> as usize,
        Halt::fault as fn(&Halt, FaultAt) as usize,
        Halt::stop as fn(&Halt) as usize,
        Fault::new as fn(Cause, fmt::Arguments<'_>) -> Fault as usize,
    ]
}

impl Cyclic {
    /// The loop of one thread, whose nodes log to `lines`.
    pub fn new(
        executor: Executor,
        release: ReleaseSource,
        times: CycleTimes,
        (trace, lines): (trace::Writer, log::Writer),
        halt: Arc<Halt>,
    ) -> Cyclic {
        let (clock, cycle) = (executor.clock, Cycle::new(0, times.period_ns).logging(lines));
        let (next_ns, overruns, stopping_since_ns) = (0, 0, None);
        Cyclic {
            executor,
            release,
            times,
            clock,
            trace,
            halt,
            cycle,
            next_ns,
            overruns,
            silent: false,
            stopping_since_ns,
            fallen_back: false,
        }
    }

    /// Runs from the first release, at `start_ns`, until the domain has stopped.
    pub fn run(&mut self, start_ns: u64) {
        // No thread polls before the start: the parent may need this very CPU to start the other
        // domains.
        sleep_until(start_ns.saturating_sub(NAP_GUARD_NS_MIN));
        self.next_ns = start_ns;
        while !self.is_over() {
            let released = self.await_release();
            // An order that came meanwhile counts for this very cycle.
            self.look_for_stop();
            self.pass(&released);
        }
        self.executor.safe_outputs();
        self.stop();
    }

    /// Stops the nodes: after the last cycle, or without any.
    pub fn stop(&mut self) {
        if let Err(fault) = self.executor.stop() {
            self.report(fault);
        }
    }

    /// Whether this thread may end: it has been stopping for a cycle, and nothing moves any more.
    fn is_over(&mut self) -> bool {
        if self.halt.is_faulted() && !self.fallen_back {
            // Another thread faulted: what this one commands elsewhere goes to its safe value too.
            self.executor.safe_outputs();
            self.fall_back();
        }
        let Some(since_ns) = self.stopping_since_ns else {
            self.look_for_stop();
            return false;
        };
        let Some(node) = self.executor.restless_node() else { return true };
        let late = now_ns() - since_ns > REST_NS_MAX;
        if late {
            let text = format_args!(
                "node '{node}' did not come to rest within {} ms of the stop",
                REST_NS_MAX / 1_000_000
            );
            self.report(Fault::new(Cause::Error, text));
        }
        late
    }

    fn look_for_stop(&mut self) {
        if self.stopping_since_ns.is_none() && self.halt.is_stopping() {
            self.stopping_since_ns = Some(now_ns());
        }
    }

    /// One cycle, judged and recorded.
    fn pass(&mut self, released: &Released) {
        let stopping = self.stopping_since_ns.is_some();
        self.cycle.stopping = stopping;
        let until_ns = released.planned_ns + self.times.deadline_ns;
        let executor = &mut self.executor;
        let cycle = &self.cycle;
        let result = catch_unwind(AssertUnwindSafe(|| {
            executor.cycle_since(released.start.ticks, cycle, until_ns)?;
            // While an actuator obeys a command, there is no point in asking for rest.
            if stopping || executor.holds().is_some_and(|holds| holds != ActuatorHolds::Command) {
                executor.look_for_rest();
            }
            Ok(())
        }));
        let fault = result.unwrap_or_else(|_| Err(panics::take())).err();
        let failed = fault.as_ref().map(|fault| executor.failed(fault.cause));
        let fallen_back = self.fallen_back;
        // Safe outputs come first, also before the record.
        if let Some(fault) = fault {
            self.fail(fault);
        }
        let end_ns = released.start.ns + self.clock.ns(self.executor.record.latency_ticks());
        let missing = self.executor.missing_feedback().is_some();
        let overrun = end_ns > until_ns || missing;
        let at_rest_ns = self.executor.restless_node().is_none().then_some(end_ns);
        let head = CycleHead {
            feedback_missing: missing,
            overrun,
            failed,
            fallen_back,
            at_rest_ns,
            ..CycleHead::default()
        };
        self.leave_record(released, head);
        if !stopping && failed.is_none() {
            self.judge_overrun(released, end_ns, overrun);
        }
        if self.cycle.is_finished() || self.is_last() {
            self.halt.finish();
        }
        if self.executor.is_link_closed() {
            self.halt.stop();
        }
        self.cycle.number += 1;
    }

    /// Whether this is the last cycle of a free run.
    fn is_last(&self) -> bool {
        let cycles =
            self.times.free_cycles.filter(|_| matches!(self.release, ReleaseSource::Timer));
        cycles.is_some_and(|cycles| self.cycle.number + 1 >= cycles)
    }

    /// Whether one cycle follows the other at once. Not while stopping: a moving machine needs its
    /// time to come to rest.
    fn is_free(&self) -> bool {
        self.times.free_cycles.is_some() && self.stopping_since_ns.is_none()
    }

    /// Leaves the record of a cycle; `course` is what is known of the cycle.
    fn leave_record(&mut self, released: &Released, course: CycleHead) {
        let head = CycleHead {
            number: self.cycle.number,
            release_ns: released.planned_ns,
            start_ns: released.start.ns,
            skipped: self.cycle.skipped,
            stopping: self.cycle.stopping,
            no_input: released.no_input,
            holds: self.executor.holds(),
            ..course
        };
        self.executor.record.head(&head, &self.executor.values);
        self.trace.write(&self.executor.record);
    }

    /// A period that was lost is an overrun too: its deadline passed without a cycle.
    fn judge_overrun(&mut self, released: &Released, end_ns: u64, overrun: bool) {
        let skipped = u32::try_from(self.cycle.skipped).unwrap_or(u32::MAX);
        self.overruns = self.overruns.saturating_add(skipped).saturating_add(u32::from(overrun));
        if let Overrun::Stop { consecutive_max } = self.times.overrun
            && self.overruns > consecutive_max
        {
            let fault = self.overrun_fault(released, end_ns);
            self.fail(fault);
        }
        if !overrun {
            self.overruns = 0;
        }
    }

    fn overrun_fault(&self, released: &Released, end_ns: u64) -> Fault {
        let (deadline_us, row) = (self.times.deadline_ns / 1000, self.overruns);
        let over_us = end_ns.saturating_sub(released.planned_ns + self.times.deadline_ns) / 1000;
        let late_us = (released.start.ns - released.planned_ns) / 1000;
        let (slowest, execution_ticks) = self.executor.slowest_node();
        let execution_us = self.clock.ns(execution_ticks) / 1000;
        let skipped = self.cycle.skipped;
        let fault = |text: fmt::Arguments<'_>| Fault::new(Cause::Overrun, text);
        match self.executor.missing_feedback() {
            Some(from) => fault(format_args!(
                "no feedback from node '{from}' by the deadline of {deadline_us} us, {row} cycles \
                 in a row; see whether its domain keeps up"
            )),
            None if skipped > 0 => fault(format_args!(
                "{skipped} periods lost before this cycle, {row} deadlines missed in a row: a \
                 cycle took too long, or the kernel or the host delayed the thread; see \
                 'consecutive_max'"
            )),
            None if late_us > execution_us => fault(format_args!(
                "deadline {deadline_us} us exceeded by {over_us} us, {row} cycles in a row: the \
                 kernel or the host started the thread {late_us} us late; see 'consecutive_max'"
            )),
            None => fault(format_args!(
                "deadline {deadline_us} us exceeded by {over_us} us, {row} cycles in a row, \
                 longest in node '{slowest}' ({execution_us} us); raise period or move the node"
            )),
        }
    }

    /// Safe outputs, stop, report.
    fn fail(&mut self, fault: Fault) {
        self.executor.safe_outputs();
        self.halt.stop();
        self.executor.tap(&self.cycle);
        self.report(fault);
        self.fall_back();
    }

    /// Keeps only the actuators, with safe values and released by the clock, until they are at
    /// rest.
    fn fall_back(&mut self) {
        if let Err(fault) = self.executor.keep_actuators() {
            self.report(fault);
        }
        self.fallen_back = true;
        self.release = ReleaseSource::Timer;
        self.next_ns = now_ns() + self.times.period_ns;
    }

    fn report(&self, fault: Fault) {
        let (node, cycle) = (self.executor.node(), Some(self.cycle.number));
        self.halt.fault(FaultAt { fault, node, cycle });
    }

    fn await_release(&mut self) -> Released {
        match self.release {
            ReleaseSource::Timer => self.await_timer(),
            ReleaseSource::Input { step, input, wait } => self.await_input(step, input, wait),
        }
    }

    fn await_timer(&mut self) -> Released {
        let free = self.is_free();
        if !free || self.cycle.number == 0 {
            sleep_until(self.next_ns);
        }
        let start = self.clock.moment();
        if free {
            self.next_ns = start.ns;
        }
        // Whole periods that are lost are counted but not made up for: the grid of releases stays.
        self.cycle.skipped = (start.ns - self.next_ns) / self.times.period_ns;
        let planned_ns = self.next_ns + self.cycle.skipped * self.times.period_ns;
        self.next_ns = planned_ns + self.times.period_ns;
        Released { planned_ns, start, no_input: false }
    }

    /// Waits for the input, at most until half a period after it was due (in a free run: a long
    /// time).
    fn await_input(&mut self, step: usize, input: usize, wait: Wait) -> Released {
        let (due_ns, period_ns) = (self.next_ns, self.times.period_ns);
        let (free, polls) = (self.is_free(), matches!(wait, Wait::Spin | Wait::Yield));
        if polls && !free && period_ns >= NAP_PERIOD_NS_MIN {
            let guard_ns = (period_ns / 2).clamp(NAP_GUARD_NS_MIN, NAP_GUARD_NS_MAX);
            sleep_until(due_ns.saturating_sub(guard_ns));
        }
        let input = &mut self.executor.steps[step].inputs[input];
        // Done while there is time: work after the wait makes the answer late.
        let before = self.clock.moment();
        let until_ns = if free { before.ns + FREE_DEADLINE_NS } else { due_ns + period_ns / 2 };
        let arrived = match self.silent {
            _ if input.closed => {
                sleep_until(due_ns);
                false
            }
            was_silent => input.wait_for(until_ns, was_silent && !free),
        };
        self.silent = !arrived;
        let start = self.clock.moment_after(before);
        let lost_ns = start.ns.saturating_sub(until_ns);
        self.cycle.skipped = if arrived || free { 0 } else { lost_ns / period_ns };
        let reference_ns = if arrived { start.ns } else { due_ns };
        self.next_ns = reference_ns + (1 + self.cycle.skipped) * period_ns;
        Released { planned_ns: start.ns, start, no_input: !arrived }
    }
}
