//! Runs two programs in turns: old, new, new, old, and so on, so that a drift of the machine
//! affects both alike.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::Value;

use super::CannotCompare;
use crate::report::ScenarioReport;
use crate::rounds::Session;

/// A short form takes a minute or two. A run that takes this long hangs, and is ended.
const RUN_MAX: Duration = Duration::from_secs(30 * 60);
/// How long a program may take to end after it was asked to: it first measures its current row to
/// the end.
const END_MAX: Duration = Duration::from_secs(60);
/// How often the session is asked whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// What to run.
#[derive(Clone, Debug)]
pub struct Turns {
    /// The old one and the new one, by their full paths.
    pub programs: [PathBuf; 2],
    /// The scenarios.
    pub scenarios: Vec<String>,
    /// Only rows with these values, as `sinew lab` takes it.
    pub only: Vec<String>,
    /// How often each program runs each scenario.
    pub rounds: u32,
}

/// What the programs reported.
#[derive(Debug, Default)]
pub struct TurnReports {
    /// For each scenario the reports of both programs, round by round; both have the same number.
    pub scenarios: Vec<[Vec<ScenarioReport>; 2]>,
    /// Whether it was interrupted.
    pub partial: bool,
}

impl Turns {
    /// Runs all of it, unless the user stops it.
    ///
    /// # Errors
    /// If a program gives no report; the error says what it printed instead.
    pub fn run(&self, session: &Session<'_>) -> Result<TurnReports, CannotCompare> {
        let runs = 2 * self.rounds * self.scenarios.len() as u32;
        let (begun, mut done) = (Instant::now(), 0);
        let scenarios = self.scenarios.iter().map(|_| [vec![], vec![]]).collect();
        let mut found = TurnReports { scenarios, partial: false };
        for round in 0..self.rounds {
            for (scenario, reports) in self.scenarios.iter().zip(&mut found.scenarios) {
                let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
                let mut turn = [None, None];
                for side in order {
                    let spent = begun.elapsed();
                    // After no run, nothing is known about how long one takes.
                    let all = if done == 0 { RUN_MAX } else { spent * runs / done };
                    let name = format!("{scenario}, run {} of {runs}", done + 1);
                    session.progress.at(&name, spent, all);
                    turn[side] = self.once(side, scenario, session)?;
                    done += 1;
                    if session.is_stopped() {
                        break;
                    }
                }
                // A report without a counterpart is left out.
                if let [Some(old), Some(new)] = turn {
                    reports[0].push(old);
                    reports[1].push(new);
                }
                if session.is_stopped() {
                    found.partial = true;
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// The report of one run; `None` if it was interrupted.
    fn once(
        &self,
        side: usize,
        scenario: &str,
        session: &Session<'_>,
    ) -> Result<Option<ScenarioReport>, CannotCompare> {
        let program = &self.programs[side];
        let mut command = Command::new(program);
        command.args(["lab", scenario, "--quick", "--json"]);
        command.args(self.only.iter().flat_map(|only| ["--only", only]));
        let name = format!("'{} lab {scenario} --quick --json'", program.display());
        let cannot = |why: String| CannotCompare(format!("{name} {why}"));
        let output = output(command, session).map_err(cannot)?;
        let Some(output) = output.filter(|_| !session.is_stopped()) else { return Ok(None) };
        let out = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let said = said(&out, &String::from_utf8_lossy(&output.stderr));
            return Err(cannot(format!("ended with {}: {said}", output.status)));
        }
        let report = ScenarioReport::read(&out)
            .map_err(|why| cannot(format!("gave no report: what it printed {why}")))?;
        if report.scenario != scenario {
            return Err(cannot(format!("gave a report of '{}'", report.scenario)));
        }
        Ok(Some(report))
    }
}

/// Runs a command to its end; `None` if it was interrupted.
fn output(mut command: Command, session: &Session<'_>) -> Result<Option<Output>, String> {
    let starts = |error: io::Error| format!("cannot be started: {error}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(starts)?;
    let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let pidfd = pidfd.map_err(|error| starts(error.into()))?;
    let (told, ended) = sync_channel(1);
    // That thread reads both streams to their ends, while this thread watches the time.
    let read = move || drop(told.send(child.wait_with_output()));
    thread::Builder::new().name("output".into()).spawn(read).map_err(starts)?;
    let mut limit = Instant::now() + RUN_MAX;
    let mut is_asked = false;
    loop {
        match ended.recv_timeout(LOOK) {
            Ok(output) if is_asked => return Ok(output.ok()),
            Ok(output) => return output.map(Some).map_err(|error| format!("failed: {error}")),
            Err(RecvTimeoutError::Disconnected) => return Err("was lost".into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if session.is_stopped() && !is_asked {
            is_asked = true;
            limit = Instant::now() + END_MAX;
            signal(&pidfd, Signal::TERM);
        }
        if Instant::now() > limit {
            signal(&pidfd, Signal::KILL);
            return match is_asked {
                true => Ok(None),
                false => Err(format!("did not end within {} s and was killed", RUN_MAX.as_secs())),
            };
        }
    }
}

/// Sends a signal. A process that has already ended needs none, so an error is ignored.
fn signal(pidfd: &OwnedFd, signal: Signal) {
    let _ = pidfd_send_signal(pidfd, signal);
}

/// What a program says of its failure: the errors in its JSON, or else the end of its standard
/// error.
fn said(out: &str, err: &str) -> String {
    let json: Option<Value> = serde_json::from_str(out).ok();
    let errors = json.as_ref().and_then(|json| json["errors"].as_array());
    let messages = errors.into_iter().flatten().filter_map(|error| error["message"].as_str());
    let messages: Vec<_> = messages.collect();
    if !messages.is_empty() {
        return messages.join("; ");
    }
    let last = err.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or("it printed nothing".into(), |line| line.trim().chars().take(400).collect())
}
