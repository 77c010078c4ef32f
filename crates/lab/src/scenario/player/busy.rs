//! A load: threads of normal priority that never sleep, on one CPU.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::harness::{Gone, stay_on};

/// The number of threads: where shares are fair, a thread on the same CPU gets a third of it.
const THREADS: usize = 2;
/// Rounds of work between two looks at the flag: some microseconds.
const ROUNDS: u64 = 1000;

/// A load that runs until this is dropped.
pub(super) struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), Gone>>>,
}

impl Busy {
    /// Starts a load on this CPU.
    pub(super) fn on(cpu: u32) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let begin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || stay_on(cpu).map(|()| burn(&stop)))
        };
        let threads = (0..THREADS).map(begin).collect();
        Busy { stop, threads }
    }

    /// Ends it. An error if it did not run on its CPU.
    pub(super) fn end(mut self) -> Result<(), String> {
        // Relaxed: the flag carries no other data with it.
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).try_for_each(|thread| {
            let ended = thread.join().unwrap_or_else(|_| Err(Gone("a load panicked".into())));
            ended.map_err(|Gone(why)| format!("load: {why}"))
        })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Relaxed: the flag carries no other data with it.
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn burn(stop: &AtomicBool) {
    let mut sum = 0_u64;
    // Relaxed: the flag carries no other data with it.
    while !stop.load(Ordering::Relaxed) {
        (0..ROUNDS).for_each(|more| sum = black_box(sum.wrapping_add(more)));
    }
}
