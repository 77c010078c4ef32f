//! A realtime domain, as the supervisor sees it: its process, its board, its traces.

use std::fmt;
use std::io;
use std::process::ExitStatus;

use sinew_spec::plan::Realtime;

use super::super::links::number;
use super::super::output::memory::Output;
use super::super::process::{Process, ending};
use super::super::{Frame, Given, START_NS_MAX};
use crate::board::{Board, FaultAt, State};
use crate::clock::{Clock, now_ns};
use crate::confine::Confinement;
use crate::cyclic::{REST_NS_MAX, STOP_PERIODS_MAX};
use crate::fault::{Cause, Fault};
use crate::status::Events;
use crate::sys::Region;
use crate::trace::{self, Record, Totals};

/// A thread that leaves no record for so long, or for so many periods, hangs.
const SILENT_NS_MAX: u64 = 2_000_000_000;
const SILENT_PERIODS_MAX: u64 = 5;
/// How long a domain may take to stop before it is killed; more than it gives its own actuators.
const STOP_NS_MAX: u64 = 3_000_000_000;

/// A realtime domain.
pub(in crate::run) struct Domain {
    pub(in crate::run) process: Process,
    pub(in crate::run) confinement: Confinement,
    pub(in crate::run) board: Board,
    pub(in crate::run) threads: Vec<Thread>,
    /// The regions of their traces.
    pub(in crate::run) traces: Vec<Region>,
    output: Output,
    period_ns: u64,
    /// What the parent holds against it, if it says nothing itself.
    pub(in crate::run) charge: Option<Charge>,
    /// The state that was last told of.
    pub(in crate::run) told: State,
    /// Whether its end, or its fault, was told of.
    pub(in crate::run) told_end: bool,
}

/// A thread: its trace, when it last showed a sign of life, and what it did so far.
pub(in crate::run) struct Thread {
    reader: trace::Reader,
    pub(in crate::run) heard_ns: u64,
    pub(in crate::run) counts: Counts,
}

/// What a thread did so far in this life of the core.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct Counts {
    pub(in crate::run) totals: Totals,
    pub(in crate::run) latency_ticks_last: u64,
    pub(in crate::run) latency_ticks_max: u64,
    /// For each end of a link: what was lost or dropped, and whether it is broken.
    pub(in crate::run) links: Vec<(u64, bool)>,
    /// Start of the first cycle that failed or was of the stop.
    pub(in crate::run) stopping_since_ns: Option<u64>,
    /// Place of the node that has failed, not one of its links.
    pub(in crate::run) failed_place: Option<usize>,
    /// [`Record::safe_since_ns`] and [`Record::at_rest_since_ns`], in the last record.
    pub(in crate::run) safe_since_ns: Option<u64>,
    pub(in crate::run) at_rest_since_ns: Option<u64>,
    /// Records that were lost in the lives before.
    lost_before: u64,
}

impl Thread {
    /// Hands the new records to `each`. Of a running thread no more than its trace holds: who
    /// writes them faster than they are handled must not keep the parent from watching.
    fn read_trace(&mut self, running: bool, clock: Clock, each: &mut dyn FnMut(&Record)) {
        let most = if running { self.reader.capacity() } else { u32::MAX };
        let mut end_ns = 0;
        for _ in 0..most {
            let Some(record) = self.reader.read() else { break };
            self.counts.add(record);
            end_ns = record.start_ns().saturating_add(clock.ns(record.latency_ticks()));
            each(record);
        }
        if self.heard_ns != u64::MAX {
            self.heard_ns = self.heard_ns.max(end_ns.min(now_ns()));
        }
    }

    /// Records that were gone before they were read, in this life.
    pub(in crate::run) fn records_lost(&self) -> u64 {
        self.reader.lost() - self.counts.lost_before
    }
}

impl Counts {
    fn add(&mut self, record: &Record) {
        self.totals = record.totals();
        self.safe_since_ns = record.safe_since_ns();
        self.at_rest_since_ns = record.at_rest_since_ns();
        if record.is_stopping() {
            self.stopping_since_ns.get_or_insert(record.start_ns());
            let failed = record.failed().filter(|failed| !failed.in_link);
            self.failed_place = self.failed_place.or(failed.and_then(|failed| failed.place));
            return;
        }
        self.latency_ticks_last = record.latency_ticks();
        self.latency_ticks_max = self.latency_ticks_max.max(record.latency_ticks());
        self.links.clear();
        self.links.extend(record.links());
    }

