//! A realtime domain, as the supervisor sees it: its process, its threads, what it is charged with.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

use sinew_control::status::{DomainState, EventKind, Events};
use sinew_core::bell::Bell;
use sinew_core::board::{BoardState, FaultAt};
use sinew_core::clock::{Clock, now_ns};
use sinew_core::cycle::release::{REST_NS_MAX, STOP_PERIODS_MAX};
use sinew_core::fault::{Cause, Fault};
use sinew_core::trace::Record;
use sinew_spec::plan::{Realtime, Thread as PlannedThread};

use super::lines::Lines;
use super::thread::Thread;
use crate::confine::Confinement;
use crate::launch::Open;
use crate::run::output::MemoryFile;
use crate::run::process::{Process, Spawner, ending};

/// A thread that leaves no record for this long, or for this many periods, hangs.
const SILENT_NS_MAX: u64 = 2_000_000_000;
const SILENT_PERIODS_MAX: u64 = 5;
/// How long a domain may take to stop before it is killed; more than it gives its own actuators.
const STOP_NS_MAX: u64 = 3_000_000_000;

pub(crate) struct Domain {
    pub(crate) process: Process,
    pub(crate) confinement: Confinement,
    pub(crate) threads: Vec<Thread>,
    output: MemoryFile,
    period_ns: u64,
    /// What the parent charges it with, if it reports no fault itself.
    charge: Option<String>,
    told: BoardState,
    told_end: bool,
}

impl Domain {
    /// Starts the process of domain `at`, which is `planned`.
    pub(super) fn start(
        at: usize,
        planned: &Realtime,
        confinement: Confinement,
        bell: &Bell,
        spawner: &Spawner<'_>,
    ) -> io::Result<Domain> {
        let request = spawner.request;
        let (plan, period_ns) = (&request.plan, planned.period_ns);
        let open = |thread: &PlannedThread| {
            let names = thread.nodes.iter().map(|&node| &*plan.nodes[node].name);
            let (record, lines) = (Record::of(plan, &thread.nodes), Lines::open(names)?);
            Thread::open(&record, lines, period_ns, request.pace)
        };
        let threads = planned.threads.iter().map(open).collect::<io::Result<Vec<_>>>()?;
        let output = MemoryFile::open()?;
        let process = spawn(at, &confinement, &threads, &output, bell, spawner)?;
        Ok(Domain {
            process,
            confinement,
            threads,
            output,
            period_ns,
            charge: None,
            told: BoardState::Starting,
            told_end: false,
        })
    }

    /// Starts a new process, which leaves its records where this one did.
    pub(super) fn spawn(
        &self,
        at: usize,
        bell: &Bell,
        spawner: &Spawner<'_>,
    ) -> io::Result<Process> {
        spawn(at, &self.confinement, &self.threads, &self.output, bell, spawner)
    }

    /// From now on `process` is the domain's process.
    pub(super) fn begin_again(&mut self, process: Process) {
        self.process = process;
        (self.charge, self.told, self.told_end) = (None, BoardState::Starting, false);
        self.threads.iter_mut().for_each(Thread::begin_again);
    }

    pub(crate) fn order_run(&mut self, start_ns: u64) {
        self.threads.iter_mut().for_each(|thread| thread.heard_ns = start_ns);
        self.process.board.order_run(start_ns);
    }

    /// Hands every new record to `each`, with the thread it is of.
    pub(super) fn read_traces(&mut self, clock: Clock, each: &mut dyn FnMut(usize, &Record)) {
        let running = !self.has_ended();
        for (at, thread) in self.threads.iter_mut().enumerate() {
            thread.read(running, clock, &mut |record| each(at, record));
        }
    }

    /// When to read the traces, so that no record is lost: half of what they hold from now on.
    pub(crate) fn due_ns(&self) -> u64 {
        let records = self.threads.iter().map(|thread| thread.capacity()).min();
        let held_ns = records.map_or(u64::MAX, |it| u64::from(it).saturating_mul(self.period_ns));
        now_ns().saturating_add(held_ns / 2)
    }

    /// When a thread that leaves no record from now on is taken for one that hangs.
    pub(crate) fn silent_ns(&self) -> u64 {
        let heard_ns = self.threads.iter().map(|thread| thread.heard_ns).min();
        heard_ns.unwrap_or(u64::MAX).saturating_add(self.silent_ns_max())
    }

    fn silent_ns_max(&self) -> u64 {
        SILENT_NS_MAX.max(SILENT_PERIODS_MAX * self.period_ns)
    }

