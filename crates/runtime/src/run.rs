//! A run, seen from its supervisor, the parent of all domains: opens the links, starts a process
//! for each domain, watches them, restarts services, stops all in order, and reads what the cycles
//! leave behind. The supervisor is no part of the control loop; if it dies, the domains stop by
//! themselves.

mod answers;
mod broken;
mod core;
mod edits;
mod lifecycle;
mod links;
mod output;
mod process;

mod services;
mod snapshot;
mod stop;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use sinew_spec::plan::{Plan, Role};

use self::core::domain::Domain;
use self::edits::Edits;
use self::lifecycle::Stage;
use self::links::Carriers;
use self::process::Process;
use self::services::supervised::{Over, Phase, Supervised};
pub use self::snapshot::NodeState;
use self::stop::StopCause;
use crate::bell::Bell;
use crate::board::{Board, FaultAt, THREADS_MAX};
use crate::clock::{Clock, now_ns, timespec};
use crate::confine::{self, Confinement};
use crate::control::Server;
use crate::fault::{Cause, Fault};
use crate::inject::Injection;
use crate::launch::Launch;
pub use crate::launch::Pace;
use crate::privileges::{Asked, Obtained};
use crate::profile::Profile;
use crate::status::{DomainState, EventKind, Events, StopStatus};
use crate::trace::Record;

/// The hidden command with which the parent starts this program again, followed by the number of a
/// descriptor; see [`domain::main`](crate::domain::main).
pub const DOMAIN_COMMAND: &str = "__domain";

/// How long a realtime domain may take to make its nodes and links.
const START_NS_MAX: u64 = 10_000_000_000;

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
    /// Faults that are to happen, for drills.
    pub injections: Vec<Injection>,
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

/// A service domain at a moment, in short; [`Run::status`] tells more, and costs more.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceState {
    /// Index into [`Plan::domains`].
    pub domain: usize,
    /// How far it is.
    pub state: DomainState,
    /// Its process, if there is one.
    pub pid: Option<u32>,
    /// How often it was started again.
    pub restarts: u32,
    /// Why it ended last.
    pub last_reason: Option<String>,
    /// Where people find what it serves.
    pub address: Option<String>,
    /// Its flow nodes, in the order of the plan.
    pub flows: Vec<NodeState>,
}

/// A running graph. Dropping it kills what still runs.
pub struct Run {
    request: Request,
    clock: Clock,
    /// Unique among all runs of this machine.
    name: String,
    carriers: Carriers,
    /// Of the realtime domains.
    bell: Bell,
    /// The traces of the core, for reading only: for services that observe.
    observed: Vec<(ThreadId, OwnedFd)>,
    /// Who knows it may command the run through a service.
    secret: String,
    /// The realtime domains; the first ones of the plan.
    domains: Vec<Domain>,
    /// The services; the others.
    services: Vec<Supervised>,
    events: Events,
    server: Server,
    begun_ns: u64,
    /// When [`Run::poll`] began to look last.
    looked_ns: u64,
    stage: Stage,
    /// Of the first cycle of all.
    started_ns: u64,
    /// Whether the services stop too, and with them the run.
    ending: bool,
    /// Who or what has the core stop, once somebody has.
    cause: Option<StopCause>,
    finished: bool,
    /// How often the core was started again.
    resets: u32,
    /// The stop of the life before.
    last_stop: Option<StopStatus>,
    /// What went wrong in lives of the core before this one, with the number of the life, from 1.
    earlier_faults: Vec<(u32, usize, FaultAt)>,
    /// Names of all nodes in the plan that the core was started with.
    born: Vec<String>,
    edits: Edits,
    profile: Option<Profile>,
    waker: Option<OwnedFd>,
    /// Links that a service has broken, as was told.
    broken: BTreeSet<usize>,
}

/// What a new process needs of the run.
struct Frame<'a> {
    request: &'a Request,
    clock: Clock,
    name: &'a str,
    carriers: &'a Carriers,
    bell: &'a Bell,
    /// The traces of the core, for reading only.
    observed: &'a [(ThreadId, OwnedFd)],
    secret: &'a str,
    profile: Option<&'a Profile>,
    /// How often the core was started anew before.
    life: u32,
}

