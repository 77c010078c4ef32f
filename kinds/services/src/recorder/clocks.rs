//! How the clocks of other hosts stand, as the supervisor knows it: asked by a thread of its own,
//! for an answer may be late, and the recorder must not be.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryIter, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use sinew_control::Supervisor;
use sinew_control::status::HostClock;
use sinew_runtime::Watch;

/// Between two questions.
const EVERY: Duration = Duration::from_secs(1);
/// Rows that wait until cycles come; more are left out, for there will be others.
const WAITING_MAX: usize = 64;

/// Asks for as long as it is there.
pub(super) struct Clocks {
    rows: Receiver<(String, HostClock)>,
    /// Ends the thread by going.
    _stop: SyncSender<()>,
}

impl Clocks {
    /// Begins to ask, if this is the part of a host.
    ///
    /// # Errors
    /// What the kernel says to one more thread.
    pub(super) fn of(watch: &Watch) -> io::Result<Option<Clocks>> {
        if watch.plan().own_host().is_none() {
            return Ok(None);
        }
        let (to, rows) = sync_channel(WAITING_MAX);
        let (stop, stopped) = sync_channel(0);
        let supervisor = watch.supervisor().clone();
        let ask = move || ask(&supervisor, &to, &stopped);
        Builder::new().name("recorder-clocks".into()).spawn(ask)?;
        Ok(Some(Clocks { rows, _stop: stop }))
    }

    /// What has come since: hosts, each with its clock.
    pub(super) fn rows(&self) -> TryIter<'_, (String, HostClock)> {
        self.rows.try_iter()
    }
}

fn ask(supervisor: &Supervisor, to: &SyncSender<(String, HostClock)>, stopped: &Receiver<()>) {
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        // One that does not answer now may do so later; without one this process ends.
        let Ok(status) = supervisor.status() else { continue };
        let hosts = status.domains.into_iter().flat_map(|domain| domain.hosts);
        for (name, clock) in hosts.filter_map(|host| Some((host.name, host.clock?))) {
            let _ = to.try_send((name, clock));
        }
    }
}
