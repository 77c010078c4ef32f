//! What a process really has, as the kernel reports it: the files of its cgroup, /proc/PID/limits,
//! /proc/PID/status, and where each of its threads may run. Nothing here is taken from what was
//! asked.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity};
use sinew_control::status::LimitStatus;
use sinew_figures::units::size;

use super::Confinement;
use super::cgroup::{Controller, Refusal};
use super::user::User;

/// The remedy where somebody undid what we set.
const CHANGED: &str = "find the program that also writes to the cgroup of the domain";

/// What was found, in words; and if that is not what was asked, how to get it.
type Found = (String, Option<String>);

impl Confinement {
    /// What was asked for and what process `pid` of the domain has: a row for each limit of the
    /// spec (`memory`, `cpu`, `processes`, `descriptors`), one for its `cpus`, and one for the
    /// `user`. A substitute that bounds less is shown, and does not count as enforced. Reads a
    /// handful of small files, and asks for each thread where `cpus` are named. A process that has
    /// just begun has the CPUs of its parent, until it takes its own.
    pub fn read_back(&self, pid: u32) -> Vec<LimitStatus> {
        let process = ProcFiles::read(pid);
        let mut rows = vec![];
        let mut add = |what: &str, asked: String, find: &dyn Fn(&ProcFiles) -> Found| {
            let (got, remedy) = process.as_ref().map(find).unwrap_or_else(|error| {
                (format!("unknown: process {pid}: {error}"), Some("see why it ended".into()))
            });
            let (what, enforced) = (what.to_owned(), remedy.is_none());
            rows.push(LimitStatus { what, asked, got, enforced, remedy });
        };
        if let Some(asked) = self.limits.memory_bytes {
            add("memory", size(asked as f64), &|process| {
                self.limit(Controller::Memory, asked, process)
            });
        }
        if let Some(asked) = self.limits.cpu_percent {
            add("cpu", format!("{asked} %"), &|process| {
                self.limit(Controller::Cpu, asked.into(), process)
            });
        }
        if let Some(asked) = self.limits.processes {
            add("processes", asked.to_string(), &|process| {
                self.limit(Controller::Processes, asked, process)
            });
        }
        if let Some(asked) = self.limits.descriptors {
            add("descriptors", asked.to_string(), &|process| descriptors(asked, process));
        }
        if let Some(asked) = &self.cpus {
            add("cpus", list(asked), &|process| cpus(asked, process.pid));
        }
        if let Some(user) = &self.user {
            let asked = identity(user.uid, user.gid, &user.groups);
            add("user", format!("{} ({asked})", user.name), &|process| process.runs_as(user));
        }
        rows
    }

    fn limit(&self, controller: Controller, asked: u64, process: &ProcFiles) -> Found {
        match self.in_cgroup(controller, process) {
            Ok(value) => {
                let (words, holds) = held(controller, asked, value);
                let got = format!("{words} (cgroup {})", controller.file());
                (got, (!holds).then(|| CHANGED.into()))
            }
            Err(Refusal { why, remedy }) => {
                let words = self.stand_in(controller, asked, process);
                (format!("{}: {why}", words.unwrap_or("nothing".into())), Some(remedy))
            }
        }
    }

    /// What limits the process, by the file of the cgroup that it is in.
    fn in_cgroup(&self, controller: Controller, process: &ProcFiles) -> Result<String, Refusal> {
        let lacking = |why| Refusal { why, remedy: CHANGED.into() };
        if let Some(refusal) = self.refusals.get(&controller) {
            return Err(refusal.clone());
        }
        let pid = process.pid;
        match &self.cgroup {
            Some(cgroup) if cgroup.holds(pid) => {
                let file = controller.file();
                cgroup.read(file).map_err(|error| lacking(format!("{file}: {error}")))
            }
            _ => Err(lacking(format!("process {pid} is not in the cgroup of its domain"))),
        }
    }

    /// What bounds the process instead, which is less than was asked for.
    fn stand_in(&self, controller: Controller, asked: u64, process: &ProcFiles) -> Option<String> {
        let bound = |name| process.limit(name).0.filter(|&soft| soft <= asked);
        match controller {
            Controller::Memory => bound("Max data size").map(|soft| {
                let words = size(soft as f64);
                format!("{words} for each process (RLIMIT_DATA, not shared memory)")
            }),
            Controller::Processes if self.counts_by_user() => bound("Max processes")
                .map(|soft| format!("{soft} for all processes of the user (RLIMIT_NPROC)")),
            Controller::Processes | Controller::Cpu => None,
        }
    }
}

/// What the file of a controller says, in words, and whether that is no more than was asked.
fn held(controller: Controller, asked: u64, value: String) -> (String, bool) {
    let parsed = match controller {
        // The kernel counts pages, and rounds down.
        Controller::Memory => value.parse().ok().map(|it: u64| (size(it as f64), it <= asked)),
        Controller::Cpu => value.split_once(' ').and_then(|(quota_us, period_us)| {
            let period_us: u64 = period_us.parse().ok().filter(|&period_us| period_us > 0)?;
            let percent = quota_us.parse::<u64>().ok()? as f64 * 100.0 / period_us as f64;
            Some((format!("{percent} %"), percent <= asked as f64))
        }),
        Controller::Processes => value.parse().ok().map(|it: u64| (it.to_string(), it <= asked)),
    };
    parsed.unwrap_or((value, false))
}

