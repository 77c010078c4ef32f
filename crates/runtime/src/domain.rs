//! The process of a realtime domain: makes its nodes and links, takes its privileges, runs its
//! threads until it is told to stop or something fails.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use rustix::thread::gettid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use sinew_spec::plan::{Machine, Plan, Transport};
use sinew_spec::{Source, compile};

use crate::assemble::{Assembly, Ends, crosses_domains, leader};
use crate::board::{Board, FaultAt, Order, State};
use crate::clock::{Clock, now_ns};
use crate::cyclic::{Cyclic, Halt, STOP_PERIODS_MAX, Times};
use crate::fault::{Cause, Fault};
use crate::launch::Launch;
use crate::node::NodeEntry;
use crate::panics;
use crate::privileges::{Asked, lock_memory, obtain};
use crate::sys::{Region, adopt};
use crate::trace;
use crate::transport::{Carrier, Shape, row};

/// Stack of a realtime thread. It is locked in memory as a whole, so it is not the usual 8 MiB.
const STACK_BYTES: usize = 512 * 1024;

/// How long a thread sleeps before it looks again whether its parent still lives.
const ORDER_WAIT_NS: u64 = 100_000_000;

/// How long threads that hang outlive a stop, beside some periods. It is longer than the parent's
/// patience, for it is there for a domain whose parent is gone.
const HANG_NS_MAX: u64 = 5_000_000_000;

/// Runs the domain that the launch description behind `descriptor` names. The parent starts this
/// program again with a hidden command for it.
pub fn main(descriptor: RawFd, table: &[NodeEntry]) -> ExitCode {
    panics::install();
    let launch = adopt(descriptor).ok().and_then(Launch::open);
    let Some(launch) = launch else { return ExitCode::from(2) };
    let board = adopt(launch.board).and_then(Region::map).ok().and_then(Board::attach);
    let Some(board) = board else { return ExitCode::from(2) };
    let halt = Arc::new(Halt::new(board.clone()));
    let ran = catch_unwind(AssertUnwindSafe(|| run(&launch, table, &board, &halt)));
    if let Err(fault) = ran.unwrap_or_else(|_| Err(at_start(panics::take()))) {
        halt.fault(fault);
    }
    if halt.is_faulted() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

fn run(
    launch: &Launch,
    table: &[NodeEntry],
    board: &Board,
    halt: &Arc<Halt>,
) -> Result<(), FaultAt> {
    follow_parent(launch).map_err(system("cannot follow the parent"))?;
    let plan = plan(launch, table)?;
    let mut ends = ends(launch, &plan).map_err(system("cannot open the links"))?;
    let (ready, all_ready) = channel();
    let mut made = Vec::new();
    let clock = Clock::from_rate(f64::from_bits(launch.rate));
    let assembly = Assembly { plan: &plan, table, base: &launch.base, clock };
    let Some(domain) = plan.domains[launch.domain].realtime() else { return Ok(()) };
    for (at, &descriptor) in launch.traces.iter().enumerate() {
        let (executor, release) = assembly.thread(launch.domain, at, &mut ends)?;
        let region =
            adopt(descriptor).and_then(Region::map).map_err(system("cannot map a trace"))?;
        let trace = trace::Writer::attach(region, &executor.record, domain.period_ns, launch.pace);
        let trace =
            trace.map_err(|error| at_start(Fault::new(Cause::System, format_args!("{error}"))))?;
        let times = Times::of(domain, launch.pace);
        made.push(Cyclic::new(executor, release, times, trace, Arc::clone(halt)));
    }
    // Until here SIGTERM ends the process, even out of a node that hangs as it is made.
    let heeds = signal_hook::flag::register_usize(SIGTERM, halt.flag(), Halt::STOP);
    heeds.map_err(system("cannot heed SIGTERM"))?;
    lock_memory();
    // The first reading finds the kernel's fast clock, with a system call that no cycle may make.
    now_ns();
    let threads = made.len();
    for (at, cyclic) in made.into_iter().enumerate() {
        let asked = Asked { priority: domain.priority, cpu: domain.threads[at].cpu };
        let start = Start { asked, at, strict: launch.strict, board: board.clone() };
        let spawned = spawn(start, cyclic, Arc::clone(halt), ready.clone());
        spawned.map_err(system("cannot start a thread"))?;
    }
    drop(ready);
    // Each thread says once that it is ready; the channel closes early if one of them failed.
    if all_ready.iter().take(threads).count() == threads && !halt.is_faulted() {
        halt.reached(State::Ready);
    }
    await_end(&all_ready, halt, HANG_NS_MAX + STOP_PERIODS_MAX * domain.period_ns)
}

/// Waits until all threads have ended, or do not within the time after a stop.
fn await_end(threads: &Receiver<()>, halt: &Halt, hang_ns_max: u64) -> Result<(), FaultAt> {
    let mut until_ns = None;
    // Each thread holds its end of the channel until its own.
    while threads.recv_timeout(Duration::from_nanos(ORDER_WAIT_NS))
        != Err(RecvTimeoutError::Disconnected)
    {
        if halt.is_stopping() && now_ns() > *until_ns.get_or_insert(now_ns() + hang_ns_max) {
            let limit_ms = hang_ns_max / 1_000_000;
            let text =
                format_args!("a thread hangs: it did not end within {limit_ms} ms of the stop");
            return Err(at_start(Fault::new(Cause::Died, text)));
        }
    }
    Ok(())
}

/// The parent's death means SIGTERM; what the terminal sends is the parent's business.
fn follow_parent(launch: &Launch) -> io::Result<()> {
    let ignored = Arc::new(AtomicUsize::new(0));
    signal_hook::flag::register_usize(SIGINT, Arc::clone(&ignored), 0)?;
    signal_hook::flag::register_usize(SIGHUP, ignored, 0)?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have died before we asked to be told.
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    if parent == launch.parent { Ok(()) } else { Err(io::Error::other("the parent is gone")) }
}

fn plan(launch: &Launch, table: &[NodeEntry]) -> Result<Plan, FaultAt> {
    let kinds: Vec<_> = table.iter().map(|row| row.kind).collect();
    let machine = Machine { cpus: launch.cpus.clone() };
    let source = Source { file: &launch.file, text: &launch.text, overrides: &launch.overrides };
    compile(&source, &kinds, &machine).map_err(|errors| {
        let first = errors.first().map_or("", |error| error.message.as_str());
        at_start(Fault::new(Cause::System, format_args!("the spec no longer compiles: {first}")))
    })
}

/// The carriers that the parent left open, and new ones for links within this domain.
fn ends(launch: &Launch, plan: &Plan) -> io::Result<Ends> {
    let mut ends = Ends::default();
    // Ends of one broadcast that are in this domain share a region, and so a descriptor.
    let mut regions: BTreeMap<RawFd, Region> = BTreeMap::new();
    let mut carrier = |link: usize, descriptor: RawFd| -> io::Result<Carrier> {
        if plan.links[link].transport != Transport::SharedMemory {
            return adopt(descriptor).map(Carrier::Stream);
        }
        Ok(Carrier::Region(match regions.entry(descriptor) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(Region::map(adopt(descriptor)?)?).clone(),
        }))
    };
    for &(link, descriptor) in &launch.writers {
        ends.writers.insert(link, carrier(link, descriptor)?);
    }
    for &(link, descriptor) in &launch.readers {
        ends.readers.insert(link, carrier(link, descriptor)?);
    }
    for (index, link) in plan.links.iter().enumerate() {
        let here = plan.nodes[link.from.node].domain == launch.domain;
        if link.fused || !here || crosses_domains(plan, index) {
            continue;
        }
        let leader = leader(plan, index);
        if leader == index {
            let (writer, reader) = (row(link.transport).open)(&Shape::of(link))?;
            ends.writers.insert(index, writer);
            ends.readers.insert(index, reader);
        } else if let Some(Carrier::Region(region)) = ends.readers.get(&leader) {
            let region = Carrier::Region(region.clone());
            ends.readers.insert(index, region);
        }
    }
    Ok(ends)
}

