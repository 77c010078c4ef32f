//! The process of a domain: the parent starts this program again for each. This module does what is
//! the same for all of them; then each runs as its role says.

mod guest;
mod injected;
mod realtime;
mod service;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use sinew_control::{Spec, outside};
use sinew_core::bell::Bell;
use sinew_core::board::{Board, DomainOrder, FaultAt};
use sinew_core::clock::now_ns;
use sinew_core::cycle::assemble::Carriers;
use sinew_core::ends::{crosses_domains, leader};
use sinew_core::fault::{Cause, Fault};
use sinew_core::halt::Halt;
use sinew_core::panics;
use sinew_core::sys::{Region, adopt};
use sinew_core::transport::{Carrier, Doorbell, LinkShape, row};
use sinew_spec::plan::{Plan, Role, Transport};
use sinew_spec::{SpecSource, compile, guest as memory};

use crate::kinds::Kinds;
use crate::launch::Launch;

/// How long a thread sleeps before it looks again whether its parent still lives.
const ORDER_WAIT_NS: u64 = 100_000_000;

/// Runs the domain that the launch description behind `descriptor` names. The parent starts this
/// program again with a hidden command for it.
pub fn main(descriptor: RawFd, kinds: &Kinds) -> ExitCode {
    panics::install();
    let launch = adopt(descriptor).ok().and_then(Launch::open);
    let Some(launch) = launch else { return ExitCode::from(2) };
    let board = adopt(launch.open.board).and_then(Region::map).ok().and_then(Board::attach);
    let bell = adopt(launch.open.bell).map(Bell::adopt);
    let (Some(board), Ok(bell)) = (board, bell) else { return ExitCode::from(2) };
    let halt = Arc::new(Halt::new(board.clone(), bell));
    let ran = catch_unwind(AssertUnwindSafe(|| run(&launch, kinds, &board, &halt)));
    if let Err(fault) = ran.unwrap_or_else(|_| Err(at_start(panics::take()))) {
        halt.fault(fault);
    }
    if halt.is_faulted() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

fn run(launch: &Launch, kinds: &Kinds, board: &Board, halt: &Arc<Halt>) -> Result<(), FaultAt> {
    follow_parent(launch).map_err(system("cannot watch the parent process"))?;
    take_file_limit_as_error().map_err(system("cannot handle SIGXFSZ"))?;
    let plan = plan(launch, kinds)?;
    let ends = ends(launch, &plan).map_err(system("cannot open the links"))?;
    let process = Process { launch, plan: &plan, kinds, board, halt };
    match &plan.domains[launch.domain].role {
        Role::Realtime(domain) => realtime::run(&process, domain, ends),
        Role::Service(domain) => match &domain.guest {
            Some(guest) => guest::run(&process, domain, guest),
            None => service::run(&process, domain, ends),
        },
    }
}

/// What every role needs of its process.
struct Process<'a> {
    launch: &'a Launch,
    plan: &'a Plan,
    kinds: &'a Kinds,
    board: &'a Board,
    halt: &'a Arc<Halt>,
}

impl Process<'_> {
    /// From now on SIGTERM stops the domain in order. Until then it ends the process, even if a
    /// node hangs while it is made.
    fn heed_signal(&self) -> Result<(), FaultAt> {
        let heeds = signal_hook::flag::register_usize(SIGTERM, self.halt.flag(), Halt::STOP);
        heeds.map(drop).map_err(system("cannot handle SIGTERM"))
    }
}

/// Makes a write past the limit of the size of files an error, like a full disk; by default the
/// kernel ends the process.
fn take_file_limit_as_error() -> io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))).map(drop)
}

/// Waits until all threads have ended, or until the time after a stop is over. The parent's death
/// counts as a stop too, because nodes may have changed what SIGTERM does.
fn await_end(
    threads: &Receiver<()>,
    halt: &Halt,
    parent: u32,
    hang_ns_max: u64,
) -> Result<(), FaultAt> {
    let mut until_ns = None;
    // Each thread holds its sender until its own end.
    while threads.recv_timeout(Duration::from_nanos(ORDER_WAIT_NS))
        != Err(RecvTimeoutError::Disconnected)
    {
        if is_orphan(parent) {
            halt.stop();
        }
        if until_ns.is_none() && halt.is_stopping() {
            until_ns = Some(now_ns() + hang_ns_max);
            halt.ring();
        }
        if until_ns.is_some_and(|until_ns| now_ns() > until_ns) {
            let limit_ms = hang_ns_max / 1_000_000;
            let text =
                format_args!("a thread hangs: it did not end within {limit_ms} ms after the stop");
            return Err(at_start(Fault::new(Cause::Died, text)));
        }
    }
    Ok(())
}

/// Waits for the order to run: `true`. `false` if the domain is to stop before.
fn await_order(board: &Board, halt: &Halt) -> bool {
    loop {
        match board.current_order() {
            _ if halt.is_stopping() => return false,
            DomainOrder::Run => return true,
            _ => board.sleep_while(DomainOrder::Wait, ORDER_WAIT_NS),
        }
    }
}

