//! A cgroup (version 2) for a domain, below the cgroup of this process. No other cgroup of the tree
//! is touched, and no foreign process is moved: a foreign process in our cgroup keeps us from
//! limiting anything in it, and the refusal says so.
//!
//! A cgroup that hands controllers down holds no processes of its own, so the supervisor steps
//! aside into a leaf, and goes back when the last domain is gone. The root of the tree is exempt.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sinew_core::clock::{now_ns, timespec};
use sinew_spec::plan::ServiceLimits;

use super::line_of;

/// How long the kernel may take to end the processes killed in a cgroup. Past this the cgroup stays
/// behind, and the next run in the same place removes it, whatever graph that runs.
const EMPTY_NS_MAX: u64 = 1_000_000_000;
/// Period of the bandwidth controller: the kernel's default. A limit of 50 % is 50 ms of each
/// period.
const CPU_PERIOD_US: u64 = 100_000;
/// Name of the supervisor's own leaf, after the prefix.
const SUPERVISOR: &str = "supervisor";

/// What limits a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Memory,
    Cpu,
    Processes,
}

impl Controller {
    const ALL: [Controller; 3] = [Controller::Memory, Controller::Cpu, Controller::Processes];

    fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Cpu => "cpu",
            Controller::Processes => "pids",
        }
    }

    pub(crate) fn file(self) -> &'static str {
        match self {
            Controller::Memory => "memory.max",
            Controller::Cpu => "cpu.max",
            Controller::Processes => "pids.max",
        }
    }

    fn value(self, limits: &ServiceLimits) -> Option<String> {
        match self {
            Controller::Memory => limits.memory_bytes.map(|bytes| bytes.to_string()),
            Controller::Cpu => limits.cpu_percent.map(|percent| {
                format!("{} {CPU_PERIOD_US}", u64::from(percent) * CPU_PERIOD_US / 100)
            }),
            Controller::Processes => limits.processes.map(|count| count.to_string()),
        }
    }
}

/// Why a limit is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) why: String,
    pub(crate) remedy: String,
}

impl Refusal {
    fn new(why: String, remedy: &str) -> Refusal {
        Refusal { why, remedy: remedy.into() }
    }
}

/// What is to be done where our cgroup is not ours to divide.
const DELEGATE: &str = "start it as 'systemd-run --user --scope -p Delegate=yes sinew run ...' \
                        (as root without --user), or with Delegate=yes in its unit";
/// What is to be done where the kernel has the controllers elsewhere.
const VERSION_2: &str = "boot with 'cgroup_no_v1=all' (with systemd: \
                         'systemd.unified_cgroup_hierarchy=1'), and let the cgroups above delegate \
                         it (Delegate=yes)";

/// What a domain's cgroup does not limit, and why.
pub(crate) type Refusals = BTreeMap<Controller, Refusal>;

pub(crate) fn refuse_all(refusal: &Refusal) -> Refusals {
    Controller::ALL.map(|controller| (controller, refusal.clone())).into()
}

/// The folder of the cgroup of this process.
pub(crate) fn own_folder() -> Result<PathBuf, Refusal> {
    let read = |path: &str| {
        fs::read_to_string(path)
            .map_err(|error| Refusal::new(format!("{path}: {error}"), "mount /proc"))
    };
    folder_of(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?)
}

fn folder_of(mounts: &str, cgroups: &str) -> Result<PathBuf, Refusal> {
    let mount = mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then_some(mount)
    });
    let mount = mount.and_then(|mount| {
        let fields: Vec<_> = mount.split(' ').collect();
        Some((*fields.get(3)?, *fields.get(4)?))
    });
    let Some((root, point)) = mount else {
        let why = "cgroup version 2 is not mounted".into();
        return Err(Refusal::new(why, "mount -t cgroup2 none /sys/fs/cgroup"));
    };
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
    let below = own.and_then(|own| Path::new(own).strip_prefix(root).ok());
    match below.filter(|below| !below.starts_with("..")) {
        // Joining an empty path would put a slash at the end.
        Some(below) if below == Path::new("") => Ok(point.into()),
        Some(below) => Ok(Path::new(point).join(below)),
        None => {
            let own = own.unwrap_or("none");
            let why = format!("the cgroup of this process ({own}) is not below the mount {root}");
            Err(Refusal::new(why, "give the container a separate cgroup namespace"))
        }
    }
}

