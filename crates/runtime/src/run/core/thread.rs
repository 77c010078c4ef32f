//! A thread of the core: its trace, when it last showed a sign of life, and what it did so far. A
//! thread may write anything, so nothing here relies on it being true.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use sinew_core::clock::{Clock, now_ns};
use sinew_core::pace::Pace;
use sinew_core::sys::Region;
use sinew_core::trace::{self, Record, Totals};

use super::lines::Lines;
use crate::run::doors::number;

pub(crate) struct Thread {
    trace: Region,
    /// The same for reading only: for services that observe.
    shown: OwnedFd,
    reader: trace::Reader,
    pub(super) lines: Lines,
    pub(crate) heard_ns: u64,
    pub(crate) counts: Counts,
    /// Records that were lost in the lives before.
    lost_before: u64,
}

/// What a thread did so far in this life of the core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) totals: Totals,
    latency_ticks_last: u64,
    latency_ticks_max: u64,
    /// For each end of a link: what was lost or dropped, and whether it is broken.
    pub(crate) links: Vec<(u64, bool)>,
    /// Start of the first cycle that failed or was of the stop.
    pub(crate) stopping_since_ns: Option<u64>,
    /// Place of the node that has failed, not one of its links.
    pub(crate) failed_place: Option<usize>,
    /// [`Record::safe_since_ns`] and [`Record::at_rest_since_ns`], in the last record.
    pub(crate) safe_since_ns: Option<u64>,
    pub(crate) at_rest_since_ns: Option<u64>,
}

impl Thread {
    /// With a trace for such records.
    pub(super) fn open(
        record: &Record,
        lines: Lines,
        period_ns: u64,
        pace: Pace,
    ) -> io::Result<Thread> {
        let (trace, reader) = trace::open(record, period_ns, pace)?;
        let shown = trace.read_only()?;
        let (heard_ns, counts, lost_before) = (u64::MAX, Counts::default(), 0);
        Ok(Thread { trace, shown, reader, lines, heard_ns, counts, lost_before })
    }

    /// A new life of the core leaves its records where the last one did.
    pub(super) fn begin_again(&mut self) {
        (self.heard_ns, self.counts) = (u64::MAX, Counts::default());
        self.lost_before = self.reader.lost();
    }

    /// The descriptor of its trace, to write to.
    pub(super) fn trace(&self) -> RawFd {
        number(&self.trace)
    }

    /// The descriptor of its trace, for reading only.
    pub(super) fn shown(&self) -> RawFd {
        self.shown.as_raw_fd()
    }

    /// One more descriptor of its trace, for reading only.
    pub(super) fn to_show(&self) -> io::Result<OwnedFd> {
        self.shown.try_clone()
    }

    pub(super) fn capacity(&self) -> u32 {
        self.reader.capacity()
    }

    /// Hands the new records to `each`. Of a running thread it takes no more than the trace holds:
    /// a thread that writes records faster than they are handled must not keep the parent from
    /// watching.
    pub(super) fn read(&mut self, running: bool, clock: Clock, each: &mut dyn FnMut(&Record)) {
        let most = if running { self.capacity() } else { u32::MAX };
        let mut end_ns = 0;
        for _ in 0..most {
            let Some(record) = self.reader.read() else { break };
            self.counts.add(record);
            end_ns = record.start_ns().saturating_add(clock.ns(record.latency_ticks()));
            each(record);
        }
        if self.heard_ns != u64::MAX {
            self.heard_ns = self.heard_ns.max(end_ns.min(now_ns()));
        }
    }

    /// Records that were overwritten before they were read, in this life.
    pub(crate) fn records_lost(&self) -> u64 {
        self.reader.lost().saturating_sub(self.lost_before)
    }

    /// The same in all lives.
    pub(crate) fn records_lost_ever(&self) -> u64 {
        self.reader.lost()
    }
}

impl Counts {
    fn add(&mut self, record: &Record) {
        self.totals = record.totals();
        self.safe_since_ns = record.safe_since_ns();
        self.at_rest_since_ns = record.at_rest_since_ns();
        if record.is_stopping() {
            self.stopping_since_ns.get_or_insert(record.start_ns());
            let failed = record.failed().filter(|failed| !failed.in_link);
            self.failed_place = self.failed_place.or(failed.and_then(|failed| failed.place));
            return;
        }
        self.latency_ticks_last = record.latency_ticks();
        self.latency_ticks_max = self.latency_ticks_max.max(record.latency_ticks());
        self.links.clear();
        self.links.extend(record.links());
    }

    /// Last and longest cycle latency, ns; none before the first cycle.
    pub(crate) fn latency_ns(&self, clock: Clock) -> (Option<u64>, Option<u64>) {
        let ns = |ticks| (self.totals.cycles > 0).then(|| clock.ns(ticks));
        (ns(self.latency_ticks_last), ns(self.latency_ticks_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinew_core::trace::CycleHead;

    fn thread(record: &Record) -> (Thread, trace::Writer) {
        let lines = Lines::open([].into_iter()).expect("memfd");
        let thread = Thread::open(record, lines, 100_000, Pace::AsPlanned).expect("memfd");
        let trace = thread.trace.clone();
        let writer = trace::Writer::attach(trace, record, 100_000, Pace::AsPlanned);
        (thread, writer.expect("the same shape"))
    }

    #[test]
    fn a_full_trace_is_read_to_its_end_at_once() {
        let record = Record::new(3, 0, 0, &[]);
        let (mut thread, mut writer) = thread(&record);
        let written = thread.capacity();
        assert!(written > 10_000, "a fast thread: its trace holds {written} records");
        (0..written).for_each(|_| writer.write(&record));
        let mut read = 0;
        thread.read(true, Clock::calibrate(), &mut |_| read += 1);
        assert_eq!((read, thread.records_lost()), (written, 0));
        assert!(thread.reader.read().is_none(), "what is left would add up");
    }

    #[test]
    fn what_a_thread_has_made_up_is_added_to_nothing() {
        let mut record = Record::new(3, 0, 0, &[]);
        let (mut thread, mut writer) = thread(&record);
        let (start_ns, number) = (u64::MAX, u64::MAX);
        record.head(
            &CycleHead { number, start_ns, skipped: u64::MAX, ..CycleHead::default() },
            &[0.0; 3],
        );
        record.ended(u64::MAX);
        thread.heard_ns = 1;
        (0..2).for_each(|_| writer.write(&record));
        thread.read(true, Clock::calibrate(), &mut |_| {});
        assert!((1..=now_ns()).contains(&thread.heard_ns), "it was heard in the future");
        assert_eq!(thread.counts.totals.skipped, u64::MAX);
        // Whatever a reader lost before belongs to another life.
        thread.lost_before = u64::MAX;
        assert_eq!(thread.records_lost(), 0);
    }
}