/// Has the parent's death send SIGTERM; signals from the terminal are left to the parent.
fn follow_parent(launch: &Launch) -> io::Result<()> {
    let ignored = Arc::new(AtomicUsize::new(0));
    signal_hook::flag::register_usize(SIGINT, Arc::clone(&ignored), 0)?;
    signal_hook::flag::register_usize(SIGHUP, ignored, 0)?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have died before we asked to be told.
    if is_orphan(launch.parent) {
        Err(io::Error::other("the parent process has ended"))
    } else {
        Ok(())
    }
}

/// Call it on a thread other than the main one. If somebody has stopped this process (SIGSTOP), the
/// parent's death continues it, so that it gets the SIGTERM that is pending.
fn wake_with_parents_end() {
    // The kernel refuses no valid signal; and without it we still end, once somebody continues us.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
}

fn is_orphan(parent: u32) -> bool {
    getppid().is_none_or(|pid| pid.as_raw_nonzero().get() as u32 != parent)
}

fn plan(launch: &Launch, kinds: &Kinds) -> Result<Plan, FaultAt> {
    outside::know(&launch.spec.outside);
    let Spec { file, text, overrides, images, outside, host, .. } = &launch.spec;
    let host = host.as_deref();
    let source = SpecSource { overrides, images, outside, host, ..SpecSource::of(file, text) };
    let mut plan =
        compile(&source, &kinds.catalogue(), &launch.spec.machine).map_err(|errors| {
            let first = errors.first().map_or("", |error| error.message.as_str());
            at_start(Fault::new(
                Cause::System,
                format_args!("the spec no longer compiles: {first}"),
            ))
        })?;
    plan.leave_out_tests();
    plan.observe = launch.spec.observe;
    Ok(plan)
}

/// The carriers that the parent left open, and new ones for links within this domain.
fn ends(launch: &Launch, plan: &Plan) -> io::Result<Carriers> {
    let mut ends = Carriers::default();
    // Ends of one broadcast that are in this domain share a region, and so a descriptor.
    let mut regions: BTreeMap<RawFd, Region> = BTreeMap::new();
    let mut carrier = |link: usize, descriptor: RawFd| -> io::Result<Carrier> {
        match plan.links[link].transport {
            Transport::SharedMemory => {}
            Transport::CarveOut => return in_carve_out(launch, plan, link, adopt(descriptor)?),
            _ => return adopt(descriptor).map(Carrier::Stream),
        }
        Ok(Carrier::Region(match regions.entry(descriptor) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(Region::map(adopt(descriptor)?)?).clone(),
        }))
    };
    for &(link, descriptor) in &launch.open.writers {
        ends.writers.insert(link, carrier(link, descriptor)?);
    }
    for &(link, descriptor) in &launch.open.readers {
        ends.readers.insert(link, carrier(link, descriptor)?);
    }
    for &(node, descriptor) in &launch.open.tunings {
        ends.tunings.insert(node, Carrier::Region(Region::map(adopt(descriptor)?)?));
    }
    for (index, link) in plan.links.iter().enumerate() {
        let here = plan.nodes[link.from.node].domain == launch.domain;
        if link.fused || !here || crosses_domains(plan, index) {
            continue;
        }
        let leader = leader(plan, index);
        if leader == index {
            let (writer, reader) = (row(link.transport).open)(&LinkShape::of(link))?;
            ends.writers.insert(index, writer);
            ends.readers.insert(index, reader);
        } else if let Some(Carrier::Region(region)) = ends.readers.get(&leader) {
            let region = Carrier::Region(region.clone());
            ends.readers.insert(index, region);
        }
    }
    Ok(ends)
}

/// The end of a link in the memory of a guest.
fn in_carve_out(launch: &Launch, plan: &Plan, link: usize, memory: OwnedFd) -> io::Result<Carrier> {
    let guest = plan.carve_out(&plan.links[link]).unwrap_or_default();
    let row = memory::rows(plan, guest).into_iter().find(|(at, _)| *at == link);
    let row = row.ok_or_else(|| io::Error::other("the link has no place in its guest's memory"))?.1;
    let region = Region::map_part(memory, row.offset as usize, row.size as usize)?;
    Ok(match launch.open.bells.iter().find(|(of, ..)| *of == link) {
        None => Carrier::Region(region),
        Some(&(_, linux, guest)) => {
            let [hears, rings] = [linux, guest].map(|bell| adopt(bell).map(Bell::adopt));
            Carrier::Guest(region, Doorbell { hears: hears?, rings: rings? })
        }
    })
}

fn at_start(fault: Fault) -> FaultAt {
    FaultAt { fault, node: None, cycle: None }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> FaultAt {
    move |error| at_start(Fault::new(Cause::System, format_args!("{what}: {error}")))
}