fn descriptors(asked: u64, process: &ProcFiles) -> Found {
    let (soft, hard) = process.limit("Max open files");
    let words = hard.map_or("no limit".into(), |limit| limit.to_string());
    let remedy = match (soft, hard) {
        (soft, hard) if (soft, hard) == (Some(asked), Some(asked)) => None,
        (_, Some(hard)) if hard < asked => Some(format!(
            "raise the hard limit: 'nofile {asked}' in /etc/security/limits.conf, or \
             LimitNOFILE={asked} in its unit"
        )),
        _ => Some("see who changed the limits of the process".into()),
    };
    (format!("{words} (RLIMIT_NOFILE)"), remedy)
}

/// The CPUs on which the threads of a process may run, all together. A thread may keep to some of
/// them. It can move to others by itself, because only a cpuset would hold it.
fn cpus(asked: &[u32], pid: u32) -> Found {
    let got = match allowed(pid) {
        Ok(got) => got,
        Err(error) => return (format!("unknown: {error}"), Some("see why it ended".into())),
    };
    let remedy = if got == asked {
        None
    } else if got.iter().all(|cpu| asked.contains(cpu)) {
        Some("see which CPUs the cpuset of its cgroup or container allows".into())
    } else {
        let what = "see 'sinew log' for what the kernel refused; otherwise the node changes it \
                    itself";
        Some(format!("{what} with its threads"))
    };
    (format!("{} (affinity of its threads)", list(&got)), remedy)
}

/// The CPUs on which any thread of a process may run, ascending.
fn allowed(pid: u32) -> io::Result<Vec<u32>> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let name = entry?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let thread = thread.ok_or_else(|| io::Error::other("a thread without a number"))?;
        match sched_getaffinity(Some(thread)) {
            Ok(set) => all.extend((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu))),
            // The thread has ended meanwhile.
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all.into_iter().map(|cpu| cpu as u32).collect())
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The limits and the identity of a process.
struct ProcFiles {
    pid: u32,
    limits: String,
    status: String,
}

impl ProcFiles {
    fn read(pid: u32) -> io::Result<ProcFiles> {
        let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
        Ok(ProcFiles { pid, limits: text("limits")?, status: text("status")? })
    }

    /// A soft and a hard limit; `None`: no limit.
    fn limit(&self, name: &str) -> (Option<u64>, Option<u64>) {
        let values = self.limits.lines().find_map(|line| line.strip_prefix(name));
        let mut values = values.unwrap_or_default().split_whitespace().map(|it| it.parse().ok());
        (values.next().flatten(), values.next().flatten())
    }

    /// The numbers in a line of the status.
    fn numbers(&self, name: &str) -> Vec<u32> {
        let line = self.status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().split_whitespace().filter_map(|it| it.parse().ok()).collect()
    }

    /// All four of its numbers must be the user's, and none of its groups may be anybody else's.
    fn runs_as(&self, user: &User) -> Found {
        let (uids, gids) = (self.numbers("Uid:"), self.numbers("Gid:"));
        let groups = self.numbers("Groups:");
        let all = |found: &[u32], asked| found.len() == 4 && found.iter().all(|&it| it == asked);
        let holds = all(&uids, user.uid)
            && all(&gids, user.gid)
            && groups.iter().all(|group| user.groups.contains(group));
        let first = |numbers: &[u32]| numbers.first().copied().unwrap_or(u32::MAX);
        let got = identity(first(&uids), first(&gids), &groups);
        (got, (!holds).then(|| "see whether the node itself changes its user".into()))
    }
}

fn identity(uid: u32, gid: u32, groups: &[u32]) -> String {
    let groups = match groups {
        [] => " none".into(),
        _ => groups.iter().map(|group| format!(" {group}")).collect::<String>(),
    };
    format!("uid {uid}, gid {gid}, groups{groups}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let limits = "\
Limit                     Soft Limit           Hard Limit           Units     \n\
Max data size             unlimited            unlimited            bytes     \n\
Max open files            64                   128                  files     \n";
        let process = ProcFiles { pid: 1, limits: limits.into(), status: String::new() };
        assert_eq!(process.limit("Max open files"), (Some(64), Some(128)));
        assert_eq!(process.limit("Max data size"), (None, None));
        assert_eq!(process.limit("Max of nothing"), (None, None));
    }

    #[test]
    fn one_number_of_another_user_is_too_many() {
        let user =
            User { name: "cam".into(), uid: 7, gid: 8, groups: vec![8, 9], home: "/".into() };
        let found = |status: &str| {
            ProcFiles { pid: 1, limits: String::new(), status: status.into() }.runs_as(&user)
        };
        let (got, remedy) = found("Uid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t8 9 \n");
        assert_eq!((got.as_str(), remedy), ("uid 7, gid 8, groups 8 9", None));
        for bad in [
            "Uid:\t7\t7\t0\t7\nGid:\t8\t8\t8\t8\nGroups:\t8 9 \n",
            "Uid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t0 8 9 \n",
            "",
        ] {
            assert!(found(bad).1.is_some(), "{bad}");
        }
    }
}