/// This process has one place in the tree: code that changes the place, or relies on it, holds this
/// lock.
fn our_place() -> MutexGuard<'static, ()> {
    static PLACE: Mutex<()> = Mutex::new(());
    // It guards no data, so a panic left nothing half done.
    PLACE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cgroup of a domain.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Makes a cgroup with these limits below our own, `own`, and returns what it does not limit.
    /// `None` if no cgroup can be made.
    pub(crate) fn make(
        own: &Path,
        name: &str,
        limits: &ServiceLimits,
    ) -> (Option<Cgroup>, Refusals) {
        let _place = our_place();
        let base = base_of(own);
        sweep(&base);
        let folder = base.join(format!("{}{name}", prefix()));
        if let Err(error) = fs::create_dir(&folder) {
            let why = format!("cannot make a cgroup in {}: {error}", base.display());
            return (None, refuse_all(&Refusal::new(why, DELEGATE)));
        }
        let cgroup = Cgroup { folder };
        let wanted = Controller::ALL.map(|controller| (controller, controller.value(limits)));
        let mut refusals = Refusals::new();
        for (controller, value) in wanted {
            let Some(value) = value else { continue };
            let limited = enable(&base, controller).and_then(|()| cgroup.limit(controller, &value));
            if let Err(refusal) = limited {
                refusals.insert(controller, refusal);
            }
        }
        (Some(cgroup), refusals)
    }

    fn limit(&self, controller: Controller, value: &str) -> Result<(), Refusal> {
        self.write(controller.file(), value).map_err(|error| {
            let why = format!("cannot write {value} to {}: {error}", controller.file());
            Refusal::new(why, DELEGATE)
        })?;
        if controller == Controller::Memory {
            // A process that is swapped out to a disk disturbs everybody. A kernel that does not
            // account for swap has no such file.
            let _ = self.write("memory.swap.max", "0");
            // The nodes of a domain fail together. Kernels before 4.19 have no such file.
            let _ = self.write("memory.oom.group", "1");
        }
        Ok(())
    }

    /// The file to which a process writes its number to enter.
    pub(crate) fn entrance(&self) -> io::Result<OwnedFd> {
        let entrance = OpenOptions::new().write(true).open(self.folder.join("cgroup.procs"))?;
        Ok(entrance.into())
    }

    pub(crate) fn holds(&self, pid: u32) -> bool {
        processes(&self.folder).is_ok_and(|processes| processes.contains(&pid))
    }

    /// Moves a process, with all its threads, into it. A process that has ended needs no place.
    pub(crate) fn take_in(&self, pid: u32) -> io::Result<()> {
        match self.write("cgroup.procs", &pid.to_string()) {
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
            moved => moved,
        }
    }

    pub(crate) fn read(&self, file: &str) -> io::Result<String> {
        line_of(&self.folder.join(file))
    }

    /// A count in one of its files; 0 without the controller that has this file.
    pub(crate) fn count(&self, file: &str, key: &str) -> u64 {
        let text = self.read(file).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        count.unwrap_or(0)
    }

    /// Kills all that is in it or below; `false` on a kernel before 5.14, which cannot.
    pub(crate) fn kill(&self) -> io::Result<bool> {
        match self.write("cgroup.kill", "1") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    #[cfg(test)]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        write(&self.folder.join(file), text)
    }

    /// Removes it and what was made below, once the processes are gone.
    fn remove(&self) {
        let until_ns = now_ns() + EMPTY_NS_MAX;
        while remove_tree(&self.folder).is_err_and(|error| is_busy(&error)) && now_ns() < until_ns {
            await_change(&self.folder.join("cgroup.events"), until_ns);
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Where the kernel cannot kill them, the party that started the processes has done so.
        let _ = self.kill();
        self.remove();
        let _place = our_place();
        if let Some(base) = self.folder.parent() {
            step_back(base);
        }
    }
}

/// What the names of all cgroups of this process begin with.
fn prefix() -> String {
    format!("sinew.{}.", std::process::id())
}

/// The cgroup to divide: our own, or the one above if we have stepped aside already.
fn base_of(own: &Path) -> PathBuf {
    let aside = own.ends_with(format!("{}{SUPERVISOR}", prefix()));
    own.parent().filter(|_| aside).unwrap_or(own).to_path_buf()
}

