//! A writing end to which something happens.

use super::{Injection, What};
use crate::fault::Fault;
use crate::transport::{Sender, Sent};

/// The wrapper. Its cycles are those of its writer: in each it either sends or flushes.
pub(super) struct Injected {
    sender: Box<dyn Sender>,
    injections: Vec<Injection>,
    cycle: u64,
    /// Closed, and nobody is told.
    gone: bool,
    /// Messages that are yet to be held back.
    held_back: u64,
}

impl Injected {
    pub(super) fn new(sender: Box<dyn Sender>, injections: Vec<Injection>) -> Injected {
        Injected { sender, injections, cycle: 0, gone: false, held_back: 0 }
    }

    fn begin_cycle(&mut self) {
        let due = self.injections.iter().filter(|injection| injection.at_cycle == self.cycle);
        for injection in due {
            match injection.what {
                What::PeerGone => {
                    self.sender.close();
                    self.gone = true;
                }
                What::Stalled { messages } => self.held_back = messages,
                _ => {}
            }
        }
        self.cycle += 1;
    }
}

impl Sender for Injected {
    fn send(&mut self, message: &[u8]) -> Result<Sent, Fault> {
        self.begin_cycle();
        if self.gone {
            return Ok(Sent::Done);
        }
        if self.held_back > 0 {
            self.held_back -= 1;
            return Ok(Sent::Done);
        }
        self.sender.send(message)
    }

    fn flush(&mut self) -> Result<(), Fault> {
        self.begin_cycle();
        if self.gone { Ok(()) } else { self.sender.flush() }
    }

    fn wait_room(&mut self, until_ns: u64) -> bool {
        self.gone || self.sender.wait_room(until_ns)
    }

    fn close(&mut self) {
        self.sender.close();
    }
}
