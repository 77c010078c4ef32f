//! The thread that writes, separate so that a slow disk does not delay reading.

use std::fs::{self, File};
use std::io;
use std::mem::take;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use sinew_recording::disk::is_full;
use sinew_recording::format::RecordedGap;
use sinew_recording::messages::Messages;
use sinew_recording::writer::{Opening, PartWriter};
use sinew_runtime::service::tell;

use super::folder::Folder;
use super::gather::{Batch, join};

/// Batches that may wait for the disk, of a megabyte or half a second each; further ones are
/// dropped and counted.
const WAITING_MAX: usize = 16;
/// Pause after a write error.
const RETRY: Duration = Duration::from_secs(3);

/// Interval between two heartbeats while waiting for the disk.
const NAP: Duration = Duration::from_millis(50);

/// Why cycles are missing.
const REFUSED: &str = "the disk could not be written";
pub(super) const SLOW: &str = "the disk was too slow";
const REMOVED: &str = "the file was removed";

/// How parts follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    /// A part that reaches this size is finished, and the next one begins.
    pub(super) part_bytes: u64,
    /// Number of parts that are kept, of all runs; 0 keeps all.
    pub(super) keep: usize,
}

/// The part that is being written.
struct Current {
    part: PartWriter<File>,
    path: PathBuf,
    life: u32,
    /// Its batches, without the messages.
    batches: Vec<Batch>,
}

/// Writes batches into parts.
pub(super) struct Parts {
    opening: Opening,
    folder: Folder,
    rotation: Rotation,
    current: Option<Current>,
    /// Gaps that are in no part yet.
    missing: Vec<RecordedGap>,
    /// After a write error: when to try again.
    retry: Option<Instant>,
}

impl Parts {
    /// Begins after part `opening.head.part` of the run.
    pub(super) fn new(opening: Opening, folder: Folder, rotation: Rotation) -> Parts {
        let (current, missing) = (None, Vec::new());
        Parts { opening, folder, rotation, current, missing, retry: None }
    }

    /// Begins the next part, for this life of the core.
    ///
    /// # Errors
    /// The folder's error. A full disk is not an error: batches are dropped until there is room.
    pub(super) fn begin(&mut self, life: u32) -> io::Result<()> {
        let now = SystemTime::now();
        let number = self.opening.head.part + 1;
        let mut opening = self.opening.clone();
        (opening.head.part, opening.head.life) = (number, life);
        let (file, path) = self.folder.begin(number, now)?;
        let time_ns = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let part = PartWriter::begin(file, opening, time_ns as u64).inspect_err(|_| {
            // An empty file is of no use; if it cannot be removed, a later start mends it.
            let _ = fs::remove_file(&path);
        })?;
        self.opening.head.part = number;
        if self.retry.is_none() {
            let verb = if number == 1 { "begins" } else { "goes on in" };
            tell(format_args!("{verb} '{}'", path.display()));
        }
        self.current = Some(Current { part, path, life, batches: Vec::new() });
        self.trim();
        Ok(())
    }

    /// Removes old parts.
    fn trim(&self) {
        if self.rotation.keep == 0 {
            return;
        }
        match self.folder.trim(self.rotation.keep) {
            Ok(removed) => {
                for path in removed {
                    tell(format_args!("removed '{}', see 'keep'", path.display()));
                }
            }
            Err(error) => {
                tell(format_args!("cannot remove old parts in '{}': {error}", self.folder_name()));
            }
        }
    }

    /// Writes a batch, or drops and counts it.
    pub(super) fn take(&mut self, mut batch: Batch) {
        let is_over =
            |it: &Current| it.life != batch.life || it.part.len() >= self.rotation.part_bytes;
        if self.current.as_ref().is_some_and(is_over) {
            self.finish();
        }
        self.miss_removed();
        if self.retry.is_some_and(|retry| Instant::now() < retry) {
            return self.drop(batch, REFUSED);
        }
        if self.current.is_none()
            && let Err(error) = self.begin(batch.life)
        {
            self.refused(&error);
            return self.drop(batch, REFUSED);
        }
        let current = self.current.as_mut().expect("it was begun");
        let mut gaps = take(&mut self.missing);
        gaps.append(&mut batch.gaps);
        batch.gaps = gaps;
        if let Err(error) = current.part.add(&batch.gaps, &batch.messages) {
            self.refused(&error);
            self.finish();
            return self.drop(batch, REFUSED);
        }
        if self.retry.take().is_some() {
            let cycles: u64 = batch.gaps.iter().map(|gap| gap.cycles).sum();
            tell(format_args!(
                "goes on in '{}', there is room again; {cycles} cycles were dropped",
                current.path.display()
            ));
        }
        batch.messages = Messages::default();
        current.batches.push(batch);
    }

