//! The captures that scopes show, for download as files.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use sinew_scope::{Capture, write_csv, write_mcap};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::protocol::scope::FILE_NUMBERS_MAX;

/// Files that may be made or sent at the same time: each takes some 30 MB until it is sent.
const FILES_MAX: usize = 2;

/// The captures that are shown, by the keys of their scopes.
pub(super) struct Captures {
    shown: Mutex<BTreeMap<u64, Arc<Capture>>>,
    files: Arc<Semaphore>,
}

impl Default for Captures {
    fn default() -> Captures {
        Captures { shown: Mutex::default(), files: Arc::new(Semaphore::new(FILES_MAX)) }
    }
}

impl Captures {
    /// Scope `key` shows this capture now.
    pub(super) fn put(&self, key: u64, capture: &Arc<Capture>) {
        // Nothing panics while it is locked.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert(key, Arc::clone(capture));
    }

    /// Removes the captures of closed scopes.
    pub(super) fn keep(&self, is_kept: impl Fn(u64) -> bool) {
        // Nothing panics while it is locked.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|key, _| is_kept(*key));
    }

    /// The capture that scope `key` shows, as a file with this extension: `csv` or `mcap`. Takes a
    /// second or so for a long one. The permit must be kept as long as the bytes are.
    ///
    /// # Errors
    /// There is none, it is too long, or too many other files are being sent.
    pub(super) fn file(
        &self,
        key: u64,
        end: &str,
    ) -> Result<(Vec<u8>, OwnedSemaphorePermit), String> {
        // Nothing panics while it is locked.
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let capture = shown.ok_or("this scope shows no capture; open the page again")?;
        let numbers: usize = capture.traces.iter().map(|trace| trace.values.len()).sum();
        if numbers > FILE_NUMBERS_MAX {
            return Err(format!(
                "the capture has {numbers} numbers, and a page hands out {FILE_NUMBERS_MAX} at \
                 most; make the window shorter, or use 'sinew scope'"
            ));
        }
        let permit = Arc::clone(&self.files).try_acquire_owned();
        let permit = permit.map_err(|_| {
            format!("{FILES_MAX} files are on their way already; try again in a moment")
        })?;
        let mut bytes = Cursor::new(Vec::new());
        let written = match end {
            "csv" => write_csv(&capture, &mut bytes),
            _ => write_mcap(&capture, &mut bytes),
        };
        written.map_err(|error| format!("the file cannot be made: {error}"))?;
        Ok((bytes.into_inner(), permit))
    }
}
