//! The agent: the strongest task. It says that the guest is alive, and does as Linux says.

use core::ffi::c_void;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use sinew_carve_out::{FaultKind, GuestFault, GuestState, NODES_MAX, Order};

use crate::guest::Guest;
use crate::kernel::Task;
use crate::once::Once;
use crate::{Fault, board, fault, guest, kernel, say, serve};

/// Time between two beats, unless Linux rings before.
const BEAT_MS: u32 = 10;
/// Time for the last act of the nodes. After it the guest ends without waiting for them.
const LAST_ACT_MS: u32 = 500;
const STACK: u32 = 16 * 1024;
/// Bytes at the start of the carve-out with the words of Linux and of the agent.
const HEAD: usize = 0x1000;

static AGENT: Once<Task> = Once::new();
static NODES: [Once<Task>; NODES_MAX] = [const { Once::new() }; NODES_MAX];
static NODE_COUNT: AtomicUsize = AtomicUsize::new(0);
/// A bit for each node that has done its last act.
static DONE: AtomicU32 = AtomicU32::new(0);
/// A bit for each node that Linux has told to stop.
static TO_STOP: AtomicU32 = AtomicU32::new(0);
/// Count of bells of Linux that were heard.
static BELLS: AtomicU32 = AtomicU32::new(0);
/// The tick at which the first cycles are released; 0 while the guest waits.
static RUN_AT: AtomicU32 = AtomicU32::new(0);
static IS_STOPPING: AtomicBool = AtomicBool::new(false);
static LINUX_SILENT_MS: AtomicU32 = AtomicU32::new(0);
/// The first fault of a node.
static FAILED: Once<GuestFault> = Once::new();

// Every atomic below is relaxed: all code that uses them runs on one core, which sees its own
// writes in order.

/// Makes the agent's task; the scheduler does not run yet.
pub(crate) fn begin(nodes: usize) {
    NODE_COUNT.store(nodes, Ordering::Relaxed);
    match kernel::spawn(task, "agent", STACK, core::ptr::null_mut(), kernel::PRIORITY_MAX) {
        Some(agent) => AGENT.set(agent),
        None => fault::out_of_memory(Some(STACK as usize)),
    };
}

/// The task of a node.
pub(crate) fn know(node: usize, task: Task) {
    NODES[node].set(task);
}

/// A bell rang. Called from its interrupt.
pub(crate) fn hear(bell: u32) {
    BELLS.fetch_add(1, Ordering::Relaxed);
    if let (0, Some(agent)) = (bell, AGENT.get()) {
        kernel::wake_from_interrupt(*agent);
    }
}

/// Blocks a node until Linux orders the nodes to run and the first cycle is released, or until the
/// guest stops. Returns the tick of that release, which is the same for all nodes.
pub(crate) fn wait_for_run() -> u32 {
    while !is_running() && !is_stopping() {
        kernel::wait(kernel::FOR_EVER);
    }
    let mut release = RUN_AT.load(Ordering::Relaxed).wrapping_sub(1);
    if is_running() {
        kernel::sleep_until(&mut release, 1);
    }
    release
}

/// Whether the nodes must do their last act.
pub(crate) fn is_stopping() -> bool {
    IS_STOPPING.load(Ordering::Relaxed)
}

/// Whether node `node` must do its last act, alone or with all.
pub(crate) fn is_to_stop(node: usize) -> bool {
    is_stopping() || TO_STOP.load(Ordering::Relaxed) & 1 << node != 0
}

/// Makes one node do its last act. The other nodes go on.
pub(crate) fn stop_node(node: usize) {
    TO_STOP.fetch_or(1 << node, Ordering::Relaxed);
    wake_nodes();
}

/// The state of a node: 0 it runs, 1 it must stop, 2 it has done its last act.
pub(crate) fn node_state(node: usize) -> u32 {
    match DONE.load(Ordering::Relaxed) & 1 << node {
        0 => u32::from(is_to_stop(node)),
        _ => 2,
    }
}

/// Count of nodes.
pub(crate) fn node_count() -> usize {
    NODE_COUNT.load(Ordering::Relaxed)
}

/// Count of bells that were heard, modulo 2^32.
pub(crate) fn bells_heard() -> u32 {
    BELLS.load(Ordering::Relaxed)
}

/// Time since Linux last showed that it is alive.
pub(crate) fn linux_silent_ms() -> u32 {
    LINUX_SILENT_MS.load(Ordering::Relaxed)
}

