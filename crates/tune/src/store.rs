//! Where the machine profile is stored, and which user may own the file.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::profile::{BYTES_MAX, MachineProfile};

/// The file in the user's cache folder: `$XDG_CACHE_HOME/sinew/machine.json`, or
/// `~/.cache/sinew/machine.json`.
///
/// # Errors
/// There is no such folder.
pub fn cached() -> Result<PathBuf, String> {
    place(env::var_os("XDG_CACHE_HOME"), env::var_os("HOME"))
}

/// A folder that is not absolute is ignored, as the XDG specification says.
fn place(cache: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, String> {
    let absolute =
        |folder: Option<OsString>| folder.map(PathBuf::from).filter(|it| it.is_absolute());
    let folder = absolute(cache).or_else(|| Some(absolute(home)?.join(".cache")));
    let folder = folder.ok_or(
        "there is no cache folder: neither XDG_CACHE_HOME nor HOME names one; set one of them, or \
         name a file with --out",
    )?;
    Ok(folder.join("sinew/machine.json"))
}

/// Reads a profile. `None` if the file does not exist.
///
/// # Errors
/// The file cannot be read, is not trusted, or is no profile. The error says what to do.
pub fn read(path: &Path) -> Result<Option<MachineProfile>, String> {
    let cannot = |error| format!("it cannot be read: {error}");
    let Some((file, of)) = open(path).map_err(cannot)? else { return Ok(None) };
    if !of.is_file() {
        return Err("it is not a file; name one".into());
    }
    let caller = env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok());
    if let Some(why) = distrusted(of.uid(), of.mode(), geteuid().as_raw(), caller) {
        return Err(why);
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > BYTES_MAX {
        let mib = BYTES_MAX >> 20;
        return Err(format!("it has more than {mib} MiB, the limit; run 'sinew tune' again"));
    }
    MachineProfile::parse(&bytes).map(Some)
}

/// Opens a file if it exists. Does not block, even for a pipe.
fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let no_wait = OFlags::NONBLOCK.bits() as i32;
    match OpenOptions::new().read(true).custom_flags(no_wait).open(path) {
        Ok(file) => file.metadata().map(|of| Some((file, of))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why a file of this owner and mode is not used. It affects only speed, but a user who can write
/// it could slow down a program that runs with another user's privileges.
fn distrusted(owner: u32, mode: u32, user: u32, caller: Option<u32>) -> Option<String> {
    if owner != 0 && owner != user && Some(owner) != caller {
        return Some(format!(
            "it belongs to user {owner}, expected {user} or root: another one could slow down \
             what you run; copy it, or run 'sinew tune'"
        ));
    }
    (mode & 0o002 != 0).then(|| {
        format!(
            "its mode is {:03o}, so anybody can write it and slow down what you run; run 'chmod \
             o-w' on it",
            mode & 0o777
        )
    })
}

/// Whether a file that a user names may be replaced: it must be a profile of any version, or empty,
/// or not exist.
///
/// # Errors
/// It is something else, which must not be lost. The error says what to do.
pub fn check_named(path: &Path) -> Result<(), String> {
    if path == Path::new("-") {
        return Err(
            "--out: '-' is not a file; '--json' writes the profile to standard output".into()
        );
    }
    let shown = path.display();
    let Some((file, of)) = open(path).map_err(|error| cannot_write(path, &error))? else {
        return Ok(());
    };
    if !of.is_file() {
        return Err(format!("'{shown}' is not a file; name another one with --out"));
    }
    let mut bytes = Vec::new();
    let read = file.take(BYTES_MAX as u64).read_to_end(&mut bytes);
    read.map_err(|error| cannot_write(path, &error))?;
    if bytes.is_empty() || MachineProfile::is_one(&bytes) {
        return Ok(());
    }
    Err(format!(
        "'{shown}' is not a machine profile and would be lost; name another one with --out"
    ))
}

/// Whether a profile can be written there: checked before measuring. Creates its folder.
///
/// # Errors
/// The file system's error, and what to do.
pub fn check_place(path: &Path) -> Result<(), String> {
    // The file was made a moment ago. If it cannot be removed, it is empty and does no harm.
    let _ = fs::remove_file(open_beside(path)?.beside);
    Ok(())
}

/// Writes a profile, completely or not at all.
///
/// # Errors
/// As for [`check_place`].
pub fn write(path: &Path, profile: &MachineProfile) -> Result<(), String> {
    let Beside { mut file, beside, path } = open_beside(path)?;
    let written = file.write_all(profile.to_json().as_bytes());
    written.and_then(|()| fs::rename(&beside, &path)).map_err(|error| {
        // What remains of the file, if anything, is of no use.
        let _ = fs::remove_file(&beside);
        cannot_write(&path, &error)
    })
}

/// A new file that will replace another.
struct Beside {
    file: File,
    /// Its path.
    beside: PathBuf,
    /// The file to be replaced. It is no symbolic link, so that the target of a link is replaced.
    path: PathBuf,
}

fn open_beside(path: &Path) -> Result<Beside, String> {
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(format!("'{}' is not a file; name another one with --out", path.display()));
    }
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(error) if path.is_symlink() => return Err(cannot_write(path, &error)),
        Err(_) => path.to_path_buf(),
    };
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}", std::process::id()));
    // A file with this name is left over from a dead process that had the same process number.
    let _ = fs::remove_file(&beside);
    let open = || {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside)
    };
    let file = open().map_err(|error| cannot_write(&path, &error))?;
    Ok(Beside { file, beside: beside.into(), path })
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write '{}': {error}; name another file with --out", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;
    use crate::profile::tests::profile;

    /// A folder for one test, removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = env::temp_dir().join(format!("sinew-tune-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_cache_folder_is_that_of_the_environment() {
        let some = |text: &str| Some(OsString::from(text));
        let at = |cache, home| place(cache, home).map(|path| path.display().to_string());
        assert_eq!(at(some("/c"), some("/h")), Ok("/c/sinew/machine.json".into()));
        assert_eq!(at(None, some("/h")), Ok("/h/.cache/sinew/machine.json".into()));
        assert_eq!(at(some("c"), some("/h")), Ok("/h/.cache/sinew/machine.json".into()));
        let error = at(some(""), None).expect_err("no folder");
        assert!(error.contains("set one of them, or name a file with --out"), "{error}");
    }

    #[test]
    fn a_profile_is_written_whole_and_read_again() {
        let folder = Folder::new("whole");
        let path = folder.0.join("deep/machine.json");
        assert_eq!(read(&path), Ok(None));
        write(&path, &profile()).expect("there is room");
        write(&path, &profile()).expect("in the place of the old one");
        assert_eq!(read(&path).expect("it is good"), Some(profile()));
        assert_eq!(fs::read_dir(path.parent().expect("deep")).expect("a folder").count(), 1);
        let error = check_place(&folder.0).expect_err("a folder");
        assert!(error.contains("is not a file; name another one"), "{error}");
        assert!(read(&folder.0).expect_err("a folder").contains("it is not a file"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).expect("ours");
        let error = read(&path).expect_err("anybody's");
        assert!(error.contains("its mode is 646") && error.contains("chmod o-w"), "{error}");
    }

    #[test]
    fn what_is_no_profile_is_not_replaced_and_what_a_link_leads_to_is() {
        let folder = Folder::new("named");
        let (path, link) = (folder.0.join("a.json"), folder.0.join("link.json"));
        assert_eq!(check_named(&path), Ok(()));
        fs::write(&path, "name: arm").expect("a graph");
        let error = check_named(&path).expect_err("a graph");
        assert!(
            error.contains("is not a machine profile and would be lost; name another"),
            "{error}"
        );
        assert!(check_named(&folder.0).expect_err("a folder").contains("is not a file"));
        assert!(check_named(Path::new("-")).expect_err("no file").contains("'-' is not a file"));
        for good in ["", r#"{"format": "sinew machine profile", "version": 99, "x": 1}"#] {
            fs::write(&path, good).expect("ours");
            assert_eq!(check_named(&path), Ok(()), "{good:?}");
        }
        symlink(&path, &link).expect("a link");
        write(&link, &profile()).expect("there is room");
        assert!(link.is_symlink() && !path.is_symlink());
        assert_eq!(read(&path).expect("it is good"), Some(profile()));
        fs::remove_file(&path).expect("ours");
        assert!(check_place(&link).expect_err("it leads nowhere").contains("cannot write"));
    }

    #[test]
    fn what_a_process_of_the_same_number_left_is_in_nobodys_way() {
        let folder = Folder::new("stale");
        let path = folder.0.join("machine.json");
        let stale = folder.0.join(format!("machine.json.{}", std::process::id()));
        fs::write(&stale, "half").expect("ours");
        check_place(&path).expect("it is removed");
        fs::write(&stale, "half").expect("ours");
        write(&path, &profile()).expect("it is replaced");
        assert!(!stale.exists() && path.exists());
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let folder = Folder::new("pipe");
        let path = folder.0.join("pipe");
        let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is there");
        assert!(made.success());
        assert!(read(&path).expect_err("a pipe").contains("it is not a file"));
        assert!(check_named(&path).expect_err("a pipe").contains("is not a file"));
    }

    #[test]
    fn a_file_of_somebody_else_is_not_trusted() {
        for (owner, user, caller) in [(0, 7, None), (7, 7, None), (7, 0, Some(7))] {
            assert_eq!(distrusted(owner, 0o644, user, caller), None);
        }
        for (owner, user, caller) in [(8, 7, None), (7, 0, None), (8, 0, Some(7))] {
            let why = distrusted(owner, 0o600, user, caller).expect("another one's");
            assert!(why.starts_with(&format!("it belongs to user {owner}, expected {user}")));
        }
    }
}
