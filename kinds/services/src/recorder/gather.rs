//! Turns the records of cycles into batches of messages, each cycle once.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use sinew_control::status::{Event, HostClock};
use sinew_core::clock::Clock;
use sinew_core::trace::{Record, ThreadId};
use sinew_recording::cycle::CycleLayout;
use sinew_recording::format::{CDR_HEAD, RecordedGap};
use sinew_recording::messages::{Messages, Stamp};
use sinew_recording::topics::{Topic, TopicContent, clock_topics, topics};
use sinew_recording::{clock, event};
use sinew_runtime::Watch;

/// Age at which a batch is handed over. This much is lost in a kill if the recorder is not back
/// within the two seconds that the core keeps.
const AGE_MAX: Duration = Duration::from_millis(500);
/// Size at which a batch is handed over: at 1 kHz more than arrives in half a second. Messages
/// after that in the same poll begin another batch, so that a reader never needs memory for two
/// seconds at once.
const BYTES_MAX: usize = 1 << 20;

/// Why cycles are missing.
const AWAY: &str = "the recorder was away";
const LATE: &str = "the recorder was kept from reading for longer than the core remembers";

/// Identifies a cycle of a thread; later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark {
    /// How often the core had been started again.
    pub(super) life: u32,
    /// Its number in that life.
    pub(super) number: u64,
}

/// Messages on their way to the disk.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) life: u32,
    pub(super) messages: Messages,
    /// Missing cycles before those of this batch.
    pub(super) gaps: Vec<RecordedGap>,
    /// The cycles in it, in the form of the gaps that they would leave.
    pub(super) cycles: Vec<RecordedGap>,
}

impl Batch {
    /// An empty batch that begins now.
    fn begin(life: u32) -> (Instant, Batch) {
        (Instant::now(), Batch { life, ..Batch::default() })
    }

    /// The gaps if this batch is not written.
    pub(super) fn missing(self, reason: &str) -> Vec<RecordedGap> {
        let Batch { mut gaps, cycles, .. } = self;
        for of_thread in cycles {
            join(&mut gaps, RecordedGap { reason: reason.into(), ..of_thread });
        }
        gaps
    }

    /// Number of cycles in it, of all threads.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles.iter().map(|of_thread| of_thread.cycles).sum()
    }
}

/// A realtime thread.
struct Thread {
    id: ThreadId,
    domain: String,
    layout: CycleLayout,
    /// Number of the topic of its first tap, and of the topic of its cycles.
    taps: u16,
    cycles: u16,
    /// The newest cycle that was taken.
    last: Option<Mark>,
    /// Whether `last` was taken in this life of the recorder.
    begun: bool,
}

/// Takes cycles.
pub(super) struct Gather {
    clock: Clock,
    /// What to add to a monotonic time to get nanoseconds since 1970.
    offset_ns: i64,
    threads: Vec<Thread>,
    /// The number of the first topic of the other hosts' clocks, and these topics with the number
    /// of rows that each has so far.
    clocks: (usize, Vec<(String, u32)>),
    /// Number of the topic of events.
    events: u16,
    /// Batches by life of the core: there may be some of the next life while cycles of this one
    /// still come. Messages are added to the last batch of each life.
    batches: BTreeMap<u32, VecDeque<(Instant, Batch)>>,
    /// Oldest life of a cycle in this poll.
    oldest: Option<u32>,
}

impl Gather {
    /// Begins after the cycles `last`, one for each thread in order.
    pub(super) fn new(watch: &Watch, offset_ns: i64, last: Vec<Option<Mark>>) -> Gather {
        let plan = watch.plan();
        let topics = topics(plan);
        let first = |is_it: &dyn Fn(&Topic) -> bool| {
            let at = topics.iter().position(is_it).expect("each thread has topics");
            u16::try_from(at).expect("a graph has fewer ports")
        };
        let thread = |(at, (id, last)): (usize, (ThreadId, Option<Mark>))| Thread {
            id,
            domain: plan.domains[id.domain].name.clone(),
            layout: CycleLayout::of(plan, id),
            taps: first(&|topic| topic.thread == at),
            cycles: first(&|topic| topic.thread == at && topic.what == TopicContent::Cycle),
            last,
            begun: false,
        };
        let threads = watch.threads().zip(last).enumerate().map(thread).collect();
        let of_others = clock_topics(plan).into_iter().map(|topic| (topic.name, 0)).collect();
        let clocks: (usize, Vec<_>) = (topics.len(), of_others);
        let events = (clocks.0 + clocks.1.len()) as u16;
        let (clock, batches) = (watch.clock(), BTreeMap::new());
        Gather { clock, offset_ns, threads, clocks, events, batches, oldest: None }
    }

