//! The process of a service domain: makes its nodes, gives each a thread of its own, and sees to it
//! that nothing of them is left when it ends.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::Arc;
use std::sync::mpsc::{Sender as StdSender, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use sinew_control::Supervisor;
use sinew_control::counters::{Counted, counters_shape};
use sinew_core::Parameters;
use sinew_core::board::{BoardState, FaultAt};
use sinew_core::cycle::assemble::Wrap;
use sinew_core::cycle::assemble::{Carriers, no_carrier};
use sinew_core::ends::leader;
use sinew_core::fault::{Cause, Fault};
use sinew_core::halt::Halt;
use sinew_core::panics;
use sinew_core::privileges::may_have;
use sinew_core::sys::{Region, adopt, leave_realtime};
use sinew_core::transport::{LinkShape, Receiver, Sender, row};
use sinew_flow::{Crew, MessageInput, MessageOutput, RelayDoors, Setup};
use sinew_link::counter;
use sinew_spec::plan::{Link, Plan, PoolSize, Release, Role, ServiceDomain as Domain, Thread};

use super::injected::{self, Injections};
use super::{Process, await_end, await_order, system, wake_with_parents_end};
use crate::confine::kill_strays;
use crate::profile::Profiler;
use crate::service::{Input, Output, Service, ServiceIo, tell};
use crate::watch::{Shown, Watch};

/// Added to the stop deadline, so that the parent, if there is one, acts first.
const GRACE_NS: u64 = 1_000_000_000;

/// The kernel's out-of-memory killer takes services first (-1000 to 1000).
const OOM_SCORE_ADJUST: &str = "500";

struct Made {
    index: usize,
    service: Box<dyn Service>,
    io: ServiceIo,
}

/// Runs the domain until its nodes have ended, and writes its CPU profile if one is asked for.
pub(super) fn run(process: &Process<'_>, domain: &Domain, ends: Carriers) -> Result<(), FaultAt> {
    let profile = process.launch.open.profile;
    let profiler = profile.map(|(file, frequency_hz)| Profiler::start(file, frequency_hz));
    let profiler = profiler.transpose().map_err(system("cannot take a CPU profile"))?;
    let ended = carry_out(process, domain, ends);
    let written = profiler.map_or(Ok(()), Profiler::write);
    ended.and(written.map_err(system("cannot write the CPU profile")))
}

fn carry_out(process: &Process<'_>, domain: &Domain, ends: Carriers) -> Result<(), FaultAt> {
    keep_away_from_core(process, domain);
    // From the beginning: processes that a node starts while it is made must not outlive us either.
    process.heed_signal()?;
    let (made, crew) = make_all(process, domain, ends)?;
    let (running, all_ended) = channel();
    if let Some(crew) = crew {
        let (board, halt) = (process.board.clone(), Arc::clone(process.halt));
        let serve = move || crew.serve(&board, &halt);
        start(process, "flows", running.clone(), serve)?;
    }
    for node in made {
        let (name, halt) = (node.io.name.clone(), Arc::clone(process.halt));
        start(process, &name, running.clone(), move || serve(node, &halt))?;
    }
    drop(running);
    process.halt.reached(BoardState::Ready);
    let patience_ns = domain.stop_deadline_ns + GRACE_NS;
    let ended = await_end(&all_ended, process.halt, process.launch.parent, patience_ns);
    // Processes that a node has started must not outlive it, even if no parent is left to end them.
    kill_strays(&process.launch.marker);
    ended
}

/// Starts a thread that serves once the order to run has come.
fn start(
    process: &Process<'_>,
    name: &str,
    running: StdSender<()>,
    serve: impl FnOnce() + Send + 'static,
) -> Result<(), FaultAt> {
    let (halt, board) = (Arc::clone(process.halt), process.board.clone());
    let body = move || {
        wake_with_parents_end();
        if await_order(&board, &halt) {
            halt.reached(BoardState::Running);
            serve();
        }
        // Last of all: it says that this thread has ended.
        drop(running);
    };
    let spawned = thread::Builder::new().name(name.into()).spawn(body);
    spawned.map(drop).map_err(system("cannot start a thread"))
}

/// Makes all nodes. If a node hangs while it is made and no parent is left to end it, this process
/// ends itself.
fn make_all(
    process: &Process<'_>,
    domain: &Domain,
    mut ends: Carriers,
) -> Result<(Vec<Made>, Option<Crew>), FaultAt> {
    let (making, all_made) = channel();
    let (halt, launch) = (Arc::clone(process.halt), process.launch);
    let (parent, marker) = (launch.parent, launch.marker.clone());
    let patience_ns = domain.stop_deadline_ns + GRACE_NS;
    let watch = move || {
        wake_with_parents_end();
        if await_end(&all_made, &halt, parent, patience_ns).is_err() {
            kill_strays(&marker);
            exit(1);
        }
    };
    let watch = thread::Builder::new().name("start".into()).spawn(watch);
    let watch = watch.map_err(system("cannot start a thread"))?;
    let mut made = Vec::new();
    let shown = Shown::adopt(process.launch, process.plan);
    let shown = shown.map_err(system("cannot observe the run"))?;
    let of_flows = |node: &usize| process.plan.is_flow(*node);
    let flows = domain.nodes.iter().any(of_flows);
    let crew = flows
        .then(|| {
            let supervisor = shown.as_ref().map(|shown| shown.supervisor().clone());
            open(process, domain, &mut ends, supervisor)
        })
        .transpose()?;
    let services = domain.nodes.iter().enumerate().filter(|(_, node)| !of_flows(node));
    for (place, &index) in services {
        let in_node = |fault| FaultAt { fault, node: Some(index), cycle: None };
        let mut node = make(process, index, place, &mut ends).map_err(in_node)?;
        if let Some(shown) = shown.as_ref().filter(|_| process.plan.observes(index)) {
            node.io.watch = Some(Watch::open(process.launch, shown).map_err(in_node)?);
        }
        if process.plan.is_of_hosts(index) {
            node.io.supervisor = shown.as_ref().map(|shown| shown.supervisor().clone());
            node.io.doors = Some(relay_doors(process)?);
        }
        made.push(node);
    }
    drop(making);
    // The watching thread is gone before the nodes get their threads, whose number may be limited.
    // It cannot panic.
    let _ = watch.join();
    Ok((made, crew))
}

/// Opens the crew of the domain's flows.
fn open(
    process: &Process<'_>,
    domain: &Domain,
    ends: &mut Carriers,
    supervisor: Option<Supervisor>,
) -> Result<Crew, FaultAt> {
    let Process { launch, plan, kinds, .. } = process;
    let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
    let (mut nodes, mut counted) = (Vec::new(), Vec::new());
    let flows = domain.nodes.iter().enumerate().filter(|(_, node)| plan.is_flow(**node));
    for (place, &index) in flows {
        let in_node = |fault| FaultAt { fault, node: Some(index), cycle: None };
        nodes.push(index);
        counted.push(counters(launch.open.counters.get(place).copied()).map_err(in_node)?.0);
        for (link, end) in self::inputs(plan, index, ends).map_err(in_node)? {
            inputs.insert((index, link.to.port), MessageInput::new(link.message, end));
        }
        for (link, end) in self::outputs(process, index, ends).map_err(in_node)? {
            let links: &mut Vec<_> = outputs.entry((index, link.from.port)).or_default();
            links.push(MessageOutput::new(link.message, end));
        }
    }
    let workers = workers(plan, domain, &launch.spec.machine.cpus);
    let own = domain.nodes.len() - nodes.len() + workers + OTHER_THREADS;
    let setup = Setup {
        plan: Arc::new((*plan).clone()),
        nodes,
        table: kinds.flows.clone(),
        kinds: kinds.catalogue(),
        spec: launch.spec.clone(),
        domain: launch.domain,
        workers,
        blocking: within(domain.flows.blocking, domain.limits.processes, own),
        inputs,
        outputs,
        calls: doors(&launch.open.calls)?,
        called: doors(&launch.open.called)?.into_values().collect(),
        supervisor,
        lens: kinds.lens,
        halt: Arc::clone(process.halt),
        stop_deadline: Duration::from_nanos(domain.stop_deadline_ns),
    };
    Crew::open(setup, counted)
}

/// The doors to or from other domains, by their index.
fn doors(numbers: &[(usize, RawFd)]) -> Result<BTreeMap<usize, OwnedFd>, FaultAt> {
    let open = |&(domain, number): &(usize, RawFd)| Ok((domain, adopt(number)?));
    let doors = numbers.iter().map(open).collect::<io::Result<_>>();
    doors.map_err(system("cannot open a door to a domain"))
}

/// The doors of a node that carries packets away.
fn relay_doors(process: &Process<'_>) -> Result<RelayDoors, FaultAt> {
    let Process { launch, plan, .. } = process;
    let calls = doors(&launch.open.calls)?.into_iter();
    let calls = calls.map(|(domain, door)| (plan.domains[domain].name.clone(), door)).collect();
    Ok(RelayDoors { calls, called: doors(&launch.open.called)?.into_values().collect() })
}

/// Threads of a process with flows besides nodes, workers and those for work that blocks: the main
/// one, one that looks after the workers, one for what ends the run, and some that come and go, as
/// for an edit of the graph.
const OTHER_THREADS: usize = 3 + 8;

/// A pool that finds its own size leaves `own` threads of the domain's limit alone.
fn within(size: PoolSize, limit: Option<u64>, own: usize) -> PoolSize {
    let PoolSize { start, min, max } = size;
    let left = limit.map_or(u64::from(max), |limit| limit.saturating_sub(own as u64));
    let max = max.min(u32::try_from(left).unwrap_or(max)).max(min);
    PoolSize { start: start.min(max), min, max }
}

/// As many workers as the spec says; otherwise as the domain has CPUs; otherwise as the core
/// leaves.
fn workers(plan: &Plan, domain: &Domain, cpus: &[u32]) -> usize {
    let own = domain.cpus.as_ref().map(Vec::len);
    domain.flows.workers.map(|workers| workers as usize).or(own).unwrap_or_else(|| {
        let core = plan.domains.iter().flat_map(|domain| domain.threads());
        let core: Vec<u32> = core.filter_map(|it| it.cpu).collect();
        cpus.iter().filter(|cpu| !core.contains(cpu)).count().max(1)
    })
}

/// Keeps a service from taking time from the core: no realtime class, and the CPUs that its spec
/// names, otherwise CPUs other than the core's where there are any. It acts on the calling thread
/// and those that it will start, so call it before there are others.
pub(super) fn keep_away_from_core(process: &Process<'_>, domain: &Domain) {
    // A user who starts the graph with `chrt` does not mean its services. A refusal changes
    // nothing.
    let _ = leave_realtime();
    let pinned = domain.cpus.as_deref().map(|cpus| (cpus, run_on(cpus)));
    if let Some((cpus, Err(error))) = &pinned {
        // What it has instead, and what to do, is shown when the affinity is read back.
        tell(format_args!("cannot run on the CPUs {cpus:?} that its spec names: {error}"));
    }
    if !matches!(pinned, Some((_, Ok(())))) {
        let cpus = cpus_beside_core(process.plan, &process.launch.spec.machine.cpus);
        // A refusal changes nothing.
        let _ = run_on(&cpus);
    }
    // A refusal changes nothing.
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJUST);
}

