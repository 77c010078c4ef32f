//! A machine on which a package is tested. systemd is its first process, and all changes to it are
//! gone when it ends.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::said;
use crate::program::{ours, wait_until};

pub(crate) struct Machine {
    /// The shell that set it up. The machine uses the shell's mounts.
    shell: Child,
    place: PathBuf,
}

impl Machine {
    /// Boots a machine in an empty folder, with a package as `/sinew.deb`.
    ///
    /// # Errors
    /// What is missing here.
    pub(crate) fn boot(place: &Path, package: &Path) -> Result<Machine, String> {
        let inside = place.join("machine");
        fs::create_dir(&inside).expect("a folder");
        let said = place.join("said");
        let file = fs::File::create(&said).expect("a file");
        let mut command = Command::new("unshare");
        command.args(["--mount", "setpriv", "--pdeathsig", "KILL", "sh"]);
        command.arg(ours("tests/packages/boot.sh")).arg(&inside).arg(package);
        command.stdin(Stdio::null()).stderr(file.try_clone().expect("a file")).stdout(file);
        let shell = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let mut machine = Machine { shell, place: inside };
        let mut has_ended = false;
        wait_until("the machine is up", || {
            has_ended = machine.shell.try_wait().expect("a child of ours").is_some();
            has_ended || machine.says(&["systemctl", "is-active", "basic.target"]) == "active"
        });
        match has_ended {
            false => Ok(machine),
            true => {
                let text = fs::read_to_string(said).unwrap_or_default();
                let last = text.lines().last().unwrap_or("without a word");
                Err(format!("a machine with systemd does not boot here: {last}"))
            }
        }
    }

    /// The process of its systemd, as seen from outside of it.
    fn systemd(&self) -> Option<u32> {
        let child = |of: u32| {
            let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
            children.split_whitespace().next()?.parse().ok()
        };
        child(child(self.shell.id())?)
    }

    /// Runs a program on it as root.
    pub(crate) fn run(&self, program: &[&str]) -> Output {
        // Without a process, nsenter enters nothing and fails.
        let systemd = self.systemd().unwrap_or_default().to_string();
        let mut command = Command::new("nsenter");
        command.args(["--target", &systemd, "--all", "--", "env", "-i"]);
        command.arg("PATH=/usr/sbin:/usr/bin:/sbin:/bin").args(program).stdin(Stdio::null());
        command.output().expect("nsenter is there")
    }

    /// The output of a program on it.
    pub(crate) fn says(&self, program: &[&str]) -> String {
        said(&self.run(program)).trim().into()
    }

    /// The same for a program that must not fail.
    #[track_caller]
    pub(crate) fn does(&self, program: &[&str]) -> String {
        let output = self.run(program);
        assert!(output.status.success(), "{program:?}: {}", said(&output));
        said(&output).trim().into()
    }

    /// Its files that have changed since it was made.
    pub(crate) fn changed(&self) -> BTreeSet<String> {
        let mut find = Command::new("nsenter");
        find.args(["--target", &self.shell.id().to_string(), "--mount", "find"]);
        find.arg(self.place.join("changed")).args(["!", "-type", "d", "-printf", "%P\n"]);
        said(&find.output().expect("nsenter is there")).lines().map(String::from).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A process that does not exist has ended.
        let ending =
            |pid: u32| Pid::from_raw(pid as i32).map(|pid| kill_process(pid, Signal::KILL));
        let _ = self.systemd().and_then(ending);
        let _ = self.shell.wait();
    }
}
