//! Replay: runs a thread of the core again, on what came in according to a recording.
//!
//! The same nodes in the same executor, with its guards and delayed links; only the ends of links
//! to elsewhere differ: reading ends give what was recorded, writing ends lead nowhere. No clock,
//! no process, no privilege is needed, so a cycle takes as long as its nodes do.

mod compare;
mod ends;
#[cfg(test)]
mod tests;

use std::path::Path;

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::Plan;

pub use self::compare::{Difference, Number, Site, numbers};
use self::ends::{Ends, Recorded};
use crate::board::FaultAt;
use crate::clock::Clock;
use crate::cycle::assemble::Assembly;
use crate::cycle::executor::Executor;
use crate::cycle::taps::Taps;
use crate::fault::Fault;
use crate::node::{Cycle, NodeEntry};
use crate::panics;
use crate::trace::{Failed, Past, Record, Tap, ThreadId, linked_ports};

/// A realtime thread that is replayed.
pub struct Replayer {
    id: ThreadId,
    executor: Executor,
    taps: Vec<Tap>,
    recorded: Recorded,
    period_ns: u64,
    /// Number of the cycle that comes next.
    next: u64,
    fallen_back: bool,
    failed: Option<Failed>,
    fault: Option<Fault>,
    /// Whether the replay failed where the recorded thread went on.
    over: bool,
}

/// The recorded cycle is not the next one: the state that the nodes had then is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The cycle that comes next.
    pub expected: u64,
    /// The cycle that was given.
    pub found: u64,
}

impl Replayer {
    /// Makes and starts the nodes of a thread.
    ///
    /// # Errors
    /// A node fails in `make` or `start`.
    ///
    /// # Panics
    /// If the plan has no such thread, or was made from another table.
    pub fn new(
        plan: &Plan,
        table: &[NodeEntry],
        base: &Path,
        id: ThreadId,
        clock: Clock,
    ) -> Result<Replayer, FaultAt> {
        let domain = plan.domains[id.domain].realtime().expect("only realtime domains replay");
        let nodes = &domain.threads[id.thread].nodes;
        let taps = linked_ports(plan, nodes);
        let mut ends = Ends::new(plan, nodes, &taps);
        let assembly = Assembly { plan, table, base, clock, wrap: None };
        let made = panics::caught(|| assembly.thread_with(id.domain, id.thread, &mut ends));
        let at_start = |fault| Err(FaultAt { fault, node: None, cycle: None });
        let (mut executor, _) = made.unwrap_or_else(at_start)?;
        let slot = |tap: &Tap| {
            let step = executor.steps.iter().find(|step| step.index == tap.end.node);
            step.expect("a tap is a port of the thread").wiring.ports[tap.end.port]
        };
        executor.taps = Taps::new(taps.iter().map(slot));
        executor.record = Record::with_taps(plan, nodes, &taps);
        Ok(Replayer {
            id,
            executor,
            taps,
            recorded: ends.recorded(),
            period_ns: domain.period_ns,
            next: 0,
            fallen_back: false,
            failed: None,
            fault: None,
            over: false,
        })
    }

    /// The thread.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Which messages are in the records that it takes: those of every linked port of its nodes,
    /// whether the graph is observed or not.
    pub fn taps(&self) -> &[Tap] {
        &self.taps
    }

    /// An empty record of the form that it takes.
    pub fn record(&self) -> Record {
        let mut record = self.executor.record.clone();
        let (nodes, signals) = (record.nodes(), record.signals().len());
        let (execution_ticks, signals) = (vec![0; nodes], vec![0.0; signals]);
        record.restore(&Past { execution_ticks, signals, ..Past::default() });
        record
    }

