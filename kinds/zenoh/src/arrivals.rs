//! Wakes threads that wait for messages of other hosts.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Says when something came that may be received. Each clone waits by itself.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    place: Arc<(Mutex<u64>, Condvar)>,
    seen: u64,
}

impl Arrivals {
    /// Notes that something came, and wakes those that wait.
    pub(crate) fn ring(&self) {
        let (count, wake) = &*self.place;
        *count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        wake.notify_all();
    }

    /// Sleeps until something has come since the last call, at most for `time`. Returns whether
    /// something has.
    pub fn wait(&mut self, time: Duration) -> bool {
        let (count, wake) = &*self.place;
        let end = Instant::now() + time;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count == self.seen {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            count = wake.wait_timeout(count, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        self.seen = *count;
        true
    }
}
