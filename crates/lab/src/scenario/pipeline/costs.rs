//! What the parts of handing something over cost here: the entries of the article's two tables of
//! costs, with the standard library's own mutex, condition variable and atomics.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{sleep, yield_now};
use std::time::Duration;

use sinew_core::clock::Clock;

use crate::harness::reference::Reference;
use crate::harness::{Cpus, Gone, on_thread, on_threads};

/// Batches of an operation that is too short to be timed alone; the median counts.
const BATCHES: usize = 9;
/// Operations of a batch.
const BATCH: u64 = 20_000;
/// How often a sleeper is woken.
const WAKES: usize = 200;
/// So long after it was woken a sleeper sleeps again, even on a busy machine.
const ASLEEP: Duration = Duration::from_micros(300);

/// Medians, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    /// To lock and unlock a mutex that nobody else wants.
    pub(super) lock_alone: f64,
    /// The same while another thread does it all the time.
    pub(super) lock_contended: f64,
    /// To notify a condition variable on which somebody sleeps.
    pub(super) notify: f64,
    /// From before the notification until the sleeper runs.
    pub(super) wake_up: f64,
    /// A message there, by mutex and condition variable: half a round trip.
    pub(super) message: f64,
    /// To store with release.
    pub(super) store: f64,
    /// To load with acquire.
    pub(super) load: f64,
    /// To yield with nobody to yield to.
    pub(super) yields: f64,
}

impl Costs {
    /// Measures all of them; takes some 300 ms.
    pub(super) fn measure(reference: &Reference) -> Result<Costs, Gone> {
        let Reference { cpus, clock, .. } = *reference;
        let word = AtomicU64::new(0);
        let mutex = Mutex::new(0_u64);
        let add = || *mutex.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let alone =
            |operation: &(dyn Fn() + Sync)| on_thread(cpus.near, || Ok(batches(clock, operation)));
        let (notify, wake_up) = wake_ups(cpus, clock)?;
        Ok(Costs {
            lock_alone: alone(&add)?,
            lock_contended: contended(cpus, clock)?,
            notify,
            wake_up,
            message: hand_over(cpus, clock)?,
            store: alone(&|| black_box(&word).store(1, Ordering::Release))?,
            load: alone(&|| _ = black_box(black_box(&word).load(Ordering::Acquire)))?,
            yields: alone(&yield_now)?,
        })
    }
}

/// Time of one operation.
fn batches(clock: Clock, operation: &dyn Fn()) -> f64 {
    let batch = |_| {
        let before = clock.ticks();
        (0..BATCH).for_each(|_| operation());
        clock.ns(clock.ticks().wrapping_sub(before)) as f64 / BATCH as f64
    };
    median((0..BATCHES).map(batch).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn contended(cpus: Cpus, clock: Clock) -> Result<f64, Gone> {
    let (mutex, ended) = (Mutex::new(0_u64), AtomicBool::new(false));
    let add = || *mutex.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let near = |_: &_| {
        let cost = batches(clock, &add);
        // Relaxed: it carries nothing but itself.
        ended.store(true, Ordering::Relaxed);
        Ok(cost)
    };
    let far = |_: &_| {
        while !ended.load(Ordering::Relaxed) {
            add();
        }
        Ok(())
    };
    on_threads(cpus, near, far)
}

/// A number behind a mutex, and a condition variable for whoever waits for it.
#[derive(Default)]
struct Bell {
    number: Mutex<usize>,
    changed: Condvar,
}

impl Bell {
    fn set(&self, number: usize) {
        *self.number.lock().unwrap_or_else(PoisonError::into_inner) = number;
    }

    fn await_number(&self, number: usize) {
        let held = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.changed.wait_while(held, |found| *found < number);
        drop(held.unwrap_or_else(PoisonError::into_inner));
    }
}

/// To notify, and until the sleeper runs.
fn wake_ups(cpus: Cpus, clock: Clock) -> Result<(f64, f64), Gone> {
    let (bell, woken_at) = (Bell::default(), AtomicU64::new(0));
    let near = |_: &_| {
        let (mut notifying, mut waking) = (Vec::new(), Vec::new());
        for number in 1..=WAKES {
            sleep(ASLEEP);
            bell.set(number);
            let before = clock.ticks();
            bell.changed.notify_one();
            let after = clock.ticks();
            notifying.push(clock.ns(after.wrapping_sub(before)) as f64);
            // Acquire: pairs with the release of the sleeper, which leaves 0 for the next.
            let woken = loop {
                match woken_at.swap(0, Ordering::Acquire) {
                    0 => yield_now(),
                    woken => break woken,
                }
            };
            waking.push(clock.ns(woken.saturating_sub(before)) as f64);
        }
        Ok((median(notifying), median(waking)))
    };
    let far = |_: &_| {
        for number in 1..=WAKES {
            bell.await_number(number);
            woken_at.store(clock.ticks(), Ordering::Release);
        }
        Ok(())
    };
    on_threads(cpus, near, far)
}

/// One way of a round trip.
fn hand_over(cpus: Cpus, clock: Clock) -> Result<f64, Gone> {
    let (there, back) = (Bell::default(), Bell::default());
    let near = |_: &_| {
        let trip = |number| {
            let before = clock.ticks();
            there.set(number);
            there.changed.notify_one();
            back.await_number(number);
            clock.ns(clock.ticks().wrapping_sub(before)) as f64 / 2.0
        };
        Ok(median((1..=WAKES).map(trip).collect()))
    };
    let far = |_: &_| {
        for number in 1..=WAKES {
            there.await_number(number);
            back.set(number);
            back.changed.notify_one();
        }
        Ok(())
    };
    on_threads(cpus, near, far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_costs_are_found_on_two_cpus_and_on_one() {
        let cpus = sinew_core::privileges::cpus().expect("affinity");
        let (near, last) = (cpus[0], cpus[cpus.len() - 1]);
        for far in [near, last] {
            let costs = Costs::measure(&Reference::new(Cpus { near, far }, Clock::calibrate()));
            let costs = costs.expect("the threads stay where they are");
            assert!(costs.lock_alone > 0.0 && costs.wake_up > 0.0 && costs.message > 0.0);
        }
    }
}
