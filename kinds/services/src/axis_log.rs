//! Kind `axis_log`: writes what the axes did to a file, line by line.

mod file;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sinew_core::catalogue::{Kind, Parameter, ParameterType, Port, RunsIn};
use sinew_core::{Fault, Message, Parameters};
use sinew_robot::messages::AxisFeedback;
use sinew_runtime::service::tell;
use sinew_runtime::{Service, ServiceEntry, ServiceIo};

use self::file::LogFile;

const IN: usize = 0;

/// Interval between two polls of the port: the time of a line may be late by this.
const LOOK: Duration = Duration::from_millis(10);
/// Interval between two flushes: at most this much is lost if the process is killed.
const FLUSH: Duration = Duration::from_secs(1);
/// Most messages taken in one poll; with more the heartbeat and the flush would be late.
const TAKEN_MAX: usize = 10_000;

/// What the compiler knows of the kind.
pub const INFO: Kind = Kind {
    name: "axis_log",
    runs_in: RunsIn::Service,
    doc: "Appends what the axes did to a CSV file: position, velocity and state of each drive. An \
          existing log is continued, without a second header, so it survives restarts. A line that \
          a kill or a full disk has cut off is removed then, and messages that the link still \
          holds are written. It writes once a second and at the end. A file that cannot be written \
          is a fault, and the domain's restart policy decides. Link it with 'delivery: broadcast', \
          and a capacity for this second and the longest restart; messages that it was too slow \
          for are counted and logged.",
    ports: &[Port::input(
        "in",
        "What the drives report; ethercat_master gives it at its port 'feedback'.",
        AxisFeedback::TYPE,
    )],
    parameters: &[
        Parameter::new("file", ParameterType::Path).doc(
            "The CSV file, relative to the folder of the spec. One process writes it at a time.",
        ),
        Parameter::new("every", ParameterType::Integer { min: 1, max: 1_000_000 })
            .or("10")
            .unit("messages")
            .doc("Every how many messages it writes a line; 1: for each."),
    ],
    signals: &[],
};

/// The kind's row in the table.
pub const NODE: ServiceEntry = ServiceEntry { kind: &INFO, make };

fn make(parameters: &Parameters<'_>) -> Result<Box<dyn Service>, Fault> {
    let every = parameters.integer("every") as u64;
    Ok(Box::new(AxisLog { path: parameters.path("file"), every, log: None }))
}

struct AxisLog {
    path: PathBuf,
    every: u64,
    /// Set from start to stop.
    log: Option<Log>,
}

impl Service for AxisLog {
    fn start(&mut self) -> Result<(), Fault> {
        let (file, done) = LogFile::open(&self.path)?;
        self.log = Some(Log::new(file, self.every));
        tell(format_args!("{done} '{}', every {} messages", self.path.display(), self.every));
        Ok(())
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        let log = self.log.as_mut().expect("a service is started before it runs");
        log.catch_up(unix_ms(), &held(io)?)?;
        let mut flushed = Instant::now();
        while io.wait(LOOK) {
            take_all(io, log)?;
            if flushed.elapsed() >= FLUSH {
                log.file.flush()?;
                log.lost(io.lost()).inspect(|line| tell(line));
                flushed = Instant::now();
            }
        }
        take_all(io, log)?;
        log.file.flush()
    }

    fn stop(&mut self) {
        // If `run` failed, closing the file saves what can be saved.
        self.log = None;
    }
}

/// The messages in the link when this life began; after a restart these include messages from
/// before and from in between. Each comes with the number of messages lost before it.
fn held(io: &mut ServiceIo) -> Result<Vec<(u64, AxisFeedback)>, Fault> {
    let mut held = Vec::new();
    while held.len() < TAKEN_MAX
        && let Some(message) = io.receive(IN)?
    {
        held.push((io.lost(), message));
    }
    Ok(held)
}

/// Takes the messages since the last call.
fn take_all(io: &mut ServiceIo, log: &mut Log) -> Result<(), Fault> {
    let unix_ms = unix_ms();
    for _ in 0..TAKEN_MAX {
        let Some(message) = io.receive::<AxisFeedback>(IN)? else { break };
        log.take(unix_ms, io.lost(), &message)?;
    }
    Ok(())
}

/// Decides which messages get a line.
struct Log {
    file: LogFile,
    every: u64,
    /// Messages taken so far.
    taken: u64,
    /// Number of the message that gets the next line.
    due: u64,
    /// Number of lost messages that were reported.
    lost_told: u64,
}

impl Log {
    fn new(file: LogFile, every: u64) -> Log {
        Log { file, every, taken: 0, due: 1, lost_told: 0 }
    }

    /// Takes a message before which `lost` were lost in total. Its number counts those too, so it
    /// gives the time between two lines better than the clock does.
    fn take(&mut self, unix_ms: u64, lost: u64, message: &AxisFeedback) -> Result<(), Fault> {
        self.taken += 1;
        let number = self.taken + lost;
        if number < self.due {
            return Ok(());
        }
        self.due = number + self.every;
        self.file.add(unix_ms, number, message)
    }

    /// Takes the messages that the link held, except those that are in the log already.
    fn catch_up(&mut self, unix_ms: u64, held: &[(u64, AxisFeedback)]) -> Result<(), Fault> {
        let logged = held.iter().rposition(|(_, message)| self.file.ended_with(message));
        let (logged, missing) = held.split_at(logged.map_or(0, |at| at + 1));
        if let Some((lost, _)) = logged.last() {
            self.taken = logged.len() as u64;
            self.due = self.taken + lost + self.every;
        }
        missing.iter().try_for_each(|(lost, message)| self.take(unix_ms, *lost, message))
    }

    /// The line about messages that were lost since the last one.
    fn lost(&mut self, lost: u64) -> Option<String> {
        let more = lost - std::mem::replace(&mut self.lost_told, lost);
        (more > 0).then(|| {
            format!(
                "lost {more} messages, {lost} since the start; raise 'capacity' of the link, or \
                 the domain's limit of CPU"
            )
        })
    }
}

/// Wall-clock time, because a log is read beside other logs. It is used for nothing else.
fn unix_ms() -> u64 {
    // A clock before 1970 is wrong anyway.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