/// Has the calling thread run on these CPUs only; if there are none, it changes nothing.
fn run_on(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(cpu as usize));
    if set.count() > 0 { Ok(sched_setaffinity(None, &set)?) } else { Ok(()) }
}

/// The CPUs for a service that names none.
fn cpus_beside_core(plan: &Plan, cpus: &[u32]) -> Vec<u32> {
    let realtime = plan.domains.iter().filter_map(|domain| match &domain.role {
        Role::Realtime(realtime) => Some(realtime),
        Role::Service(_) => None,
    });
    let is_preempted = realtime.clone().all(|realtime| may_have(realtime.priority));
    let threads: Vec<&Thread> = realtime.flat_map(|realtime| &realtime.threads).collect();
    left(&threads, cpus, is_preempted)
}

/// The CPUs that the core leaves to services. If there are none, those where the clock releases no
/// thread, because cycles begin where the clock releases one. A thread that an input releases polls
/// before it is needed, and sleeps half of its period. Sharing its CPU needs threads with priority
/// over services; without that, and without such CPUs, there is nothing to choose.
fn left(core: &[&Thread], cpus: &[u32], is_preempted: bool) -> Vec<u32> {
    let without = |is_meant: fn(&Thread) -> bool| {
        let is_taken = |cpu: u32| core.iter().any(|it| it.cpu == Some(cpu) && is_meant(it));
        cpus.iter().copied().filter(|&cpu| !is_taken(cpu)).collect::<Vec<_>>()
    };
    match without(|_| true) {
        free if free.is_empty() && is_preempted => without(|it| it.release == Release::Timer),
        free => free,
    }
}

