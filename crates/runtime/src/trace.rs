//! What a cycle leaves behind: one record each, written into a broadcast that never makes the cycle
//! wait, read outside the core by whoever makes the report, the view or the CSV of it.

use std::io;

use sinew_link::broadcast::{self, Start};
use sinew_link::{RegionError, Shape, create};
use zerocopy::IntoBytes;

use crate::launch::Pace;
use crate::sys::Region;

const NUMBER: usize = 0;
const RELEASE: usize = 1;
const START: usize = 2;
const TICKS: usize = 3;
const FLAGS: usize = 4;
const SKIPPED: usize = 5;
const LOST: usize = 6;
const DROPPED: usize = 7;
const NODES: usize = 8;

const FLAG_FEEDBACK_MISSING: u64 = 1;
const FLAG_OVERRUN: u64 = 2;
const FLAG_STOPPING: u64 = 4;
const FLAG_NO_INPUT: u64 = 8;

/// Set in a link's word of the record once the service at its other end has broken it.
const BROKEN: u64 = 1 << 63;

/// The record of one cycle: eight words, then two for each node (its begin and its end, in
/// ticks of the counter), then one for each signal, then one for each end of a link to elsewhere.
#[derive(Clone, Debug)]
pub struct Record {
    words: Vec<u64>,
    nodes: usize,
    links: usize,
}

impl Record {
    /// A record for a thread of so many nodes with so many signals in all and so many ends of
    /// links.
    pub fn new(nodes: usize, signals: usize, links: usize) -> Record {
        Record { words: vec![0; NODES + 2 * nodes + signals + links], nodes, links }
    }

    /// Number of the cycle.
    pub fn number(&self) -> u64 {
        self.words[NUMBER]
    }

    /// Planned start, monotonic ns. Of an input-released thread: its actual start.
    pub fn release_ns(&self) -> u64 {
        self.words[RELEASE]
    }

    /// Actual start, monotonic ns.
    pub fn start_ns(&self) -> u64 {
        self.words[START]
    }

    /// From the first node's start until the last feedback is back, in ticks.
    pub fn latency_ticks(&self) -> u64 {
        self.words[TICKS]
    }

    /// Execution time of node `at`, in ticks.
    pub fn execution_ticks(&self, at: usize) -> u64 {
        let words = &self.words[NODES + 2 * at..][..2];
        words[1].saturating_sub(words[0])
    }

    /// Whole periods lost before this cycle.
    pub fn skipped(&self) -> u64 {
        self.words[SKIPPED]
    }

    /// Messages that this thread's links have lost on their way in, since the start.
    pub fn lost_total(&self) -> u64 {
        self.words[LOST]
    }

    /// Messages that this thread has dropped at full queues, since the start.
    pub fn dropped_total(&self) -> u64 {
        self.words[DROPPED]
    }

    /// Whether the cycle ended after its deadline.
    pub fn is_overrun(&self) -> bool {
        self.words[FLAGS] & FLAG_OVERRUN != 0
    }

    /// Whether feedback stayed away.
    pub fn is_feedback_missing(&self) -> bool {
        self.words[FLAGS] & FLAG_FEEDBACK_MISSING != 0
    }

    /// Whether the cycle failed, or the graph was stopping and ran with safe values: it is no cycle
    /// of the control loop.
    pub fn is_stopping(&self) -> bool {
        self.words[FLAGS] & FLAG_STOPPING != 0
    }

    /// Whether an input-released thread ran because its input stayed away.
    pub fn is_without_input(&self) -> bool {
        self.words[FLAGS] & FLAG_NO_INPUT != 0
    }

    /// The signals of all nodes, in the order of the nodes.
    pub fn signals(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        let signals = NODES + 2 * self.nodes..self.words.len() - self.links;
        self.words[signals].iter().map(|&bits| f64::from_bits(bits))
    }

    /// For each end of a link, in the order of `assemble::link_ends`: messages lost on their way in
    /// or dropped on their way out since the start, and whether a service has broken the link.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (u64, bool)> + '_ {
        let words = &self.words[self.words.len() - self.links..];
        words.iter().map(|word| (word & !BROKEN, word & BROKEN != 0))
    }

    #[inline]
    pub(crate) fn executed(&mut self, at: usize, begin_ticks: u64, end_ticks: u64) {
        let words = &mut self.words[NODES + 2 * at..][..2];
        (words[0], words[1]) = (begin_ticks, end_ticks);
    }

    #[inline]
    pub(crate) fn ended(&mut self, latency_ticks: u64) {
        self.words[TICKS] = latency_ticks;
    }

    #[inline]
    pub(crate) fn lost(&mut self, end: usize, count: u32) {
        self.words[LOST] += u64::from(count);
        *self.link(end) += u64::from(count);
    }

    #[inline]
    pub(crate) fn dropped(&mut self, end: usize) {
        self.words[DROPPED] += 1;
        *self.link(end) += 1;
    }

    /// From now on the link stands still.
    pub(crate) fn broken(&mut self, end: usize) {
        *self.link(end) |= BROKEN;
    }

    #[inline]
    fn link(&mut self, end: usize) -> &mut u64 {
        let first = self.words.len() - self.links;
        &mut self.words[first + end]
    }

    /// Forgets the times, for a cycle that failed and for what comes after.
    pub(crate) fn clear(&mut self) {
        self.words[TICKS] = 0;
        self.words[NODES..NODES + 2 * self.nodes].fill(0);
    }

    #[inline]
    pub(crate) fn head(&mut self, head: &Head, values: &[f64]) {
        self.words[NUMBER] = head.number;
        self.words[RELEASE] = head.release_ns;
        self.words[START] = head.start_ns;
        self.words[SKIPPED] = head.skipped;
        let flags = [
            (FLAG_FEEDBACK_MISSING, head.feedback_missing),
            (FLAG_OVERRUN, head.overrun),
            (FLAG_STOPPING, head.stopping),
            (FLAG_NO_INPUT, head.no_input),
        ];
        self.words[FLAGS] = flags.iter().filter(|flag| flag.1).map(|flag| flag.0).sum();
        let signals = NODES + 2 * self.nodes..self.words.len() - self.links;
        for (word, value) in self.words[signals].iter_mut().zip(values) {
            *word = value.to_bits();
        }
    }
}

