//! A file that gets another content.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Puts a new file with this text in the place of `file`, so that nobody sees half of it, also not
/// after the power has failed. Its permissions stay; of a symbolic link, what it leads to is
/// replaced. Blocks as the disk does.
///
/// # Errors
/// What the kernel says; then the file is as it was.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let there = file.canonicalize()?;
    let beside = there.with_extension(format!("yaml.{}", std::process::id()));
    let permissions = fs::metadata(&there)?.permissions();
    let write = || {
        let mut new = File::create(&beside)?;
        new.write_all(text.as_bytes())?;
        // Else the name may be on the disk before the text is.
        new.sync_all()?;
        fs::set_permissions(&beside, permissions)?;
        fs::rename(&beside, &there)
    };
    write().inspect_err(|_| {
        // What is left of it helps nobody.
        let _ = fs::remove_file(&beside);
    })
}