    /// Number of the cycle that is to come next.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Carries out a recorded cycle once more.
    ///
    /// # Errors
    /// The cycle does not follow the last one.
    pub fn cycle(&mut self, past: &Record) -> Result<(), Gap> {
        if past.number() != self.next {
            return Err(Gap { expected: self.next, found: past.number() });
        }
        self.next += 1;
        if self.over {
            return Ok(());
        }
        if past.is_fallen_back() && !self.fallen_back {
            self.fall_back();
        }
        self.recorded.feed(past);
        let mut cycle = Cycle::new(past.number(), self.period_ns);
        (cycle.skipped, cycle.stopping) = (past.skipped(), past.is_told_to_stop());
        let executor = &mut self.executor;
        // Nothing is awaited: feedback that was in time is fed in the cycle that read it.
        let result = panics::caught(|| executor.cycle(&cycle, 0));
        self.fault = result.unwrap_or_else(Err).err();
        self.failed = self.fault.as_ref().map(|fault| self.executor.failed(fault.cause));
        if self.failed.is_some() {
            self.executor.tap(&cycle);
            self.fall_back();
            self.over = past.failed().is_none();
        }
        Ok(())
    }

    /// Keeps only the actuators, as a thread does when its domain has faulted.
    fn fall_back(&mut self) {
        // A node that panics as it stops does not change what the others do.
        let _ = self.executor.keep_actuators();
        self.fallen_back = true;
    }

    /// Where the last cycle failed, if it did.
    pub fn failed(&self) -> Option<Failed> {
        self.failed
    }

    /// Why it failed.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Whether it failed where the recorded thread went on, so that there is nothing to compare any
    /// more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether the last cycle did bit for bit what the recorded one did, where `known` says that
    /// there is something to compare with.
    pub fn is_same(&self, past: &Record, known: &Known) -> bool {
        let record = &self.executor.record;
        let mut written = self.written(known);
        let signals = || past.signals().zip(&self.executor.values).zip(&known.signals);
        self.failed == past.failed()
            && written.all(|(at, _)| past.message(at) == record.message(at))
            && signals().all(|((old, new), &known)| !known || old.to_bits() == new.to_bits())
    }

    /// All that differs, in the order of the nodes.
    pub fn differences(&self, plan: &Plan, past: &Record, known: &Known) -> Vec<Difference> {
        let mut differences = compare::failures(self.failed, past.failed());
        let nodes = &plan.domains[self.id.domain].threads()[self.id.thread].nodes;
        let mut signals = past.signals().zip(&self.executor.values).zip(&known.signals);
        for (place, &node) in nodes.iter().enumerate() {
            for (at, tap) in self.written(known).filter(|(_, tap)| tap.end.node == node) {
                let (old, new) = (past.message(at), self.executor.record.message(at));
                compare::messages(plan, place, tap.end, old, new, &mut differences);
            }
            for (signal, row) in plan.nodes[node].kind.signals.iter().enumerate() {
                for at in 0..row.count {
                    let ((old, &new), &known) = signals.next().expect("as many as the plan says");
                    if known && old.to_bits() != new.to_bits() {
                        let site = Site::Signal { node, signal, at };
                        let (old, new) = (Number::Double(old), Number::Double(new));
                        differences.push(Difference {
                            place,
                            site,
                            old: Some(old),
                            new: Some(new),
                        });
                    }
                }
            }
        }
        differences.sort_by_key(|difference| difference.place);
        differences
    }

    /// The taps of what nodes wrote that are in the recording.
    fn written<'a>(&'a self, known: &'a Known) -> impl Iterator<Item = (usize, &'a Tap)> {
        let taps = self.taps.iter().enumerate();
        taps.filter(|(at, tap)| tap.direction == Direction::Out && known.taps[*at])
    }
}

/// Which taps and signals of a thread are in the recording: all of them, if it is of this graph.
#[derive(Clone, Debug)]
pub struct Known {
    /// One for each of [`Replayer::taps`].
    pub taps: Vec<bool>,
    /// One for each number of [`Record::signals`].
    pub signals: Vec<bool>,
}
