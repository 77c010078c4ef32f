//! A kind for the tests of services that observe: it prints what it sees, and misbehaves as told.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use sinew_control::Request;
use sinew_core::catalogue::{Kind, Parameter, ParameterType, RunsIn};
use sinew_core::sys::Region;
use sinew_core::{Fault, Parameters, fault};
use sinew_runtime::{Service, ServiceIo};

use crate::service_kinds::{descriptors, duplicate};

/// Turns until a mood strikes.
const TURNS: u32 = 20;

const MOODS: &[&str] = &["watch", "write", "grow", "sleep", "secret", "say", "cry", "deaf"];

/// Prints when it sees the core begin and stop.
pub(crate) static WATCHER: Kind = Kind {
    parameters: &[Parameter::new("mood", ParameterType::Choice(MOODS)).or("watch")],
    ..Kind::new("watcher", RunsIn::Observer, &[])
};

pub(crate) struct Watcher {
    mood: String,
}

impl Watcher {
    pub(crate) fn new(parameters: &Parameters<'_>) -> Watcher {
        Watcher { mood: parameters.text("mood").into() }
    }

    fn strike(&self, io: &mut ServiceIo) -> Result<(), Fault> {
        match self.mood.as_str() {
            "write" => {
                let region = Region::map_read_only(trace()?).map_err(|e| fault!("{e}"))?;
                region.words()[0].store(0, Ordering::Relaxed);
                say("wrote");
            }
            "grow" => match Region::map(trace()?) {
                Ok(_) => say("mapped for writing"),
                Err(error) => say(&format!("no writing: {error}")),
            },
            "secret" => {
                say(&format!("secret {}", io.watch().secret()));
                return Err(fault!("told to fail"));
            }
            "say" => {
                let supervisor = io.watch().supervisor().clone();
                for request in [
                    Request::Announce { address: "http://here/".into() },
                    Request::Alarm { text: "something is odd".into() },
                ] {
                    supervisor.order(&request).map_err(|text| fault!("{text}"))?;
                }
            }
            "cry" => {
                let supervisor = io.watch().supervisor().clone();
                let alarm = Request::Alarm { text: "help".into() };
                while supervisor.order(&alarm).map_err(|text| fault!("{text}"))?
                    == "it is an event now"
                {
                    io.beat();
                }
                say("one alarm too many");
            }
            _ => {}
        }
        Ok(())
    }
}

impl Service for Watcher {
    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        if self.mood == "sleep" {
            doze(io);
        }
        let mut turn = 0;
        loop {
            watch(io);
            if turn == TURNS {
                self.strike(io)?;
            }
            if self.mood == "deaf" {
                flood()?;
            }
            turn += 1;
            if !io.wait(Duration::from_millis(2)) {
                return Ok(());
            }
        }
    }
}

/// Prints what begins and what stops, from the records of all threads.
fn watch(io: &mut ServiceIo) {
    let watch = io.watch();
    let mut said = Vec::new();
    watch.read(&mut |id, record| {
        if record.number() == 0 {
            said.push(format!("domain {} begins", id.domain));
        }
    });
    let threads: Vec<_> = watch.threads().collect();
    let lost: u64 = threads.iter().map(|&id| watch.lost(id)).sum();
    if lost > 0 {
        said.push(format!("lost {lost}"));
    }
    said.iter().for_each(|line| say(line));
}

/// Long enough for the traces to be overwritten.
fn doze(io: &mut ServiceIo) {
    for _ in 0..30 {
        sleep(Duration::from_millis(100));
        io.beat();
    }
}

/// Asks without end, and never reads an answer.
fn flood() -> Result<(), Fault> {
    let mut socket = std::os::unix::net::UnixStream::from(descriptor("socket:")?);
    socket.set_nonblocking(true).map_err(|error| fault!("{error}"))?;
    let line = b"{\"sinew\": 1, \"request\": \"status\"}\n";
    for _ in 0..1000 {
        if let Err(error) = socket.write_all(line)
            && error.kind() != std::io::ErrorKind::WouldBlock
        {
            return Err(fault!("the supervisor has had enough: {error}"));
        }
    }
    Ok(())
}

fn trace() -> Result<OwnedFd, Fault> {
    descriptor("memfd:sinew-trace")
}

/// A duplicate of the first descriptor whose target contains `what`.
fn descriptor(what: &str) -> Result<OwnedFd, Fault> {
    let found = descriptors().into_iter().filter(|row| row.1.contains(what));
    let number = found.map(|row| row.0).min().ok_or_else(|| fault!("nothing is {what}"))?;
    Ok(duplicate(number))
}

fn say(line: &str) {
    // A failed write is no matter.
    let _ = writeln!(std::io::stdout(), "{line}");
}
