//! The data files of a recording: unpacked into a temporary folder for the time of the replay, and
//! compared with the current files at their original place.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

/// A folder that exists as long as the replay.
#[derive(Debug)]
pub(super) struct Unpacked {
    /// Removes the folder when it is dropped.
    _top: TempDir,
    /// The folder at which the spec's paths start.
    pub(super) base: PathBuf,
}

impl Unpacked {
    /// Unpacks `files`. A file with an absolute name is not unpacked: such a name means exactly
    /// that file.
    ///
    /// # Errors
    /// The system's error, in words.
    pub(super) fn new(files: &[(String, Vec<u8>)]) -> Result<Unpacked, String> {
        let cannot = |error: io::Error| {
            format!(
                "cannot unpack the recording's files: {error}; use --base with a folder of yours"
            )
        };
        // Closed to other users.
        let mode = Permissions::from_mode(0o700);
        let top = Builder::new().prefix("sinew-replay-").permissions(mode).tempdir();
        let top = top.map_err(cannot)?;
        let relative = || files.iter().filter(|(name, _)| Path::new(name).is_relative());
        let depth = relative().map(|(name, _)| climbs(Path::new(name))).max().unwrap_or(0);
        // Deep enough that no `..` in a name leads out of the folder.
        let base = (0..depth).fold(top.path().to_owned(), |base, _| base.join("base"));
        let unpacked = Unpacked { _top: top, base };
        fs::create_dir_all(&unpacked.base).map_err(cannot)?;
        relative().try_for_each(|(name, data)| unpacked.write(name, data)).map_err(cannot)?;
        Ok(unpacked)
    }

    fn write(&self, name: &str, data: &[u8]) -> io::Result<()> {
        let mut path = self.base.clone();
        let mut names = steps(Path::new(name)).peekable();
        while let Some(name) = names.next() {
            match is_up(name) {
                true => drop(path.pop()),
                false => path.push(name),
            }
            if names.peek().is_some() {
                fs::create_dir_all(&path)?;
            }
        }
        fs::write(path, data)
    }
}

/// The names along a path. A `.` at the start changes nothing.
fn steps(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.iter().filter(|name| *name != ".")
}

fn is_up(name: &OsStr) -> bool {
    name == ".."
}

/// How far above its start a path leads at its highest point.
fn climbs(path: &Path) -> usize {
    let (mut depth, mut highest) = (0_i64, 0);
    for name in steps(path) {
        depth += if is_up(name) { -1 } else { 1 };
        highest = highest.min(depth);
    }
    highest.unsigned_abs() as usize
}

/// Names of the files that are not in `folder` as they were recorded, each with its difference.
pub(super) fn changed(files: &[(String, Vec<u8>)], folder: &Path) -> Vec<(String, &'static str)> {
    let what = |name: &str, data: &[u8]| {
        let path = folder.join(name);
        match fs::metadata(&path) {
            Ok(row) if row.is_file() && row.len() == data.len() as u64 => match fs::read(&path) {
                Ok(now) if now == data => None,
                Ok(_) => Some("has changed since"),
                Err(_) => Some("cannot be read"),
            },
            Ok(row) if row.is_file() => Some("has changed since"),
            _ => Some("is not there"),
        }
    };
    let rows = files.iter().map(|(name, data)| (name, what(name, data)));
    rows.filter_map(|(name, what)| Some((name.clone(), what?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder_and_nothing_is_left_behind() {
        let names = [
            "a.csv",
            "../arm/b.urdf",
            "../../c",
            "x/../../../d",
            "/etc/e",
            "./f/g.csv",
            "./../../../../h",
        ];
        let files = names.map(|name| (name.to_owned(), name.as_bytes().to_vec()));
        let unpacked = Unpacked::new(&files).expect("a folder for temporary files");
        for (name, data) in files.iter().filter(|(name, _)| !name.starts_with('/')) {
            let path = unpacked.base.join(name);
            assert_eq!(fs::read(&path).expect(name), *data);
            let path = path.canonicalize().expect(name);
            let top = unpacked._top.path().canonicalize().expect("it is there");
            assert!(path.starts_with(top), "{path:?}");
        }
        assert!(!Path::new("/etc/e").exists());
        let top = unpacked._top.path().to_owned();
        drop(unpacked);
        assert!(!top.exists());
    }

    #[test]
    fn a_file_that_has_changed_is_found() {
        let files = [("a".to_owned(), b"old".to_vec()), ("b".to_owned(), b"b".to_vec())];
        let unpacked = Unpacked::new(&files).expect("a folder for temporary files");
        assert_eq!(changed(&files, &unpacked.base), []);
        fs::write(unpacked.base.join("a"), "new").expect("ours");
        fs::remove_file(unpacked.base.join("b")).expect("ours");
        let expected = [("a".to_owned(), "has changed since"), ("b".to_owned(), "is not there")];
        assert_eq!(changed(&files, &unpacked.base), expected);
    }
}