    /// Detects that the part was removed: it has no name any more and would vanish with its last
    /// byte. Its cycles count as missing, as nobody can read them.
    fn miss_removed(&mut self) {
        if !self.current.as_ref().is_some_and(|it| it.part.is_nameless()) {
            return;
        }
        let Current { path, batches, .. } = self.current.take().expect("it is there");
        let cycles: u64 = batches.iter().map(Batch::cycles).sum();
        tell(format_args!(
            "'{}' was removed while it was written, and {cycles} cycles with it; goes on in a new \
             file",
            path.display()
        ));
        batches.into_iter().for_each(|batch| self.drop(batch, REMOVED));
    }

    /// Finishes the current part. Batches that had to make room for its end count as missing.
    pub(super) fn finish(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        if current.batches.is_empty() && self.retry.is_some() {
            // The part has only a beginning, so its number is free again.
            self.opening.head.part -= 1;
            let _ = fs::remove_file(&current.path);
            return;
        }
        let (finished, given_up) = current.part.finish();
        if let Err(error) = finished {
            tell(format_args!(
                "cannot finish '{}': {error}; it is readable from its beginning, and mended when \
                 the recorder starts next",
                current.path.display()
            ));
        }
        let given_up = current.batches.split_off(current.batches.len() - given_up);
        given_up.into_iter().for_each(|batch| self.drop(batch, REFUSED));
    }

    /// Counts a batch as missing.
    fn drop(&mut self, batch: Batch, reason: &str) {
        for gap in batch.missing(reason) {
            join(&mut self.missing, gap);
        }
    }

    /// Reports a write error, once until writing works again.
    fn refused(&mut self, error: &io::Error) {
        if self.retry.is_none() {
            let (what, help) = match is_full(error) {
                true => ("no room for", "make room there, or lower 'keep' or 'part_mib'"),
                false => ("cannot write", "check the folder, or name another 'folder'"),
            };
            tell(format_args!(
                "{what} recordings in '{}': {error}; cycles are dropped and counted, and it is \
                 tried again every {} s; {help}",
                self.folder_name(),
                RETRY.as_secs()
            ));
        }
        self.retry = Some(Instant::now() + RETRY);
    }

    /// Like [`Parts::begin`] for the first part, but a full disk is accepted.
    ///
    /// # Errors
    /// Any other error of the folder.
    pub(super) fn begin_first(&mut self, life: u32) -> io::Result<()> {
        match self.begin(life) {
            Err(error) if is_full(&error) => {
                self.refused(&error);
                Ok(())
            }
            begun => begun,
        }
    }

    /// Ends: finishes the part, and reports what is in no part.
    fn end(mut self) {
        self.miss_removed();
        self.finish();
        let cycles: u64 = self.missing.iter().map(|gap| gap.cycles).sum();
        if let Some(last) = self.missing.last() {
            tell(format_args!("the recording ends without {cycles} cycles: {}", last.reason));
        }
    }

    fn folder_name(&self) -> std::path::Display<'_> {
        self.folder.path.display()
    }
}

/// The thread that writes, as the reading thread sees it.
pub(super) struct Writer {
    batches: SyncSender<Batch>,
    /// Closed when the thread ends.
    over: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub(super) fn start(mut parts: Parts) -> io::Result<Writer> {
        let (batches, taken) = sync_channel::<Batch>(WAITING_MAX);
        let (ends, over) = sync_channel(0);
        let thread = Builder::new().name("recorder-disk".into()).spawn(move || {
            let _ends: SyncSender<()> = ends;
            taken.iter().for_each(|batch| parts.take(batch));
            parts.end();
        })?;
        Ok(Writer { batches, over, thread })
    }

    /// Hands a batch over; if too many wait already, it is returned.
    pub(super) fn write(&self, batch: Batch) -> Option<Batch> {
        match self.batches.try_send(batch) {
            Ok(()) => None,
            Err(TrySendError::Full(batch)) => Some(batch),
            Err(TrySendError::Disconnected(_)) => panic!("the thread that writes has panicked"),
        }
    }

    /// Lets the thread write these and all waiting batches, and end; `beat` is called now and then.
    pub(super) fn end(self, last: impl Iterator<Item = Batch>, mut beat: impl FnMut()) {
        for batch in last {
            let mut left = Some(batch);
            while let Some(batch) = left {
                left = self.write(batch);
                if left.is_some() {
                    beat();
                    nap(&self.over);
                }
            }
        }
        let Writer { batches, over, thread } = self;
        drop(batches);
        while nap(&over) {
            beat();
        }
        thread.join().expect("the thread that writes does not panic");
    }
}

/// Waits a little, less if the thread ends; returns whether the thread still runs.
fn nap(over: &Receiver<()>) -> bool {
    over.recv_timeout(NAP) == Err(RecvTimeoutError::Timeout)
}
