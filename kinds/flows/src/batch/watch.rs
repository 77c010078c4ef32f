//! Waits for changes in a folder, by the kernel's events (inotify), and by the clock where there
//! are no events, as in folders that another machine serves.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io;
use tokio::io::unix::AsyncFd;
use tokio::time::{sleep, timeout};

/// Longest time until the waiter looks again, even without an event.
const LOOK: Duration = Duration::from_millis(500);
/// Shortest time between two wake-ups, so that a writer of many small pieces does not cause one for
/// each.
const PAUSE: Duration = Duration::from_millis(10);

/// A folder that is watched.
pub(super) struct FolderWatch(Option<AsyncFd<OwnedFd>>);

impl FolderWatch {
    /// Watches a folder from now on. If the kernel has no more watches, only the clock is used.
    pub(super) fn new(folder: &Path) -> FolderWatch {
        let open = || -> io::Result<OwnedFd> {
            let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let flags = WatchFlags::MODIFY
                | WatchFlags::CREATE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MOVED_TO
                | WatchFlags::MOVED_FROM
                | WatchFlags::DELETE;
            inotify::add_watch(&events, folder, flags)?;
            Ok(events)
        };
        #[expect(deprecated, reason = "sound with an OwnedFd; what replaces it is unsafe to call")]
        let registered = |events| AsyncFd::new(events).ok();
        FolderWatch(open().ok().and_then(registered))
    }

    /// Waits until something may have changed since the last time.
    pub(super) async fn changed(&self) {
        let Some(events) = &self.0 else { return sleep(LOOK).await };
        let told = async {
            // If events cannot be read, only the clock is used.
            let Ok(mut ready) = events.readable().await else { return sleep(LOOK).await };
            sleep(PAUSE).await;
            let mut read = [0; 4096];
            while io::read(events, &mut read).is_ok_and(|len| len > 0) {}
            ready.clear_ready();
        };
        // A timeout means that it is time to look.
        let _ = timeout(LOOK, told).await;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use tempfile::tempdir;

    use super::*;
    use crate::testing::run;

    #[test]
    fn a_change_before_the_wait_is_told_and_none_only_by_the_clock() {
        let folder = tempdir().expect("a folder");
        run(async {
            let watch = FolderWatch::new(folder.path());
            fs::write(folder.path().join("new"), "x").expect("a file");
            watch.changed().await;
            let begun = Instant::now();
            watch.changed().await;
            assert!(begun.elapsed() >= LOOK, "nothing more has changed");
            // A folder that does not exist.
            FolderWatch::new(&folder.path().join("none")).changed().await;
        });
    }
}
