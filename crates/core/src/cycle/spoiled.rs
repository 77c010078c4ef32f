//! The end of a link whose region a service has overwritten before this side could attach to it. It
//! always answers as a link does that breaks later on. The core has locks against such links, so it
//! can start, and start again, without this one.

use crate::fault::{Cause, Fault};
use crate::transport::{Received, Receiver, Sender, Sent};

/// Holds what is wrong with the region.
pub(crate) struct Spoiled(Fault);

impl Spoiled {
    /// Takes the place of an end that cannot be made, if the service has caused that.
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