/// Records that a node has done its last act.
pub(crate) fn done(node: usize) {
    DONE.fetch_or(1 << node, Ordering::Relaxed);
    wake_agent();
}

/// The node of this task failed: the guest stops. Only the first fault counts.
pub(crate) fn failed(why: &Fault) {
    if !IS_STOPPING.swap(true, Ordering::Relaxed) {
        let mut record = GuestFault::new(FaultKind::Node, fault::name(kernel::running()));
        let _ = write!(record, "{why}");
        FAILED.set(record);
    }
    wake_agent();
}

fn wake_agent() {
    if let Some(agent) = AGENT.get() {
        kernel::wake(*agent);
    }
}

extern "C" fn task(_: *mut c_void) {
    let guest = guest::get().expect("the start sets it before tasks run");
    let mut linux = Linux { beats: guest.carve_out.beats_of_linux(), heard: kernel::ticks() };
    reach(guest, GuestState::Ready);
    say!("guest: ready");
    loop {
        let begun = kernel::ticks();
        beat(guest, &mut linux);
        serve::look();
        match guest.carve_out.ordered() {
            // Linux may have missed the bell: the emulator drops bells until it knows both sides.
            Order::Wait if !is_running() => board::ring(0),
            Order::Run if !is_running() && !is_stopping() => {
                // Two ticks ahead: the next tick may come before the nodes sleep.
                let release = kernel::ticks().wrapping_add(2);
                RUN_AT.store(release.max(1), Ordering::Relaxed);
                wake_nodes();
                reach(guest, GuestState::Running);
            }
            Order::Stop => IS_STOPPING.store(true, Ordering::Relaxed),
            Order::Wait | Order::Run => {}
        }
        if is_stopping() {
            end(guest, &mut linux);
        }
        kernel::wait(BEAT_MS);
        // However often Linux rings, the nodes get the core in between.
        if kernel::ticks() == begun {
            kernel::pause(1);
        }
    }
}

fn stuck(guest: &Guest, node: usize) -> ! {
    let name = guest.carve_out.node(node).map_or(fault::name("?"), |row| row.name);
    let mut record = GuestFault::new(FaultKind::Node, name);
    let _ = write!(record, "it did not end its cycle within {LAST_ACT_MS} ms");
    fault::end(&record)
}

/// When Linux last showed that it is alive.
struct Linux {
    beats: u32,
    heard: u32,
}

fn is_running() -> bool {
    RUN_AT.load(Ordering::Relaxed) != 0
}

fn reach(guest: &Guest, state: GuestState) {
    guest.carve_out.reached(state, guest.epoch);
    board::after_write(board::CARVE_OUT, sinew_carve_out::DATA);
    board::ring(0);
}

fn beat(guest: &Guest, linux: &mut Linux) {
    guest.carve_out.beat_of_guest(kernel::TICK_HZ);
    board::before_read(board::CARVE_OUT, HEAD);
    let (beats, now) = (guest.carve_out.beats_of_linux(), kernel::ticks());
    if beats != linux.beats {
        *linux = Linux { beats, heard: now };
    }
    LINUX_SILENT_MS.store(now.wrapping_sub(linux.heard), Ordering::Relaxed);
}

fn wake_nodes() {
    NODES.iter().filter_map(Once::get).for_each(|node| kernel::wake(*node));
}

/// The first node that has not done its last act.
fn busy() -> Option<usize> {
    let done = DONE.load(Ordering::Relaxed);
    (0..NODE_COUNT.load(Ordering::Relaxed)).find(|node| done & 1 << node == 0)
}

/// Makes all nodes do their last act, then ends the guest.
fn end(guest: &Guest, linux: &mut Linux) -> ! {
    let since = kernel::ticks();
    while busy().is_some() && kernel::ticks().wrapping_sub(since) < LAST_ACT_MS {
        // Repeatedly, as a node may just be about to sleep.
        wake_nodes();
        beat(guest, linux);
        kernel::wait(BEAT_MS);
    }
    if let Some(record) = FAILED.get() {
        fault::end(record);
    }
    if let Some(node) = busy() {
        stuck(guest, node);
    }
    reach(guest, GuestState::Stopped);
    // Relaxed: counters.
    let (reads, writes) =
        (board::READS.load(Ordering::Relaxed), board::WRITES.load(Ordering::Relaxed));
    say!("guest: stopped; links put in step {reads} times before a read, {writes} after a write");
    board::power_off()
}
