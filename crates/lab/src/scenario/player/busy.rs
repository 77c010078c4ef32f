//! A load: threads of normal priority that never sleep, on one CPU.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::harness::{Gone, stay_on};

/// Threads: they leave who shares their CPU a third of it, where shares are fair.
const THREADS: usize = 2;
/// Rounds between two looks at whether it is enough: some microseconds.
const ROUNDS: u64 = 1000;

/// A load, until this is dropped.
pub(super) struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<(), Gone>>>,
}

impl Busy {
    /// Begins on this CPU.
    pub(super) fn on(cpu: u32) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let begin = |_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || stay_on(cpu).map(|()| burn(&stop)))
        };
        let threads = (0..THREADS).map(begin).collect();
        Busy { stop, threads }
    }

    /// Ends it. An error if it was not where it was to be.
    pub(super) fn end(mut self) -> Result<(), String> {
        // Relaxed: it carries nothing but itself.
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).try_for_each(|thread| {
            let ended = thread.join().unwrap_or_else(|_| Err(Gone("a load panicked".into())));
            ended.map_err(|Gone(why)| format!("load: {why}"))
        })
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn burn(stop: &AtomicBool) {
    let mut sum = 0_u64;
    // Relaxed: as above.
    while !stop.load(Ordering::Relaxed) {
        (0..ROUNDS).for_each(|more| sum = black_box(sum.wrapping_add(more)));
    }
}
