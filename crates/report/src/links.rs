//! How long messages take between nodes of the core, from the records of both threads: from the end
//! of the writer's update to the start of the reader's update that takes the message. All threads
//! and processes use the same timer counter in their records, so nothing is measured in the cycle.

use std::collections::{BTreeMap, VecDeque};

use sinew_core::clock::Clock;
use sinew_core::trace::{Record, ThreadId};
use sinew_figures::Distribution;
use sinew_spec::plan::{Delivery, Plan, Release};

/// Most ends of updates that are kept unmatched, for each side of a link. It is more than a trace
/// holds at once. Older ones are dropped.
const WAITING_MAX: usize = 1 << 16;

/// Where the message of a link is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// By a node's update, at its start: index of the node in its thread.
    ByNode(usize),
    /// By the thread, which waits for the message at the end of its cycle.
    AtEnd,
}

/// A link between nodes of the core.
#[derive(Debug)]
pub struct LinkStats {
    /// Index into [`Plan::links`].
    pub link: usize,
    /// Latencies in ns. A newer message hides an older one: a message that was never read has no
    /// latency.
    pub latency: Distribution,
    /// Whether messages may wait in a queue behind others, so that the message that is read is
    /// older than the newest. Then `latency` is that of the newest, and no bound is shown to be
    /// kept.
    pub may_lag: bool,
    writer: (ThreadId, usize),
    reader: (ThreadId, Taken),
    /// Ends of writes and starts of reads that are not matched yet, in steps of the counter.
    sent: VecDeque<u64>,
    taken: VecDeque<u64>,
}

/// All links between nodes of the core.
#[derive(Debug, Default)]
pub struct Links {
    /// In the order of the plan.
    pub rows: Vec<LinkStats>,
    /// The rows that a thread writes or reads.
    of_thread: BTreeMap<ThreadId, Vec<usize>>,
    /// The number of each thread's next cycle.
    next: BTreeMap<ThreadId, u64>,
}

impl Links {
    /// For this plan, without any cycle.
    pub fn new(plan: &Plan) -> Links {
        let mut links = Links::default();
        for link in 0..plan.links.len() {
            let Some(row) = LinkStats::new(plan, link) else { continue };
            for thread in [row.writer.0, row.reader.0] {
                let rows = links.of_thread.entry(thread).or_default();
                if rows.last() != Some(&links.rows.len()) {
                    rows.push(links.rows.len());
                }
            }
            links.rows.push(row);
        }
        links
    }

    /// The row of a link of the plan, if both its ends are in the core.
    pub fn of(&self, link: usize) -> Option<&LinkStats> {
        self.rows.iter().find(|row| row.link == link)
    }

    /// Takes the record of a cycle, which may contain anything.
    pub fn take(&mut self, id: ThreadId, record: &Record, clock: Clock) {
        let Some(rows) = self.of_thread.get(&id) else { return };
        let number = record.number();
        // Entries before and after a lost record do not belong together.
        let expected = self.next.insert(id, number.wrapping_add(1));
        let is_gap = expected.is_some_and(|expected| expected != number);
        for &row in rows {
            let row = &mut self.rows[row];
            if is_gap {
                row.sent.clear();
                row.taken.clear();
            }
            if !record.is_stopping() {
                row.take(id, record);
            }
            row.settle(clock);
        }
    }
}

impl LinkStats {
    fn new(plan: &Plan, link: usize) -> Option<LinkStats> {
        let planned = &plan.links[link];
        let place = |node: usize| {
            let row = &plan.nodes[node];
            let thread = ThreadId::of(row);
            let threads = plan.domains[row.domain].threads();
            let place = threads.get(row.thread)?.nodes.iter().position(|&it| it == node)?;
            Some((thread, place))
        };
        let (writer, (thread, place)) = (place(planned.from.node)?, place(planned.to.node)?);
        let released = plan.domains[thread.domain].threads()[thread.thread].release;
        let is_feedback = plan.is_feedback(planned);
        let is_queue = !planned.fused && planned.delivery != Delivery::Latest;
        Some(LinkStats {
            link,
            latency: Distribution::new(),
            may_lag: is_queue && !is_feedback && released != Release::Input(link),
            writer,
            reader: (thread, if is_feedback { Taken::AtEnd } else { Taken::ByNode(place) }),
            sent: VecDeque::new(),
            taken: VecDeque::new(),
        })
    }

    fn take(&mut self, id: ThreadId, record: &Record) {
        if self.writer.0 == id {
            push(&mut self.sent, record.node_ticks(self.writer.1).1);
        }
        if self.reader.0 != id {
            return;
        }
        match self.reader.1 {
            Taken::ByNode(place) if !record.is_without_input() => {
                push(&mut self.taken, record.node_ticks(place).0);
            }
            Taken::AtEnd if !record.is_feedback_missing() => {
                let end = record.node_ticks(0).0.saturating_add(record.latency_ticks());
                push(&mut self.taken, end);
            }
            _ => {}
        }
    }

    /// Matches the known ends of both sides. A read takes the newest message that was sent before
    /// it, if no read has taken that message yet. It is known to be the newest once a later message
    /// was seen.
    fn settle(&mut self, clock: Clock) {
        while let Some(&taken) = self.taken.front() {
            if self.sent.back().is_none_or(|&newest| newest <= taken) {
                return;
            }
            self.taken.pop_front();
            let before = self.sent.partition_point(|&sent| sent <= taken);
            if let Some(sent) = self.sent.drain(..before).next_back() {
                self.latency.add(clock.ns(taken.saturating_sub(sent)));
            }
        }
    }
}

fn push(waiting: &mut VecDeque<u64>, ticks: u64) {
    if waiting.len() == WAITING_MAX {
        waiting.pop_front();
    }
    waiting.push_back(ticks);
}

#[cfg(test)]
mod tests;
