//! The processes that a domain has started, found by the mark in their environment: used where no
//! cgroup knows them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use sinew_core::clock::{now_ns, timespec};

/// The variable that the supervisor sets for the process of a domain; its children inherit it.
pub const MARKER: &str = "SINEW_DOMAIN";

/// How often all processes are looked through: a killed process may have started another one while
/// we looked elsewhere. Past this, processes that start themselves faster than we look stay.
const PASSES_MAX: usize = 50;
/// How long the killed processes may take to be gone, in all. Past this, one of them waits for a
/// device.
const GONE_NS_MAX: u64 = 1_000_000_000;

/// Kills every process whose environment says `SINEW_DOMAIN=marker`, again until none is left;
/// returns how many it killed. Never this process. Waits until they are gone, some milliseconds, a
/// second at most.
///
/// A process that has replaced its environment, or that belongs to another user (unless we are
/// root), is not seen: a cgroup is the sure way.
pub fn kill_strays(marker: &str) -> usize {
    let mark = format!("{MARKER}={marker}");
    let until_ns = now_ns() + GONE_NS_MAX;
    let mut killed = BTreeSet::new();
    for _ in 0..PASSES_MAX {
        let strays = find(mark.as_bytes());
        if strays.is_empty() || now_ns() >= until_ns {
            break;
        }
        for (pid, stray) in &strays {
            // It may have ended meanwhile; the descriptor never names another process.
            if pidfd_send_signal(stray, Signal::KILL).is_ok() {
                killed.insert(*pid);
            }
        }
        strays.iter().for_each(|(_, stray)| await_end(stray, until_ns));
    }
    killed.len()
}

/// The processes that have the mark, except this one.
pub(crate) fn find(mark: &[u8]) -> Vec<(i32, OwnedFd)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut environment = Vec::new();
    let mut bears = |pid: i32| bears(mark, pid, &mut environment).unwrap_or(false);
    let stray = |pid: i32| {
        if !bears(pid) {
            return None;
        }
        let stray = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        // Another process may have got the number before the descriptor was opened.
        bears(pid).then_some((pid, stray))
    };
    let own = std::process::id();
    pids.filter(|&pid: &i32| pid.unsigned_abs() != own).filter_map(stray).collect()
}

/// Whether the environment of a process holds the mark. All processes of the machine are checked at
/// each end of a service, so this costs as little as possible: `buffer` is used again for each.
fn bears(mark: &[u8], pid: i32, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let file = File::open(format!("/proc/{pid}/environ"))?;
    buffer.clear();
    // Without `take` the file would be asked for its length first, and this file has none.
    file.take(u64::MAX).read_to_end(buffer)?;
    Ok(buffer.split(|&byte| byte == 0).any(|entry| entry == mark))
}

/// Waits for the end of a process, by its descriptor, until `until_ns` at most.
pub(crate) fn await_end(process: &impl AsFd, until_ns: u64) {
    let left = timespec(until_ns.saturating_sub(now_ns()));
    // A signal ends the wait early; the caller looks again.
    let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left));
}

/// What a process has started and left behind, and the search for it by its mark. [`kill_strays`]
/// has a thread of its own, because it looks at every process of the machine.
pub(crate) enum Strays {
    /// The thread has the other end of the pipe, which closes when the thread ends: the supervisor
    /// waits for that along with everything else.
    Sought { thread: JoinHandle<usize>, over: PipeReader },
    /// How many were killed.
    Killed(usize),
}

impl Strays {
    /// Has the strays killed. If no thread can be started, the strays may have taken all threads:
    /// then they are killed at once in the caller's thread, which waits a second at most.
    pub(crate) fn seek(marker: &str) -> Strays {
        Strays::begin(marker.to_owned()).unwrap_or_else(|_| Strays::Killed(kill_strays(marker)))
    }

    fn begin(marker: String) -> io::Result<Strays> {
        let (over, running) = io::pipe()?;
        let body = move || {
            let _running = running;
            kill_strays(&marker)
        };
        let thread = thread::Builder::new().name("strays".into()).spawn(body)?;
        Ok(Strays::Sought { thread, over })
    }

    /// What to wait for, if anything.
    pub(crate) fn over(&self) -> Option<&PipeReader> {
        match self {
            Strays::Sought { over, .. } => Some(over),
            Strays::Killed(_) => None,
        }
    }

    /// Whether nothing is left to be found.
    pub(crate) fn are_gone(&self) -> bool {
        let is_over = |over| poll(&mut [PollFd::new(over, PollFlags::IN)], Some(&timespec(0)));
        self.over().is_none_or(|over| is_over(over).is_ok_and(|ready| ready > 0))
    }

    /// How many were killed; waits for the end.
    pub(crate) fn count(self) -> usize {
        match self {
            // It does not panic; if it did, the mark would find them after the next life.
            Strays::Sought { thread, .. } => thread.join().unwrap_or(0),
            Strays::Killed(count) => count,
        }
    }
}
