//! The folder of recordings: names of parts, which files are ours, which may be removed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sinew_recording::format::EXTENSION;
use sinew_recording::mend::head;

/// Least number of digits of a part's number.
const DIGITS: usize = 4;
/// Most names that are tried for a part, one millisecond apart, if files of that name exist.
const NAMES_MAX: u64 = 100;

/// Where the parts of a graph's recordings are.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    graph: String,
}

impl Folder {
    /// The folder for a graph.
    pub(super) fn new(path: &Path, graph: &str) -> Folder {
        Folder { path: path.into(), graph: graph.into() }
    }

    /// Begins a file for a part. It is locked until it is closed, so nobody mends or removes it.
    pub(super) fn begin(&self, part: u32, now: SystemTime) -> io::Result<(File, PathBuf)> {
        let mut refused = io::Error::from(io::ErrorKind::AlreadyExists);
        for later_ms in 0..NAMES_MAX {
            let path = self.path.join(self.name(part, now + Duration::from_millis(later_ms)));
            match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                // Another recorder may have locked it first, taking it for one that a kill has
                // left.
                Ok(file) if is_locked(&file)? && file.metadata()?.len() == 0 => {
                    return Ok((file, path));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    fn name(&self, part: u32, now: SystemTime) -> String {
        let time = humantime::format_rfc3339_millis(now).to_string().replace(['-', ':'], "");
        format!("{}-{time}-{part:0DIGITS$}.{EXTENSION}", self.graph)
    }

    /// Whether a name is one that [`Folder::begin`] gives.
    fn is_ours(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.graph).and_then(|rest| rest.strip_prefix('-'));
        let rest = rest.and_then(|rest| rest.strip_suffix(EXTENSION)?.strip_suffix('.'));
        let Some((time, part)) = rest.and_then(|rest| rest.split_once('-')) else { return false };
        let shape: String =
            time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let is_number = part.chars().all(|c| c.is_ascii_digit());
        shape == "00000000T000000.000Z" && part.len() >= DIGITS && is_number
    }

    /// The parts of this graph, of all runs, the oldest first: their names contain the start time.
    pub(super) fn parts(&self) -> io::Result<Vec<PathBuf>> {
        let mut parts = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let is_ours = entry.file_name().to_str().is_some_and(|name| self.is_ours(name));
            if is_ours && entry.file_type()?.is_file() {
                parts.push(entry.path());
            }
        }
        parts.sort();
        Ok(parts)
    }

    /// Removes the oldest parts until `keep` are left. Skips parts that somebody writes, files that
    /// no recorder wrote, and files that cannot be removed. Returns the removed parts.
    pub(super) fn trim(&self, keep: usize) -> io::Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        let parts = self.parts()?;
        for path in &parts[..parts.len().saturating_sub(keep)] {
            if remove(path).unwrap_or(false) {
                removed.push(path.clone());
            }
        }
        Ok(removed)
    }
}

/// Takes the folder for a recorder: while the returned file is open, no other recorder gets the
/// folder. A kill releases it.
///
/// # Errors
/// The folder's error; or the process that records into it, as far as the kernel shows that.
pub(super) fn take(path: &Path) -> Result<File, Refused> {
    let folder = File::open(path).map_err(Refused::Unusable)?;
    match is_locked(&folder).map_err(Refused::Unusable)? {
        true => Ok(folder),
        false => Err(Refused::Taken(holder(&folder))),
    }
}

/// Why a recorder does not get its folder.
#[derive(Debug)]
pub(super) enum Refused {
    /// The system's error.
    Unusable(io::Error),
    /// Another recorder has it; its process, if that is known.
    Taken(Option<u32>),
}

/// The process that has locked a file.
fn holder(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let rows = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_it = |row: &Vec<&str>| {
        row.get(1) == Some(&"FLOCK") && row.get(5).is_some_and(|file| file.ends_with(&inode))
    };
    rows.filter(is_it).find_map(|row| row[4].parse().ok())
}

/// Opens a part and locks it until it is closed; `None` if somebody writes it.
pub(super) fn open(path: &Path, to_mend: bool) -> io::Result<Option<File>> {
    let file = OpenOptions::new().read(true).append(to_mend).open(path)?;
    Ok(is_locked(&file)?.then_some(file))
}

/// Removes a part; `false` if it is not a part, or if somebody writes it.
fn remove(path: &Path) -> io::Result<bool> {
    let Some(file) = open(path, false)? else { return Ok(false) };
    let is_part = head(&file)?.is_some();
    if is_part {
        fs::remove_file(path)?;
    }
    Ok(is_part)
}

/// Locks a file; `false` if somebody else has locked it.
fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_a_recorder_wrote_for_this_graph() {
        let folder = Folder::new(Path::new("."), "robot");
        let name = folder.name(12, SystemTime::UNIX_EPOCH + Duration::from_millis(1234));
        assert_eq!(name, "robot-19700101T000001.234Z-0012.mcap");
        assert!(folder.is_ours(&name));
        for other in [
            "robot.mcap",
            "robot-2-19700101T000001.234Z-0012.mcap",
            "arm-19700101T000001.234Z-0012.mcap",
            "robot-19700101T000001.234Z-12.mcap",
            "robot-19700101T000001.234Z-0012.mcap.old",
            "robot-19700101T000001Z-0012.mcap",
            "robot-19700101T000001.234Z-00x2.mcap",
        ] {
            assert!(!folder.is_ours(other), "{other}");
        }
    }
}
