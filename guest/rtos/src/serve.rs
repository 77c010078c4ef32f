//! A node that serves: it has its thread for itself and answers messages when they come, instead of
//! a cycle in each period.

use crate::{Fault, Io, agent, kernel};

/// How a node that serves waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// It looks so often; each look takes some hundred nanoseconds.
    pub polls: u32,
    /// Then it sleeps until the bell of the link rings, but looks once in so many milliseconds. On
    /// a link without a bell it looks in each.
    pub park_ms: u32,
}

/// The thread of a node that serves.
pub struct Serving<'a>(Io<'a>);

impl<'a> Serving<'a> {
    pub(crate) fn new(io: Io<'a>) -> Serving<'a> {
        Serving(io)
    }

    /// Ports and counters. Nothing is sent but by the calls here.
    pub fn io(&mut self) -> &mut Io<'a> {
        &mut self.0
    }

    /// Whether the node is to end.
    pub fn is_stopping(&self) -> bool {
        agent::is_stopping()
    }

    /// Lets other nodes run for a millisecond.
    pub fn pause(&self) {
        kernel::wait_ms(1);
    }

    /// Waits for the next message of an input; `false`: the guest stops.
    ///
    /// # Errors
    /// Linux wrote what no peer may write.
    ///
    /// # Panics
    /// If nothing is linked to the port: a bug of the kind.
    pub fn receive(&mut self, port: usize, patience: Patience) -> Result<bool, Fault> {
        while !self.is_stopping() {
            for _ in 0..patience.polls.max(1) {
                if self.0.next(port)? {
                    return Ok(true);
                }
            }
            self.0.link(port).park(patience.park_ms);
        }
        Ok(false)
    }

    /// Sends what was written to an output, and waits for room in its link; `false`: the guest
    /// stops, and it was not sent.
    ///
    /// # Errors
    /// As for [`Serving::receive`].
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn send(&mut self, port: usize, patience: Patience) -> Result<bool, Fault> {
        self.forward(port, port, patience)
    }

    /// Sends what port `from` holds through output `to`, without another copy; else as
    /// [`Serving::send`].
    ///
    /// # Errors
    /// As for [`Serving::receive`].
    ///
    /// # Panics
    /// As for [`Serving::receive`]; or if the ports have messages of different sizes.
    pub fn forward(&mut self, from: usize, to: usize, patience: Patience) -> Result<bool, Fault> {
        while !self.is_stopping() {
            for _ in 0..patience.polls.max(1) {
                if self.0.forward(from, to)? {
                    return Ok(true);
                }
            }
            self.0.link(to).park(patience.park_ms);
        }
        Ok(false)
    }
}
