//! Files in a folder. The kernel ensures that no name and no link leads out of the folder (openat2,
//! Linux 5.6). So a change in the meantime cannot lead out of it either.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open as open_path, openat2};
use rustix::io::Errno;

/// Longest name of a file with its folders, in bytes. No file has a longer one.
const NAME_LEN_MAX: usize = 1024;
/// How often a name is looked for again, if folders are moved meanwhile.
const ATTEMPTS: usize = 8;

/// An open file.
pub(super) struct Found {
    pub(super) file: File,
    pub(super) len: u64,
    /// Its entity tag, in quotes: another one after each change.
    pub(super) tag: String,
    /// When it was last changed, in seconds since 1970.
    pub(super) modified_s: i64,
}

/// What a name leads to.
pub(super) enum Opened {
    /// A file, and the end of its name.
    File(Found, String),
    /// A folder that has an index, by a name without a slash at its end.
    Folder,
    Nothing,
    Failed(io::Error),
}

/// Whether a folder is there and can be looked into.
pub(super) fn check(folder: &Path) -> io::Result<()> {
    let root = root(folder)?;
    find(&root, ".").map(drop).map_err(io::Error::from)
}

/// Whether this may be the name of a file or a folder that is served: hidden ones are not.
pub(super) fn is_name(part: &str) -> bool {
    let is_hidden = part.starts_with('.') && part != ".well-known";
    !part.is_empty() && !is_hidden && !part.contains(['/', '\\', '\0'])
}

/// A name, relative to the folder; it ends with a slash if a folder is meant.
pub(super) fn relative(name: &str) -> Option<String> {
    let relative = name.strip_prefix('/').unwrap_or(name);
    let inner = relative.strip_suffix('/').unwrap_or(relative);
    let is_right = relative.is_empty() || inner.split('/').all(is_name);
    (name.len() <= NAME_LEN_MAX && is_right).then(|| relative.to_owned())
}

/// Opens the file that a name leads to; for a folder, its index.
pub(super) fn open(folder: &Path, relative: &str, index: &str) -> Opened {
    match try_open(folder, relative, index) {
        Ok(opened) => opened,
        Err(error) => match Errno::from_io_error(&error) {
            Some(
                Errno::NOENT
                | Errno::NOTDIR
                | Errno::ACCESS
                | Errno::LOOP
                | Errno::XDEV
                | Errno::NAMETOOLONG
                | Errno::INVAL
                | Errno::NXIO,
            ) => Opened::Nothing,
            _ => Opened::Failed(error),
        },
    }
}

fn try_open(folder: &Path, relative: &str, index: &str) -> io::Result<Opened> {
    let root = root(folder)?;
    let is_folder = relative.is_empty() || relative.ends_with('/');
    let file = |name: &str| -> io::Result<(Found, FileType)> {
        let file = find(&root, name)?;
        let state = fstat(&file)?;
        let tag = format!("\"{:x}.{:x}-{:x}\"", state.st_mtime, state.st_mtime_nsec, state.st_size);
        let (len, modified_s) = (state.st_size.unsigned_abs(), state.st_mtime);
        let found = Found { file: file.into(), len, tag, modified_s };
        Ok((found, FileType::from_raw_mode(state.st_mode)))
    };
    let name = if is_folder { format!("{relative}{index}") } else { relative.to_owned() };
    Ok(match file(&name)? {
        (found, FileType::RegularFile) => {
            let ending = Path::new(&name).extension().and_then(|it| it.to_str());
            Opened::File(found, ending.unwrap_or_default().to_owned())
        }
        (_, FileType::Directory) if !is_folder => match file(&format!("{relative}/{index}"))? {
            (_, FileType::RegularFile) => Opened::Folder,
            _ => Opened::Nothing,
        },
        _ => Opened::Nothing,
    })
}

fn root(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(open_path(folder, flags, Mode::empty())?)
}

/// Opens a name below `root`, without blocking: something that is not a file, such as a pipe, may
/// have no other end.
fn find(root: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut attempts = 0;
    loop {
        match openat2(root, name, flags, Mode::empty(), within) {
            Err(Errno::AGAIN | Errno::INTR) if attempts < ATTEMPTS => attempts += 1,
            opened => return opened,
        }
    }
}
