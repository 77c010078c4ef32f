//! Replaces the content of a file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Puts a new file with this text in the place of `file`, so that nobody sees half of it, not even
/// after a power failure. Its permissions stay; if it is a symbolic link, the file that the link
/// leads to is replaced. Blocks until the disk has the text.
///
/// # Errors
/// The kernel refuses; then the file is as it was.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let there = file.canonicalize()?;
    let beside = there.with_extension(format!("yaml.{}", std::process::id()));
    let permissions = fs::metadata(&there)?.permissions();
    let write = || {
        let mut new = File::create(&beside)?;
        new.write_all(text.as_bytes())?;
        // Otherwise the name may be on the disk before the text is.
        new.sync_all()?;
        fs::set_permissions(&beside, permissions)?;
        fs::rename(&beside, &there)
    };
    write().inspect_err(|_| {
        // A partial file is of no use.
        let _ = fs::remove_file(&beside);
    })
}
