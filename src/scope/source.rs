//! The records of a run, read from outside: its traces are mapped read-only.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use sinew_control::client::{Connection, traces};
use sinew_control::status::Status;
use sinew_control::traces::RunLayout;
use sinew_control::{Answer, Request};
use sinew_core::sys::Region;
use sinew_core::trace::{Reader, Record, ThreadId};

use crate::answer::print;
use crate::reach::{Failure, Fate, Reached};

/// Most records that one pass takes from one thread: the core writes without end, and there is
/// other work.
const RECORDS_PER_LOOK_MAX: usize = 8192;

/// A run whose cycles are read.
pub(super) struct Source {
    pub(super) layout: RunLayout,
    /// The graph's name; `name` also has the process.
    pub(super) graph: String,
    pub(super) name: String,
    threads: Vec<(ThreadId, Reader)>,
    log: Connection,
    status: Status,
    fate: Fate,
    has_ended: bool,
    /// When the last cycle was read.
    heard: Instant,
}

impl Source {
    /// Asks a run for its traces.
    pub(super) fn open(run: Reached) -> Result<Source, Failure> {
        let (graph, name) = (run.graph(), run.name());
        let cannot = |what: &dyn std::fmt::Display| {
            Failure::run(format!("{name} does not show its traces: {what}"))
        };
        let (layout, descriptors) = traces(&run.socket).map_err(|error| match error.kind() {
            // The run has ended meanwhile.
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                Failure::run(format!("{name} has ended before it showed its traces"))
            }
            _ => cannot(&error),
        })?;
        let mut threads = Vec::new();
        for (thread, descriptor) in layout.threads.iter().zip(descriptors) {
            let region = Region::map_read_only(descriptor).map_err(|error| cannot(&error))?;
            let (record, period_ns) = (thread.record(), thread.period_ns);
            let reader = Reader::attach(region, &record, period_ns, layout.pace());
            let reader = reader.map_err(|error| {
                cannot(&format_args!("{error}; use the sinew that it was started with"))
            })?;
            threads.push((thread.id(), reader));
        }
        let mut log = run.connection;
        // If the request cannot be sent, no answer comes, and this counts as the end of the run.
        let _ = log.send(&Request::Log { after: 0, follow: true });
        let (fate, status, heard) = (Fate::of(&run.status), run.status, Instant::now());
        let has_ended = false;
        Ok(Source { layout, graph, name, threads, log, status, fate, has_ended, heard })
    }

    /// Calls `each` for every cycle since the last call, thread by thread.
    pub(super) fn read(&mut self, each: &mut dyn FnMut(ThreadId, &Record)) {
        for (id, reader) in &mut self.threads {
            for _ in 0..RECORDS_PER_LOOK_MAX {
                let Some(record) = reader.read() else { break };
                self.heard = Instant::now();
                each(*id, record);
            }
        }
    }

    /// Waits for `limit`, or until the run has ended. Returns whether the run still exists.
    ///
    /// # Errors
    /// The run does not answer, or answers with an error.
    pub(super) fn wait(&mut self, limit: Duration) -> Result<bool, Failure> {
        let begun = Instant::now();
        while !self.has_ended {
            match self.log.next(Some(limit.saturating_sub(begun.elapsed()))) {
                Ok(None) => self.has_ended = true,
                Ok(Some(Answer::Event(event))) => self.fate.take(&event, &self.status),
                Ok(Some(Answer::Error(text))) => return Err(Failure::run(text)),
                Ok(Some(_)) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(true),
                Err(error) => {
                    let text = format!("{} does not answer: {error}", self.name);
                    return Err(Failure::run(text));
                }
            }
        }
        Ok(false)
    }

    /// How long no cycle has come.
    pub(super) fn silent_ns(&self) -> u64 {
        u64::try_from(self.heard.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Why no cycle comes. The most important words come first: a terminal may cut the rest.
    pub(super) fn why(&self) -> String {
        let (name, fate) = (&self.name, self.fate.text());
        match (self.has_ended, &self.fate.stop) {
            (true, _) => format!("{name} has ended: {fate}"),
            (false, Some(_)) => {
                format!("the core has stopped ('sinew reset' starts it if it is held): {fate}")
            }
            (false, None) => format!("no cycle comes from {name}; 'sinew top' shows its state"),
        }
    }

    /// Reports that the run has ended. The exit status is that of the run.
    pub(super) fn ended(&self) -> Result<ExitCode, Failure> {
        let text = self.why();
        match self.fate.fault {
            Some(_) => Err(Failure::run(text)),
            None => Ok(print(&format!("{text}\n"), ExitCode::SUCCESS)),
        }
    }
}
