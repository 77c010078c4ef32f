//! A file that is followed as it grows: finds out what has happened to it when there is nothing
//! more to read.

use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sinew_flow::Error;

use super::super::checkpoint::Saved;
use super::super::records::{Look, Records};
use super::{Order, Reading, differs, open};

/// How long a file that was moved away is still read, because its writer may not know that yet.
const GRACE: Duration = Duration::from_secs(1);
/// Most files of its folder that are searched for a file that was moved away.
const FILES_MAX: usize = 10_000;

/// Whether there is more to read after the end of a file.
pub(super) fn goes_on(reading: &mut Reading) -> Result<bool, Error> {
    if !reading.records.follows() {
        // This file was moved away, and is now read to its end.
        return next(reading);
    }
    match look(reading)? {
        Look::Same => Ok(false),
        Look::Grown | Look::Cut => Ok(true),
        Look::Moved => {
            let since = *reading.moved.get_or_insert_with(Instant::now);
            if since.elapsed() >= GRACE {
                reading.records.end();
            }
            Ok(since.elapsed() >= GRACE)
        }
    }
}

/// Finds out what has happened to the file. A file that was cut is read from its beginning. To be
/// called before each read: otherwise other text would be taken for the next records.
pub(super) fn look(reading: &mut Reading) -> Result<Look, Error> {
    let name = &reading.names[0];
    let look = reading.records.look(&reading.order.folder.join(name))?;
    match look {
        Look::Same | Look::Moved => {}
        Look::Grown => reading.records.know_more()?,
        Look::Cut => {
            let read = reading.records.place().offset;
            reading.notes.push(format!(
                "'{name}' was cut: {read} bytes of it were read, what was written after them is \
                 lost; goes on at its beginning"
            ));
            reading.records.restart()?;
        }
    }
    if look != Look::Moved {
        reading.moved = None;
    }
    Ok(look)
}

/// Goes on with the new file under the old name; `false` if it is not there yet.
fn next(reading: &mut Reading) -> Result<bool, Error> {
    let name = &reading.names[0];
    if !reading.order.folder.join(name).exists() {
        return Ok(false);
    }
    let read = reading.records.place().offset;
    let before = std::mem::replace(&mut reading.records, open(&reading.order, name, 0)?);
    let old = &before.known.name;
    reading.notes.push(format!("{read} bytes of the '{old}' of before; goes on with a new one"));
    reading.moved = None;
    Ok(true)
}

/// The file of a checkpoint that has another name now, opened at its place; `None` if there is no
/// such file.
pub(super) fn rotated(order: &Order, saved: &Saved) -> Option<Result<Records, Error>> {
    let path = Path::new(&order.path);
    let folder = path.parent().unwrap_or(Path::new(""));
    let entries = fs::read_dir(order.folder.join(folder)).ok()?.take(FILES_MAX).flatten();
    let entry = entries.into_iter().find(|entry| entry.ino() == saved.inode)?;
    let name = folder.join(entry.file_name()).to_string_lossy().into_owned();
    let found = open(order, &name, 0).and_then(|mut records| {
        if differs(&records.known, saved, &name).is_some() {
            return Ok(None);
        }
        records.go_to(saved.place())?;
        records.end();
        Ok(Some(records))
    });
    found.transpose()
}
