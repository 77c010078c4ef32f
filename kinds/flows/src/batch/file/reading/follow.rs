//! A file that is followed as it grows: what has become of it when nothing more is there.

use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;
use std::time::{Duration, Instant};

use sinew_flow::Error;

use super::super::checkpoint::Saved;
use super::super::records::{Look, Records};
use super::{Order, Reading, differs, open};

/// So long a file that was moved away is read on: who writes to it may not know yet.
const GRACE: Duration = Duration::from_secs(1);
/// So many files of its folder are looked at for one that was moved away.
const FILES_MAX: usize = 10_000;

/// Whether there is more, now that a file has come to its end.
pub(super) fn goes_on(reading: &mut Reading) -> Result<bool, Error> {
    if !reading.records.follows() {
        // The one before it was moved away, and is read to its end.
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

/// What has become of the file. One that was cut is read from its beginning; it is looked at before
/// it is read on, for otherwise other text would be taken for what comes next.
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

/// Goes on with the file that is in the place of the one before; not if that is not there yet.
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

/// The file of a checkpoint that has another name now, at its place; `None` if it is not there.
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
