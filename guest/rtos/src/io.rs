//! The ports of a node: read before an update, written after it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::OnceCell;

use sinew_carve_out::NodeTally;
use zerocopy::IntoBytes;

pub use sinew_link::latest::Fresh;

use crate::link::Link;
use crate::{Fault, Message, Peek, fault};

/// The ports and counters of a node in a cycle.
pub struct Io<'a> {
    pub(crate) ports: &'a mut [Port],
    pub(crate) status: &'a mut NodeTally,
}

impl Io<'_> {
    /// Whether something is linked to a port.
    pub fn is_linked(&self, port: usize) -> bool {
        self.port(port).is_some()
    }

    /// The state of the value of [`Io::read`]: nothing yet (zeros), an old message, or a new
    /// message.
    pub fn fresh(&self, port: usize) -> Fresh {
        self.port(port).map_or(Fresh::None, |port| port.fresh)
    }

    /// Whether the writer of an input has closed it. Then nothing comes until another writer takes
    /// its place. A writer that was killed could not close it.
    pub fn is_closed(&self, port: usize) -> bool {
        self.port(port).is_some_and(|port| port.links.iter().any(Link::is_closed))
    }

    /// The message of an input; zeros if none has come yet.
    ///
    /// # Panics
    /// The port has another type or is not linked: a bug of the kind.
    pub fn read<T: Message>(&self, port: usize) -> &T {
        let found = self.expect(port);
        assert!(found.hash == T::TYPE.hash, "port {port} carries no {}", T::TYPE.name);
        T::ref_from_bytes(found.bytes()).expect("the size belongs to the hash")
    }

    /// Takes the next message of a queue in the same cycle. Returns whether there was one.
    ///
    /// # Errors
    /// Linux wrote something that no correct peer writes.
    pub fn next(&mut self, port: usize) -> Result<bool, Fault> {
        match self.ports.get_mut(port) {
            Some(port) => {
                port.receive(&mut self.status.messages, 1).map(|()| port.fresh == Fresh::New)
            }
            _ => Ok(false),
        }
    }

    /// The message that an output sends after this update. It begins as the message sent before.
    ///
    /// # Panics
    /// As for [`Io::read`].
    pub fn write<T: Message>(&mut self, port: usize) -> &mut T {
        let found = self.expect_mut(port);
        assert!(found.hash == T::TYPE.hash, "port {port} carries no {}", T::TYPE.name);
        found.is_written = true;
        T::mut_from_bytes(found.bytes_mut()).expect("the size belongs to the hash")
    }

    /// The bytes of an input, whatever its type.
    ///
    /// # Panics
    /// Nothing is linked to the port.
    pub fn bytes(&self, port: usize) -> &[u8] {
        self.expect(port).bytes()
    }

    /// The bytes that an output sends after this update, whatever its type.
    ///
    /// # Panics
    /// Nothing is linked to the port.
    pub fn bytes_mut(&mut self, port: usize) -> &mut [u8] {
        let port = self.expect_mut(port);
        port.is_written = true;
        port.bytes_mut()
    }

    /// A counter of the kind's record. Linux sees the new value after this update.
    pub fn counter(&mut self, counter: usize) -> &mut u32 {
        &mut self.status.counters[counter]
    }

    /// Count of messages that were not sent since the start because a queue was full.
    pub fn lost(&self) -> u32 {
        self.status.messages[DROPPED]
    }

    fn port(&self, port: usize) -> Option<&Port> {
        self.ports.get(port).filter(|port| !port.links.is_empty())
    }

    fn expect(&self, port: usize) -> &Port {
        self.port(port).unwrap_or_else(|| panic!("nothing is linked to port {port}"))
    }

    fn expect_mut(&mut self, port: usize) -> &mut Port {
        match self.ports.get_mut(port) {
            Some(port) if !port.links.is_empty() => port,
            _ => panic!("nothing is linked to port {port}"),
        }
    }

    /// The first link of a port.
    ///
    /// # Panics
    /// Nothing is linked to it.
    pub(crate) fn link(&mut self, port: usize) -> &mut Link {
        &mut self.expect_mut(port).links[0]
    }

    /// The only link of a port whose messages are read or written in place.
    ///
    /// # Panics
    /// Nothing is linked to it.
    pub(crate) fn only_link(&mut self, port: usize) -> Result<&mut Link, Fault> {
        match &mut self.expect_mut(port).links[..] {
            [link] => Ok(link),
            links => Err(fault!(
                "port {port} has {} links, and its messages lie in the places of one; link it once",
                links.len()
            )),
        }
    }

    /// Lets `read` read the next message of an input in place, then frees its place; `None`: there
    /// is no message.
    pub(crate) fn read_in_place<T>(
        &mut self,
        port: usize,
        read: impl FnOnce(&Peek<'_>) -> T,
    ) -> Result<Option<T>, Fault> {
        let found = self.only_link(port)?.read_in_place(read)?;
        count(&mut self.status.messages[RECEIVED], u32::from(found.is_some()));
        Ok(found)
    }

    /// Lets `write` write the next message of an output in place, and sends it. Returns whether it
    /// was sent.
    pub(crate) fn write_in_place(
        &mut self,
        port: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> Result<bool, Fault> {
        let is_sent = self.only_link(port)?.write_in_place(write)?;
        count(&mut self.status.messages[SENT], u32::from(is_sent));
        Ok(is_sent)
    }

    /// Like [`Io::next`], with up to `polls` looks for a message.
    ///
    /// # Panics
    /// Nothing is linked to the port.
    pub(crate) fn poll(&mut self, port: usize, polls: u32) -> Result<bool, Fault> {
        let Io { ports, status } = self;
        let port = &mut ports[port];
        assert!(!port.links.is_empty(), "nothing is linked to the port that a node serves");
        port.receive(&mut status.messages, polls).map(|()| port.fresh == Fresh::New)
    }

    /// Sends the message of port `from` through `to`. Returns whether there was room.
    pub(crate) fn forward(&mut self, from: usize, to: usize) -> Result<bool, Fault> {
        let message = core::mem::take(&mut self.expect_mut(from).message);
        let port = self.expect_mut(to);
        let is_sent = port.links[0].send(&message.bytes()[..port.len]);
        self.expect_mut(from).message = message;
        let is_sent = is_sent?;
        count(&mut self.status.messages[SENT], u32::from(is_sent));
        Ok(is_sent)
    }

    /// Reads every input once.
    pub(crate) fn receive(&mut self) -> Result<(), Fault> {
        let messages = &mut self.status.messages;
        self.ports.iter_mut().try_for_each(|port| port.receive(messages, 1))
    }

    /// Sends the messages that were written.
    pub(crate) fn send(&mut self) -> Result<(), Fault> {
        for port in self.ports.iter_mut().filter(|port| port.is_written) {
            port.is_written = false;
            port.send(&mut self.status.messages)?;
        }
        Ok(())
    }
}

/// Indices of the counters in [`NodeTally::messages`].
const RECEIVED: usize = 0;
const LOST: usize = 1;
const SENT: usize = 2;
const DROPPED: usize = 3;

fn count(counter: &mut u32, by: u32) {
    *counter = counter.wrapping_add(by);
}

/// A port with its links: one if it reads, one or more if it writes.
pub(crate) struct Port {
    pub(crate) links: Vec<Link>,
    hash: u32,
    len: usize,
    reads: bool,
    fresh: Fresh,
    is_written: bool,
    message: Held,
}

impl Port {
    /// A port without a link yet, for messages of this hash and length.
    pub(crate) fn new(hash: u32, len: usize, reads: bool) -> Port {
        let (links, fresh) = (Vec::new(), Fresh::None);
        let message = Held { len, words: OnceCell::new() };
        Port { links, hash, len, reads, fresh, is_written: false, message }
    }

    /// Allocates the message that it holds, if something is linked to it, so that no cycle has to.
    pub(crate) fn prepare(&self) {
        if !self.links.is_empty() {
            self.message.bytes();
        }
    }

    fn receive(&mut self, messages: &mut [u32; 4], polls: u32) -> Result<(), Fault> {
        let Some(link) = self.links.first_mut().filter(|_| self.reads) else { return Ok(()) };
        let received = link.receive(self.message.bytes_mut(), polls)?;
        self.fresh = match (received.is_new, self.fresh) {
            (true, _) => Fresh::New,
            (false, Fresh::None) => Fresh::None,
            (false, _) => Fresh::Old,
        };
        count(&mut messages[RECEIVED], u32::from(received.is_new));
        count(&mut messages[LOST], received.lost);
        Ok(())
    }

    fn send(&mut self, messages: &mut [u32; 4]) -> Result<(), Fault> {
        for link in &mut self.links {
            let which = if link.send(self.message.bytes())? { SENT } else { DROPPED };
            count(&mut messages[which], 1);
        }
        Ok(())
    }

    fn bytes(&self) -> &[u8] {
        self.message.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.message.bytes_mut()
    }
}

/// A message that a port holds. It is allocated at the first use: a port whose messages are read or
/// written in place has none.
#[derive(Default)]
struct Held {
    len: usize,
    /// Words, so that it is aligned to 8.
    words: OnceCell<Box<[u64]>>,
}

impl Held {
    fn bytes(&self) -> &[u8] {
        let make = || vec![0; self.len.div_ceil(8)].into_boxed_slice();
        &self.words.get_or_init(make).as_bytes()[..self.len]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes();
        let words = self.words.get_mut().expect("it was just made");
        &mut words.as_mut_bytes()[..self.len]
    }
}
