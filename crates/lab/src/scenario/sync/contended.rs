//! A mutex that several threads compete for: each locks it again and again, writes the message that
//! it guards, and times every lock.

use std::sync::{Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use sinew_core::clock::Clock;
use sinew_figures::Distribution;

use super::case::SyncScheduling;
use crate::harness::{Cpus, Gone, stay_on};

/// What the mutex guards: a message of 256 B.
type Guarded = [u64; 32];

/// Time from the start of the threads until all begin: by then each is on its CPU.
const BEFORE: Duration = Duration::from_millis(5);

/// Times to lock, write and unlock, for all threads.
#[derive(Default)]
pub(super) struct Locks {
    /// The times of all locks.
    pub(super) all: Distribution,
    /// The times of those locks that found the mutex taken.
    pub(super) taken: Distribution,
}

/// Runs this many threads, every other one on the far CPU, for `share`. All end at the same time,
/// even if some never ran: at equal priority on one CPU the first thread may be the only one.
pub(super) fn contend(
    cpus: Cpus,
    threads: u32,
    scheduling: SyncScheduling,
    clock: Clock,
    share: Duration,
) -> Result<Locks, Gone> {
    let mutex = Mutex::new(Guarded::default());
    let now = clock.ticks();
    let from = now.wrapping_add(clock.ticks_of(BEFORE));
    let until = from.wrapping_add(clock.ticks_of(share));
    let run = |number: u32| {
        stay_on(if number.is_multiple_of(2) { cpus.near } else { cpus.far })?;
        scheduling.take()?;
        // The counter may have wrapped around, so only differences are compared, as signed numbers,
        // here and below.
        let early = (from.wrapping_sub(clock.ticks()) as i64).max(0);
        thread::sleep(Duration::from_nanos(clock.ns(early as u64)));
        Ok(locks(&mutex, clock, until))
    };
    let run = &run;
    let found: Vec<Result<Locks, Gone>> = thread::scope(|scope| {
        let start = |number| thread::Builder::new().spawn_scoped(scope, move || run(number));
        let started: Vec<_> = (0..threads).map(start).collect();
        let join = |thread: Result<thread::ScopedJoinHandle<'_, _>, _>| {
            let thread = thread.map_err(|error| Gone(format!("cannot start a thread: {error}")))?;
            thread.join().unwrap_or_else(|_| Err(Gone("a thread panicked".into())))
        };
        started.into_iter().map(join).collect()
    });
    let mut all = Locks::default();
    for locks in found {
        let locks = locks?;
        all.all.merge(&locks.all);
        all.taken.merge(&locks.taken);
    }
    Ok(all)
}

/// The locks of one thread until a time; at least one. Between two locks it records the time, which
/// takes about 50 ns.
fn locks(mutex: &Mutex<Guarded>, clock: Clock, until: u64) -> Locks {
    let mut locks = Locks::default();
    loop {
        let before = clock.ticks();
        let (mut held, was_taken) = match mutex.try_lock() {
            Ok(held) => (held, false),
            Err(TryLockError::WouldBlock) => {
                (mutex.lock().unwrap_or_else(PoisonError::into_inner), true)
            }
            Err(TryLockError::Poisoned(held)) => (held.into_inner(), false),
        };
        held.iter_mut().for_each(|word| *word += 1);
        drop(held);
        let now = clock.ticks();
        let ns = clock.ns(now.wrapping_sub(before));
        locks.all.add(ns);
        if was_taken {
            locks.taken.add(ns);
        }
        if (now.wrapping_sub(until) as i64) >= 0 {
            return locks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_locks_and_all_end_in_time() {
        let (cpus, clock) = (Cpus::of_this_process(), Clock::calibrate());
        for threads in [1, 8] {
            let (share, normal) = (Duration::from_millis(2), SyncScheduling::Normal);
            let locks = contend(cpus, threads, normal, clock, share).expect("they stay");
            assert!(locks.all.n() >= u64::from(threads) && locks.taken.n() <= locks.all.n());
            if threads == 1 {
                assert_eq!(locks.taken.n(), 0, "nobody else wants it");
            }
        }
    }
}
