//! Operations that are too short to be timed one by one, measured in batches.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::yield_now;
use std::time::Duration;

use rustix::thread::futex;
use sinew_core::clock::Clock;

use super::case::{SyncOperation, SyncScheduling};
use super::place::meet;
use crate::harness::{Cpus, Found, Gone, Life, batches, on_thread, on_threads};

/// The clock of the batches, and how long they are measured.
pub(super) struct Batches {
    pub(super) clock: Clock,
    pub(super) share: Duration,
}

impl Batches {
    /// The time of a thousand operations, in batches; no other thread takes part.
    pub(super) fn alone(
        &self,
        operation: SyncOperation,
        scheduling: SyncScheduling,
        cpu: u32,
    ) -> Result<Found, Gone> {
        on_thread(cpu, || {
            scheduling.take()?;
            self.time(operation)
        })
    }

    /// The time of a thousand yields next to another thread on the same CPU that yields as well,
    /// and how often that thread yielded for each of ours.
    pub(super) fn yields_beside(
        &self,
        scheduling: SyncScheduling,
        cpu: u32,
    ) -> Result<(Found, f64), Gone> {
        let (up, theirs) = (AtomicU32::new(0), AtomicU64::new(0));
        let near = |life: &Life| {
            scheduling.take()?;
            meet(&up, life)?;
            let ours = Cell::new(0_u64);
            // Relaxed, here and below: it only counts.
            let before = theirs.load(Ordering::Relaxed);
            let found = self.batches(|| {
                yield_now();
                ours.set(ours.get() + 1);
            });
            let turns = theirs.load(Ordering::Relaxed) - before;
            Ok((found, turns as f64 / ours.get() as f64))
        };
        // It yields at every turn, so the near side gets to its end.
        let far = |life: &Life| {
            scheduling.take()?;
            meet(&up, life)?;
            while !life.is_over() {
                yield_now();
                theirs.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        on_threads(Cpus { near: cpu, far: cpu }, near, far)
    }

    fn time(&self, operation: SyncOperation) -> Result<Found, Gone> {
        let word = AtomicU64::new(0);
        let futex = AtomicU32::new(0);
        let mutex = Mutex::new(0_u64);
        // The memory orders are what is measured; no other thread reads the words.
        let store = |order| move |word: &AtomicU64| black_box(word).store(1, order);
        let load = |order| move |word: &AtomicU64| _ = black_box(black_box(word).load(order));
        Ok(match operation {
            SyncOperation::Nothing => self.batches(|| _ = black_box(&word)),
            SyncOperation::StoreRelaxed => self.batches(|| store(Ordering::Relaxed)(&word)),
            SyncOperation::StoreRelease => self.batches(|| store(Ordering::Release)(&word)),
            SyncOperation::StoreSeqCst => self.batches(|| store(Ordering::SeqCst)(&word)),
            SyncOperation::LoadRelaxed => self.batches(|| load(Ordering::Relaxed)(&word)),
            SyncOperation::LoadAcquire => self.batches(|| load(Ordering::Acquire)(&word)),
            SyncOperation::FetchAdd => {
                self.batches(|| _ = black_box(black_box(&word).fetch_add(1, Ordering::Relaxed)))
            }
            SyncOperation::MutexLock => {
                self.batches(|| *mutex.lock().unwrap_or_else(PoisonError::into_inner) += 1)
            }
            SyncOperation::FutexWakeNobody => {
                let flags = futex::Flags::PRIVATE;
                futex::wake(&futex, flags, 1).map_err(|error| Gone(error.to_string()))?;
                self.batches(|| _ = black_box(futex::wake(&futex, flags, 1)))
            }
            SyncOperation::Yield => self.batches(yield_now),
            other => return Err(Gone(format!("'{}' is not a short operation", other.word()))),
        })
    }

    #[inline(always)]
    fn batches(&self, operation: impl Fn()) -> Found {
        batches(self.clock, self.share, operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_operation_takes_a_time_and_no_other_is_short() {
        let cpu = Cpus::of_this_process().near;
        let batches = Batches { clock: Clock::calibrate(), share: Duration::ZERO };
        let normal = SyncScheduling::Normal;
        for &operation in SyncOperation::ALL {
            let found = batches.alone(operation, normal, cpu);
            let is_short = operation as u32 <= SyncOperation::Yield as u32;
            assert_eq!(found.is_ok(), is_short, "{operation:?}");
            assert!(found.is_err() || found.is_ok_and(|found| found.median_ns > 0.0));
        }
        let (found, turns) = batches.yields_beside(normal, cpu).expect("both yield");
        assert!(found.median_ns > 0.0 && turns >= 0.0);
    }
}
