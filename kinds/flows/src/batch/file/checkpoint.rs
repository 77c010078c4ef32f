//! Checkpoints: how far a file was read, kept in a file of its own that is complete after any kill.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sinew_flow::Error;

use crate::framing::FilePlace;

/// The version of the format, which each checkpoint contains.
const VERSION: u32 = 1;
/// Longest checkpoint that is read, in bytes.
const LEN_MAX: u64 = 64 << 10;

/// The content of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    pub(super) sinew_checkpoint: u32,
    /// The file that is read, its index among all files, and SHA-256 of the names of the files up
    /// to it.
    pub(super) file: String,
    pub(super) file_at: usize,
    pub(super) files_sha256: String,
    pub(super) inode: u64,
    /// SHA-256 of the file's first bytes, and how many these are.
    pub(super) head_sha256: String,
    pub(super) head_len: u64,
    /// All elements before this offset are answered.
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) counts: ElementCounts,
}

/// What became of the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ElementCounts {
    pub(super) read: u64,
    pub(super) done: u64,
    pub(super) rejected: u64,
}

impl Saved {
    pub(super) const VERSION: u32 = VERSION;

    /// How far the file was read.
    pub(super) fn place(&self) -> FilePlace {
        FilePlace { offset: self.offset, line: self.line }
    }

    /// The checkpoint in the file `path`; `None` if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a checkpoint.
    pub(super) fn read(path: &Path) -> Result<Option<Saved>, Error> {
        let read = || -> io::Result<Vec<u8>> {
            if fs::metadata(path)?.len() > LEN_MAX {
                return Err(io::Error::other("it is too long for one"));
            }
            fs::read(path)
        };
        let bytes = match read() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&path.display(), &error)),
        };
        Saved::parse(&bytes, &path.display()).map(Some)
    }

    /// The checkpoint in these bytes, which come from `place`.
    ///
    /// # Errors
    /// The bytes are not a checkpoint.
    pub(super) fn parse(bytes: &[u8], place: &dyn Display) -> Result<Saved, Error> {
        let saved: Saved =
            serde_json::from_slice(bytes).map_err(|error| unreadable(place, &error))?;
        match saved.sinew_checkpoint {
            VERSION => Ok(saved),
            other => Err(unreadable(place, &format_args!("its version is {other}, not {VERSION}"))),
        }
    }

    /// Writes it to `path`, replacing an earlier one, and waits until it is on the disk.
    ///
    /// # Errors
    /// For example the disk is full, or the folder does not exist.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let mut new = PathBuf::from(path);
        new.as_mut_os_string().push(".new");
        let write = || -> io::Result<()> {
            let options =
                File::options().write(true).create(true).truncate(true).mode(0o600).open(&new);
            let mut file = options?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            fs::rename(&new, path)?;
            let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        write().map_err(|error| {
            let path = path.display();
            Error::new(format_args!("the checkpoint '{path}' cannot be written: {error}"))
        })
    }
}

/// The error that `place` does not hold a checkpoint.
pub(super) fn unreadable(place: &dyn Display, why: &dyn Display) -> Error {
    Error::new(format_args!(
        "'{place}' is not a checkpoint that can be read: {why}; name another, or remove it to \
         begin from the start"
    ))
}