/// What the thread, not the executor, knows of a cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) number: u64,
    pub(crate) release_ns: u64,
    pub(crate) start_ns: u64,
    pub(crate) skipped: u64,
    pub(crate) feedback_missing: bool,
    pub(crate) overrun: bool,
    pub(crate) stopping: bool,
    pub(crate) no_input: bool,
}

/// How much a trace holds: two seconds of cycles, within these limits. A reader that comes less
/// often loses cycles, and learns how many. The memory is locked, so many nodes mean fewer records.
const HELD_NS: u64 = 2_000_000_000;
const RECORDS_MIN: u64 = 256;
const RECORDS_MAX: u64 = 65_536;
const BYTES_MAX: u64 = 4 << 20;

/// Records of the stop, beside those of a free run: actuators may take two seconds to come to rest.
const STOP_RECORDS: u64 = 4096;

/// Tells a trace from other regions.
const TYPE_HASH: u32 = u32::from_le_bytes(*b"trac");

fn shape(record: &Record, period_ns: u64, pace: Pace) -> Shape {
    let size = record.words.len() as u64 * 8;
    let records = match pace {
        Pace::AsPlanned => {
            let fitting = (BYTES_MAX / size).clamp(RECORDS_MIN, RECORDS_MAX);
            let records = (HELD_NS / period_ns.max(1)).clamp(RECORDS_MIN, fitting);
            // The power of two below what fits, so that it does fit.
            1 << records.ilog2()
        }
        Pace::Free { cycles } => {
            let records = cycles.min(Pace::FREE_CYCLES_MAX) + STOP_RECORDS;
            records.next_power_of_two() as u32
        }
    };
    Shape::broadcast(size as u32, TYPE_HASH, records)
}

/// Makes the region of a trace and reads it from its beginning.
///
/// # Errors
/// What the kernel says to a region of that size.
pub fn open(record: &Record, period_ns: u64, pace: Pace) -> io::Result<(Region, Reader)> {
    let shape = shape(record, period_ns, pace);
    let region = Region::shared("sinew-trace", shape.region_len())?;
    create(&region, &shape).map_err(|error| io::Error::other(error.to_string()))?;
    let reader = broadcast::Reader::attach(region.clone(), &shape, Start::Oldest);
    let reader = reader.map_err(|error| io::Error::other(error.to_string()))?;
    Ok((region, Reader { reader, record: record.clone(), lost: 0 }))
}

/// The executor's end.
pub struct Writer(broadcast::Writer<Region>);

impl Writer {
    /// Attaches to what [`open`] made for the same thread.
    ///
    /// # Errors
    /// If it was made for another one.
    pub fn attach(
        region: Region,
        like: &Record,
        period_ns: u64,
        pace: Pace,
    ) -> Result<Writer, RegionError> {
        broadcast::Writer::attach(region, &shape(like, period_ns, pace)).map(Writer)
    }

    /// Leaves a record; never waits.
    #[inline]
    pub fn write(&mut self, record: &Record) {
        self.0.send(record.words.as_bytes());
    }
}

/// The end of whoever observes.
pub struct Reader {
    reader: broadcast::Reader<Region>,
    record: Record,
    lost: u64,
}

impl Reader {
    /// The next record, if there is one.
    pub fn read(&mut self) -> Option<&Record> {
        // A domain that overwrites its trace with nonsense only spoils its own figures.
        let received = self.reader.receive(self.record.words.as_mut_bytes()).ok()??;
        self.lost += u64::from(received.lost);
        Some(&self.record)
    }

    /// Records that were overwritten before this reader came to them.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const PERIOD_NS: u64 = 10_000_000;

    #[test]
    fn a_reader_that_comes_late_learns_how_much_it_lost() {
        let mut record = Record::new(2, 3, 1);
        let (region, mut reader) = open(&record, PERIOD_NS, Pace::AsPlanned).expect("memfd");
        let mut writer =
            Writer::attach(region, &record, PERIOD_NS, Pace::AsPlanned).expect("the same shape");
        for number in 0..1000 {
            record.head(&Head { number, ..Head::default() }, &[number as f64; 3]);
            writer.write(&record);
        }
        let (mut numbers, mut seen) = (Vec::new(), 0);
        while let Some(record) = reader.read() {
            assert!(record.signals().all(|signal| signal == record.number() as f64));
            numbers.push(record.number());
            seen += 1;
        }
        assert_eq!((seen, reader.lost()), (RECORDS_MIN, 1000 - RECORDS_MIN));
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1) && numbers.ends_with(&[999]));
    }

    #[test]
    fn a_trace_full_of_garbage_is_only_garbage() {
        for value in [1, 2, u32::MAX / 2, u32::MAX] {
            let record = Record::new(1, 1, 0);
            let (region, mut reader) = open(&record, PERIOD_NS, Pace::AsPlanned).expect("memfd");
            for word in region.words() {
                word.store(value, Ordering::Relaxed);
            }
            for _ in 0..10_000 {
                if let Some(record) = reader.read() {
                    let _ = (record.execution_ticks(0), record.signals().count());
                }
            }
        }
    }
}
