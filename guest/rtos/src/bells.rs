//! Wakes the right task when a bell of the guest rings: the agent, or the nodes at the links of
//! that bell.

use core::sync::atomic::{AtomicU32, Ordering};

use sinew_carve_out::{BELLS_MAX, LinkRow, NODES_MAX};

use crate::kernel::Task;
use crate::once::Once;
use crate::{agent, kernel};

static NODES: [Once<Task>; NODES_MAX] = [const { Once::new() }; NODES_MAX];
/// For each bell a bit for each node that it wakes.
static SLEEPERS: [AtomicU32; BELLS_MAX] = [const { AtomicU32::new(0) }; BELLS_MAX];

// Every atomic below is relaxed: the start writes them, and tasks and interrupts run after it on
// the same core.

/// The task of a node, and all links: the node wakes with the bells of its own links. Must be
/// called by the start.
pub(crate) fn know(node: usize, task: Task, links: impl Iterator<Item = LinkRow>) {
    NODES[node].set(task);
    for link in links.filter(|link| link.node as usize == node) {
        if let Some(sleepers) = SLEEPERS.get(link.bell as usize) {
            sleepers.fetch_or(1 << node, Ordering::Relaxed);
        }
    }
}

/// A bell rang. Called from its interrupt.
pub(crate) fn hear(bell: u32) {
    if bell == 0 {
        return agent::hear(bell);
    }
    let sleepers = SLEEPERS.get(bell as usize).map_or(0, |it| it.load(Ordering::Relaxed));
    for (node, task) in NODES.iter().enumerate() {
        if let (Some(task), true) = (task.get(), sleepers & 1 << node != 0) {
            kernel::wake_from_interrupt(*task);
        }
    }
}
