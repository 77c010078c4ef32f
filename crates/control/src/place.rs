//! Where the sockets of runs are: in a folder that only its owner may enter.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The ending of a socket's name. In front of it is the process, `4711.sock`. Further runs of the
/// same process have a number too, `4711-1.sock`.
pub(super) const ENDING: &str = "sock";
/// The ending for the socket for taps of a process.
pub(super) const TAP_ENDING: &str = "tap";

/// The environment variables that matter here.
struct Environment {
    uid: u32,
    /// Set by systemd for a service with `RuntimeDirectory=`. May be several folders, separated by
    /// colons.
    runtime_directory: Option<OsString>,
    /// Set for a user who has logged in.
    xdg_runtime_dir: Option<OsString>,
}

impl Environment {
    fn read() -> Environment {
        Environment {
            uid: geteuid().as_raw(),
            runtime_directory: env::var_os("RUNTIME_DIRECTORY"),
            xdg_runtime_dir: env::var_os("XDG_RUNTIME_DIR"),
        }
    }

    /// Folders in which a socket may be made, the best first.
    fn candidates(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        let given = self.runtime_directory.iter().flat_map(env::split_paths);
        folders.extend(given.filter(|path| path.is_absolute()).take(1));
        // A folder of another user is a leftover of `sudo`.
        let own = self.xdg_runtime_dir.iter().map(PathBuf::from).filter(|path| {
            path.is_absolute() && path.metadata().is_ok_and(|it| it.uid() == self.uid)
        });
        folders.extend(own.map(|path| path.join("sinew")));
        folders.push(format!("/run/sinew-{}", self.uid).into());
        folders.push(format!("/tmp/sinew-{}", self.uid).into());
        folders
    }
}

/// Where systemd's units have their folders.
const OF_UNITS: &str = "/run/sinew";

/// The folder for the socket of a new run. It is created if it does not exist.
///
/// # Errors
/// If no folder can be made, or an existing folder is not for its owner alone: what is wrong with
/// it, and what to do.
pub fn folder() -> io::Result<PathBuf> {
    let environment = Environment::read();
    make_first(&environment.candidates(), environment.uid)
}

/// Every folder that may hold runs of this user: as chosen here or in another session, and the
/// folders of systemd's units, `RuntimeDirectory=sinew` or one below.
pub fn folders() -> Vec<PathBuf> {
    let environment = Environment::read();
    let mut folders = environment.candidates();
    // The folder of a login session, for a client outside of the session.
    folders.push(format!("/run/user/{}/sinew", environment.uid).into());
    folders.push(OF_UNITS.into());
    folders.extend(below_units());
    folders.sort();
    folders.dedup();
    // No run starts in a folder that other users can enter or own, so it holds no run of ours.
    folders.retain(|folder| check(folder, environment.uid).is_ok());
    folders
}

/// Folders of systemd's units that belong to other users, each with the number of its owner. Runs
/// in them answer only their owner.
pub fn folders_of_others() -> impl Iterator<Item = (PathBuf, u32)> {
    let ours = geteuid().as_raw();
    below_units().filter_map(move |folder| {
        let owner = fs::metadata(&folder).ok()?.uid();
        (owner != ours).then_some((folder, owner))
    })
}

/// The folders of single units. Empty if the folder is missing or cannot be read: then no run of
/// ours is there.
fn below_units() -> impl Iterator<Item = PathBuf> {
    fs::read_dir(OF_UNITS).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The first folder that exists or can be made.
fn make_first(candidates: &[PathBuf], uid: u32) -> io::Result<PathBuf> {
    let mut refusals = Vec::new();
    for folder in candidates {
        let made = DirBuilder::new().mode(0o700).create(folder);
        match made {
            // Sets the mode again, in case the umask removed bits.
            Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o700))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                refusals.push(format!("{}: {error}", folder.display()));
                continue;
            }
        }
        return check(folder, uid).map(|()| folder.clone());
    }
    let text = format!(
        "no folder for the control socket can be made ({}); set XDG_RUNTIME_DIR to a folder of \
         yours",
        refusals.join("; ")
    );
    Err(io::Error::other(text))
}

/// Whether a folder is a real one, ours, and closed to others. Somebody who could write there could
/// replace our socket by another one.
fn check(folder: &Path, uid: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let mode = found.mode() & 0o777;
    let wrong = if found.is_symlink() {
        "is a symbolic link, expected a folder; remove it".to_owned()
    } else if !found.is_dir() {
        "is not a folder; remove it".to_owned()
    } else if found.uid() != uid {
        format!(
            "belongs to user {}, expected {uid}; have it removed, or set XDG_RUNTIME_DIR to a \
             folder of yours",
            found.uid()
        )
    } else if mode != 0o700 {
        format!(
            "has mode {mode:04o}, expected 0700; run 'chmod 700 {}' (in a unit of systemd: \
             RuntimeDirectoryMode=0700)",
            folder.display()
        )
    } else {
        return Ok(());
    };
    Err(io::Error::other(format!("the control socket's folder {} {wrong}", folder.display())))
}

/// The process in the name of a socket with this ending.
pub(super) fn process_of(socket: &Path, ending: &str) -> Option<u32> {
    if socket.extension()? != ending {
        return None;
    }
    let stem = socket.file_stem()?.to_str()?;
    let pid = stem.split_once('-').map_or(stem, |(pid, _)| pid);
    pid.parse().ok().filter(|&pid| pid != 0)
}

#[cfg(test)]
mod tests;
