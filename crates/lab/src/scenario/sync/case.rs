//! The rows: which operation, by how many threads, on which CPUs, with which scheduling.

use crate::report::{Axis, Row};
use crate::words::words;

words! {
    /// The operation that is measured.
    pub(super) enum SyncOperation {
        /// The loop of a batch with nothing in it: a part of every short operation.
        Nothing = "nothing",
        /// An atomic store, relaxed.
        StoreRelaxed = "store_relaxed",
        /// An atomic store with release.
        StoreRelease = "store_release",
        /// An atomic store in one order with all others (SeqCst).
        StoreSeqCst = "store_seq_cst",
        /// An atomic load, relaxed.
        LoadRelaxed = "load_relaxed",
        /// An atomic load with acquire.
        LoadAcquire = "load_acquire",
        /// An atomic addition.
        FetchAdd = "fetch_add",
        /// A mutex locked and unlocked.
        MutexLock = "mutex_lock",
        /// A wake of a futex on which nobody sleeps.
        FutexWakeNobody = "futex_wake_nobody",
        /// The CPU offered to others.
        Yield = "sched_yield",
        /// A sleeper on a condition variable woken.
        Condvar = "condvar",
        /// A sleeper on a futex woken.
        Futex = "futex",
        /// A sleeper on an eventfd woken.
        Eventfd = "eventfd",
        /// A sleeper on a POSIX semaphore woken.
        Semaphore = "semaphore",
        /// A parked thread unparked.
        Park = "park",
        /// A message handed over by mutex and condition variable.
        Message = "message",
    }
}

words! {
    /// How many CPUs the threads have.
    pub(super) enum CpuCount {
        /// All threads have one CPU.
        One = "one",
        /// Every other thread has the first CPU, the others the last one.
        Two = "two",
    }
}

words! {
    /// How the threads are scheduled.
    pub(super) enum SyncScheduling {
        /// SCHED_OTHER.
        Normal = "normal",
        /// SCHED_FIFO, all at one priority.
        Fifo = "fifo",
    }
}

words! {
    /// What the CPU of the sleeper does while it sleeps.
    pub(super) enum SleeperCpu {
        /// Nobody sleeps.
        None = "-",
        /// Nothing: the kernel may halt it.
        Idle = "idle",
        /// It never idles: a thread spins there and yields to all others, or the waker runs there.
        Busy = "busy",
    }
}

/// How many threads compete for one mutex.
const CONTENDERS: [&str; 3] = ["2", "4", "8"];

/// The axes of the rows.
pub(super) const AXES: &[Axis] = &[
    Axis { name: "operation", values: SyncOperation::WORDS },
    Axis { name: "threads", values: &["1", "2", "4", "8"] },
    Axis { name: "cpus", values: CpuCount::WORDS },
    Axis { name: "scheduling", values: SyncScheduling::WORDS },
    Axis { name: "target", values: SleeperCpu::WORDS },
];

/// The operations in which a thread sleeps and is woken.
pub(super) const WAKES: [SyncOperation; 5] = [
    SyncOperation::Condvar,
    SyncOperation::Futex,
    SyncOperation::Eventfd,
    SyncOperation::Semaphore,
    SyncOperation::Park,
];

/// Where a sleeper may be: on a CPU of its own that idles, on one that does not idle, or on the
/// waker's CPU.
pub(super) const SLEEPERS: [(CpuCount, SleeperCpu); 3] = [
    (CpuCount::Two, SleeperCpu::Idle),
    (CpuCount::Two, SleeperCpu::Busy),
    (CpuCount::One, SleeperCpu::Busy),
];

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SyncCase {
    pub(super) operation: SyncOperation,
    pub(super) threads: &'static str,
    pub(super) cpus: CpuCount,
    pub(super) scheduling: SyncScheduling,
    pub(super) target: SleeperCpu,
}

impl SyncCase {
    /// All cases. An operation that neither sleeps nor meets another thread has one CPU and one
    /// scheduling: nothing else can change it.
    pub(super) fn all() -> Vec<SyncCase> {
        use SyncOperation::{FutexWakeNobody, Message, MutexLock, Yield};
        let alone = SyncOperation::ALL.iter().take_while(|operation| **operation != Yield);
        let normal = SyncScheduling::Normal;
        let mut all: Vec<_> =
            alone.map(|&operation| SyncCase::new(operation, "1", CpuCount::One, normal)).collect();
        debug_assert_eq!(all.last().map(|case| case.operation), Some(FutexWakeNobody));
        for &scheduling in SyncScheduling::ALL {
            for threads in ["1", "2"] {
                all.push(SyncCase::new(Yield, threads, CpuCount::One, scheduling));
            }
        }
        for &scheduling in SyncScheduling::ALL {
            for &cpus in CpuCount::ALL {
                let contended = |threads| SyncCase::new(MutexLock, threads, cpus, scheduling);
                all.extend(CONTENDERS.map(contended));
            }
        }
        for operation in WAKES.into_iter().chain([Message]) {
            for &scheduling in SyncScheduling::ALL {
                let sleeper = |(cpus, target)| SyncCase {
                    target,
                    ..SyncCase::new(operation, "2", cpus, scheduling)
                };
                all.extend(SLEEPERS.map(sleeper));
            }
        }
        all
    }

    fn new(
        operation: SyncOperation,
        threads: &'static str,
        cpus: CpuCount,
        scheduling: SyncScheduling,
    ) -> SyncCase {
        SyncCase { operation, threads, cpus, scheduling, target: SleeperCpu::None }
    }

    /// Its row; nothing is measured yet.
    pub(super) fn row(self) -> Row {
        Row::of(&[
            ("operation", self.operation.word()),
            ("threads", self.threads),
            ("cpus", self.cpus.word()),
            ("scheduling", self.scheduling.word()),
            ("target", self.target.word()),
        ])
    }

    /// How many threads.
    pub(super) fn threads(self) -> u32 {
        self.threads.parse().expect("the axis holds numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_there_once_and_on_the_axes() {
        let rows: Vec<_> = SyncCase::all().into_iter().map(SyncCase::row).collect();
        let ids: std::collections::BTreeSet<_> = rows.iter().map(Row::id).collect();
        assert_eq!((rows.len(), ids.len()), (9 + 4 + 12 + 36, rows.len()));
        for (axis, value) in rows.iter().flat_map(|row| &row.axes) {
            let axis = AXES.iter().find(|known| known.name == axis).expect("an axis");
            assert!(axis.values.contains(&value.as_str()), "{value}");
        }
    }
}
