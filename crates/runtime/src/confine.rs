//! What a domain may use, and as which user it runs: a cgroup of its own where we may make one,
//! resource limits where not, another user. What it has got is read back from the kernel; what was
//! refused is shown with its reason and its remedy.
//!
//! The supervisor prepares all domains before it starts the first (it may have to step aside in the
//! tree of cgroups, and processes started before that would stay behind). It applies each
//! confinement to the command that it starts, and looks at [`Confinement::entered`] right after.

mod cgroup;
mod readback;
mod strays;
mod user;

use std::io;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use sinew_core::sys;
use sinew_spec::plan::{Domain, ServiceLimits};

pub(crate) use self::cgroup::sweep_stale;
use self::cgroup::{Cgroup, Controller, Refusals, refuse_all};
pub use self::strays::{MARKER, kill_strays};
pub(crate) use self::strays::{Strays, await_end};
use self::user::User;

/// What systemd gives to the supervisor, and to it alone; no domain may speak in its name.
const OF_SYSTEMD: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// The bounds of a domain. Dropping it kills what is left in its cgroup and removes the cgroup.
#[derive(Debug)]
pub struct Confinement {
    limits: ServiceLimits,
    user: Option<User>,
    cgroup: Option<Cgroup>,
    /// What its cgroup does not limit although it was asked for.
    refusals: Refusals,
    /// For a realtime domain of another user: the SCHED_FIFO priority that it is to keep.
    priority: Option<u8>,
    /// Whether it is a service.
    serves: bool,
    /// The CPUs that a service's spec names; its process keeps to them by itself.
    cpus: Option<Vec<u32>>,
}

/// Whether this machine knows the domain's user. Whether we may become it is seen at the start: the
/// user who checks a graph need not be the one who runs it.
///
/// # Errors
/// The user does not exist.
pub fn check_user(domain: &Domain) -> io::Result<()> {
    domain.user.as_deref().map_or(Ok(()), |name| User::look_up(name, &domain.name).map(drop))
}

impl Confinement {
    /// Looks up the domain's user and makes its cgroup. `run` names the run among all runs of this
    /// machine; nothing of the domain may have been started yet.
    ///
    /// A service gets a cgroup whenever that is possible, also without limits: the cgroup finds all
    /// processes that the service has started. A realtime domain stays where the supervisor is. A
    /// refused limit is no error: [`Confinement::read_back`] shows it.
    ///
    /// # Errors
    /// The user does not exist, may not run this program, or we may not become that user.
    pub fn prepare(domain: &Domain, run: &str) -> io::Result<Confinement> {
        let user = domain.user.as_deref().map(|name| User::find(name, &domain.name)).transpose()?;
        let limits = domain.service().map(|service| service.limits);
        let (cgroup, refusals) = match (limits, cgroup::own_folder()) {
            (None, _) => (None, Refusals::new()),
            (Some(limits), Ok(own)) => {
                Cgroup::make(&own, &format!("{run}.{}", domain.name), &limits)
            }
            (Some(_), Err(refusal)) => (None, refuse_all(&refusal)),
        };
        let is_other = user.as_ref().is_some_and(|user| !user.is_us());
        let priority = domain.realtime().filter(|_| is_other).map(|realtime| realtime.priority);
        let (serves, limits) = (limits.is_some(), limits.unwrap_or_default());
        let cpus = domain.service().and_then(|service| service.cpus.clone());
        Ok(Confinement { limits, user, cgroup, refusals, priority, serves, cpus })
    }

    /// Has the process that `command` starts enter its cgroup, take its limits and become its user,
    /// in this order, before its program begins. For one start; a restart needs it again.
    pub fn apply(&self, command: &mut Command) {
        OF_SYSTEMD.iter().for_each(|name| {
            command.env_remove(name);
        });
        let user = self.user.as_ref().filter(|user| !user.is_us());
        if let Some(user) = user {
            // Programs look at these to find the user's own files.
            command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name);
        }
        let bounds = sys::ProcessBounds {
            // Where it cannot be opened, `entered` finds that out.
            cgroup: self.cgroup.as_ref().and_then(|cgroup| cgroup.entrance().ok()),
            limits: self.resource_limits(),
            user: user.map(|user| (user.uid, user.gid, user.groups.clone())),
        };
        sys::bound(command, bounds);
    }

    /// Makes sure that the process which was just started is in its cgroup.
    ///
    /// # Errors
    /// It is not, and cannot be moved there: then its limits do not hold.
    pub fn entered(&self, pid: u32) -> io::Result<()> {
        match &self.cgroup {
            Some(cgroup) if !cgroup.holds(pid) => cgroup.take_in(pid),
            _ => Ok(()),
        }
    }

    /// Processes that the kernel has killed so far because the domain's memory was full; 0 without
    /// a cgroup.
    pub fn memory_kills(&self) -> u64 {
        self.cgroup.as_ref().map_or(0, |cgroup| cgroup.count("memory.events", "oom_kill "))
    }

    /// Kills all processes of the domain at once, those that it started included. `false` if there
    /// is no cgroup that can do so: then [`kill_strays`] is what remains.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn kill(&self) -> io::Result<bool> {
        self.cgroup.as_ref().map_or(Ok(false), Cgroup::kill)
    }

    /// The limits that are set for the process itself, because no cgroup sets them, or because they
    /// exist only for a process.
    fn resource_limits(&self) -> Vec<(Resource, Rlimit)> {
        let mut limits = vec![];
        if self.serves {
            // The realtime class is the core's. (Root can take it anyway.)
            limits.push((Resource::Rtprio, exactly(0)));
        }
        if let Some(descriptors) = self.limits.descriptors {
            limits.push((Resource::Nofile, within_reach(Resource::Nofile, descriptors)));
        }
        if let Some(bytes) = self.limits.memory_bytes.filter(|_| self.lacks(Controller::Memory)) {
            // Not the address space: that counts what is only reserved (64 MiB for each thread that
            // allocates) and the regions that the links share.
            limits.push((Resource::Data, within_reach(Resource::Data, bytes)));
        }
        if let Some(count) = self.limits.processes.filter(|_| self.counts_by_user()) {
            limits.push((Resource::Nproc, within_reach(Resource::Nproc, count)));
        }
        if let Some(priority) = self.priority.filter(|_| is_capable(CapabilitySet::SYS_RESOURCE)) {
            // Another user has none of our capabilities: these limits let it be realtime anyway.
            limits.push((Resource::Rtprio, exactly(priority.into())));
            limits.push((Resource::Memlock, Rlimit { current: None, maximum: None }));
        }
        limits
    }

    fn lacks(&self, controller: Controller) -> bool {
        self.refusals.contains_key(&controller)
    }

    /// The kernel counts the processes of a user, wherever they are: that bounds this domain only
    /// if the user is not ours, and never bounds root.
    fn counts_by_user(&self) -> bool {
        let user = self.user.as_ref().is_some_and(|user| !user.is_us() && user.uid != 0);
        user && self.lacks(Controller::Processes)
    }
}

/// `asked`, or as much of it as we may give.
fn within_reach(resource: Resource, asked: u64) -> Rlimit {
    let most = getrlimit(resource).maximum.filter(|_| !is_capable(CapabilitySet::SYS_RESOURCE));
    exactly(most.map_or(asked, |most| asked.min(most)))
}

fn exactly(value: u64) -> Rlimit {
    Rlimit { current: Some(value), maximum: Some(value) }
}

fn is_capable(needed: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// One line of a small file of the kernel.
fn line_of(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map(|text| text.trim().to_string())
}

#[cfg(test)]
mod tests;
