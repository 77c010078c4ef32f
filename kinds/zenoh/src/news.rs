//! What the log is to say of the other hosts.

use std::sync::{Mutex, PoisonError};

/// Lines that wait to be told, at most; more are dropped. Each sort of line comes once, so there
/// are that many only in an attack.
const LINES_MAX: usize = 64;

/// Lines that wait to be told, by a thread that may wait.
#[derive(Debug, Default)]
pub(crate) struct News(Mutex<Vec<String>>);

impl News {
    pub(crate) fn tell(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < LINES_MAX {
            lines.push(line);
        }
    }

    /// All lines since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
