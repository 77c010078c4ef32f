//! What a drill keeps of a run: the cycles of every thread, and the machine in each.

use std::collections::BTreeMap;

use sinew_core::clock::Clock;
use sinew_core::trace::Record;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::Plan;

use super::machine::{Machine, Moment};

/// A cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleSeen {
    pub(super) number: u64,
    pub(super) release_ns: u64,
    pub(super) start_ns: u64,
    pub(super) latency_ns: u64,
    pub(super) skipped: u64,
    pub(super) overrun: bool,
    /// The cycle failed, or the domain was stopping.
    pub(super) stopping: bool,
    /// Messages from services that were lost so far.
    pub(super) lost: u64,
    /// Whether a service has broken a link.
    pub(super) broken: bool,
}

/// The recording.
pub(super) struct Recording {
    clock: Clock,
    pub(super) threads: BTreeMap<ThreadId, Vec<CycleSeen>>,
    pub(super) machines: Vec<(Machine, Vec<Moment>)>,
}

impl Recording {
    pub(super) fn new(plan: &Plan, clock: Clock) -> Recording {
        let machines = Machine::all(plan).into_iter().map(|machine| (machine, vec![])).collect();
        Recording { clock, threads: BTreeMap::new(), machines }
    }

    pub(super) fn take(&mut self, id: ThreadId, record: &Record) {
        let seen = CycleSeen {
            number: record.number(),
            release_ns: record.release_ns(),
            start_ns: record.start_ns(),
            latency_ns: self.clock.ns(record.latency_ticks()),
            skipped: record.skipped(),
            overrun: record.is_overrun(),
            stopping: record.is_stopping(),
            lost: record.links().map(|(lost, _)| lost).sum(),
            broken: record.links().any(|(_, broken)| broken),
        };
        self.threads.entry(id).or_default().push(seen);
        for (machine, moments) in self.machines.iter_mut().filter(|(it, _)| it.thread == id) {
            moments.push(machine.moment(record));
        }
    }

    /// The cycles of a thread.
    pub(super) fn cycles(&self, id: ThreadId) -> &[CycleSeen] {
        self.threads.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The start of cycle `number` of a thread. If the cycle left no record, the time when it was
    /// due.
    pub(super) fn start_ns(&self, id: ThreadId, number: u64, period_ns: u64) -> Option<u64> {
        let cycles = self.cycles(id);
        if let Some(seen) = cycles.iter().find(|seen| seen.number == number) {
            return Some(seen.start_ns);
        }
        let last = cycles.iter().rfind(|seen| seen.number < number)?;
        Some(last.release_ns + (number - last.number) * period_ns)
    }
}