    /// Last and longest cycle latency, ns; none before the first cycle.
    pub(in crate::run) fn latency_ns(&self, clock: Clock) -> (Option<u64>, Option<u64>) {
        let ns = |ticks| (self.totals.cycles > 0).then(|| clock.ns(ticks));
        (ns(self.latency_ticks_last), ns(self.latency_ticks_max))
    }
}

/// A process, and a page of its own: what is left of the life before is not heard.
pub(in crate::run) struct Life {
    pub(in crate::run) process: Process,
    board: Board,
}

impl Life {
    fn start(
        at: usize,
        confinement: &Confinement,
        traces: &[Region],
        output: &Output,
        frame: &Frame<'_>,
    ) -> io::Result<Life> {
        let board = Board::create()?;
        let traces = traces.iter().map(number).collect();
        let output = output.ends()?;
        let (bell, counters, supervisor) = (frame.bell, vec![], None);
        let profile = None;
        let given = Given { board: &board, bell, traces, counters, supervisor, profile, output };
        let process = frame.spawn(at, confinement, given)?;
        Ok(Life { process, board })
    }
}

/// What the parent holds against a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Charge {
    /// It was not ready in time.
    Unready,
    /// It ended before anybody told it to.
    Deserted,
    /// One of its threads left no record for so long.
    Silent { limit_ms: u64 },
    /// It had to be killed, so long after it was told to stop.
    Killed { limit_ms: u64 },
}

impl Domain {
    /// Starts the process of domain `at`, which is `planned`.
    pub(in crate::run) fn start(
        at: usize,
        planned: &Realtime,
        confinement: Confinement,
        frame: &Frame<'_>,
    ) -> io::Result<Domain> {
        let plan = &frame.request.plan;
        let (mut threads, mut regions) = (Vec::new(), Vec::new());
        for thread in &planned.threads {
            let record = Record::of(plan, &thread.nodes);
            let (region, reader) = trace::open(&record, planned.period_ns, frame.request.pace)?;
            threads.push(Thread { reader, heard_ns: u64::MAX, counts: Counts::default() });
            regions.push(region);
        }
        let output = Output::open()?;
        let Life { process, board } = Life::start(at, &confinement, &regions, &output, frame)?;
        Ok(Domain {
            process,
            confinement,
            board,
            threads,
            traces: regions,
            output,
            period_ns: planned.period_ns,
            charge: None,
            told: State::Starting,
            told_end: false,
        })
    }

    /// Starts a new process, which leaves its records where this one did.
    pub(in crate::run) fn spawn(&self, at: usize, frame: &Frame<'_>) -> io::Result<Life> {
        Life::start(at, &self.confinement, &self.traces, &self.output, frame)
    }

    /// From now on the domain is that one.
    pub(in crate::run) fn begin_again(&mut self, life: Life) {
        (self.process, self.board) = (life.process, life.board);
        (self.charge, self.told, self.told_end) = (None, State::Starting, false);
        for thread in &mut self.threads {
            let lost_before = thread.reader.lost();
            (thread.heard_ns, thread.counts) =
                (u64::MAX, Counts { lost_before, ..Counts::default() });
        }
    }

    /// Gives the order to run, first release at `start_ns`.
    pub(in crate::run) fn order_run(&mut self, start_ns: u64) {
        self.threads.iter_mut().for_each(|thread| thread.heard_ns = start_ns);
        self.board.order_run(start_ns);
    }

    /// Hands every new record to `each`, with the thread it is of.
    pub(in crate::run) fn read_traces(
        &mut self,
        clock: Clock,
        each: &mut dyn FnMut(usize, &Record),
    ) {
        let running = self.ended().is_none();
        for (at, thread) in self.threads.iter_mut().enumerate() {
            thread.read_trace(running, clock, &mut |record| each(at, record));
        }
    }

