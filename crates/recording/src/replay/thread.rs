//! A recorded thread: its messages are put together to cycles, and each cycle is replayed.

use sinew_core::catalogue::Direction;
use sinew_core::clock::Clock;
use sinew_core::replay::{Known, Replayer};
use sinew_core::trace::ThreadId;
use sinew_core::trace::{Record, Tap, taps};
use sinew_runtime::Kinds;
use sinew_spec::plan::Plan;

use super::ends::Seen;
use super::graphs::Graphs;
use super::tally::{Inputs, Tally};
use crate::cycle::{CycleLayout, RecordedCycle};
use crate::topics::TopicContent;

/// A recorded thread.
pub struct RecordedThread {
    /// Its id in the recorded plan.
    pub id: ThreadId,
    /// `<domain>/<thread>`.
    pub(super) name: String,
    pub(super) layout: CycleLayout,
    pub(super) taps: Vec<Tap>,
    pub(super) tally: Tally,
    /// The cycles of this life of the core that are in the recording.
    pub(super) seen: Option<Seen>,
    gathered: Gathered,
    /// `None` if this life of the core is not replayed further.
    replay: Option<Replay>,
    /// Why it is not replayed further.
    pub(super) ended: Option<String>,
}

/// The part of a cycle that was read so far.
struct Gathered {
    /// Low half of its number. `None` before the first message.
    sequence: Option<u32>,
    cycle: Option<RecordedCycle>,
    /// For each tap whether there is a message, and its bytes.
    messages: Vec<(bool, Vec<u8>)>,
}

/// A thread of the replayed plan, and how its parts correspond to the recording.
struct Replay {
    replayer: Replayer,
    known: Known,
    /// For each tap the recorded one, if there is one.
    taps: Vec<Option<usize>>,
    /// For each number of the signals the recorded one, if there is one.
    signals: Vec<Option<usize>>,
    past: Record,
}

impl RecordedThread {
    pub(super) fn new(plan: &Plan, id: ThreadId) -> RecordedThread {
        let domain = &plan.domains[id.domain];
        let taps = taps(plan, id.nodes(plan));
        let messages = taps.iter().map(|tap| (false, vec![0; tap.size as usize])).collect();
        RecordedThread {
            id,
            name: format!("{}/{}", domain.name, id.thread),
            layout: CycleLayout::of(plan, id),
            taps,
            tally: Tally::default(),
            seen: None,
            gathered: Gathered { sequence: None, cycle: None, messages },
            replay: None,
            ended: None,
        }
    }

    /// Starts the nodes again, as the core did. Parts without a counterpart in the other plan are
    /// added to `notes`.
    ///
    /// # Errors
    /// The error of a node when it is made.
    pub(super) fn begin_life(
        &mut self,
        graphs: &Graphs,
        table: &Kinds,
        notes: &mut Vec<String>,
    ) -> Result<(), String> {
        (self.replay, self.ended, self.seen) = (None, None, None);
        let Some(id) = counterpart(graphs, self.id) else {
            notes.push(format!("thread {} is not in this graph any more", self.name));
            return Ok(());
        };
        let made =
            Replayer::new(&graphs.now, &table.nodes, &graphs.base, id, Clock::from_rate(1.0));
        let replayer = made.map_err(|at| match at.node {
            Some(node) => format!("node '{}': {}", graphs.now.nodes[node].name, at.fault),
            None => format!("thread {}: {}", self.name, at.fault),
        })?;
        self.replay = Some(self.join(graphs, replayer, notes));
        Ok(())
    }