    /// Makes events of what its nodes have logged.
    pub(super) fn read_lines(&mut self, name: &str, events: &mut Events) {
        let has_ended = self.has_ended();
        self.threads.iter_mut().for_each(|it| it.lines.read(name, has_ended, events));
    }

    /// Makes events of what it has printed.
    pub(crate) fn read_output(&mut self, name: &str, events: &mut Events) {
        let has_ended = self.has_ended();
        self.output.read(name, has_ended, events);
    }

    /// Charges a domain if one of its threads runs no cycles: it hangs, or somebody stopped it.
    pub(crate) fn listen(&mut self) {
        let is_silent = now_ns() >= self.silent_ns() && !self.has_ended();
        if is_silent && self.state() == BoardState::Running {
            let limit_ms = self.silent_ns_max() / 1_000_000;
            self.charge(format!(
                "ran no cycle for {limit_ms} ms: a node hangs, or the process was stopped (SIGSTOP)"
            ));
        }
    }

    /// Charges the domain with that, unless it has been charged before.
    pub(crate) fn charge(&mut self, charge: String) {
        self.charge.get_or_insert(charge);
    }

    /// Tells it to stop (it was first told so at `since_ns`); kills it once its time is over.
    pub(crate) fn stop(&mut self, since_ns: u64) {
        self.process.board.order_stop();
        let limit_ns = self.stop_ns_max();
        if now_ns() - since_ns >= limit_ns {
            let limit_ms = limit_ns / 1_000_000;
            self.charge(format!("did not stop within {limit_ms} ms and was killed"));
            self.process.kill();
        }
    }

    /// How far it is, as it reports itself.
    pub(crate) fn state(&self) -> BoardState {
        self.process.board.state()
    }

    pub(crate) fn state_shown(&self) -> DomainState {
        match self.state() {
            _ if self.fault().is_some() => DomainState::Faulted,
            BoardState::Finished => DomainState::Finished,
            _ if self.has_ended() => DomainState::Ended,
            BoardState::Starting => DomainState::Starting,
            BoardState::Ready => DomainState::Ready,
            BoardState::Running => DomainState::Running,
            BoardState::Faulted => DomainState::Faulted,
        }
    }

    /// Makes events of how far the domain, named `name`, has come. What its end means is known only
    /// once the core stops, because the end may have come too early.
    pub(crate) fn tell(&mut self, name: &str, core_stops: bool, events: &mut Events) {
        let (domain, name, state) = (name, Some(name), self.state());
        if state != mem::replace(&mut self.told, state) {
            match state {
                BoardState::Ready => events.add(EventKind::Ready, name, "waits for the others"),
                BoardState::Running => events.add(EventKind::Ready, name, "runs"),
                BoardState::Finished => events.add(EventKind::Ended, name, "the job is done"),
                BoardState::Starting | BoardState::Faulted => {}
            }
        }
        let fault = self.fault();
        let has_ended = fault.is_some() || self.has_ended() && core_stops;
        if has_ended && !mem::replace(&mut self.told_end, true) {
            // Lines that were logged before the end come before it.
            self.read_lines(domain, events);
            match fault {
                Some(at) => events.add(EventKind::Faulted, name, at.fault.to_string()),
                None => events.add(EventKind::Note, name, "has stopped in order"),
            }
        }
    }

    pub(crate) fn stop_ns_max(&self) -> u64 {
        STOP_NS_MAX.max(REST_NS_MAX + STOP_PERIODS_MAX * self.period_ns)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.process.ended().is_some()
    }

    /// Whether the graph cannot go on with it.
    pub(crate) fn is_broken(&self) -> bool {
        self.has_ended() || self.charge.is_some() || self.state() == BoardState::Faulted
    }

    /// What the domain reported, or what its death says.
    pub(crate) fn fault(&self) -> Option<FaultAt> {
        if let Some(fault) = self.process.board.fault() {
            return Some(fault);
        }
        let failed = self.process.ended().filter(|status| !status.success());
        let text = self.charge.clone().or_else(|| failed.map(ending))?;
        let fault = Fault::new(Cause::Died, format_args!("{text}"));
        Some(FaultAt { fault, node: None, cycle: None })
    }
}

/// A new process of domain `at`.
fn spawn(
    at: usize,
    confinement: &Confinement,
    threads: &[Thread],
    output: &MemoryFile,
    bell: &Bell,
    spawner: &Spawner<'_>,
) -> io::Result<Process> {
    let (bell, traces) = (bell.as_fd().as_raw_fd(), threads.iter().map(Thread::trace).collect());
    let lines = threads.iter().map(|thread| thread.lines.region()).collect();
    spawner.spawn(at, confinement, Open { bell, traces, lines, ..Open::default() }, output.ends()?)
}
