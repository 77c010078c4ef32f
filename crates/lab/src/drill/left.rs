//! What a run has left behind: compared before and after it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use sinew_control::place;
use sinew_runtime::confine::MARKER;

/// What this process holds, and what the machine holds that belongs to us.
pub(super) struct Left {
    /// Descriptors of this process, and the file behind each.
    descriptors: BTreeMap<String, PathBuf>,
    /// Mappings of regions in this process.
    regions: usize,
    /// Files of shared memory.
    shared: BTreeSet<PathBuf>,
    /// Sockets of runs.
    sockets: BTreeSet<PathBuf>,
}

impl Left {
    /// As it is now.
    pub(super) fn look() -> Left {
        let folders = place::folders();
        Left {
            descriptors: descriptors(),
            regions: regions(),
            shared: entries("/dev/shm".as_ref()),
            sockets: folders.iter().flat_map(|folder| entries(folder)).collect(),
        }
    }

    /// What there is now that was not there before; a sentence for each.
    pub(super) fn since(&self) -> Vec<String> {
        let now = Left::look();
        let mut left = processes();
        for (number, file) in &now.descriptors {
            if self.descriptors.get(number) != Some(file) {
                left.push(format!("descriptor {number}: {}", file.display()));
            }
        }
        if now.regions > self.regions {
            left.push(format!("{} mapped regions", now.regions - self.regions));
        }
        let files =
            now.shared.difference(&self.shared).chain(now.sockets.difference(&self.sockets));
        // Other runs come and go meanwhile; the names of ours contain our process number.
        let own = std::process::id().to_string();
        let name =
            |file: &&PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
        let ours = files.filter(|file| name(file).is_some_and(|name| name.contains(&own)));
        left.extend(ours.map(|file| format!("file {}", file.display())));
        left
    }
}

fn descriptors() -> BTreeMap<String, PathBuf> {
    let folder = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let descriptors = folder.filter_map(|entry| {
        let file = fs::read_link(entry.path()).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), file))
    });
    // The descriptor that reads this folder is not left over from a run.
    descriptors.filter(|(_, file)| !file.starts_with("/proc")).collect()
}

fn regions() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter(|line| line.contains("/memfd:sinew-")).count()
}

fn entries(folder: &std::path::Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Processes that are still running and are domains of ours, or their children.
fn processes() -> Vec<String> {
    let (mark, own) = (format!("{MARKER}="), format!("-{}-", std::process::id()));
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut entries = environment.split(|&byte| byte == 0).map(String::from_utf8_lossy);
        entries.any(|entry| entry.starts_with(&mark) && entry.contains(&own))
    };
    pids.filter(is_ours).map(|pid| format!("process {pid}")).collect()
}

/// The letter that the kernel shows for the state of a process: `R`, `S`, `T`, `Z` ...; `None` if
/// the process is gone.
pub(super) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the state may hold anything, but it ends at the last bracket.
    stat.rsplit(") ").next()?.chars().next()
}
