//! How late threads wake up, by the method of cyclictest (rt-tests): a SCHED_FIFO thread on each
//! CPU sleeps until an absolute time and measures how late it is.

use std::io;
use std::thread;

use sinew_core::clock::{now_ns, sleep_until};
use sinew_core::privileges::{self, Asked};
use sinew_figures::Distribution;

use crate::findings::PRIORITY;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Time between two wake-ups of a thread.
    pub(crate) period_ns: u64,
    /// Wake-ups of each thread.
    pub(crate) count: usize,
}

/// What the thread on a CPU saw.
#[derive(Debug)]
pub(crate) struct Lateness {
    /// How late each wake-up was after its planned time, ns.
    pub(crate) late: Distribution,
    /// What the thread lacked of what it asked for, in words.
    pub(crate) missing: Vec<String>,
    /// Whether it ran as SCHED_FIFO, on this CPU.
    pub(crate) is_realtime: bool,
    /// Whether its memory was locked.
    pub(crate) is_locked: bool,
}

/// Measures all these CPUs at once.
///
/// # Errors
/// If a thread cannot be started.
pub(crate) fn measure(cpus: &[u32], round: Round) -> io::Result<Vec<Lateness>> {
    thread::scope(|scope| {
        let start = |cpu: &u32| {
            let cpu = *cpu;
            let thread = thread::Builder::new().name(format!("wake-ups {cpu}"));
            thread.spawn_scoped(scope, move || observe(cpu, round))
        };
        let threads = cpus.iter().map(start).collect::<io::Result<Vec<_>>>()?;
        let join = |thread: thread::ScopedJoinHandle<'_, Lateness>| {
            thread.join().expect("it only sleeps and counts")
        };
        Ok(threads.into_iter().map(join).collect())
    })
}

/// One thread's work.
fn observe(cpu: u32, round: Round) -> Lateness {
    let asked = Asked { priority: PRIORITY, cpu: Some(cpu) };
    // Written once now, so that no page faults occur during the measurement.
    let mut late = vec![u64::MAX; round.count];
    let obtained = privileges::obtain(&asked);
    let mut release = now_ns() + round.period_ns;
    for late in &mut late {
        sleep_until(release);
        let now = now_ns();
        *late = now.saturating_sub(release);
        // Missed periods are not made up for.
        while release <= now {
            release += round.period_ns;
        }
    }
    let mut all = Distribution::new();
    late.into_iter().for_each(|ns| all.add(ns));
    Lateness {
        late: all,
        is_realtime: obtained.policy_name() == "SCHED_FIFO" && obtained.cpu == Some(cpu),
        is_locked: obtained.locked_kib > 0,
        missing: obtained.missing(&asked),
    }
}
