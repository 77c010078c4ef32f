//! The end of a link whose region a service has overwritten before this side could attach to it. It
//! answers every time what a link does that breaks later on, so that the core, which has locks
//! against that, can start, and start again, without this link.

use crate::fault::{Cause, Fault};
use crate::transport::{Received, Receiver, Sender, Sent};

/// With what is wrong with the region.
pub(crate) struct Spoiled(Fault);

impl Spoiled {
    /// In place of an end that cannot be made, if that is the service's doing.
    pub(crate) fn of(fault: Fault) -> Result<Spoiled, Fault> {
        if fault.cause == Cause::BadPeer { Ok(Spoiled(fault)) } else { Err(fault) }
    }
}

impl Receiver for Spoiled {
    fn receive(&mut self, _: &mut [u8]) -> Result<Received, Fault> {
        Err(self.0.clone())
    }

    fn wait(&mut self, _: u64) -> bool {
        false
    }
}

impl Sender for Spoiled {
    fn send(&mut self, _: &[u8]) -> Result<Sent, Fault> {
        Err(self.0.clone())
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Err(self.0.clone())
    }

    fn wait_room(&mut self, _: u64) -> bool {
        false
    }

    fn close(&mut self) {}
}
