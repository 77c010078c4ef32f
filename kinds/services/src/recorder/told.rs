//! What only the supervisor knows: the events and, in the part of a host, the clocks of the other
//! hosts. A thread of its own asks for it, because an answer may be late and the recorder must not
//! be.

use std::io;
use std::iter::from_fn;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryIter, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use sinew_control::Supervisor;
use sinew_control::status::{Event, HostClock};
use sinew_runtime::Watch;

/// Interval between two requests.
const EVERY: Duration = Duration::from_secs(1);
/// Rows that may wait for the recorder; if there are more, the thread waits.
const WAITING_MAX: usize = 64;
/// How long the last answer may take when the recording ends.
const LAST: Duration = Duration::from_secs(1);

/// Something that is recorded beside the cycles.
pub(super) enum Row {
    /// An event.
    Event(Box<Event>),
    /// The state of a host's clock.
    Clock(String, HostClock),
}

/// Asks as long as it exists.
pub(super) struct Beside {
    rows: Receiver<Row>,
    /// Ends the thread when it is dropped.
    stop: SyncSender<()>,
}

impl Beside {
    /// Begins to ask for the events after number `after` and, if this is the part of a host, for
    /// the clocks of the other hosts.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub(super) fn begin(watch: &Watch, after: u64) -> io::Result<Beside> {
        let is_of_host = watch.plan().own_host().is_some();
        let (to, rows) = sync_channel(WAITING_MAX);
        let (stop, stopped) = sync_channel(0);
        let supervisor = watch.supervisor().clone();
        let ask = move || ask(&supervisor, is_of_host, after, &to, &stopped);
        Builder::new().name("recorder-told".into()).spawn(ask)?;
        Ok(Beside { rows, stop })
    }

    /// The rows since the last call.
    pub(super) fn rows(&self) -> TryIter<'_, Row> {
        self.rows.try_iter()
    }

    /// Asks once more; returns the rows since the last call.
    pub(super) fn end(self) -> impl Iterator<Item = Row> {
        drop(self.stop);
        let rows = self.rows;
        from_fn(move || rows.recv_timeout(LAST).ok())
    }
}

fn ask(
    supervisor: &Supervisor,
    is_of_host: bool,
    mut after: u64,
    to: &SyncSender<Row>,
    stopped: &Receiver<()>,
) {
    loop {
        let is_last = stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
        // If the supervisor does not answer now, it may do so later; if it is gone, this process
        // ends.
        let (events, _) = supervisor.events(after).unwrap_or_default();
        after = events.last().map_or(after, |event| event.number);
        let events = events.into_iter().map(|event| Row::Event(Box::new(event)));
        let status = if is_of_host { supervisor.status().ok() } else { None };
        let hosts = status.into_iter().flat_map(|it| it.domains).flat_map(|it| it.hosts);
        let clocks = hosts.filter_map(|host| Some(Row::Clock(host.name, host.clock?)));
        // The recorder may have gone meanwhile.
        let is_gone = events.chain(clocks).any(|row| to.send(row).is_err());
        if is_last || is_gone {
            return;
        }
    }
}
