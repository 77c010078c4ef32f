//! Where facts are read from: the files of this machine, or of a folder that looks like one.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::str::FromStr;

use rustix::fs::{Access, access};

/// Files below /proc and /sys are small. A longer file is not one of them, and only its beginning
/// is read.
const LEN_MAX: u64 = 4 << 20;

/// At most this many characters of a text that is not understood are quoted.
const QUOTED_MAX: usize = 40;

/// The root of a machine's files. Nothing below it is ever opened for writing.
#[derive(Debug)]
pub(crate) struct Root {
    root: PathBuf,
}

/// Why a fact is not known.
#[derive(Debug)]
pub(crate) enum Unread {
    /// There is no such file.
    Missing(String),
    /// The kernel does not let us read it.
    Refused(String, io::Error),
    /// It was read, but not understood.
    Odd {
        /// The file.
        path: String,
        /// The beginning of its text.
        text: String,
        /// What it should have been.
        expected: &'static str,
    },
}

impl Root {
    /// The machine that this runs on.
    pub(crate) fn here() -> Root {
        Root { root: "/".into() }
    }

    /// A folder that looks like the root of a machine.
    #[cfg(test)]
    pub(crate) fn at(root: &std::path::Path) -> Root {
        Root { root: root.into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's bytes; `path` begins with a slash.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, Unread> {
        let read = || {
            let mut bytes = vec![];
            File::open(self.path(path))?.take(LEN_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error: io::Error| match error.kind() {
            // Within /proc a process may end while its files are read.
            ErrorKind::NotFound | ErrorKind::NotADirectory => Unread::Missing(path.into()),
            _ => Unread::Refused(path.into(), error),
        })
    }

    /// A file's text, without the white space around it.
    pub(crate) fn text(&self, path: &str) -> Result<String, Unread> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).trim().into())
    }

    /// A file that holds one number.
    pub(crate) fn number<N: FromStr>(&self, path: &str) -> Result<N, Unread> {
        let text = self.text(path)?;
        text.parse().map_err(|_| Unread::odd(path, &text, "a number"))
    }

    /// Whether there is such a file or folder, as far as we are allowed to see.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Whether the kernel would let us write there. Nothing is opened.
    pub(crate) fn may_write(&self, path: &str) -> bool {
        access(self.path(path), Access::WRITE_OK).is_ok()
    }

    /// The names in a folder, sorted; empty if the folder cannot be read.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The names in a folder that are numbers, sorted.
    pub(crate) fn numbers(&self, folder: &str) -> Vec<u32> {
        let names = self.names(folder);
        let mut numbers: Vec<_> = names.iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl Unread {
    /// A text that was not understood.
    pub(crate) fn odd(path: &str, text: &str, expected: &'static str) -> Unread {
        let text = text.chars().take(QUOTED_MAX).collect();
        Unread::Odd { path: path.into(), text, expected }
    }

    /// The file that the fact should have come from.
    pub(crate) fn path(&self) -> &str {
        match self {
            Unread::Missing(path) | Unread::Refused(path, _) | Unread::Odd { path, .. } => path,
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Missing(_) => write!(f, "no such file"),
            Unread::Refused(_, error) => write!(f, "cannot be read: {error}"),
            Unread::Odd { text, expected, .. } => write!(f, "{text:?}; expected {expected}"),
        }
    }
}
