//! A run, seen from the parent: opens the links, starts a process for each domain, watches them,
//! stops them in order, and reads what their cycles leave behind. The parent is no part of the
//! control loop; if it dies, the domains stop by themselves.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sinew_spec::plan::Plan;

use crate::assemble::{crosses_domains, leader};
use crate::board::{Board, FaultAt, State, THREADS_MAX};
use crate::clock::{Clock, now_ns, timespec};
use crate::cyclic::{REST_NS_MAX, STOP_PERIODS_MAX};
use crate::fault::{Cause, Fault};
use crate::launch::Launch;
pub use crate::launch::Pace;
use crate::privileges::{Asked, Obtained};
use crate::sys::{Region, keep_open};
use crate::trace::{self, Record};
use crate::transport::{Carrier, Shape, row};

/// The hidden command with which the parent starts this program again, followed by the number of a
/// descriptor; see [`domain::main`](crate::domain::main).
pub const DOMAIN_COMMAND: &str = "__domain";

/// A thread that leaves no record for so long, or for so many periods, hangs.
const SILENT_NS_MAX: u64 = 2_000_000_000;
const SILENT_PERIODS_MAX: u64 = 5;
/// How long a domain may take to make its nodes and links.
const START_NS_MAX: u64 = 10_000_000_000;
/// From the order to run to the first release: so long may a waiting thread take to wake up.
const FIRST_RELEASE_NS: u64 = 3_000_000;
/// Records that one poll takes from one running thread: a thread that writes them faster than they
/// are handled must not keep the parent from watching. What is overwritten meanwhile is counted.
const RECORDS_PER_POLL_MAX: usize = 4096;
/// How long a domain may take to stop before it is killed; more than it gives its own actuators.
const STOP_NS_MAX: u64 = 3_000_000_000;

/// The same for a domain of this period.
fn stop_ns_max(period_ns: u64) -> u64 {
    STOP_NS_MAX.max(REST_NS_MAX + STOP_PERIODS_MAX * period_ns)
}

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The spec's file as the user named it.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The folder that paths in it start from.
    pub base: PathBuf,
    /// `node.parameter` and the value that takes the place of the spec's.
    pub overrides: Vec<(String, String)>,
    /// The CPUs that the plan was made for.
    pub cpus: Vec<u32>,
    /// The plan.
    pub plan: Plan,
    /// Whether a privilege that is refused is a fault.
    pub strict: bool,
    /// How fast it goes.
    pub pace: Pace,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A node said that the job is done.
    Finished,
    /// Somebody asked to stop.
    Stopped,
    /// Something went wrong.
    Faulted,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Finished => "finished",
            Outcome::Stopped => "stopped",
            Outcome::Faulted => "faulted",
        })
    }
}

/// A thread of the run: its domain, its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId {
    /// Index into [`Plan::domains`].
    pub domain: usize,
    /// Index into the domain's threads.
    pub thread: usize,
}

/// A running graph. Dropping it kills what still runs.
pub struct Run {
    plan: Plan,
    clock: Clock,
    domains: Vec<Domain>,
    /// Until when the domains may make ready; none once they run, or never will.
    ready_until_ns: Option<u64>,
    started_ns: u64,
    stop_asked: bool,
    /// Domain that is stopping now, and since when.
    stopping: Option<(usize, u64)>,
    finished: bool,
}

struct Domain {
    child: Child,
    pidfd: OwnedFd,
    board: Board,
    traces: Vec<Trace>,
    ended: Option<ExitStatus>,
    /// What the parent holds against it, if it says nothing itself.
    charge: Option<Charge>,
}

/// The trace of a thread, and when it last showed a sign of life.
struct Trace {
    reader: trace::Reader,
    heard_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charge {
    /// It was not ready in time.
    Unready,
    /// It ended before anybody told it to.
    Deserted,
    /// One of its threads left no record for so long.
    Silent { limit_ms: u64 },
    /// It had to be killed, so long after it was told to stop.
    Killed { limit_ms: u64 },
}

impl Run {
    /// Starts all domains; [`Run::poll`] gives the order to run once all are ready, or ends the run
    /// with a fault if one is not. The kernel ties the domains to the calling thread: they stop
    /// when it ends.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(request: Request) -> io::Result<Run> {
        if let Some(domain) = request.plan.domains.iter().find(|d| d.threads().len() > THREADS_MAX)
        {
            let (name, threads) = (&domain.name, domain.threads().len());
            let text = format!("domain '{name}' has {threads} threads, at most {THREADS_MAX} run");
            return Err(io::Error::other(text));
        }
        if let Pace::Free { cycles } = request.pace
            && !(1..=Pace::FREE_CYCLES_MAX).contains(&cycles)
        {
            let most = Pace::FREE_CYCLES_MAX;
            let text = format!("a free run of {cycles} cycles: expected 1 to {most}");
            return Err(io::Error::other(text));
        }
        let clock = Clock::calibrate();
        let carriers = Carriers::open(&request.plan)?;
        let mut domains = Vec::new();
        for index in 0..request.plan.domains.len() {
            domains.push(Domain::start(index, &request, clock, &carriers)?);
        }
        Ok(Run {
            plan: request.plan,
            clock,
            domains,
            ready_until_ns: Some(now_ns() + START_NS_MAX),
            started_ns: u64::MAX,
            stop_asked: false,
            stopping: None,
            finished: false,
        })
    }

