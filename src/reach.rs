//! The runs that a command can reach, the run that the user means, and what became of it.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Args;
use sinew_control::client::{Connection, FoundRun, runs};
use sinew_control::status::{
    DomainRole, DomainState, DomainStatus, Event, EventKind, Phase, Status, StopStatus,
};
use sinew_control::{Answer, Request};

use crate::answer::{BAD_REQUEST, FAULTED, refuse};

/// Which run the user means.
#[derive(Args, Debug)]
pub(crate) struct Wanted {
    /// Process number or graph of the run; with hosts GRAPH@HOST. May be left out if there is only
    /// one run
    #[arg(value_name = "RUN")]
    run: Option<String>,
}

impl Wanted {
    /// Reaches the run.
    pub(crate) fn reach(&self) -> Result<Reached, Failure> {
        choose(self.run.as_deref())
    }
}

/// A run that answers.
pub(crate) struct Reached {
    /// Its status when it was reached.
    pub(crate) status: Status,
    /// For further requests.
    pub(crate) connection: Connection,
    /// For opening another connection.
    pub(crate) socket: PathBuf,
}

impl Reached {
    /// Graph and process: two runs may have the same graph.
    pub(crate) fn name(&self) -> String {
        format!("{} (process {})", self.graph(), self.status.pid)
    }

    /// Its graph, with the name of its host if it has one: `cell@office`.
    pub(crate) fn graph(&self) -> String {
        let Status { graph, host, .. } = &self.status;
        host.as_ref().map_or(graph.clone(), |host| format!("{graph}@{host}"))
    }

    /// To reach the run once more, while this connection follows the log.
    pub(crate) fn found(&self) -> FoundRun {
        FoundRun { pid: self.status.pid, socket: self.socket.clone() }
    }
}

/// A run that exists and does not answer.
pub(crate) struct Silent {
    pub(crate) pid: u32,
    /// Why it does not answer.
    pub(crate) error: String,
}

/// Why a command did not do what was asked.
pub(crate) struct Failure {
    status: u8,
    text: String,
}

impl Failure {
    /// The request itself is wrong.
    pub(crate) fn request(text: String) -> Failure {
        Failure { status: BAD_REQUEST, text }
    }

    /// The request was good, and was not carried out.
    pub(crate) fn run(text: String) -> Failure {
        Failure { status: FAULTED, text }
    }

    /// Reports the failure, on standard error or as the one JSON object that was asked for. Returns
    /// the exit status that goes with it.
    pub(crate) fn report(&self, as_json: bool) -> ExitCode {
        refuse(&self.text, self.status, as_json)
    }
}

/// Every run of this user: those that answer, and those that do not.
pub(crate) fn all() -> (Vec<Reached>, Vec<Silent>) {
    reach(&runs())
}

/// The run that the user means: named by its process, named by its graph, or the only one.
pub(crate) fn choose(wanted: Option<&str>) -> Result<Reached, Failure> {
    let found = runs();
    let process: Option<u32> = wanted.and_then(|wanted| wanted.parse().ok());
    let named: Vec<_> = found.iter().filter(|run| Some(run.pid) == process).cloned().collect();
    let is_process = !named.is_empty();
    // If a process was named, only its run is asked: another one may be hanging.
    let (reached, silent) = reach(if is_process { &named } else { &found });
    let is_called = |run: &Reached, name: &str| run.status.graph == name || run.graph() == name;
    let is_meant = |run: &Reached| is_process || wanted.is_none_or(|wanted| is_called(run, wanted));
    let (mut meant, others): (Vec<_>, Vec<_>) = reached.into_iter().partition(is_meant);
    if meant.len() == 1 && (wanted.is_some() || silent.is_empty()) {
        return Ok(meant.remove(0));
    }
    // A run that does not answer may be the one that the user means.
    let is_silence = meant.is_empty() && !silent.is_empty();
    let answering = meant.iter().chain(&others).map(Reached::name);
    let silent = silent.iter().map(|run| format!("process {}: {}", run.pid, run.error));
    let there: String = answering.chain(silent).map(|run| format!("\n  {run}")).collect();
    let text = match wanted {
        None if there.is_empty() => "no graph runs; start one with 'sinew run'".to_owned(),
        Some(wanted) if there.is_empty() => {
            format!("no run '{wanted}': no graph runs; start one with 'sinew run'")
        }
        Some(wanted) if meant.is_empty() => format!("no run '{wanted}' answers; there are:{there}"),
        _ => format!("expected the process of one of these runs:{there}"),
    };
    Err(if is_silence { Failure::run(text) } else { Failure::request(text) })
}

