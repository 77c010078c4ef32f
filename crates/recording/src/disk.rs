//! What a part is written to.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

/// A file, or what stands in for one.
pub trait Disk {
    /// Writes at the end.
    ///
    /// # Errors
    /// What the system says; some of the bytes may be there.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Takes away what is past `len`.
    ///
    /// # Errors
    /// What the system says.
    fn cut(&mut self, len: u64) -> io::Result<()>;
    /// Whether nobody finds it any more.
    fn is_nameless(&self) -> bool;
}

/// Opened to append: after a cut it goes on at the new end.
impl Disk for File {
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn is_nameless(&self) -> bool {
        // A file whose state cannot be asked for says so when it is written.
        self.metadata().is_ok_and(|file| file.nlink() == 0)
    }
}

/// Whether there is no room for more: on the disk, for this user, in this file.
pub fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}
