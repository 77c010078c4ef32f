//! The destination of a part.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

/// A file, or its replacement in tests.
pub trait Disk {
    /// Writes at the end.
    ///
    /// # Errors
    /// The system's error. Some of the bytes may have been written.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Removes everything past `len`.
    ///
    /// # Errors
    /// The system's error.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Whether the file has no name any more, so that nobody finds it.
    fn is_nameless(&self) -> bool;
}

/// The file is opened to append: after a cut, writing goes on at the new end.
impl Disk for File {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn is_nameless(&self) -> bool {
        // If the file's state cannot be read, the next write reports an error.
        self.metadata().is_ok_and(|file| file.nlink() == 0)
    }
}

/// Whether there is no room for more: on the disk, for this user, or in this file.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
