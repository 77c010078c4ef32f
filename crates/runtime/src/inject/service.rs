//! A service to which something happens.

use super::{Injection, What, error};
use crate::fault::Fault;
use crate::service::{Service, ServiceIo};

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
        self.service.run(io)
    }

    fn stop(&mut self) {
        self.service.stop();
    }
}
