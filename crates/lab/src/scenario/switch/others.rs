//! The programs of others that measure the same: each is started anew in every round, on the same
//! CPU and with the same priority, and its output is read.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use sinew_core::privileges::{Asked, obtain};
use sinew_figures::Distribution;

use super::sides::PRIORITY;
use crate::harness::process::Killed;
use crate::harness::{Gone, on_thread};
use crate::report::Row;
use crate::rounds::Contender;

/// A program that takes this long hangs.
const SECONDS_MAX: i64 = 20;

/// A program by others.
#[derive(Clone, Copy)]
pub(super) struct Other {
    /// The value of the axis `by`.
    pub(super) name: &'static str,
    /// The name of its executable file.
    file: &'static str,
    /// Folders that are searched in addition to PATH, with the folders in them.
    beside: &'static [&'static str],
    /// The package that contains it.
    package: &'static str,
    arguments: &'static [&'static str],
    /// Reads the us for one switch from its output.
    read: fn(&str) -> Option<f64>,
    /// What it prints, and what is made of that.
    pub(super) about: &'static str,
}

/// All of them.
pub(super) const OTHERS: [Other; 2] = [
    Other {
        name: "perf",
        file: "perf",
        beside: &[],
        package: "linux-perf (Debian), linux-tools (Ubuntu)",
        arguments: &["bench", "sched", "pipe", "-l", "10000"],
        read: of_perf,
        about: "perf bench sched pipe: its usecs/op is a round trip of two processes by two pipes, \
                with both calls of each side; a switch is half of it. A round has one value, the \
                mean of 10000 round trips",
    },
    Other {
        name: "lat_ctx",
        file: "lat_ctx",
        beside: &["/usr/lib/lmbench/bin"],
        package: "lmbench",
        arguments: &["-s", "0", "2"],
        read: of_lat_ctx,
        about: "lat_ctx -s 0 2 of lmbench: it prints the time of a switch without the calls of a \
                pipe, which it measures in one process; so it is compared with our turn minus the \
                calls alone",
    },
];

/// Reads a line such as `      13.620400 usecs/op`, which is a round trip.
fn of_perf(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.trim().strip_suffix("usecs/op"))?;
    positive(line.trim()).map(|us| us / 2.0)
}

/// Reads the line after `"size=0k ovr=0.53`, which has the number of processes and us.
fn of_lat_ctx(text: &str) -> Option<f64> {
    let mut lines = text.lines().skip_while(|line| !line.starts_with("\"size="));
    let (processes, us) = lines.nth(1)?.trim().split_once(' ')?;
    if processes == "2" { positive(us.trim()) } else { None }
}

fn positive(word: &str) -> Option<f64> {
    word.parse().ok().filter(|us: &f64| us.is_finite() && *us > 0.0)
}

impl Other {
    /// Its row in the report.
    pub(super) fn row(&self) -> Row {
        let mut row = Row::of(&[("by", self.name), ("between", "processes"), ("array", "0")]);
        let missing = || format!("'{}' is not installed; it is in {}", self.file, self.package);
        row.skipped = self.path().is_none().then(missing);
        row
    }

    fn path(&self) -> Option<PathBuf> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let beside = self.beside.iter().flat_map(|folder| folders(Path::new(folder)));
        let mut all = std::env::split_paths(&paths).chain(beside).map(|it| it.join(self.file));
        all.find(|file| file.is_file())
    }

    /// Its output, when run on this CPU.
    fn print(&self, cpu: u32) -> Result<String, Gone> {
        let path = self.path().ok_or_else(|| Gone(format!("'{}' is gone", self.file)))?;
        // The child inherits CPU and priority from the thread that starts it.
        on_thread(cpu, || {
            obtain(&Asked { priority: PRIORITY, cpu: Some(cpu) });
            let mut command = Command::new(path);
            command.args(self.arguments).process_group(0);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            self.printed(command)
        })
    }

    fn printed(&self, mut command: Command) -> Result<String, Gone> {
        let failed = |error: std::io::Error| Gone(format!("cannot run '{}': {error}", self.file));
        let mut child = Killed(command.spawn().map_err(failed)?);
        let pidfd = pidfd_open(Pid::from_child(&child.0), PidfdFlags::empty());
        let pidfd = pidfd.map_err(|error| failed(error.into()))?;
        // It prints a few lines, which fit into a pipe until it has ended.
        let limit = Timespec { tv_sec: SECONDS_MAX, tv_nsec: 0 };
        let mut ended = [PollFd::new(&pidfd, PollFlags::IN)];
        if retry_on_intr(|| poll(&mut ended, Some(&limit))) != Ok(1) {
            return Err(Gone(format!("'{}' did not end within {SECONDS_MAX} s", self.file)));
        }
        let status = child.0.wait().map_err(failed)?;
        let mut text = String::new();
        let (out, err) = (child.0.stdout.take(), child.0.stderr.take());
        out.map(|mut out| out.read_to_string(&mut text)).transpose().map_err(failed)?;
        err.map(|mut err| err.read_to_string(&mut text)).transpose().map_err(failed)?;
        match status.success() {
            true => Ok(text),
            false => Err(Gone(format!("'{}' ended with {status}: {}", self.file, text.trim()))),
        }
    }
}

/// The folder itself, and the folders in it.
fn folders(at: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(at).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(at.into()).chain(inside).collect()
}

/// The program as a contender.
pub(super) struct OtherRow {
    pub(super) other: &'static Other,
    pub(super) cpu: u32,
}

impl Contender for OtherRow {
    fn round(&mut self, row: &mut Row) -> Result<(), String> {
        let text = self.other.print(self.cpu).map_err(|Gone(why)| why)?;
        let us = (self.other.read)(&text);
        let us =
            us.ok_or_else(|| format!("'{}' says no time: {}", self.other.file, text.trim()))?;
        let mut values = Distribution::new();
        values.add((us * 1e3).round() as u64);
        row.measure_mut("turn").add_round(&values, us * 1e3, None);
        Ok(())
    }

    fn takes(&self) -> Duration {
        Duration::from_millis(200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_says_of_a_round_trip_is_two_switches() {
        let text = concat!(
            "# Running 'sched/pipe' benchmark:\n",
            "# Executed 10000 pipe operations between two processes\n\n",
            "     Total time: 0.136 [sec]\n\n",
            "      13.620400 usecs/op\n",
            "          73419 ops/sec\n",
        );
        assert_eq!(of_perf(text), Some(6.8102));
        assert_eq!(of_perf("      0.000000 usecs/op\n"), None);
        assert_eq!(of_perf("perf: 'bench' is not a perf-command\n"), None);
    }

    #[test]
    fn what_lat_ctx_says_is_a_switch() {
        assert_eq!(of_lat_ctx("\n\"size=0k ovr=0.53\n2 3.21\n"), Some(3.21));
        assert_eq!(of_lat_ctx("\"size=0k ovr=0.53\n4 3.21\n"), None);
        assert_eq!(of_lat_ctx("2 3.21\n"), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_its_package() {
        let other = Other { file: "no-such-program", package: "a package", ..OTHERS[1] };
        let why = other.row().skipped.expect("it is not there");
        assert_eq!(why, "'no-such-program' is not installed; it is in a package");
    }
}
