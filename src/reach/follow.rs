//! An order to a run, and what happens after it, event by event.

use std::io::ErrorKind;
use std::time::Instant;

use sinew_runtime::control::{Answer, Request};
use sinew_runtime::status::Event;

use super::Reached;

/// What became of waiting for something in the log.
pub(crate) enum Followed<T> {
    /// It came.
    Seen(T),
    /// The run closed the connection: it has ended.
    Ended,
    /// The time was over before; the run goes on.
    TimedOut,
}

/// Gives an order; the number of the newest event before it was carried out.
///
/// # Errors
/// Why it is not carried out.
pub(crate) fn order(run: &mut Reached, request: &Request) -> Result<u64, String> {
    match run.connection.ask(request).map_err(|error| error.to_string())? {
        Answer::Done { newest, .. } => Ok(newest),
        Answer::Error(text) => Err(text),
        other => Err(format!("it answers {other:?}")),
    }
}

/// Reads the log after event `after` until `look` sees what it wants.
pub(crate) fn follow<T>(
    run: &mut Reached,
    after: u64,
    until: Instant,
    mut look: impl FnMut(&Event) -> Option<T>,
) -> Followed<T> {
    // A run that has ended already closes the connection, as the reading will tell.
    let _ = run.connection.send(&Request::Log { after, follow: true });
    loop {
        match run.connection.next(Some(until.saturating_duration_since(Instant::now()))) {
            Ok(Some(Answer::Event(event))) => {
                if let Some(seen) = look(&event) {
                    return Followed::Seen(seen);
                }
            }
            Ok(Some(_)) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => return Followed::TimedOut,
            Ok(None) | Err(_) => return Followed::Ended,
        }
    }
}