    /// The life of the oldest waiting cycle.
    pub(super) fn life(&self) -> Option<u32> {
        self.batches.keys().next().copied()
    }

    /// Takes the records of the core since the last call; returns whether there were any.
    pub(super) fn look(&mut self, watch: &mut Watch) -> bool {
        self.oldest = None;
        watch.read(&mut |id, record| self.take(id, record));
        self.oldest.is_some()
    }

    fn take(&mut self, id: ThreadId, record: &Record) {
        let at = self.threads.iter().position(|thread| thread.id == id);
        let at = at.expect("the threads are those of the watch");
        let thread = &mut self.threads[at];
        let mark = Mark { life: record.life(), number: record.number() };
        // An earlier life of the recorder has taken this cycle already.
        if !thread.begun && thread.last.is_some_and(|last| mark <= last) {
            return;
        }
        let gap = thread.go_on(mark);
        self.oldest = Some(self.oldest.map_or(mark.life, |oldest| oldest.min(mark.life)));
        let batches = self.batches.entry(mark.life).or_default();
        if batches.back().is_none_or(|(_, batch)| batch.messages.len() >= BYTES_MAX) {
            batches.push_back(Batch::begin(mark.life));
        }
        let (_, batch) = batches.back_mut().expect("there is one");
        batch.gaps.extend(gap);
        join(&mut batch.cycles, thread.gap(mark.life, (mark.number, 1), ""));
        thread.write(record, self.clock, self.offset_ns, &mut batch.messages);
    }

    /// Adds an event to the waiting batches, in the newest life of the core.
    pub(super) fn note_event(&mut self, event: &Event) {
        let seen = self.threads.iter().filter_map(|thread| Some(thread.last?.life)).max();
        let life = self.batches.keys().copied().max().max(seen).unwrap_or(0);
        let batches = self.batches.entry(life).or_default();
        if batches.is_empty() {
            batches.push_back(Batch::begin(life));
        }
        let (_, batch) = batches.back_mut().expect("there is one");
        let seen_ns = event.time_ns.saturating_add_signed(self.offset_ns);
        let (start_ns, release_ns) = (seen_ns, seen_ns);
        let stamp =
            Stamp { topic: self.events, sequence: event.number as u32, start_ns, release_ns };
        batch.messages.add(stamp, &[&event::write(event, seen_ns)]);
    }

    /// Adds the state of another host's clock to the waiting batches, if there are any.
    pub(super) fn note_clock(&mut self, host: &str, clock: HostClock) {
        let (first, topics) = &mut self.clocks;
        let name = clock::topic(host);
        let Some(at) = topics.iter().position(|(topic, _)| *topic == name) else { return };
        let Some(mut newest) = self.batches.last_entry() else { return };
        let Some((_, batch)) = newest.get_mut().back_mut() else { return };
        let (_, sequence) = &mut topics[at];
        *sequence = sequence.wrapping_add(1);
        let seen_ns = clock.at_ns.saturating_add_signed(self.offset_ns);
        let topic = u16::try_from(*first + at).expect("a graph has fewer ports and hosts");
        let (start_ns, release_ns) = (seen_ns, seen_ns);
        let stamp = Stamp { topic, sequence: *sequence, start_ns, release_ns };
        batch.messages.add(stamp, &[&clock::write(clock)]);
    }

    /// The next batch that is large or old enough; with `all`, any batch. An old life of the core
    /// is complete when a poll has brought no cycle of it: its batches are returned then, before
    /// those of the next life.
    pub(super) fn ready(&mut self, all: bool) -> Option<Batch> {
        let has_next = self.batches.len() > 1;
        let mut first = self.batches.first_entry()?;
        let (life, (since, batch)) = (*first.key(), first.get().front().expect("never empty"));
        let is_turn = self.oldest.is_none_or(|oldest| oldest >= life);
        let is_over = self.oldest.is_none_or(|oldest| oldest > life);
        let is_due = batch.messages.len() >= BYTES_MAX || since.elapsed() >= AGE_MAX;
        if !(all || is_turn && (has_next && is_over || is_due)) {
            return None;
        }
        let (_, batch) = first.get_mut().pop_front()?;
        if first.get().is_empty() {
            first.remove();
        }
        Some(batch)
    }

