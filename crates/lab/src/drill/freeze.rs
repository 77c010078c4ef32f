//! Stops a process for a while: SIGSTOP, and later SIGCONT by a separate thread, which sleeps more
//! precisely than the loop that watches the run.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::left;

/// A freeze under way.
pub(super) struct Freeze(JoinHandle<Option<u64>>);

impl Freeze {
    /// Freezes a domain's process at once for this long, with the processes that it has started.
    /// `None` if the kernel refuses.
    pub(super) fn begin(pid: Pid, time: Duration) -> Option<Freeze> {
        kill_process_group(pid, Signal::STOP).ok()?;
        let begun = Instant::now();
        Some(Freeze(thread::spawn(move || {
            thread::sleep(time);
            // The process may have been killed meanwhile: then it was not stopped for that long.
            let stood = left::state(u32::try_from(pid.as_raw_nonzero().get()).ok()?) == Some('T');
            let took = begun.elapsed();
            kill_process_group(pid, Signal::CONT).ok()?;
            stood.then(|| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
        })))
    }

    /// For how long it was stopped, ns; `None` if that was not seen.
    pub(super) fn end(self) -> Option<u64> {
        self.0.join().ok().flatten()
    }
}
