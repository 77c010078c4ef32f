//! The process of a realtime domain: makes its nodes, takes its privileges, runs its threads until
//! it is told to stop or something fails.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rustix::thread::gettid;
use sinew_core::Cycle;
use sinew_core::board::{Board, BoardState, FaultAt};
use sinew_core::clock::{Clock, now_ns};
use sinew_core::cycle::assemble::{Assembly, Carriers, Wrap};
use sinew_core::cycle::release::{CycleTimes, Cyclic, STOP_PERIODS_MAX, code_of_faults};
use sinew_core::fault::{Cause, Fault};
use sinew_core::halt::Halt;
use sinew_core::log;
use sinew_core::panics;
use sinew_core::privileges::{Asked, lock_memory, obtain};
use sinew_core::sys::{Region, adopt, let_go_of_code};
use sinew_core::trace;
use sinew_link::RegionError;
use sinew_spec::plan::Realtime;

use super::injected::Injections;
use super::{Process, at_start, await_end, await_order, system, wake_with_parents_end};

/// Stack of a realtime thread. It is locked in memory as a whole, so it is not the usual 8 MiB.
const STACK_BYTES: usize = 512 * 1024;

/// How long hanging threads outlive a stop, besides some periods. It is longer than the parent
/// waits, because it is meant for a domain whose parent is gone.
const HANG_NS_MAX: u64 = 5_000_000_000;

/// Runs the domain until its threads have ended.
pub(super) fn run(
    process: &Process<'_>,
    domain: &Realtime,
    mut ends: Carriers,
) -> Result<(), FaultAt> {
    let Process { launch, plan, kinds, board, halt } = process;
    // The code that compiled the plan is not needed again, so it need not be locked.
    let_go_of_code();
    let (ready, all_ready) = channel();
    let mut made = Vec::new();
    let clock = Clock::from_rate(f64::from_bits(launch.rate));
    let injections = Injections { plan, all: &launch.injections };
    let wrap = (!launch.injections.is_empty()).then_some(&injections as &dyn Wrap);
    let table = &kinds.nodes;
    let assembly = Assembly { plan, table, base: &launch.spec.base, clock, wrap };
    let map = |number| {
        adopt(number).and_then(Region::map).map_err(system("cannot map what cycles leave behind"))
    };
    let refused = |error: RegionError| at_start(Fault::new(Cause::System, format_args!("{error}")));
    for (at, (&trace, &lines)) in launch.open.traces.iter().zip(&launch.open.lines).enumerate() {
        let (mut executor, release) = assembly.thread(launch.domain, at, &mut ends)?;
        executor.begin_life(launch.life);
        let (record, period_ns) = (executor.record(), domain.period_ns);
        let trace = trace::Writer::attach(map(trace)?, record, period_ns, launch.pace);
        let trace = trace.map_err(refused)?;
        let lines = log::Writer::attach(map(lines)?).map_err(refused)?;
        let times = CycleTimes::of(domain, launch.pace);
        made.push(Cyclic::new(executor, release, times, (trace, lines), Arc::clone(halt)));
    }
    process.heed_signal()?;
    panics::rehearse();
    Cycle::rehearse_log();
    lock_memory(&code_of_faults());
    // The first reading finds the kernel's fast clock, with a system call that no cycle may make.
    now_ns();
    let threads = made.len();
    for (at, cyclic) in made.into_iter().enumerate() {
        let asked = Asked { priority: domain.priority, cpu: domain.threads[at].cpu };
        let start = Start { asked, at, strict: launch.strict, board: (*board).clone() };
        let spawned = spawn(start, cyclic, Arc::clone(halt), ready.clone());
        spawned.map_err(system("cannot start a thread"))?;
    }
    drop(ready);
    // Each thread says once that it is ready; the channel closes early if one of them failed.
    if all_ready.iter().take(threads).count() == threads && !halt.is_faulted() {
        halt.reached(BoardState::Ready);
    }
    let hang_ns_max = HANG_NS_MAX + STOP_PERIODS_MAX * domain.period_ns;
    await_end(&all_ready, halt, launch.parent, hang_ns_max)
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
        wake_with_parents_end();
        start.board.set_thread_id(start.at, gettid().as_raw_nonzero().get() as u32);
        let obtained = obtain(&start.asked);
        start.board.set_obtained(start.at, &obtained);
        let missing = obtained.missing(&start.asked);
        if let (true, Some(first)) = (start.strict, missing.first()) {
            let text = format_args!("--strict: {first}");
            halt.fault(at_start(Fault::new(Cause::System, text)));
        }
        // The main thread waits for this; so it cannot be gone.
        let _ = ready.send(());
        let live = || {
            let mut cyclic = cyclic;
            if await_order(&start.board, &halt) {
                halt.reached(BoardState::Running);
                cyclic.run(start.board.start_ns());
            } else {
                cyclic.stop();
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
