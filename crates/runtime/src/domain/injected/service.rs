//! A service to which something happens.

use std::mem;
use std::thread::sleep;
use std::time::Duration;

use sinew_core::fault::Fault;
use sinew_spec::catalogue::MessageType;

use super::{error, hang, signal, write_nan};
use crate::inject::{Injection, What};
use crate::service::{AtHeartbeats, NAP_NS, Service, ServiceIo};

/// The wrapper.
pub(super) struct Injected {
    service: Box<dyn Service>,
    injections: Vec<Injection>,
}

impl Injected {
    pub(super) fn new(service: Box<dyn Service>, injections: Vec<Injection>) -> Injected {
        Injected { service, injections }
    }
}

impl Service for Injected {
    fn start(&mut self) -> Result<(), Fault> {
        if self.injections.iter().any(|injection| injection.what == What::FailStart) {
            return Err(error("the service does not start"));
        }
        self.service.start()
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        io.injected = Some(Box::new(Heartbeats::new(mem::take(&mut self.injections))));
        self.service.run(io)?;
        match &io.injected {
            Some(heartbeats) if heartbeats.has_failed() => Err(error("the service fails")),
            _ => Ok(()),
        }
    }

    fn stop(&mut self) {
        self.service.stop();
    }
}

/// What happens to a service at its heartbeats.
pub(super) struct Heartbeats {
    injections: Vec<Injection>,
    failed: bool,
    /// Whether the next message is spoiled.
    spoils: bool,
}

impl Heartbeats {
    pub(super) fn new(injections: Vec<Injection>) -> Heartbeats {
        Heartbeats { injections, failed: false, spoils: false }
    }
}

impl AtHeartbeats for Heartbeats {
    fn beat(&mut self, number: u64) {
        let due = self.injections.iter().find(|injection| injection.at_cycle == number);
        match due.map(|injection| injection.what) {
            Some(What::Panic) => panic!("injected by a drill"),
            Some(What::Error) => self.failed = true,
            Some(what @ (What::Segv | What::Kill | What::Stop)) => signal(what),
            Some(What::Hang) => hang(),
            Some(What::NotFinite) => self.spoils = true,
            Some(What::Late { cycles }) => {
                sleep(Duration::from_nanos(NAP_NS * u64::from(cycles)));
            }
            _ => {}
        }
    }

    fn has_failed(&self) -> bool {
        self.failed
    }

    fn spoiled(&mut self, message: &[u8], ty: &MessageType) -> Option<Vec<u8>> {
        mem::take(&mut self.spoils).then(|| {
            let mut spoiled = message.to_vec();
            write_nan(&mut spoiled, ty);
            spoiled
        })
    }
}
