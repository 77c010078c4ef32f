//! A serving node: it has its thread for itself and answers messages when they come, instead of
//! having a cycle in each period.

use sinew_carve_out::Trial;
use sinew_link::{RawMemory, queue};

use crate::link::Link;
use crate::{Fault, Io, Peek, agent, guest, kernel, trial};

/// A queue that the guest reads.
pub type QueueIn = queue::Reader<RawMemory>;
/// A queue that the guest writes.
pub type QueueOut = queue::Writer<RawMemory>;

/// How a serving node waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Count of looks for the next message after a message. A look takes some hundred nanoseconds.
    pub polls: u32,
    /// After these looks it sleeps until the bell of the link rings, but looks at least once in
    /// this time, ms. On a link without a bell it looks in each millisecond.
    pub park_ms: u32,
}

impl Default for Patience {
    /// Polls for some tens of microseconds, then sleeps.
    fn default() -> Patience {
        Patience { polls: 100, park_ms: 50 }
    }
}

/// The thread of a serving node.
pub struct Serving<'a> {
    io: Io<'a>,
    node: usize,
    /// The failure on purpose, and the beat at which it comes.
    trial: (Trial, u32),
    /// When the state of the node was last written for Linux, in ticks.
    shown: u32,
}

impl<'a> Serving<'a> {
    pub(crate) fn new(io: Io<'a>, node: usize, trial: (Trial, u32)) -> Serving<'a> {
        Serving { io, node, trial, shown: kernel::ticks() }
    }

    /// Ports and counters. Messages are sent only by the calls here.
    pub fn io(&mut self) -> &mut Io<'a> {
        &mut self.io
    }

    /// The bare queues of an input and an output: without a copy of the message in the port,
    /// without counts, and without cache operations, which is right only where Linux and the guest
    /// are coherent. `None` if one of them is not a queue.
    ///
    /// # Panics
    /// There are no such ports, or nothing is linked to one: a bug of the kind.
    pub fn queues(&mut self, from: usize, to: usize) -> Option<(&mut QueueIn, &mut QueueOut)> {
        let ports = self.io.ports.get_disjoint_mut([from, to]).expect("two ports of the kind");
        let [from, to] = ports.map(|port| &mut port.links[0]);
        Some((from.reader()?, to.writer()?))
    }

    /// Whether the node must end.
    pub fn is_stopping(&self) -> bool {
        agent::is_to_stop(self.node)
    }

    /// Lets other nodes run for a millisecond.
    ///
    /// # Errors
    /// The failure of a drill.
    pub fn pause(&mut self) -> Result<(), Fault> {
        kernel::wait_ms(1);
        self.beat()
    }

    /// The heartbeat of a node without cycles. It is written for Linux at most once a millisecond.
    fn beat(&mut self) -> Result<(), Fault> {
        let cycles = &mut self.io.status.cycles;
        if self.trial.0 != Trial::None && *cycles == self.trial.1 {
            trial::act(self.trial.0)?;
        }
        *cycles = cycles.wrapping_add(1);
        let now = kernel::ticks();
        if let Some(guest) = guest::get().filter(|_| now != self.shown) {
            guest.carve_out.set_tally(self.node, self.io.status);
            self.shown = now;
        }
        Ok(())
    }

    /// Waits for the next message of an input; `false`: the guest stops.
    ///
    /// # Errors
    /// Linux wrote something that no correct peer writes.
    ///
    /// # Panics
    /// Nothing is linked to the port: a bug of the kind.
    pub fn receive(&mut self, port: usize, patience: Patience) -> Result<bool, Fault> {
        let mut polls = patience.polls.max(1);
        while !self.is_stopping() {
            self.beat()?;
            if self.io.poll(port, polls)? {
                return Ok(true);
            }
            self.io.link(port).park(patience.park_ms);
            polls = 1;
        }
        Ok(false)
    }

    /// Sends the message that was written to an output, after waiting for room in its link;
    /// `false`: the guest stops, and the message was not sent.
    ///
    /// # Errors
    /// As for [`Serving::receive`].
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn send(&mut self, port: usize, patience: Patience) -> Result<bool, Fault> {
        self.forward(port, port, patience)
    }

    /// Sends the message in port `from` through output `to`, without another copy; otherwise like
    /// [`Serving::send`].
    ///
    /// # Errors
    /// As for [`Serving::receive`].
    ///
    /// # Panics
    /// As for [`Serving::receive`]; or the ports have messages of different sizes.
    pub fn forward(&mut self, from: usize, to: usize, patience: Patience) -> Result<bool, Fault> {
        while !self.is_stopping() {
            for _ in 0..patience.polls.max(1) {
                if self.io.forward(from, to)? {
                    return Ok(true);
                }
            }
            self.io.link(to).park(patience.park_ms);
            self.beat()?;
        }
        Ok(false)
    }

    /// Waits until a queue at an input has a message; `false`: the guest stops.
    ///
    /// # Errors
    /// As for [`Serving::receive`]; or the port has not exactly one link, or its link is not a
    /// queue: then messages have no places of their own.
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn wait_message(&mut self, port: usize, patience: Patience) -> Result<bool, Fault> {
        self.wait_for(port, patience, Link::has_message)
    }

    /// Waits until a queue at an output has room; `false`: the guest stops.
    ///
    /// # Errors
    /// As for [`Serving::wait_message`].
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn wait_room(&mut self, port: usize, patience: Patience) -> Result<bool, Fault> {
        self.wait_for(port, patience, Link::has_room)
    }

    fn wait_for(
        &mut self,
        port: usize,
        patience: Patience,
        holds: fn(&mut Link, u32) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let mut polls = patience.polls.max(1);
        while !self.is_stopping() {
            self.beat()?;
            let link = self.io.only_link(port)?;
            if holds(link, polls)? {
                return Ok(true);
            }
            link.park(patience.park_ms);
            polls = 1;
        }
        Ok(false)
    }

    /// Lets `read` read the next message of an input in place in its queue, part by part, then
    /// frees its place; `None`: there is no message. The port itself holds no message.
    ///
    /// # Errors
    /// As for [`Serving::wait_message`].
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn read_in_place<T>(
        &mut self,
        port: usize,
        read: impl FnOnce(&Peek<'_>) -> T,
    ) -> Result<Option<T>, Fault> {
        self.io.read_in_place(port, read)
    }

    /// Count of messages that wait in the queue of an input.
    ///
    /// # Errors
    /// As for [`Serving::wait_message`].
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn waiting(&mut self, port: usize) -> Result<u32, Fault> {
        self.io.only_link(port)?.waiting()
    }

    /// Lets `write` write the next message of an output in place in its queue, and sends it.
    /// Returns whether it was sent. It is not sent if there is no room, in which case `write` is
    /// not called, or if `write` returns `None`. Otherwise `write` returns how many bytes it has
    /// written from the start of the place. The bytes after them are of an earlier message, or
    /// anything. The port itself holds no message.
    ///
    /// The place is only for writing. A peer that breaks the rules can change it at any time, so
    /// nothing may be decided by reading it back.
    ///
    /// # Errors
    /// As for [`Serving::wait_message`].
    ///
    /// # Panics
    /// As for [`Serving::receive`].
    pub fn write_in_place(
        &mut self,
        port: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<bool, Fault> {
        self.io.write_in_place(port, write)
    }
}