/// Has `base` hand the controller down to the cgroups in it.
fn enable(base: &Path, controller: Controller) -> Result<(), Refusal> {
    let (name, place) = (controller.name(), base.display());
    let lists = |file: &str| {
        line_of(&base.join(file)).unwrap_or_default().split(' ').any(|word| word == name)
    };
    if lists("cgroup.subtree_control") {
        return Ok(());
    }
    if !lists("cgroup.controllers") {
        let why = format!("the cgroup {place} has no controller '{name}'");
        return Err(Refusal::new(why, VERSION_2));
    }
    step_aside(base)?;
    write(&base.join("cgroup.subtree_control"), &format!("+{name}")).map_err(|error| {
        let why = format!("the cgroup {place} does not delegate '{name}': {error}");
        Refusal::new(why, DELEGATE)
    })
}

/// Moves this process from `base` into a leaf of its own, if nobody else is there.
fn step_aside(base: &Path) -> Result<(), Refusal> {
    // The root of the tree, which alone has no type, may hold processes besides cgroups.
    if !base.join("cgroup.type").exists() {
        return Ok(());
    }
    let place = base.display();
    let refuse = |error: io::Error| {
        Refusal::new(
            format!("cannot move this process into a cgroup below {place}: {error}"),
            DELEGATE,
        )
    };
    let own = std::process::id();
    let (ours, others): (Vec<_>, Vec<_>) =
        processes(base).map_err(refuse)?.into_iter().partition(|&pid| pid == own);
    if !others.is_empty() {
        let count = others.len();
        let why = format!("the cgroup {place} also has processes of other programs ({count})");
        return Err(Refusal::new(why, DELEGATE));
    }
    if ours.is_empty() {
        return Ok(());
    }
    let leaf = base.join(format!("{}{SUPERVISOR}", prefix()));
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(refuse(error)),
        _ => write(&leaf.join("cgroup.procs"), &own.to_string()).map_err(refuse),
    }
}

/// Undoes [`step_aside`], if no cgroup of ours needs it any more and there is no other one.
fn step_back(base: &Path) {
    let leaf = base.join(format!("{}{SUPERVISOR}", prefix()));
    if !leaf.exists() || folders(base).iter().any(|folder| *folder != leaf) {
        return;
    }
    let control = base.join("cgroup.subtree_control");
    for name in line_of(&control).unwrap_or_default().split_whitespace() {
        // If this cannot be undone we stay in the leaf: then the move below fails.
        let _ = write(&control, &format!("-{name}"));
    }
    let back = write(&base.join("cgroup.procs"), &std::process::id().to_string());
    if back.is_ok() {
        // It held nobody but us; if it is left over, the next run here removes it.
        let _ = fs::remove_dir(&leaf);
    }
}

/// Removes what killed supervisors have left in the place where this process would have its
/// cgroups. A killed supervisor cannot do that: a cgroup is removed from outside, when nobody is
/// left in it.
pub(crate) fn sweep_stale() {
    if let Ok(own) = own_folder() {
        let _place = our_place();
        sweep(&base_of(&own));
    }
}

/// Removes what killed supervisors have left in `base`.
fn sweep(base: &Path) {
    for folder in folders(base) {
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let pid = name.strip_prefix("sinew.").and_then(|rest| rest.split_once('.'));
        let pid = pid.and_then(|(pid, _)| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // One that still holds a process stays; it is not ours to kill.
            let _ = remove_tree(&folder);
        }
    }
}

fn folders(base: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).collect()
}

/// A cgroup is removed as an empty folder is, whatever files show in it.
fn remove_tree(folder: &Path) -> io::Result<()> {
    folders(folder).iter().try_for_each(|below| remove_tree(below))?;
    fs::remove_dir(folder)
}

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy
}

/// Waits until a file of the kernel says something new.
fn await_change(file: &Path, until_ns: u64) {
    let Ok(open) = fs::File::open(file) else { return };
    // The kernel reports changes after the last reading.
    let _ = io::read_to_string(&open);
    let left = timespec(until_ns.saturating_sub(now_ns()).min(EMPTY_NS_MAX / 100));
    // It reports ends only; a look now and then finds what was removed below.
    let _ = poll(&mut [PollFd::new(&open, PollFlags::PRI)], Some(&left));
}

/// The processes that are in a cgroup itself.
fn processes(folder: &Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(folder.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Writes to a file of the kernel, which must be there.
fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
