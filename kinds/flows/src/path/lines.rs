//! Lines of packets by key, over all workers. A limited number of packets of a key are inside; the
//! others wait in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The lines of a node. A key takes memory only while a packet with it is here.
#[derive(Default)]
pub(crate) struct Lines(Mutex<State>);

#[derive(Default)]
struct State {
    lines: HashMap<Arc<str>, Line>,
    /// Packets that wait in all lines.
    waiting: usize,
    /// The number of the next packet.
    next: u64,
}

#[derive(Default)]
struct Line {
    inside: usize,
    /// Sorted by their numbers, which rise.
    waiting: VecDeque<(u64, oneshot::Sender<()>)>,
}

/// A packet's place, in line or inside. The packet leaves it when this is dropped.
pub(crate) struct InLine {
    lines: Arc<Lines>,
    key: Arc<str>,
    number: u64,
    /// Gets the signal that the packet is inside. It exists as long as the place, so the signal is
    /// never sent to a packet that is gone.
    turn: Option<oneshot::Receiver<()>>,
}

impl Lines {
    /// Goes inside if fewer than `inside_max` packets of this key are inside and none wait.
    /// Otherwise waits in line; `None` if `waiting_max` packets wait already.
    pub(crate) fn enter(
        self: &Arc<Lines>,
        key: &str,
        inside_max: usize,
        waiting_max: usize,
    ) -> Option<InLine> {
        let mut state = self.lock();
        let State { lines, waiting, next } = &mut *state;
        let known = lines.get_key_value(key).map(|(key, _)| Arc::clone(key));
        let key = known.unwrap_or_else(|| key.into());
        let line = lines.entry(Arc::clone(&key)).or_default();
        *next += 1;
        let turn = if line.inside < inside_max && line.waiting.is_empty() {
            line.inside += 1;
            None
        } else if *waiting < waiting_max {
            let (sender, turn) = oneshot::channel();
            line.waiting.push_back((*next, sender));
            *waiting += 1;
            Some(turn)
        } else {
            return None;
        };
        Some(InLine { lines: Arc::clone(self), key, number: *next, turn })
    }

    /// A poisoned lock is still good: a panic under it leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let state = self.lock();
        state.lines.is_empty() && state.waiting == 0
    }
}

impl InLine {
    /// Waits until it is inside.
    pub(crate) async fn wait(&mut self) {
        if let Some(turn) = &mut self.turn {
            // The sender stays in the line until it sends the signal, so this cannot fail.
            let _ = turn.await;
            self.turn = None;
        }
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut state = self.lines.lock();
        let State { lines, waiting, .. } = &mut *state;
        let Some(line) = lines.get_mut(&self.key) else { return };
        if let Ok(at) = line.waiting.binary_search_by_key(&self.number, |(number, _)| *number) {
            line.waiting.remove(at);
            *waiting -= 1;
        } else if let Some((_, next)) = line.waiting.pop_front() {
            *waiting -= 1;
            // The next packet takes the place over, and frees it when it leaves.
            let _ = next.send(());
        } else {
            line.inside -= 1;
            if line.inside == 0 {
                lines.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