    /// Finds corresponding parts by the names of nodes, ports and signals.
    fn join(&self, graphs: &Graphs, replayer: Replayer, notes: &mut Vec<String>) -> Replay {
        let Graphs { recorded, now, .. } = graphs;
        let port = |plan: &Plan, tap: &Tap| {
            (
                plan.nodes[tap.end.node].name.clone(),
                plan.port(tap.end).name,
                tap.direction,
                tap.size,
            )
        };
        let old: Vec<_> = self.taps.iter().map(|tap| port(recorded, tap)).collect();
        let new: Vec<_> = replayer.taps().iter().map(|tap| port(now, tap)).collect();
        let gone = old.iter().filter(|tap| !new.contains(tap)).map(|tap| (tap, true));
        let added = new.iter().filter(|tap| !old.contains(tap)).map(|tap| (tap, false));
        for ((node, name, direction, _), is_gone) in gone.chain(added) {
            let what = match (is_gone, direction) {
                (true, Direction::In) => "was recorded and is not read any more",
                (true, Direction::Out) => "was recorded and has no counterpart",
                (false, Direction::In) => "was not recorded: nothing comes in",
                (false, Direction::Out) => "was not recorded: not compared",
            };
            notes.push(format!("'{node}.{name}' {what}"));
        }
        let taps: Vec<_> =
            new.iter().map(|tap| old.iter().position(|other| other == tap)).collect();
        let old = signals(recorded, self.id);
        let new = signals(now, replayer.id());
        let signals: Vec<_> =
            new.iter().map(|signal| old.iter().position(|other| other == signal)).collect();
        let known = Known {
            taps: taps.iter().map(Option::is_some).collect(),
            signals: signals.iter().map(Option::is_some).collect(),
        };
        let past = replayer.record();
        Replay { replayer, known, taps, signals, past }
    }

    /// Numbers of output ports and signals that are compared.
    pub(super) fn compared(&self, now: &Plan) -> (usize, usize) {
        let Some(Replay { replayer, known, .. }) = &self.replay else { return (0, 0) };
        let written = |(tap, known): &(&Tap, &bool)| **known && tap.direction == Direction::Out;
        let ports = replayer.taps().iter().zip(&known.taps).filter(written).count();
        let mut names = signals(now, replayer.id());
        names.retain(|(.., at)| *at == 0);
        (ports, names.len())
    }

    /// Takes a message of the cycle that is being put together.
    ///
    /// # Errors
    /// If the message is not what it should be.
    pub(super) fn take(
        &mut self,
        what: TopicContent,
        sequence: u32,
        data: &[u8],
    ) -> Result<(), String> {
        let gathered = &mut self.gathered;
        gathered.sequence = Some(sequence);
        match what {
            TopicContent::Cycle => {
                let cycle = self.layout.read(data);
                let cycle = cycle.ok_or_else(|| {
                    format!("a cycle of {} bytes is not one of thread {}", data.len(), self.name)
                })?;
                if cycle.past.number as u32 != sequence {
                    let number = cycle.past.number;
                    return Err(format!("cycle {number} has the sequence number {sequence}"));
                }
                gathered.cycle = Some(cycle);
            }
            TopicContent::Tap(at) => {
                let (is_there, message) = &mut gathered.messages[at];
                if data.len() != message.len() {
                    let (found, expected) = (data.len(), message.len());
                    return Err(format!("a message has {found} bytes, expected {expected}"));
                }
                *is_there = true;
                message.copy_from_slice(data);
            }
        }
        Ok(())
    }

    /// Whether a message with this number begins another cycle than the one that is being put
    /// together.
    pub(super) fn begins(&self, sequence: u32) -> bool {
        self.gathered.sequence.is_some_and(|gathered| gathered != sequence)
    }

    /// The corresponding thread in the replayed plan.
    pub(super) fn replayed(&self) -> Option<ThreadId> {
        self.replay.as_ref().map(|replay| replay.replayer.id())
    }

    /// Number of the next cycle.
    pub(super) fn next(&self) -> u64 {
        self.replay.as_ref().map_or(0, |replay| replay.replayer.next_number())
    }

    /// The cycle that was put together, if it is complete.
    pub(super) fn gathered(&self) -> Option<&RecordedCycle> {
        self.gathered.cycle.as_ref()
    }

