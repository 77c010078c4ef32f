//! The emulator's process: starts, watches and kills it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sinew_core::clock::timespec;

use super::console::Console;

/// How long a drop waits for the end of the emulator. Only one that the kernel holds (a broken disk
/// or driver) takes longer, and is left behind.
const GONE_NS_MAX: u64 = 5_000_000_000;

/// Status of an emulator for which another part of this program has waited. It is neither an exit
/// nor a signal, and so not a success.
const STATUS_UNKNOWN: i32 = 0xffff;

/// An emulator's process. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Emulator {
    child: Child,
    pidfd: OwnedFd,
    ended: Option<ExitStatus>,
    pub(super) console: Console,
}

impl Emulator {
    /// Starts it, with only this descriptor and those for its output open. It ends when the thread
    /// that started it ends, for whatever reason.
    pub(super) fn start(mut command: Command, given: RawFd) -> io::Result<Emulator> {
        let (console, out) = io::pipe()?;
        let console = Console::new(console)?;
        let error = out.try_clone()?;
        command.stdin(Stdio::null()).stdout(out).stderr(error);
        sinew_core::sys::keep_open(&mut command, vec![given]);
        sinew_core::sys::end_with_parent(&mut command);
        let mut child = command.spawn()?;
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Emulator { child, pidfd, ended: None, console }),
            Err(error) => {
                // Both can fail only because the process has ended.
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal. If the process has ended, nothing happens.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Whether [`Emulator::reap`] has found that it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// How it has ended, if it has.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            let unknown = Some(ExitStatus::from_raw(STATUS_UNKNOWN));
            self.ended = self.child.try_wait().unwrap_or(unknown);
        }
        self.ended
    }
}

impl AsFd for Emulator {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if self.reap().is_some() {
            return;
        }
        let _ = self.child.kill();
        let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&timespec(GONE_NS_MAX)));
        self.reap();
    }
}