/// Makes and starts a node, and opens its links.
fn make(
    process: &Process<'_>,
    index: usize,
    place: usize,
    ends: &mut Carriers,
) -> Result<Made, Fault> {
    let Process { launch, plan, kinds, .. } = process;
    let node = &plan.nodes[index];
    let made = kinds.service(node)(&Parameters::of(plan, node, &launch.spec.base))?;
    let mut service = injected::service(made, index, &launch.injections);
    service.start()?;
    let (counters, beats) = counters(launch.open.counters.get(place).copied())?;
    let ports = node.kind.ports.iter();
    let (mut of_inputs, mut of_outputs): (Vec<_>, Vec<_>) =
        ports.map(|_| (None, Vec::new())).unzip();
    for (link, end) in inputs(plan, index, ends)? {
        of_inputs[link.to.port] = Some(Input::new(end));
    }
    for (link, end) in outputs(process, index, ends)? {
        of_outputs[link.from.port].push(Output::new(link, end));
    }
    let io = ServiceIo {
        name: node.name.clone(),
        halt: Arc::clone(process.halt),
        board: process.board.clone(),
        counters,
        beats,
        lost: 0,
        injected: None,
        watch: None,
        inputs: of_inputs,
        outputs: of_outputs,
        supervisor: None,
        doors: None,
    };
    Ok(Made { index, service, io })
}

