//! How threads run: with which scheduling, which is read back from the kernel, and beside a thread
//! that keeps a CPU from idling.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use sinew_core::privileges::Obtained;
use sinew_core::sys;

use super::case::SyncScheduling;
use crate::harness::{Gone, Life, stay_on};

/// Above everything normal, below the kernel's own threads. All threads of a row have the same
/// priority, and the kernel never takes the CPU from one of them for another. So none may poll for
/// what another one does.
const PRIORITY: u8 = 10;

impl SyncScheduling {
    /// Gives the calling thread this scheduling, and checks it with the kernel.
    pub(super) fn take(self) -> Result<(), Gone> {
        match self {
            SyncScheduling::Normal => take(sys::leave_realtime(), "SCHED_OTHER", 0),
            SyncScheduling::Fifo => take(sys::set_fifo(PRIORITY), "SCHED_FIFO", PRIORITY),
        }
    }

    /// Why no thread may have this scheduling, in the kernel's words; `None` if one may.
    pub(super) fn refused(self) -> Option<String> {
        let tried = thread::scope(|scope| scope.spawn(move || self.take()).join());
        match tried {
            Ok(taken) => taken.err().map(|Gone(why)| why),
            Err(_) => Some("a thread panicked; that is a bug of ours".into()),
        }
    }
}

/// Checks that the thread has the scheduling that was requested.
fn take(asked: io::Result<()>, name: &str, priority: u8) -> Result<(), Gone> {
    let why = asked.err().map_or(String::new(), |error| format!(" ({error})"));
    let (policy, found) = sys::scheduling().unwrap_or((-1, 0));
    let has = Obtained { policy, ..Obtained::default() }.policy_name();
    if has == name && found == i32::from(priority) {
        return Ok(());
    }
    Err(Gone(format!(
        "{name} {priority} refused{why}: the thread runs as {has} {found}; FIFO is allowed with \
         'rtprio {PRIORITY}' in /etc/security/limits.conf or CAP_SYS_NICE"
    )))
}

/// Does `work` while these CPUs never idle: on each of them spins a thread that runs only when no
/// other thread wants the CPU.
pub(super) fn kept_awake<T>(
    cpus: &[u32],
    work: impl FnOnce() -> Result<T, Gone>,
) -> Result<T, Gone> {
    let over = AtomicBool::new(false);
    let spin = |cpu| {
        stay_on(cpu)?;
        take(sys::only_when_idle(), "SCHED_IDLE", 0)?;
        // Relaxed, here and below: the flag carries no other data with it.
        while !over.load(Ordering::Relaxed) {
            spin_loop();
        }
        Ok(())
    };
    thread::scope(|scope| {
        let start = |&cpu| thread::Builder::new().spawn_scoped(scope, move || spin(cpu));
        let spinners: Vec<_> = cpus.iter().map(start).collect();
        let found = work();
        over.store(true, Ordering::Relaxed);
        for spinner in spinners {
            let spinner = spinner.map_err(|error| Gone(format!("no thread: {error}")))?;
            let ended = spinner.join();
            ended.unwrap_or_else(|_| Err(Gone("a spinner panicked".into())))?;
        }
        found
    })
}

/// Sleeps until both sides have come here. Neither side may poll for the other: they share a CPU,
/// and the side that has its realtime priority first would never let the other one get this far.
pub(super) fn meet(up: &AtomicU32, life: &Life) -> Result<(), Gone> {
    const LOOK: Duration = Duration::from_micros(100);
    // Relaxed: the count carries no other data with it.
    up.fetch_add(1, Ordering::Relaxed);
    let mut patience = life.patience();
    while up.load(Ordering::Relaxed) < 2 {
        patience.look()?;
        sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_kept_awake_just_as_long_as_the_work_takes() {
        let cpu = sinew_core::privileges::cpus().expect("affinity")[0];
        assert_eq!(kept_awake(&[cpu], || Ok(7)), Ok(7));
        assert_eq!(kept_awake(&[cpu], || Err::<(), _>(Gone("no".into()))), Err(Gone("no".into())));
        let Gone(why) = kept_awake(&[u32::MAX], || Ok(())).expect_err("no such CPU");
        assert!(why.contains("cannot stay on CPU"), "{why}");
    }

    #[test]
    fn what_the_kernel_refuses_is_said_with_what_it_gave() {
        let refused = take(Err(io::Error::from_raw_os_error(1)), "SCHED_NONE", 3);
        let Gone(why) = refused.expect_err("no thread runs so");
        assert!(why.starts_with("SCHED_NONE 3 refused (Operation not permitted"), "{why}");
        assert!(why.contains("the thread runs as SCHED_"), "{why}");
        assert_eq!(SyncScheduling::Normal.refused(), None);
    }
}
