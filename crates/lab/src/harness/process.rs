//! A far side in a process of its own: this program again, started with a hidden command and only
//! the descriptors that it needs. It stays on its CPU and ends with its parent.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, pidfd_open, set_parent_process_death_signal,
};
use sinew_core::sys::{adopt, keep_open};

use super::{Gone, Life, stay_on};

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // An error means that the process has already ended, as wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The hidden command, followed by part, CPU, parent, the part's text, and descriptors.
pub const FAR_COMMAND: &str = "__lab";

/// How long a far side may take to end after it was told to stop; then it is killed.
const END_S_MAX: i64 = 5;

/// The same limit after the near side has failed.
const LAST_WORDS_S_MAX: i64 = 1;

/// What a far side can do: a row of the table that [`main`] is given.
#[derive(Clone, Copy)]
pub struct FarSide {
    /// Its name.
    pub name: &'static str,
    /// Plays the part, with the text and the descriptors that the parent gave.
    pub run: fn(&str, Vec<OwnedFd>) -> Result<(), Gone>,
}

/// A far side that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Killed,
    life: Life,
    /// What the process is called in an error.
    name: &'static str,
}

impl Process {
    /// Starts this program again to play `part` on `cpu`. The kernel ties the process to the
    /// calling thread: it ends when that thread ends. Streams must be closed here once it runs;
    /// otherwise their end is not seen.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(
        part: &str,
        text: &str,
        descriptors: &[BorrowedFd<'_>],
        cpu: u32,
    ) -> Result<Process, Gone> {
        let open: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let mut command = Command::new("/proc/self/exe");
        // So that `ps` distinguishes it from its parent.
        command.arg0(format!("sinew: lab {part}"));
        command.args([FAR_COMMAND, part, &cpu.to_string(), &std::process::id().to_string(), text]);
        command.args(open.iter().map(RawFd::to_string));
        // A process group of its own: signals from the terminal are for the parent.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        keep_open(&mut command, open);
        let failed = |error: io::Error| Gone(format!("cannot start a process: {error}"));
        let child = Killed(command.spawn().map_err(failed)?);
        let pidfd = pidfd_open(Pid::from_child(&child.0), PidfdFlags::empty());
        let pidfd = pidfd.map_err(|error| failed(error.into()))?;
        Ok(Process { child, life: Life::Process(Arc::new(pidfd)), name: "the far side" })
    }

    /// The same process, with another name in errors than the far side.
    pub(crate) fn named(self, name: &'static str) -> Process {
        Process { name, ..self }
    }

    /// Whether it is alive, as a waiting side checks it.
    pub fn life(&self) -> &Life {
        &self.life
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Waits for its end after it was told to stop, and returns what the near side found. If either
    /// side failed, the far side's own error text is added.
    ///
    /// # Errors
    /// The near side's, or how the process ended.
    pub fn join<T>(mut self, found: Result<T, Gone>) -> Result<T, Gone> {
        // After an error the process may be about to end, and its last words say more than the
        // error.
        self.await_end(if found.is_ok() { END_S_MAX } else { LAST_WORDS_S_MAX });
        let ended = self.child.0.try_wait().ok().flatten();
        let pipe = self.child.0.stderr.take();
        let name = self.name;
        // The process's end of the pipe must be closed before all of the pipe can be read.
        drop(self.child);
        let mut said = String::new();
        // Bytes that are not text or cannot be read are left out.
        let _ = pipe.map(|mut pipe| pipe.read_to_string(&mut said));
        let said = said.trim_end();
        let far = match ended {
            Some(status) if status.success() => return found,
            Some(status) => match status.signal() {
                Some(signal) => format!("its process was ended by signal {signal}"),
                None => format!("its process ended with {status}: {said}"),
            },
            None => match &found {
                Ok(_) => format!("it did not end within {END_S_MAX} s and was killed"),
                Err(_) => "it was killed".into(),
            },
        };
        match found {
            Ok(_) => Err(Gone(format!("{name}: {far}"))),
            Err(Gone(near)) => Err(Gone(format!("{near}; {name}: {far}"))),
        }
    }

    /// Waits for its end, for at most this many seconds.
    pub(crate) fn await_end(&self, seconds: i64) {
        if let Life::Process(pidfd) = &self.life {
            let mut ended = [PollFd::new(pidfd.as_ref(), PollFlags::IN)];
            let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
            // Whether it ended or not: the caller checks that next.
            let _ = retry_on_intr(|| poll(&mut ended, Some(&limit)));
        }
    }
}

/// The main function of a far side. Every program that starts a far side must call it before
/// anything else. `None` if the arguments hold another command.
pub fn main(arguments: &[OsString], parts: &[FarSide]) -> Option<ExitCode> {
    let [_, command, rest @ ..] = arguments else { return None };
    if command != FAR_COMMAND {
        return None;
    }
    let Err(Gone(why)) = play(rest, parts) else { return Some(ExitCode::SUCCESS) };
    // The parent reads it; if the parent is gone, nobody does.
    let _ = writeln!(io::stderr(), "{why}");
    Some(ExitCode::from(2))
}

fn play(arguments: &[OsString], parts: &[FarSide]) -> Result<(), Gone> {
    let words: Option<Vec<_>> = arguments.iter().map(|word| word.to_str()).collect();
    let Some([part, cpu, parent, text, descriptors @ ..]) = words.as_deref() else {
        return Err(Gone("expected part, CPU, parent, text and descriptors".into()));
    };
    let number =
        |word: &str| word.parse::<i32>().map_err(|_| Gone(format!("'{word}': expected a number")));
    let (cpu, parent) = (number(cpu)?, number(parent)?);
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Gone(format!("cannot follow the parent: {error}")))?;
    // The parent may have died before the line above.
    if getppid().map(|pid| pid.as_raw_pid()) != Some(parent) {
        return Err(Gone("the parent process has ended".into()));
    }
    stay_on(cpu as u32)?;
    let part = parts
        .iter()
        .find(|row| row.name == *part)
        .ok_or_else(|| Gone(format!("there is no part '{part}'")))?;
    let adopted = descriptors.iter().map(|&word| {
        adopt(number(word)?).map_err(|error| Gone(format!("descriptor {word}: {error}")))
    });
    (part.run)(text, adopted.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_commands_are_none_of_ours() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(main(&words(&["sinew", "check", "a.yaml"]), &[]).is_none());
        assert!(main(&words(&["sinew"]), &[]).is_none());
    }

    #[test]
    fn bad_arguments_are_named() {
        let play = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(OsString::from).collect();
            play(&words, &[]).expect_err("bad").0
        };
        assert_eq!(play(&["link"]), "expected part, CPU, parent, text and descriptors");
        assert_eq!(play(&["link", "x", "1", ""]), "'x': expected a number");
    }
}
