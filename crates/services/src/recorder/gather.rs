//! From the records of cycles to batches of messages, each cycle once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sinew_runtime::Watch;
use sinew_runtime::clock::Clock;
use sinew_runtime::run::ThreadId;
use sinew_runtime::trace::Record;

use super::chunk::{Chunk, Stamp};
use super::cycle::Layout;
use super::format::{CDR_HEAD, Gap};

/// A batch is handed over when it is so old: what a kill takes with it, if the recorder does not
/// come back within the two seconds that the core remembers.
const AGE_MAX: Duration = Duration::from_millis(500);
/// As above, when it has so many bytes: at 1 kHz more than comes in half a second.
const BYTES_MAX: usize = 1 << 20;

/// Why cycles are missing.
const AWAY: &str = "the recorder was away";
const LATE: &str = "the recorder was kept from reading for longer than the core remembers";

/// A cycle, by what tells it from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// How often the core had been started anew.
    pub(super) life: u32,
    /// Its number in that life.
    pub(super) number: u64,
    /// Its start, monotonic: it grows through all lives.
    pub(super) start_ns: u64,
}

/// Cycles of one thread in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u64,
    pub(super) cycles: u64,
}

/// Messages on their way to the disk.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) life: u32,
    pub(super) chunk: Chunk,
    /// Cycles that are missing, before those of this batch.
    pub(super) gaps: Vec<Gap>,
    /// By thread.
    pub(super) spans: BTreeMap<usize, Span>,
}

impl Batch {
    /// The gaps that are there without this batch.
    pub(super) fn missing(self, names: &[(String, usize)], reason: &str) -> Vec<Gap> {
        let mut gaps = self.gaps;
        for (thread, Span { first, cycles }) in self.spans {
            let (domain, thread) = names[thread].clone();
            gaps.push(Gap { domain, thread, first, cycles, reason: reason.into() });
        }
        gaps
    }
}

/// A realtime thread.
struct Thread {
    id: ThreadId,
    domain: String,
    layout: Layout,
    /// Number of its first tap's topic; that of its cycles comes after the taps.
    topic: u16,
    taps: u16,
    /// The newest cycle that was taken.
    last: Option<Mark>,
    /// Whether that was in this life of the recorder.
    begun: bool,
}

/// Takes cycles.
pub(super) struct Gather {
    clock: Clock,
    /// What to add to a monotonic time to get nanoseconds since 1970.
    offset_ns: i64,
    threads: Vec<Thread>,
    /// By the core's life: of the next one too, while cycles of this one may still come.
    batches: BTreeMap<u32, (Instant, Batch)>,
    /// Oldest life of a cycle in this look.
    oldest: Option<u32>,
}

impl Gather {
    /// Begins after the cycles `last`, one for each thread in order.
    pub(super) fn new(watch: &Watch, offset_ns: i64, last: Vec<Option<Mark>>) -> Gather {
        let plan = watch.plan();
        let mut topic = 0;
        let thread = |(id, last): (ThreadId, Option<Mark>)| {
            let taps = u16::try_from(watch.taps(id).len()).expect("a graph has fewer ports");
            let domain = plan.domains[id.domain].name.clone();
            let layout = Layout::of(plan, id);
            let thread = Thread { id, domain, layout, topic, taps, last, begun: false };
            topic += taps + 1;
            thread
        };
        let threads = watch.threads().zip(last).map(thread).collect();
        let batches = BTreeMap::new();
        Gather { clock: watch.clock(), offset_ns, threads, batches, oldest: None }
    }

    /// Domain and place of each thread.
    pub(super) fn names(&self) -> Vec<(String, usize)> {
        self.threads.iter().map(|thread| (thread.domain.clone(), thread.id.thread)).collect()
    }

    /// Takes what the core has left behind since the last look; whether there was anything.
    pub(super) fn look(&mut self, watch: &mut Watch) -> bool {
        self.oldest = None;
        watch.read(&mut |id, record| self.take(id, record));
        self.oldest.is_some()
    }

    fn take(&mut self, id: ThreadId, record: &Record) {
        let at = self.threads.iter().position(|thread| thread.id == id);
        let at = at.expect("the threads are those of the watch");
        let thread = &mut self.threads[at];
        if thread.last.is_some_and(|last| record.start_ns() <= last.start_ns) {
            return;
        }
        let (mark, gap) = thread.mark(record);
        self.oldest = Some(self.oldest.map_or(mark.life, |oldest| oldest.min(mark.life)));
        let empty = || (Instant::now(), Batch { life: mark.life, ..Batch::default() });
        let (_, batch) = self.batches.entry(mark.life).or_insert_with(empty);
        batch.gaps.extend(gap);
        let span = batch.spans.entry(at).or_insert(Span { first: mark.number, cycles: 0 });
        span.cycles += 1;
        thread.write(record, self.clock, self.offset_ns, &mut batch.chunk);
    }

    /// The next batch that is large or old enough; with `all` any. Of an old life of the core all
    /// has come when a look has brought nothing of it: then its batch goes, and only then the next.
    pub(super) fn ready(&mut self, all: bool) -> Option<Batch> {
        let (&life, (since, batch)) = self.batches.iter().next()?;
        let is_turn = self.oldest.is_none_or(|oldest| oldest >= life);
        let is_over = self.batches.len() > 1 && self.oldest.is_none_or(|oldest| oldest > life);
        let is_due = batch.chunk.len() >= BYTES_MAX || since.elapsed() >= AGE_MAX;
        (all || is_turn && (is_over || is_due))
            .then(|| self.batches.remove(&life).expect("it is there").1)
    }

    /// Puts gaps before the next batch of a life.
    pub(super) fn missed(&mut self, life: u32, gaps: Vec<Gap>) {
        let empty = || (Instant::now(), Batch { life, ..Batch::default() });
        let (_, batch) = self.batches.entry(life).or_insert_with(empty);
        batch.gaps.splice(0..0, gaps);
    }
}

impl Thread {
    /// What tells this cycle from others, and the gap before it, if there is one.
    fn mark(&mut self, record: &Record) -> (Mark, Option<Gap>) {
        let (number, start_ns) = (record.number(), record.start_ns());
        let (life, next) = match self.last {
            None => (0, 0),
            // The core has been started anew.
            Some(last) if number <= last.number => (last.life + 1, 0),
            Some(last) => (last.life, last.number + 1),
        };
        let gap = (number > next).then(|| Gap {
            domain: self.domain.clone(),
            thread: self.id.thread,
            first: next,
            cycles: number - next,
            reason: if self.begun { LATE } else { AWAY }.into(),
        });
        let mark = Mark { life, number, start_ns };
        (self.last, self.begun) = (Some(mark), true);
        (mark, gap)
    }

    /// Adds the messages of a cycle.
    fn write(&self, record: &Record, clock: Clock, offset_ns: i64, chunk: &mut Chunk) {
        let mut stamp = Stamp {
            topic: self.topic + self.taps,
            sequence: record.number() as u32,
            start_ns: record.start_ns().wrapping_add_signed(offset_ns),
            release_ns: record.release_ns().wrapping_add_signed(offset_ns),
        };
        let mut cycle = Vec::new();
        self.layout.write(record, clock, &mut cycle);
        chunk.add(stamp, &[&cycle]);
        for (tap, message) in record.messages() {
            stamp.topic = self.topic + tap as u16;
            chunk.add(stamp, &[&CDR_HEAD, message]);
        }
    }
}