/// What a new process is given beside its links.
struct Given<'a> {
    board: &'a Board,
    bell: &'a Bell,
    /// Of each thread of a realtime domain.
    traces: Vec<RawFd>,
    /// Of each node of a service.
    counters: Vec<RawFd>,
    /// Of a service that observes: its end of the connection to the supervisor.
    supervisor: Option<&'a UnixStream>,
    /// Where its CPU profile goes.
    profile: Option<&'a File>,
    output: [Stdio; 2],
}

impl Frame<'_> {
    /// Starts the process of domain `at`.
    fn spawn(&self, at: usize, confinement: &Confinement, given: Given<'_>) -> io::Result<Process> {
        let request = self.request;
        let domain = &request.plan.domains[at];
        let (writers, readers) = self.carriers.of(&request.plan, at);
        let observes = domain
            .service()
            .is_some_and(|service| service.nodes.iter().any(|&node| request.plan.observes(node)));
        let observed = if observes { self.observed } else { &[] };
        let trace = |(id, file): &(ThreadId, OwnedFd)| (id.domain, id.thread, file.as_raw_fd());
        let launch = Launch {
            file: request.file.clone(),
            text: request.text.clone(),
            base: request.base.clone(),
            overrides: request.overrides.clone(),
            cpus: request.cpus.clone(),
            domain: at,
            rate: self.clock.rate().to_bits(),
            strict: request.strict,
            pace: request.pace,
            life: self.life,
            parent: std::process::id(),
            marker: format!("{}-{at}", self.name),
            injections: request.injections.clone(),
            board: links::number(given.board.region()),
            bell: given.bell.as_fd().as_raw_fd(),
            traces: given.traces,
            counters: given.counters,
            observed: observed.iter().map(trace).collect(),
            supervisor: given.supervisor.map_or(-1, |stream| stream.as_raw_fd()),
            profile: given
                .profile
                .zip(self.profile)
                .map(|(file, profile)| (file.as_raw_fd(), profile.frequency_hz)),
            secret: given.supervisor.map_or(String::new(), |_| self.secret.to_owned()),
            writers,
            readers,
        };
        Process::spawn(&domain.name, &launch, confinement, given.output)
    }
}