/// Asks all at once, so that one that does not answer does not delay the others.
fn reach(found: &[FoundRun]) -> (Vec<Reached>, Vec<Silent>) {
    let asked: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = found.iter().map(|run| scope.spawn(|| ask(run))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a bug: asking panics")).collect()
    });
    let (mut reached, mut silent) = (Vec::new(), Vec::new());
    for (run, answer) in found.iter().zip(asked) {
        match answer {
            Ok(Some(run)) => reached.push(run),
            Ok(None) => {}
            Err(error) => silent.push(Silent { pid: run.pid, error }),
        }
    }
    (reached, silent)
}

/// The run, unless it has ended meanwhile.
fn ask(run: &FoundRun) -> Result<Option<Reached>, String> {
    let asked = Connection::open(&run.socket).and_then(|mut connection| {
        let answer = connection.ask(&Request::Status {})?;
        Ok((answer, connection))
    });
    match asked {
        Ok((Answer::Status(status), connection)) => {
            Ok(Some(Reached { status: *status, connection, socket: run.socket.clone() }))
        }
        Ok((Answer::Error(text), _)) => Err(text),
        Ok((other, _)) => Err(format!("asked for its status it answers {other:?}")),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::UnexpectedEof => {
                Ok(None)
            }
            _ => Err(error.to_string()),
        },
    }
}

/// What a run looks like now. `None` if it does not answer, or has ended.
pub(crate) fn look(found: &FoundRun) -> Option<Status> {
    Some(ask(found).ok()??.status)
}

/// How a run ended, as far as its events tell.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// The first fault of the core, in its last life.
    pub(crate) fault: Option<String>,
    /// How it stopped.
    pub(crate) stop: Option<StopStatus>,
    is_finished: bool,
}

impl Fate {
    /// From the status of a run. Its core may have ended already.
    pub(crate) fn of(status: &Status) -> Fate {
        let core = || status.domains.iter().filter(|it| it.role == DomainRole::Realtime);
        let is = |state| move |domain: &&DomainStatus| domain.state == state;
        let fault = core().find(is(DomainState::Faulted)).map(|domain| {
            let reason = domain.last_reason.as_deref().unwrap_or_default();
            format!("{}: {reason}", domain.name)
        });
        let is_finished = core().any(|domain| domain.state == DomainState::Finished);
        let is_held = status.phase == Phase::Held;
        Fate { fault, stop: status.stop.clone().filter(|_| is_held), is_finished }
    }

    /// Takes in an event of this run.
    pub(crate) fn take(&mut self, event: &Event, status: &Status) {
        if event.stop.is_some() {
            self.stop.clone_from(&event.stop);
        }
        let Some(domain) = &event.domain else { return };
        let is_core = |it: &DomainStatus| it.name == *domain && it.role == DomainRole::Realtime;
        if !status.domains.iter().any(is_core) {
            return;
        }
        match event.what {
            // A new life of the core begins.
            EventKind::Started => *self = Fate::default(),
            EventKind::Faulted => {
                self.fault.get_or_insert_with(|| format!("{domain}: {}", event.text));
            }
            EventKind::Ended => self.is_finished = true,
            _ => {}
        }
    }

    /// As `sinew run` calls it.
    pub(crate) fn outcome(&self) -> &'static str {
        match (&self.fault, self.is_finished) {
            (Some(_), _) => "faulted",
            (None, true) => "finished",
            (None, false) => "stopped",
        }
    }

    /// The outcome with its reason, and how long the stop took.
    pub(crate) fn text(&self) -> String {
        let outcome = match &self.fault {
            Some(fault) => format!("faulted: {fault}"),
            None => self.outcome().into(),
        };
        match &self.stop {
            Some(stop) => format!("{outcome}; {}", stop.times()),
            None => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use sinew_control::status::Events;
    use sinew_report::fixture::status as fixture;

    use super::*;

    fn status() -> Status {
        let control = fixture::domain("control", DomainRole::Realtime);
        fixture::status(vec![control, fixture::domain("camera", DomainRole::Service)])
    }

    fn ended(events: &[(EventKind, &str)]) -> String {
        let (mut all, mut fate) = (Events::new(), Fate::default());
        events.iter().for_each(|&(what, domain)| all.add(what, Some(domain), "why"));
        all.after(0).for_each(|event| fate.take(event, &status()));
        fate.text()
    }

    #[test]
    fn a_run_ends_as_its_core_does() {
        assert_eq!(ended(&[(EventKind::Faulted, "camera")]), "stopped");
        assert_eq!(ended(&[(EventKind::Ended, "control")]), "finished");
        let faulted = [(EventKind::Ended, "control"), (EventKind::Faulted, "control")];
        assert_eq!(ended(&faulted), "faulted: control: why");
        let again = [faulted[1], (EventKind::Started, "control")];
        assert_eq!(ended(&again), "stopped", "what counts is the last life");
    }
}