    /// Puts gaps before the next batch of a life.
    pub(super) fn missed(&mut self, life: u32, gaps: Vec<RecordedGap>) {
        let batches = self.batches.entry(life).or_default();
        if batches.is_empty() {
            batches.push_back(Batch::begin(life));
        }
        batches[0].1.gaps.splice(0..0, gaps);
    }
}

impl Thread {
    /// Goes on to this cycle; returns the gap before it, if there is one.
    fn go_on(&mut self, mark: Mark) -> Option<RecordedGap> {
        let reason = if self.begun { LATE } else { AWAY };
        let gap = skipped(self.last, mark).map(|cycles| self.gap(mark.life, cycles, reason));
        (self.last, self.begun) = (Some(mark), true);
        gap
    }

    fn gap(&self, life: u32, (first, cycles): (u64, u64), reason: &str) -> RecordedGap {
        let (domain, thread) = (self.domain.clone(), self.id.thread);
        RecordedGap { life, domain, thread, first, cycles, reason: reason.into() }
    }

    /// Adds the messages of a cycle.
    fn write(&self, record: &Record, clock: Clock, offset_ns: i64, messages: &mut Messages) {
        let mut stamp = Stamp {
            topic: self.cycles,
            sequence: record.number() as u32,
            start_ns: record.start_ns().saturating_add_signed(offset_ns),
            release_ns: record.release_ns().saturating_add_signed(offset_ns),
        };
        let mut cycle = Vec::new();
        self.layout.write(record, clock, &mut cycle);
        messages.add(stamp, &[&cycle]);
        for (tap, message) in record.messages() {
            stamp.topic = self.taps + tap as u16;
            messages.add(stamp, &[&CDR_HEAD, message]);
        }
    }
}

/// Adds a gap; one that continues the last gap of its thread is joined to it.
pub(super) fn join(gaps: &mut Vec<RecordedGap>, gap: RecordedGap) {
    let is_of = |it: &&mut RecordedGap| {
        (it.life, it.thread) == (gap.life, gap.thread) && it.domain == gap.domain
    };
    match gaps.iter_mut().rfind(is_of) {
        Some(last) if last.first + last.cycles == gap.first && last.reason == gap.reason => {
            last.cycles += gap.cycles;
        }
        _ => gaps.push(gap),
    }
}

/// The first missing cycle between the last one that was taken and this one, and the number of
/// missing cycles. How many an earlier life had at its end is not known.
fn skipped(last: Option<Mark>, Mark { life, number }: Mark) -> Option<(u64, u64)> {
    let first = match last {
        Some(last) if last.life == life => last.number + 1,
        _ => 0,
    };
    (number > first).then(|| (first, number - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_life_of_the_core_is_no_gap_of_the_old_one() {
        let mark = |life, number| Mark { life, number };
        for (last, mark, expected) in [
            (None, mark(0, 0), None),
            (None, mark(0, 3), Some((0, 3))),
            (Some(mark(0, 99)), mark(0, 100), None),
            (Some(mark(0, 99)), mark(0, 105), Some((100, 5))),
            (Some(mark(0, 99)), mark(1, 0), None),
            // A higher number than the last one of the old life: only the life tells them apart.
            (Some(mark(0, 99)), mark(1, 100), Some((0, 100))),
            (Some(mark(0, 99)), mark(3, 100), Some((0, 100))),
        ] {
            assert_eq!(skipped(last, mark), expected, "{last:?} {mark:?}");
        }
        assert!(mark(1, 0) > mark(0, 99));
    }

    #[test]
    fn a_batch_that_is_dropped_leaves_no_cycle_out_and_counts_none_twice() {
        let (_, mut batch) = Batch::begin(2);
        let gap = |first, cycles, reason: &str| RecordedGap {
            life: 2,
            domain: "control".into(),
            thread: 0,
            first,
            cycles,
            reason: reason.into(),
        };
        batch.gaps.push(gap(12, 3, "late"));
        for number in [10, 11, 15, 16, 17] {
            join(&mut batch.cycles, gap(number, 1, ""));
        }
        let missing = batch.missing("full");
        assert_eq!(missing, [gap(12, 3, "late"), gap(10, 2, "full"), gap(15, 3, "full")]);
        // The gaps wait before the next batch, which is dropped too.
        let (_, mut next) = Batch::begin(2);
        next.gaps = missing;
        (18..20).for_each(|number| join(&mut next.cycles, gap(number, 1, "")));
        assert_eq!(next.cycles(), 2);
        let missing = next.missing("full");
        assert_eq!(missing, [gap(12, 3, "late"), gap(10, 2, "full"), gap(15, 5, "full")]);
    }
}