impl Run {
    /// Starts all domains; [`Run::poll`] gives the order to run once all are ready, or ends the run
    /// with a fault if a realtime one is not. The kernel ties the domains to the calling thread:
    /// they stop when it ends.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(mut request: Request) -> io::Result<Run> {
        request.plan.leave_out_tests();
        check(&request).map_err(io::Error::other)?;
        process::keep_endings()?;
        confine::sweep_stale();
        let (clock, begun_ns) = (Clock::calibrate(), now_ns());
        let (carriers, bell) = (Carriers::open(&request.plan)?, Bell::create()?);
        let mut run = Run {
            clock,
            name: format!("{}-{}-{begun_ns}", request.plan.name, std::process::id()),
            carriers,
            bell,
            observed: Vec::new(),
            secret: secret()?,
            domains: Vec::new(),
            services: Vec::new(),
            events: Events::new(),
            server: Server::open()?,
            begun_ns,
            looked_ns: begun_ns,
            stage: Stage::Starting { until_ns: begun_ns + START_NS_MAX },
            started_ns: u64::MAX,
            ending: false,
            cause: None,
            finished: false,
            resets: 0,
            last_stop: None,
            earlier_faults: Vec::new(),
            born: names(&request.plan),
            edits: Edits::default(),
            profile: None,
            waker: None,
            broken: BTreeSet::new(),
            request,
        };
        run.spawn_all()?;
        run.carriers.keep_regions();
        Ok(run)
    }

    /// Starts the realtime domains, and makes the services ready to be started. All bounds are made
    /// before the first process is there.
    fn spawn_all(&mut self) -> io::Result<()> {
        let Run { request, clock, name, carriers, bell, secret, .. } = self;
        let plan = &request.plan;
        let bounds = plan.domains.iter().map(|planned| Confinement::prepare(planned, name));
        let bounds = bounds.collect::<io::Result<Vec<_>>>()?;
        let (clock, observed, profile, life) = (*clock, &[][..], None, 0);
        let frame = Frame { request, clock, name, carriers, bell, observed, secret, profile, life };
        for ((at, planned), bounds) in plan.domains.iter().enumerate().zip(bounds) {
            match &planned.role {
                Role::Realtime(realtime) => {
                    let domain = Domain::start(at, realtime, bounds, &frame)?;
                    let text = format!("process {}", domain.process.id());
                    self.events.add(EventKind::Started, Some(&planned.name), text);
                    for (thread, region) in domain.traces.iter().enumerate() {
                        let id = ThreadId { domain: at, thread };
                        self.observed.push((id, region.read_only()?));
                    }
                    self.domains.push(domain);
                }
                Role::Service(service) => {
                    self.services.push(Supervised::new(at, service, bounds, plan)?);
                }
            }
        }
        Ok(())
    }

    /// Waits for something to happen, `timeout` at most, then hands every new record to `each`.
    /// Whether the graph still runs.
    pub fn poll(&mut self, timeout: Duration, each: &mut dyn FnMut(ThreadId, &Record)) -> bool {
        self.wait(timeout);
        self.looked_ns = now_ns();
        self.bell.hush();
        // First of all what was ordered: a stop does not wait until all else is looked at.
        let questions = self.take_orders();
        for domain in &mut self.domains {
            domain.process.reap();
        }
        self.begin_stopping();
        self.stop_core();
        self.go_on_with_services();
        self.go_on_starting();
        self.go_on_editing();
        for (index, domain) in self.domains.iter_mut().enumerate() {
            domain.read_traces(self.clock, &mut |thread, record| {
                each(ThreadId { domain: index, thread }, record);
            });
            domain.listen();
            domain.read_output(&self.request.plan.domains[index].name, &mut self.events);
        }
        self.begin_stopping();
        self.tell();
        self.tell_broken();
        self.stop_core();
        self.hold();
        self.stop_services();
        self.answer(&questions);
        let is_over = self.is_over();
        if is_over {
            // What a killed supervisor had started may still have been ending at the start.
            confine::sweep_stale();
        }
        !is_over
    }

    /// Has [`Run::poll`] end its wait also once `waker` can be read; who gave it reads it.
    pub fn wake_by(&mut self, waker: OwnedFd) {
        self.waker = Some(waker);
    }

    /// Has CPU profiles taken of all processes with flows; to be called before [`Run::poll`], which
    /// starts them.
    pub fn profile(&mut self, profile: Profile) {
        self.profile = Some(profile);
    }

    /// Asks all domains to stop, in order. [`Run::poll`] carries it out.
    pub fn stop(&mut self) {
        self.stop_for("told to stop");
    }

    /// The same, and says why.
    pub fn stop_for(&mut self, reason: &str) {
        if !self.ending {
            self.events.add(EventKind::Stopping, None, "the graph was told to stop");
        }
        self.want_stop(reason);
        self.end();
    }

    /// Asks the core to stop: the services of a graph that holds go on, any other graph ends.
    /// [`Run::poll`] carries it out.
    pub fn halt(&mut self, reason: &str) {
        match self.holds() {
            true => self.want_stop(reason),
            false => self.stop_for(reason),
        }
    }

    /// Stops a service domain and starts it again. [`Run::poll`] carries it out.
    ///
    /// # Errors
    /// There is no such domain, it is a realtime one, or the graph stops.
    pub fn restart(&mut self, domain: &str) -> Result<(), String> {
        let plan = &self.request.plan;
        let Some(at) = plan.domains.iter().position(|planned| planned.name == domain) else {
            let names: Vec<_> = plan.domains.iter().map(|planned| &*planned.name).collect();
            return Err(format!("there is no domain '{domain}'; there are: {}", names.join(", ")));
        };
        let Some(service) = at.checked_sub(self.domains.len()) else {
            let how = match self.holds() {
                true => "'sinew halt' it, then 'sinew reset' starts it again",
                false => "stop the graph and run it again",
            };
            return Err(format!(
                "domain '{domain}' is realtime: the core starts as a whole; {how}"
            ));
        };
        if self.ending {
            return Err("the graph is stopping".into());
        }
        self.services[service].restart(&mut self.events);
        Ok(())
    }

    /// Until a process ends, a bell rings, a service speaks, a service is due, or the time is over.
    fn wait(&self, timeout: Duration) {
        let due_ns = self.services.iter().map(Supervised::due_ns).min().unwrap_or(u64::MAX);
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = due_ns.min(self.edit_due_ns()).min(self.core_due_ns());
        let due_ns = due_ns.min(self.server.until_ns().unwrap_or(u64::MAX));
        let timeout = timespec(timeout_ns.min(due_ns.saturating_sub(now_ns())));
        let mut waits = vec![PollFd::new(&self.bell, PollFlags::IN)];
        waits.extend(self.waker.as_ref().map(|waker| PollFd::new(waker, PollFlags::IN)));
        self.server.wait_for(&mut waits);
        let alive = self.domains.iter().filter(|domain| !domain.has_ended());
        waits.extend(alive.map(|domain| PollFd::new(&domain.process, PollFlags::IN)));
        for service in &self.services {
            waits.extend(service.process.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
            waits.extend(service.search().map(|it| PollFd::new(it, PollFlags::IN)));
            waits.extend(service.bell().map(|it| PollFd::new(it, PollFlags::IN)));
            waits.extend(service.lines().map(|it| PollFd::new(it, PollFlags::IN)));
        }
        // A signal ends the wait early, and that is what it is to do.
        let _ = poll(&mut waits, Some(&timeout));
    }

    fn go_on_with_services(&mut self) {
        let Run { request, clock, name, carriers, bell, observed, secret, profile, .. } = self;
        let (clock, profile, life) = (*clock, profile.as_ref(), self.resets);
        let frame = Frame { request, clock, name, carriers, bell, observed, secret, profile, life };
        for service in &mut self.services {
            service.go_on(&frame, &mut self.events);
            if let Some(stream) = service.connection.take() {
                self.server.adopt(stream, service.at);
            }
        }
    }

    /// The plan that runs.
    pub fn plan(&self) -> &Plan {
        &self.request.plan
    }

    /// Turns the ticks of records into nanoseconds.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Time of the first release of all, monotonic ns; `u64::MAX` as long as there is none.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// What has happened so far.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Adds an event that the caller knows of.
    pub fn note(&mut self, what: EventKind, domain: Option<&str>, text: impl Into<String>) {
        self.events.add(what, domain, text);
    }

    /// What the kernel gave to each realtime thread, and what the plan asked for.
    pub fn privileges(&self) -> Vec<(ThreadId, Asked, Obtained)> {
        let planned = self.request.plan.domains.iter().filter_map(|domain| domain.realtime());
        let threads = planned.enumerate().flat_map(|(domain, realtime)| {
            let thread = move |(thread, cpu)| (ThreadId { domain, thread }, cpu, realtime.priority);
            realtime.threads.iter().map(|thread| thread.cpu).enumerate().map(thread)
        });
        let row = |(id, cpu, priority): (ThreadId, Option<u32>, u8)| {
            let obtained = self.domains[id.domain].board.obtained(id.thread);
            (id, Asked { priority, cpu }, obtained)
        };
        threads.map(row).collect()
    }

    /// Each realtime thread that has started, with its process and its number in the kernel.
    pub fn threads(&self) -> Vec<(ThreadId, u32, u32)> {
        let domains = self.domains.iter().enumerate();
        let threads = domains.flat_map(|(domain, running)| {
            (0..running.threads.len()).filter_map(move |thread| {
                let id = running.board.thread_id(thread)?;
                Some((ThreadId { domain, thread }, running.process.id(), id))
            })
        });
        threads.collect()
    }

    /// How often the core was started again.
    pub fn resets(&self) -> u32 {
        self.resets
    }

    /// Process of each domain, in the order of the plan; `None` of a service that has none now, and
    /// of a core that is held.
    pub fn pids(&self) -> Vec<Option<u32>> {
        let is_held = self.stage == Stage::Held;
        let id = |domain: &Domain| (!is_held).then(|| domain.process.id());
        let realtime = self.domains.iter().map(id);
        let services = self.services.iter().map(|it| it.process.as_ref().map(Process::id));
        realtime.chain(services).collect()
    }

    /// Process of each realtime domain.
    pub fn processes(&self) -> Vec<u32> {
        self.domains.iter().map(|domain| domain.process.id()).collect()
    }

    /// The service domains.
    pub fn services(&self) -> Vec<ServiceState> {
        let state = |(place, service): (usize, &Supervised)| ServiceState {
            domain: self.domains.len() + place,
            state: service.state(),
            pid: service.process.as_ref().map(Process::id),
            restarts: service.restarts,
            last_reason: service.reason.clone(),
            address: service.address.clone(),
            flows: self.node_states(service),
        };
        self.services.iter().enumerate().map(state).collect()
    }

    /// Of the CPU profiles that were asked for, in words, those that are incomplete; to be called
    /// at the end.
    pub fn profiles_lack(&self) -> Vec<String> {
        self.services.iter().filter_map(Supervised::profile_lacks).collect()
    }

    /// Records that came too fast for [`Run::poll`], in all.
    pub fn records_lost(&self) -> u64 {
        self.domains.iter().flat_map(Domain::records_lost).sum()
    }

    /// The same of one thread.
    pub fn records_lost_of(&self, id: ThreadId) -> u64 {
        let domain = self.domains.get(id.domain);
        domain.and_then(|domain| domain.records_lost().nth(id.thread)).unwrap_or(0)
    }

    /// How the run ended, or would if it ended now: what counts is the last life of the core.
    pub fn outcome(&self) -> Outcome {
        match () {
            () if !self.faults().is_empty() => Outcome::Faulted,
            () if self.finished => Outcome::Finished,
            () => Outcome::Stopped,
        }
    }

    /// What went wrong in lives of the core before this one, with the number of the life, from 1.
    pub fn earlier_faults(&self) -> &[(u32, usize, FaultAt)] {
        &self.earlier_faults
    }

    /// What went wrong, by domain; the domain that reported first is not known, the order is that
    /// of stopping. A service's faults are events, unless there is no core: then a service that was
    /// given up is the graph's fault.
    pub fn faults(&self) -> Vec<(usize, FaultAt)> {
        let fault = |(index, domain): (usize, &Domain)| {
            let mut at = domain.fault()?;
            // What a domain writes may be anything; and an edit may have moved the node.
            let name = at.node.and_then(|node| self.born.get(node));
            at.node = name.and_then(|name| edits::find(&self.request.plan, name));
            Some((index, at))
        };
        let of_core = self.domains.iter().enumerate().filter_map(fault);
        let given_up = |(at, service): (usize, &Supervised)| {
            let lost = self.domains.is_empty() && service.phase == Phase::Over(Over::GivenUp);
            let reason = service.reason.as_deref().unwrap_or_default();
            let fault = Fault::new(Cause::Died, format_args!("given up: {reason}"));
            lost.then_some((self.domains.len() + at, FaultAt { fault, node: None, cycle: None }))
        };
        of_core.chain(self.services.iter().enumerate().filter_map(given_up)).collect()
    }
}

fn names(plan: &Plan) -> Vec<String> {
    plan.nodes.iter().map(|node| node.name.clone()).collect()
}

/// 128 bits from the kernel, in hexadecimal digits.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether this runtime can run it.
fn check(request: &Request) -> Result<(), String> {
    for domain in &request.plan.domains {
        let threads = domain.threads().len();
        if threads > THREADS_MAX {
            let name = &domain.name;
            return Err(format!(
                "domain '{name}' has {threads} threads, at most {THREADS_MAX} run"
            ));
        }
    }
    if let Pace::Free { cycles } = request.pace
        && !(1..=Pace::FREE_CYCLES_MAX).contains(&cycles)
    {
        let most = Pace::FREE_CYCLES_MAX;
        return Err(format!("a free run of {cycles} cycles: expected 1 to {most}"));
    }
    Ok(())
}
