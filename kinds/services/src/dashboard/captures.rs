//! The captures that scopes show, for who wants them as files.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use sinew_scope::{Capture, write_csv, write_mcap};

use super::protocol::scope::FILE_NUMBERS_MAX;

/// The captures that are shown, by the keys of their scopes.
#[derive(Default)]
pub(super) struct Captures {
    shown: Mutex<BTreeMap<u64, Arc<Capture>>>,
    /// Locked while a file is made: one at a time.
    writing: Mutex<()>,
}

impl Captures {
    /// Scope `key` shows this now.
    pub(super) fn put(&self, key: u64, capture: &Arc<Capture>) {
        // Nobody panics while it is locked.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.insert(key, Arc::clone(capture));
    }

    /// Forgets those of scopes that are closed.
    pub(super) fn keep(&self, is_kept: impl Fn(u64) -> bool) {
        // As above.
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|key, _| is_kept(*key));
    }

    /// The capture that scope `key` shows, as a file that ends so: `csv` or `mcap`. Takes a second
    /// or so for a long one.
    ///
    /// # Errors
    /// There is none, it is too long, or another file is being made.
    pub(super) fn file(&self, key: u64, end: &str) -> Result<Vec<u8>, String> {
        // As above.
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let capture = shown.ok_or("this scope shows no capture; open the page again")?;
        let numbers: usize = capture.traces.iter().map(|trace| trace.values.len()).sum();
        if numbers > FILE_NUMBERS_MAX {
            return Err(format!(
                "the capture has {numbers} numbers, and a page hands out {FILE_NUMBERS_MAX} at \
                 most; make the window shorter, or use 'sinew scope'"
            ));
        }
        let _alone = match self.writing.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err("another file is being made; try again in a moment".into());
            }
            // One that panicked has left nothing behind.
            other => other.map_err(drop),
        };
        let mut bytes = Cursor::new(Vec::new());
        let written = match end {
            "csv" => write_csv(&capture, &mut bytes),
            _ => write_mcap(&capture, &mut bytes),
        };
        written.map_err(|error| format!("the file cannot be made: {error}"))?;
        Ok(bytes.into_inner())
    }
}