    /// When to read the traces, so that no record is lost: half of what they hold from now on.
    pub(in crate::run) fn due_ns(&self) -> u64 {
        let records = self.threads.iter().map(|thread| thread.reader.capacity()).min();
        let held_ns = records.map_or(u64::MAX, |it| u64::from(it).saturating_mul(self.period_ns));
        now_ns().saturating_add(held_ns / 2)
    }

    /// When a thread that leaves no record from now on is taken for one that hangs.
    pub(in crate::run) fn silent_ns(&self) -> u64 {
        let heard_ns = self.threads.iter().map(|thread| thread.heard_ns).min();
        heard_ns.unwrap_or(u64::MAX).saturating_add(self.silent_ns_max())
    }

    fn silent_ns_max(&self) -> u64 {
        SILENT_NS_MAX.max(SILENT_PERIODS_MAX * self.period_ns)
    }

    /// Makes events of what it has printed.
    pub(in crate::run) fn read_output(&mut self, name: &str, events: &mut Events) {
        let has_ended = self.has_ended();
        self.output.read(name, has_ended, events);
    }

    /// Charges a domain of which a thread runs no cycles: it hangs, or somebody stopped it.
    pub(in crate::run) fn listen(&mut self) {
        let limit_ns = self.silent_ns_max();
        if now_ns() >= self.silent_ns()
            && self.ended().is_none()
            && self.board.state() == State::Running
        {
            self.charge.get_or_insert(Charge::Silent { limit_ms: limit_ns / 1_000_000 });
        }
    }

    /// How long it may take to stop.
    pub(in crate::run) fn stop_ns_max(&self) -> u64 {
        STOP_NS_MAX.max(REST_NS_MAX + STOP_PERIODS_MAX * self.period_ns)
    }

    /// Records of each thread that were gone before they were read, in all lives.
    pub(in crate::run) fn records_lost(&self) -> impl Iterator<Item = u64> {
        self.threads.iter().map(|thread| thread.reader.lost())
    }

    pub(in crate::run) fn ended(&self) -> Option<ExitStatus> {
        self.process.ended()
    }

    pub(in crate::run) fn has_ended(&self) -> bool {
        self.ended().is_some()
    }

    /// Whether the graph cannot go on with it.
    pub(in crate::run) fn is_broken(&self) -> bool {
        self.has_ended() || self.charge.is_some() || self.board.state() == State::Faulted
    }

    /// What the domain reported, or what its death says.
    pub(in crate::run) fn fault(&self) -> Option<FaultAt> {
        let died = |text: fmt::Arguments<'_>| {
            Some(FaultAt { fault: Fault::new(Cause::Died, text), node: None, cycle: None })
        };
        if let Some(fault) = self.board.fault() {
            return Some(fault);
        }
        match (self.charge, self.ended()) {
            (Some(Charge::Unready), _) => {
                died(format_args!("was not ready within {} ms", START_NS_MAX / 1_000_000))
            }
            (Some(Charge::Killed { limit_ms }), _) => {
                died(format_args!("did not stop within {limit_ms} ms and was killed"))
            }
            (Some(Charge::Silent { limit_ms }), _) => died(format_args!(
                "ran no cycle for {limit_ms} ms: a node hangs, or somebody stopped the process"
            )),
            (Some(Charge::Deserted), _) => died(format_args!("ended before it was told to")),
            (None, Some(status)) if !status.success() => died(format_args!("{}", ending(status))),
            (None, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Pace;

    #[test]
    fn a_full_trace_is_read_to_its_end_at_once() {
        let (record, period_ns) = (Record::new(3, 0, 0, &[]), 100_000);
        let (region, reader) = trace::open(&record, period_ns, Pace::AsPlanned).expect("memfd");
        let writer = trace::Writer::attach(region, &record, period_ns, Pace::AsPlanned);
        let (mut writer, written) = (writer.expect("the same shape"), reader.capacity());
        assert!(written > 10_000, "a fast thread: its trace holds {written} records");
        (0..written).for_each(|_| writer.write(&record));
        let mut thread = Thread { reader, heard_ns: 0, counts: Counts::default() };
        let mut read = 0;
        thread.read_trace(true, Clock::calibrate(), &mut |_| read += 1);
        assert_eq!((read, thread.records_lost()), (written, 0));
        assert!(thread.reader.read().is_none(), "what is left would add up");
    }
}
