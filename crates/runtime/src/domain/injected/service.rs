//! A service to which something happens.

use std::mem;

use sinew_core::fault::Fault;

use crate::inject::{Heartbeats, Injection, error};
use crate::service::{Service, ServiceIo};

pub(super) struct InjectedService {
    pub(super) service: Box<dyn Service>,
    pub(super) injections: Vec<Injection>,
}

impl Service for InjectedService {
    fn start(&mut self) -> Result<(), Fault> {
        Injection::start(&self.injections, "the service does not start")?;
        self.service.start()
    }

    fn run(&mut self, io: &mut ServiceIo) -> Result<(), Fault> {
        io.injected = Some(Heartbeats::new(mem::take(&mut self.injections)));
        self.service.run(io)?;
        let failed = io.injected.as_ref().is_some_and(|heartbeats| heartbeats.failed);
        if failed { Err(error("the service fails")) } else { Ok(()) }
    }

    fn stop(&mut self) {
        self.service.stop();
    }
}
