//! The process of a domain, as the supervisor holds it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use signal_hook::consts::SIGCHLD;

use super::DOMAIN_COMMAND;
use crate::clock::now_ns;
use crate::confine::{Confinement, MARKER, Search, await_end, kill_strays};
use crate::launch::Launch;

/// How long a run that is dropped waits for the end of a process that it has killed. Only one that
/// the kernel holds (a broken disk or driver) takes longer, and is left behind.
const GONE_NS_MAX: u64 = 5_000_000_000;

/// Status of a process that somebody else in this program has waited for: neither an exit nor a
/// signal, and so no success.
const STATUS_UNKNOWN: i32 = 0xffff;

/// Sees to it that the kernel keeps how a process has ended until we ask. It does not where whoever
/// started us has SIGCHLD ignored: then a killed service would look like one that ended in order.
pub(super) fn keep_endings() -> io::Result<()> {
    // Any handler will do; a process that is waited for by its descriptor needs none.
    signal_hook::flag::register(SIGCHLD, Arc::default()).map(drop)
}

/// A process that is ours. Dropping it kills it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pidfd: OwnedFd,
    /// In the environment of all that descend from it.
    marker: String,
    ended: Option<ExitStatus>,
    pub(super) started_ns: u64,
}

impl Process {
    /// This program again, with `open` and nothing else left open for it.
    pub(super) fn spawn(
        name: &str,
        launch: &Launch,
        confinement: &Confinement,
        output: [Stdio; 2],
    ) -> io::Result<Process> {
        let sealed = launch.seal()?;
        let mut open: Vec<RawFd> = vec![launch.board, launch.bell, sealed.as_raw_fd()];
        open.extend(launch.traces.iter().chain(&launch.counters));
        open.extend(launch.observed.iter().map(|&(_, _, number)| number));
        open.extend((launch.supervisor >= 0).then_some(launch.supervisor));
        open.extend(launch.profile.map(|(file, _)| file));
        open.extend(launch.writers.iter().chain(&launch.readers).map(|&(_, number)| number));
        let mut command = Command::new("/proc/self/exe");
        // So that `ps` tells one domain from another.
        command.arg0(format!("sinew: {name}"));
        command.arg(DOMAIN_COMMAND).arg(sealed.as_raw_fd().to_string());
        command.env(MARKER, &launch.marker);
        // A group of its own: what the terminal sends to the parent is passed on by the parent, in
        // order; and a service's children can be killed with it.
        let [out, error] = output;
        command.process_group(0).stdin(Stdio::null()).stdout(out).stderr(error);
        crate::sys::keep_open(&mut command, open);
        confinement.apply(&mut command);
        let mut child = command.spawn()?;
        // A domain outside its bounds runs all the same, and its status says so.
        let _ = confinement.entered(child.id());
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let pidfd = pidfd.inspect_err(|_| end(&mut child))?;
        let (marker, started_ns) = (launch.marker.clone(), now_ns());
        Ok(Process { child, pidfd, marker, ended: None, started_ns })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub(super) fn ended(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Looks whether it has ended; `true` when it just has. The others of its group die with it.
    pub(super) fn reap(&mut self) -> bool {
        if self.ended.is_some() {
            return false;
        }
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::PidFd(self.pidfd.as_fd()), look) {
            Ok(None) => return false,
            // Before its number is free for another one. Nobody there is what is wanted.
            Ok(Some(_)) => {
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            }
            // It has ended, and its number may be another's by now.
            Err(_) => {}
        }
        self.ended = Some(self.child.wait().unwrap_or(ExitStatus::from_raw(STATUS_UNKNOWN)));
        true
    }

    /// Kills it with all that it has started. It may end by itself meanwhile; then there is nothing
    /// to kill.
    pub(super) fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
        }
    }

    /// Kills what it has started, wherever that went. That looks at every process of the machine,
    /// so it has a thread of its own. Where none can be had, its children may have taken them all:
    /// then they are killed here and now, and the caller waits, a second at most.
    pub(super) fn seek_strays(self) -> Strays {
        match Search::begin(&self.marker) {
            Ok(search) => Strays::Sought(search),
            Err(_) => Strays::Killed(kill_strays(&self.marker)),
        }
    }
}

/// What a process has started and left behind.
pub(super) enum Strays {
    /// Somebody looks for it.
    Sought(Search),
    /// So many were killed.
    Killed(usize),
}

impl Strays {
    /// Whether nothing is left.
    pub(super) fn are_gone(&self) -> bool {
        match self {
            Strays::Sought(search) => search.is_over(),
            Strays::Killed(_) => true,
        }
    }

    /// What to wait for, if anything.
    pub(super) fn search(&self) -> Option<&Search> {
        match self {
            Strays::Sought(search) => Some(search),
            Strays::Killed(_) => None,
        }
    }

    /// How many were killed; waits for the search.
    pub(super) fn count(self) -> usize {
        match self {
            Strays::Sought(search) => search.count(),
            Strays::Killed(count) => count,
        }
    }
}

impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            self.kill();
            let until_ns = now_ns() + GONE_NS_MAX;
            while !self.reap() && now_ns() < until_ns {
                await_end(&self.pidfd, until_ns);
            }
            kill_strays(&self.marker);
        }
    }
}

/// Kills a child and waits for its end.
fn end(child: &mut Child) {
    // Either may fail only because the child has ended.
    let _ = child.kill();
    let _ = child.wait();
}

/// In words.
pub(super) fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("its process was ended by signal {signal}"),
        (None, Some(code)) => format!("its process ended with status {code}"),
        (None, None) => "its process ended".into(),
    }
}
