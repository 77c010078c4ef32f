//! The tap of a viewer: the paths of flows, as the process of their domain reports them. A thread
//! of its own reads them, and ends when the viewer leaves or changes its tap.

use std::fmt::Display;
use std::io::ErrorKind;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use sinew_control::client::Connection;
use sinew_control::status::Status;
use sinew_control::tap::{self, TapLine, TapRequest};
use sinew_control::{Answer, Request, Supervisor, place};
use tokio::sync::mpsc::Sender;

use super::protocol::{TAP_LINES_PER_S, TAP_WAYS_PER_S};

/// Interval between two checks whether the viewer is still there.
const LOOK: Duration = Duration::from_millis(500);
/// Interval between two lines: faster ones wait, and the domain counts those that it cannot keep.
const SPACING: Duration = Duration::from_nanos(1_000_000_000 / TAP_LINES_PER_S);

/// An open tap, closed when this is dropped.
pub(super) struct Tapped(#[expect(dead_code, reason = "it is held, and looked at")] Arc<()>);

/// A message of a tap.
#[derive(Debug)]
pub(super) enum TapSaid {
    Line(TapLine),
    /// It has ended by itself; the reason.
    End(String),
}

/// Opens a tap at the flows of a domain: those that come to a node, or all. Waits for the
/// supervisor and the domain, so it must run on a thread that may wait.
///
/// # Errors
/// The error, in words for people.
pub(super) fn open(
    supervisor: &Supervisor,
    domain: &str,
    node: Option<String>,
    lines: Sender<TapSaid>,
) -> Result<Tapped, String> {
    let status = supervisor.status().map_err(|fault| fault.to_string())?;
    let pid = process(&status, domain)?;
    let no = |error: &dyn Display| format!("domain '{domain}' shows no flows: {error}");
    let folder = place::folder().map_err(|error| no(&error))?;
    let socket = tap::socket_of(&folder.join("run"), pid);
    let mut connection = Connection::open(&socket).map_err(|error| no(&error))?;
    let asked = TapRequest { node, filter: None, per_s: TAP_WAYS_PER_S, way: true, pause: false };
    match connection.ask(&Request::Tap(asked)).map_err(|error| no(&error))? {
        Answer::Done { .. } => {}
        Answer::Error(text) => return Err(no(&text)),
        other => return Err(no(&format!("it answered {other:?}"))),
    }
    let held = Arc::new(());
    let alive = Arc::downgrade(&held);
    let reader = thread::Builder::new().name("tap".into());
    reader
        .spawn(move || read(&mut connection, &lines, &alive))
        .map_err(|error| format!("no thread to read it: {error}"))?;
    Ok(Tapped(held))
}

/// The process of a domain.
fn process(status: &Status, domain: &str) -> Result<u32, String> {
    let row = status.domains.iter().find(|row| row.name == domain);
    let row = row.ok_or_else(|| format!("there is no domain '{domain}'"))?;
    row.pid.ok_or_else(|| format!("domain '{domain}' is {}, without a process", row.state))
}

/// Passes on what the domain reports, until it ends or the tap is dropped.
fn read(connection: &mut Connection, lines: &Sender<TapSaid>, alive: &Weak<()>) {
    while alive.strong_count() > 0 {
        let said = match connection.next(Some(LOOK)) {
            Ok(Some(Answer::Tap(line))) => TapSaid::Line(line),
            Ok(Some(Answer::Error(text))) => TapSaid::End(text),
            Ok(Some(other)) => TapSaid::End(format!("the domain answered {other:?}")),
            Ok(None) => TapSaid::End("the domain's process has ended".into()),
            Err(error) if error.kind() == ErrorKind::TimedOut => continue,
            Err(error) => TapSaid::End(error.to_string()),
        };
        let is_last = matches!(said, TapSaid::End(_));
        // Waits for a slow viewer; if the viewer is gone, this is an error.
        if lines.blocking_send(said).is_err() || is_last {
            return;
        }
        thread::sleep(SPACING);
    }
}

#[cfg(test)]
mod tests {
    use sinew_control::status::{DomainState, DomainStatus};

    use super::*;

    #[test]
    fn a_domain_without_a_process_is_named_with_its_state() {
        let state = DomainState::Backoff;
        let row = |name: &str, pid| DomainStatus {
            name: name.into(),
            pid,
            state,
            ..DomainStatus::default()
        };
        let domains = vec![row("api", Some(7)), row("gone", None)];
        let status = Status { domains, ..Status::default() };
        assert_eq!(process(&status, "api"), Ok(7));
        let error = "domain 'gone' is backoff, without a process";
        assert_eq!(process(&status, "gone"), Err(error.into()));
        assert_eq!(process(&status, "x"), Err("there is no domain 'x'".into()));
    }
}