/// The node's counters, and how many heartbeats they show from earlier lives.
pub(super) fn counters(descriptor: Option<i32>) -> Result<(counter::Writer<Region>, u64), Fault> {
    let refused = |text: &dyn std::fmt::Display| Fault::new(Cause::System, format_args!("{text}"));
    let region = adopt(descriptor.unwrap_or(-1)).and_then(Region::map);
    let region =
        region.map_err(|error| refused(&format_args!("cannot map the counters: {error}")))?;
    let counted = Counted::attach(region.clone()).map_err(|error| refused(&error))?;
    let writer = counter::Writer::attach(region, &counters_shape());
    Ok((writer.map_err(|error| refused(&error))?, counted.beats()))
}

/// Ends of a node, each with its link.
type Linked<'a, End> = Vec<(&'a Link, Box<End>)>;

fn inputs<'a>(
    plan: &'a Plan,
    node: usize,
    ends: &mut Carriers,
) -> Result<Linked<'a, dyn Receiver>, Fault> {
    let links = plan.links.iter().enumerate().filter(|(_, link)| link.to.node == node);
    let open = |(at, link): (usize, &'a Link)| {
        let carrier = ends.readers.remove(&at).ok_or_else(|| no_carrier(at))?;
        Ok((link, (row(link.transport).receiver)(carrier, &LinkShape::of(link))?))
    };
    links.map(open).collect()
}

fn outputs<'a>(
    process: &Process<'a>,
    node: usize,
    ends: &mut Carriers,
) -> Result<Linked<'a, dyn Sender>, Fault> {
    let plan = process.plan;
    let injections = Injections { plan, all: &process.launch.injections };
    let links = plan.links.iter().enumerate().filter(|(_, link)| link.from.node == node);
    let open = |(at, link): (usize, &'a Link)| {
        let carrier = ends.writers.remove(&at).ok_or_else(|| no_carrier(at))?;
        Ok((link, injections.sender(carrier, at)?))
    };
    links.filter(|(at, _)| leader(plan, *at) == *at).map(open).collect()
}

/// A node's whole life. Its fault ends the domain; its end leaves the others running.
fn serve(mut node: Made, halt: &Halt) {
    let served = catch_unwind(AssertUnwindSafe(|| node.service.run(&mut node.io)));
    let served = served.unwrap_or_else(|_| Err(panics::take()));
    let stopped = catch_unwind(AssertUnwindSafe(|| node.service.stop()));
    let stopped = stopped.map_err(|_| panics::take());
    node.io.ended();
    if let Err(fault) = served.and(stopped) {
        halt.fault(FaultAt { fault, node: Some(node.index), cycle: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_leaves_others_their_part_of_the_limit_on_threads() {
        let size = PoolSize { start: 8, min: 2, max: 512 };
        assert_eq!(within(size, None, 14), size);
        assert_eq!(within(size, Some(64), 14), PoolSize { max: 50, ..size });
        assert_eq!(within(size, Some(20), 14), PoolSize { start: 6, min: 2, max: 6 });
        assert_eq!(within(size, Some(5), 14), PoolSize { start: 2, min: 2, max: 2 });
        assert_eq!(within(PoolSize::fixed(9), Some(5), 14), PoolSize::fixed(9), "as it was asked");
    }

    #[test]
    fn services_leave_the_core_its_cpus_or_at_least_those_where_cycles_begin() {
        let thread = |cpu, release| Thread { cpu: Some(cpu), release, nodes: Vec::new() };
        let (clocked, fed) = (thread(1, Release::Timer), thread(0, Release::Input(0)));
        let core = [&clocked, &fed];
        assert_eq!(left(&core, &[0, 1, 2, 3], true), [2, 3]);
        assert_eq!(left(&core, &[0, 1], true), [0]);
        assert!(left(&core, &[0, 1], false).is_empty(), "who wins there is the kernel's choice");
        assert!(left(&[&clocked], &[1], true).is_empty());
        let anywhere = Thread { cpu: None, ..clocked.clone() };
        assert_eq!(left(&[&anywhere, &fed], &[0, 1], true), [1]);
    }
}