struct Start {
    asked: Asked,
    at: usize,
    strict: bool,
    board: Board,
}

fn spawn(start: Start, cyclic: Cyclic, halt: Arc<Halt>, ready: Sender<()>) -> io::Result<()> {
    let name = format!("cyclic {}", start.at);
    let body = move || {
        start.board.set_thread_id(start.at, gettid().as_raw_nonzero().get() as u32);
        let obtained = obtain(&start.asked);
        start.board.set_obtained(start.at, &obtained);
        let missing = obtained.missing(&start.asked);
        if let (true, Some(first)) = (start.strict, missing.first()) {
            let text = format_args!("--strict: {first}");
            halt.fault(at_start(Fault::new(Cause::System, text)));
        }
        // The main thread waits for this; that it is gone cannot be.
        let _ = ready.send(());
        let live = || {
            let mut cyclic = cyclic;
            match await_order(&start.board, &halt) {
                Some(start_ns) => {
                    halt.reached(State::Running);
                    cyclic.run(start_ns);
                }
                None => cyclic.stop(),
            }
        };
        if catch_unwind(AssertUnwindSafe(live)).is_err() {
            halt.fault(at_start(panics::take()));
        }
        // Last of all: it says that this thread has ended.
        drop(ready);
    };
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(body).map(drop)
}

/// Time of the first release; `None` if the domain is to stop before.
fn await_order(board: &Board, halt: &Halt) -> Option<u64> {
    loop {
        match board.current_order() {
            _ if halt.is_stopping() => return None,
            Order::Run => return Some(board.start_ns()),
            _ => board.sleep_while(Order::Wait, ORDER_WAIT_NS),
        }
    }
}

fn at_start(fault: Fault) -> FaultAt {
    FaultAt { fault, node: None, cycle: None }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> FaultAt {
    move |error| at_start(Fault::new(Cause::System, format_args!("{what}: {error}")))
}