    /// Notes the cycle that was put together.
    pub(super) fn see(&mut self) {
        let Some(RecordedCycle { past, .. }) = &self.gathered.cycle else { return };
        let first = self.seen.map_or(past.number, |seen| seen.first);
        let (last, start_ns, is_of_stop) = (past.number, past.start_ns, past.is_of_stop());
        self.seen = Some(Seen { first, last, start_ns, is_of_stop });
    }

    /// Drops the cycle that was put together.
    pub(super) fn forget(&mut self) {
        self.gathered.sequence = None;
        self.gathered.cycle = None;
        self.gathered.messages.iter_mut().for_each(|(is_there, _)| *is_there = false);
    }

    /// Replays the cycle that was put together, and compares.
    pub(super) fn carry_out(&mut self, now: &Plan) {
        let (Some(replay), Some(cycle)) = (&mut self.replay, &self.gathered.cycle) else { return };
        if self.ended.is_some() {
            return;
        }
        replay.restore(cycle, &self.gathered.messages);
        let Replay { replayer, known, past, .. } = replay;
        if let Err(gap) = replayer.cycle(past) {
            let (expected, found) = (gap.expected, gap.found);
            self.ended = Some(match found.checked_sub(expected + 1) {
                Some(_) => format!("cycles {expected} to {} are missing", found - 1),
                None if found > expected => format!("cycle {expected} is missing"),
                None => format!("cycle {found} comes again after cycle {}", expected - 1),
            });
            return;
        }
        self.tally.cycles += 1;
        if !replayer.is_same(past, known) {
            let differences = replayer.differences(now, past, known);
            let inputs = || Inputs::of(past, replayer.taps());
            self.tally.add(past.number(), differences, replayer.fault(), past.failed(), inputs);
        }
        if replayer.is_over() {
            let number = past.number();
            let fault = replayer.fault().map_or(String::new(), |fault| format!(": {fault}"));
            self.ended = Some(format!("it fails now in cycle {number}{fault}"));
        }
    }

    /// The record of the cycle that was put together, as the recorded plan has it.
    pub fn restore(&self, record: &mut Record) {
        let Some(cycle) = &self.gathered.cycle else { return };
        record.restore(&cycle.past);
        let messages = self.gathered.messages.iter().zip(&cycle.closed);
        for (at, ((is_there, message), closed)) in messages.enumerate() {
            record.restore_message(at, is_there.then_some(message.as_slice()), *closed);
        }
    }
}

impl Replay {
    /// Puts the recorded values into the replayed thread.
    fn restore(&mut self, cycle: &RecordedCycle, messages: &[(bool, Vec<u8>)]) {
        let old = &cycle.past.signals;
        let mut past = cycle.past.clone();
        past.signals = self.signals.iter().map(|at| at.map_or(0.0, |at| old[at])).collect();
        past.execution_ticks = vec![0; self.past.nodes()];
        self.past.restore(&past);
        for (at, recorded) in self.taps.iter().enumerate() {
            let Some(recorded) = *recorded else { continue };
            let (is_there, message) = &messages[recorded];
            let message = is_there.then_some(message.as_slice());
            self.past.restore_message(at, message, cycle.closed[recorded]);
        }
    }
}

/// The thread in the replayed plan that corresponds to a recorded one.
fn counterpart(graphs: &Graphs, id: ThreadId) -> Option<ThreadId> {
    let name = &graphs.recorded.domains[id.domain].name;
    let domain = graphs.now.domains.iter().position(|domain| domain.name == *name)?;
    graphs.now.domains[domain].threads().get(id.thread)?;
    Some(ThreadId { domain, thread: id.thread })
}

/// For each number in the records of a thread: its node, its signal, and its place in the signal.
fn signals(plan: &Plan, id: ThreadId) -> Vec<(&str, &'static str, usize)> {
    let nodes = id.nodes(plan).iter().map(|&node| &plan.nodes[node]);
    let rows = nodes.flat_map(|node| node.kind.signals.iter().map(move |row| (node, row)));
    let numbers = rows
        .flat_map(|(node, row)| (0..row.count).map(move |at| (node.name.as_str(), row.name, at)));
    numbers.collect()
}