    /// Waits for something to happen, `timeout` at most, then hands every new record to `each`.
    /// Whether the graph still runs.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(ThreadId, &Record)) -> bool {
        // A descriptor tells of a death at once; readiness is looked for every millisecond.
        let starting = self.ready_until_ns.is_some();
        self.reap(if starting { timeout.min(Duration::from_millis(1)) } else { timeout });
        self.go_on_starting();
        for (index, domain) in self.domains.iter_mut().enumerate() {
            domain.read_traces(|thread, record| each(ThreadId { domain: index, thread }, record));
            domain.listen(self.plan.domains[index].realtime().map_or(0, |d| d.period_ns));
        }
        self.finished |= self.domains.iter().any(|d| d.board.state() == State::Finished);
        self.go_on_stopping();
        self.domains.iter().any(|domain| domain.ended.is_none())
    }

    /// Asks all domains to stop, in order. [`Run::poll`] carries it out.
    pub fn stop(&mut self) {
        self.stop_asked = true;
    }

    /// Waits until a domain ends or the time is over.
    fn reap(&mut self, timeout: Duration) {
        let alive = self.domains.iter().filter(|domain| domain.ended.is_none());
        let mut waits: Vec<_> =
            alive.map(|domain| PollFd::new(&domain.pidfd, PollFlags::IN)).collect();
        let timeout = timespec(timeout.as_nanos() as u64);
        // A signal ends the wait early, and that is what it is to do.
        let _ = poll(&mut waits, Some(&timeout));
        for domain in self.domains.iter_mut().filter(|domain| domain.ended.is_none()) {
            // An error means that the child is not ours any more: then it has ended.
            domain.ended = domain.child.try_wait().unwrap_or(Some(ExitStatus::from_raw(0)));
        }
    }

    /// Gives the order to run when all are ready.
    fn go_on_starting(&mut self) {
        let Some(until_ns) = self.ready_until_ns else { return };
        let is_ready = |domain: &Domain| domain.board.state() == State::Ready;
        if self.stopping.is_some() {
            self.ready_until_ns = None;
        } else if self.domains.iter().all(is_ready) {
            self.ready_until_ns = None;
            self.started_ns = now_ns() + FIRST_RELEASE_NS;
            for domain in &mut self.domains {
                domain.traces.iter_mut().for_each(|trace| trace.heard_ns = self.started_ns);
                domain.board.order_run(self.started_ns);
            }
        } else if now_ns() > until_ns {
            self.ready_until_ns = None;
            for domain in self.domains.iter_mut().filter(|domain| !is_ready(domain)) {
                domain.charge = Some(Charge::Unready);
            }
        }
    }

    /// Domains stop one after the other: who commands before who obeys.
    fn go_on_stopping(&mut self) {
        let wanted = self.stop_asked || self.finished;
        let broken = |domain: &Domain| {
            domain.has_ended() || domain.charge.is_some() || domain.board.state() == State::Faulted
        };
        if self.stopping.is_none() && (wanted || self.domains.iter().any(broken)) {
            let deserted = !wanted && self.faults().is_empty();
            for domain in self.domains.iter_mut().filter(|d| deserted && d.has_ended()) {
                domain.charge = Some(Charge::Deserted);
            }
            self.stopping = Some((0, now_ns()));
        }
        let Some((mut at, mut since_ns)) = self.stopping else { return };
        while at < self.domains.len() && self.domains[at].ended.is_some() {
            (at, since_ns) = (at + 1, now_ns());
        }
        self.stopping = Some((at, since_ns));
        let Some(domain) = self.domains.get_mut(at) else { return };
        domain.board.order_stop();
        let limit_ns = stop_ns_max(self.plan.domains[at].realtime().map_or(0, |d| d.period_ns));
        if now_ns() - since_ns > limit_ns {
            domain.charge.get_or_insert(Charge::Killed { limit_ms: limit_ns / 1_000_000 });
            // It may end by itself meanwhile; then there is nothing to kill.
            let _ = domain.child.kill();
        }
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Turns the ticks of records into nanoseconds.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Time of the first release, monotonic ns; `u64::MAX` as long as there is none.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// What the kernel gave to each thread, and what the plan asked for.
    pub fn privileges(&self) -> Vec<(ThreadId, Asked, Obtained)> {
        let threads = self.plan.domains.iter().enumerate().flat_map(|(domain, planned)| {
            let thread = move |(thread, cpu)| (ThreadId { domain, thread }, cpu);
            let cpus = planned.threads().iter().map(|thread| thread.cpu);
            cpus.enumerate()
                .map(thread)
                .map(|(id, cpu)| (id, planned.realtime().map_or(0, |d| d.priority), cpu))
        });
        let row = |(id, priority, cpu): (ThreadId, u8, Option<u32>)| {
            let obtained = self.domains[id.domain].board.obtained(id.thread);
            (id, Asked { priority, cpu }, obtained)
        };
        threads.map(row).collect()
    }

    /// Each realtime thread that has started, with its process and its number in the kernel.
    pub fn threads(&self) -> Vec<(ThreadId, u32, u32)> {
        let domains = self.domains.iter().enumerate();
        let threads = domains.flat_map(|(domain, running)| {
            (0..running.traces.len()).filter_map(move |thread| {
                let id = running.board.thread_id(thread)?;
                Some((ThreadId { domain, thread }, running.child.id(), id))
            })
        });
        threads.collect()
    }

    /// Process of each domain.
    pub fn processes(&self) -> Vec<u32> {
        self.domains.iter().map(|domain| domain.child.id()).collect()
    }

    /// Records that came too fast for [`Run::poll`], in all.
    pub fn records_lost(&self) -> u64 {
        let traces = self.domains.iter().flat_map(|domain| &domain.traces);
        traces.map(|trace| trace.reader.lost()).sum()
    }

    /// How the run ended, or would if it ended now.
    pub fn outcome(&self) -> Outcome {
        match () {
            () if !self.faults().is_empty() => Outcome::Faulted,
            () if self.finished => Outcome::Finished,
            () => Outcome::Stopped,
        }
    }

    /// What went wrong, by domain; the domain that reported first is not known, the order is that
    /// of stopping.
    pub fn faults(&self) -> Vec<(usize, FaultAt)> {
        let fault = |(index, domain): (usize, &Domain)| {
            let mut at = domain.fault()?;
            // What a domain writes may be anything.
            at.node = at.node.filter(|&node| node < self.plan.nodes.len());
            Some((index, at))
        };
        self.domains.iter().enumerate().filter_map(fault).collect()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if self.ended.is_none() {
            end(&mut self.child);
        }
    }
}

