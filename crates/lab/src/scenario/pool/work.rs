//! The CPU work of a request: a walk through a working set in random order, with arithmetic between
//! two steps. Each thread has a set of its own, as a thread that serves requests has its stack, its
//! buffers and its objects.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a thread's set: a few sets fit into the caches of a core together, hundreds do not.
pub(super) const SET_BYTES: usize = 256 << 10;
/// Words of a cache line.
const LINE: usize = 8;
/// Steps of arithmetic in a unit. If the set is in a near cache, they are most of the unit's time;
/// if it comes from memory, loading the line is.
const STEPS: u32 = 16;
/// How long a request should take if it is alone on its CPU.
const REQUEST: Duration = Duration::from_micros(300);
/// Tries of the calibration, and units of each: some milliseconds.
const TRIES: u32 = 50;
const TRIED: u64 = 2000;

/// Units that this process has done.
static DONE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SET: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Does this many units; returns how many were done. Each unit reads and writes a random line of
/// the thread's set; which line depends on the content of the line before. Without a set it only
/// computes.
pub(super) fn work(units: u64, has_set: bool) -> u64 {
    SET.with_borrow_mut(|set| {
        if has_set && set.is_empty() {
            set.extend((0..(SET_BYTES / size_of::<u64>()) as u64).map(|at| at.wrapping_mul(ODD)));
        }
        let mut state = units;
        let mut done = 0;
        for _ in 0..units {
            for _ in 0..STEPS {
                state = (state ^ (state >> 29)).wrapping_mul(ODD);
            }
            if has_set {
                let line = (state >> 32) as usize % (set.len() / LINE);
                let word = &mut set[line * LINE];
                state ^= *word;
                *word = state;
            }
            done += 1;
        }
        black_box(state);
        // Relaxed, here and below: a number that orders nothing else.
        DONE.fetch_add(done, Ordering::Relaxed);
        done
    })
}

/// An odd number with its bits spread: the 64-bit golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Units that this process has done.
pub(super) fn done() -> u64 {
    DONE.load(Ordering::Relaxed)
}

/// How many units a request needs to take about 300 us here with its set in the cache: by the
/// quickest of some tries, which nothing disturbed.
pub(super) fn calibrate() -> u64 {
    let tries = (0..TRIES).map(|_| {
        let begun = Instant::now();
        work(TRIED, true);
        begun.elapsed()
    });
    let least = tries.min().unwrap_or(REQUEST);
    let units = REQUEST.as_secs_f64() / least.as_secs_f64().max(1e-9) * TRIED as f64;
    (units as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_told_and_counted() {
        let before = done();
        assert_eq!((work(70, true), work(30, false)), (70, 30));
        assert!(done() >= before + 100, "other tests count too");
        assert!(calibrate() > 0);
    }
}