/// Kills a child and waits for its end.
fn end(child: &mut Child) {
    // Either may fail only because the child has ended.
    let _ = child.kill();
    let _ = child.wait();
}

impl Domain {
    fn start(
        index: usize,
        request: &Request,
        clock: Clock,
        carriers: &Carriers,
    ) -> io::Result<Domain> {
        let board = Board::create()?;
        let (writers, readers) = carriers.of(&request.plan, index);
        let (mut traces, mut regions) = (Vec::new(), Vec::new());
        let planned = &request.plan.domains[index];
        for thread in planned.threads() {
            let record = record(&request.plan, &thread.nodes);
            let (region, reader) =
                trace::open(&record, planned.realtime().map_or(0, |d| d.period_ns), request.pace)?;
            traces.push(Trace { reader, heard_ns: u64::MAX });
            regions.push(region);
        }
        let launch = Launch {
            file: request.file.clone(),
            text: request.text.clone(),
            base: request.base.clone(),
            overrides: request.overrides.clone(),
            cpus: request.cpus.clone(),
            domain: index,
            rate: clock.rate().to_bits(),
            strict: request.strict,
            pace: request.pace,
            parent: std::process::id(),
            board: number(board.region()),
            traces: regions.iter().map(number).collect(),
            writers,
            readers,
        };
        let sealed = launch.seal()?;
        let mut open = vec![sealed.as_raw_fd(), launch.board];
        open.extend(&launch.traces);
        open.extend(launch.writers.iter().chain(&launch.readers).map(|&(_, number)| number));
        let mut child = spawn(&planned.name, &sealed, open)?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let pidfd = pidfd.inspect_err(|_| end(&mut child))?;
        Ok(Domain { child, pidfd, board, traces, ended: None, charge: None })
    }

    /// Hands every new record to `each`, with the thread it is of.
    fn read_traces(&mut self, mut each: impl FnMut(usize, &Record)) {
        let running = self.ended.is_none();
        for (thread, trace) in self.traces.iter_mut().enumerate() {
            let mut left = if running { RECORDS_PER_POLL_MAX } else { usize::MAX };
            while left > 0
                && let Some(record) = trace.reader.read()
            {
                each(thread, record);
                trace.heard_ns = now_ns();
                left -= 1;
            }
        }
    }

    /// Charges a domain of which a thread runs no cycles: it hangs, or somebody stopped it.
    fn listen(&mut self, period_ns: u64) {
        let limit_ns = SILENT_NS_MAX.max(SILENT_PERIODS_MAX * period_ns);
        let since_ns = self.traces.iter().map(|trace| trace.heard_ns).min();
        let is_silent =
            since_ns.is_some_and(|since_ns| now_ns().saturating_sub(since_ns) > limit_ns);
        if is_silent && self.ended.is_none() && self.board.state() == State::Running {
            self.charge.get_or_insert(Charge::Silent { limit_ms: limit_ns / 1_000_000 });
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// What the domain reported, or what its death says.
    fn fault(&self) -> Option<FaultAt> {
        let died = |text: fmt::Arguments<'_>| {
            Some(FaultAt { fault: Fault::new(Cause::Died, text), node: None, cycle: None })
        };
        if let Some(fault) = self.board.fault() {
            return Some(fault);
        }
        match (self.charge, self.ended.and_then(|ended| ended.signal())) {
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
            (None, Some(signal)) => died(format_args!("its process was ended by signal {signal}")),
            (None, None) => match self.ended?.code() {
                Some(0) | None => None,
                Some(code) => died(format_args!("its process ended with status {code}")),
            },
        }
    }
}

/// This program again, with `open` and nothing else left open for it.
fn spawn(name: &str, launch: &OwnedFd, open: Vec<RawFd>) -> io::Result<Child> {
    let mut command = Command::new("/proc/self/exe");
    // So that `ps` tells one domain from another.
    command.arg0(format!("sinew: {name}"));
    command.arg(DOMAIN_COMMAND).arg(launch.as_raw_fd().to_string());
    // A group of its own: what the terminal sends to the parent is passed on by the parent, in
    // order.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
    keep_open(&mut command, open);
    command.spawn()
}

fn number(region: &Region) -> RawFd {
    region.file().map_or(-1, |file: BorrowedFd<'_>| file.as_raw_fd())
}

/// An empty record of a thread with these nodes.
fn record(plan: &Plan, nodes: &[usize]) -> Record {
    let signals = |&node: &usize| plan.nodes[node].kind.signals.iter().map(|signal| signal.count);
    Record::new(nodes.len(), nodes.iter().flat_map(signals).sum())
}

/// The carriers of all links between domains, until their processes have started: who keeps the
/// other end of a stream open would never let its peer see the end.
struct Carriers {
    writers: BTreeMap<usize, Carrier>,
    readers: BTreeMap<usize, Carrier>,
}

impl Carriers {
    fn open(plan: &Plan) -> io::Result<Carriers> {
        let mut carriers = Carriers { writers: BTreeMap::new(), readers: BTreeMap::new() };
        for (index, link) in plan.links.iter().enumerate() {
            if !link.fused && crosses_domains(plan, index) && leader(plan, index) == index {
                let (writer, reader) = (row(link.transport).open)(&Shape::of(link))?;
                carriers.writers.insert(index, writer);
                carriers.readers.insert(index, reader);
            }
        }
        Ok(carriers)
    }

    /// The descriptors that domain `domain` needs: link and number, for writing and for reading.
    #[expect(clippy::type_complexity, reason = "two lists of the same pairs, named where they go")]
    fn of(&self, plan: &Plan, domain: usize) -> (Vec<(usize, RawFd)>, Vec<(usize, RawFd)>) {
        let descriptor = |carrier: &Carrier| match carrier {
            Carrier::Region(region) => number(region),
            Carrier::Stream(file) => file.as_fd().as_raw_fd(),
        };
        let here = |node: usize| plan.nodes[node].domain == domain;
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for (index, link) in plan.links.iter().enumerate() {
            if let Some(carrier) = self.writers.get(&index).filter(|_| here(link.from.node)) {
                writers.push((index, descriptor(carrier)));
            }
            let carrier = self.readers.get(&leader(plan, index));
            if let Some(carrier) = carrier.filter(|_| here(link.to.node) && !link.fused) {
                readers.push((index, descriptor(carrier)));
            }
        }
        (writers, readers)
    }
}
