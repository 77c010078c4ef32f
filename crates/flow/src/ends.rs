//! The ends of links between flows and the core: `read` looks at one, `send` writes to one. All
//! workers of a domain share them, so each is behind a lock that is held for one message.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sinew_core::clock::now_ns;
use sinew_core::fault::Fault;
use sinew_core::transport::{Received, Receiver, Sender, Sent};
use sinew_spec::catalogue::MessageType;

use crate::{Error, Value, from_message};

/// Most messages that one look takes from a link that keeps every message. No core writes so many
/// during one look. If it seems to, the rest is taken at the next look.
const PER_LOOK_MAX: usize = 4096;

/// The reading end of a link from the core, and the newest message that came over it.
#[derive(Clone)]
pub struct MessageInput {
    message: &'static MessageType,
    newest: Arc<Mutex<Newest>>,
}

struct Newest {
    end: Box<dyn Receiver>,
    /// The newest message; means nothing before the first one.
    bytes: Vec<u8>,
    has_message: bool,
    /// The newest message was written after this time; `None` if its age is unknown.
    written_after: Option<Instant>,
    looked: Option<Instant>,
}

/// What a look at a link has found.
#[derive(Debug)]
pub struct LastMessage {
    /// The newest message by its fields.
    pub value: Value,
    /// The message is no older than this. `None` if it came with the first look, so that its age is
    /// unknown.
    pub age_max: Option<Duration>,
    /// Whether the writer has closed the link: the core has stopped.
    pub is_closed: bool,
}

impl MessageInput {
    /// An end for messages of this type.
    pub fn new(message: &'static MessageType, end: Box<dyn Receiver>) -> MessageInput {
        let bytes = vec![0; message.size as usize];
        let newest = Newest { end, bytes, has_message: false, written_after: None, looked: None };
        MessageInput { message, newest: Arc::new(Mutex::new(newest)) }
    }

    /// The type of its messages.
    pub fn message(&self) -> &'static MessageType {
        self.message
    }

    /// The newest message; `None` before the first one. Never waits for the core.
    ///
    /// # Errors
    /// The core wrote what no writer may write.
    pub fn look(&self) -> Result<Option<LastMessage>, Fault> {
        let mut newest = lock(&self.newest);
        let is_closed = newest.receive()?;
        Ok(newest.has_message.then(|| LastMessage {
            value: from_message(self.message, &newest.bytes),
            age_max: newest.written_after.map(|after| after.elapsed()),
            is_closed,
        }))
    }
}

impl Newest {
    /// Takes the messages since the last look. `true` if the writer has closed the link.
    fn receive(&mut self) -> Result<bool, Fault> {
        let before = self.looked.replace(Instant::now());
        for _ in 0..PER_LOOK_MAX {
            match self.end.receive(&mut self.bytes)? {
                Received::New { .. } => {
                    self.has_message = true;
                    self.written_after = before;
                }
                Received::None => return Ok(false),
                Received::Closed => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// The writing end of a link into the core.
#[derive(Clone)]
pub struct MessageOutput {
    message: &'static MessageType,
    mailbox: Arc<Mutex<Mailbox>>,
}

struct Mailbox {
    end: Box<dyn Sender>,
    /// Number of the next message.
    number: u64,
}

impl MessageOutput {
    /// An end for messages of this type.
    pub fn new(message: &'static MessageType, end: Box<dyn Sender>) -> MessageOutput {
        // A restarted domain must not repeat the numbers that it used before.
        let mailbox = Mailbox { end, number: now_ns() };
        MessageOutput { message, mailbox: Arc::new(Mutex::new(mailbox)) }
    }

    /// The type of its messages.
    pub fn message(&self) -> &'static MessageType {
        self.message
    }

    /// Sends the bytes that `make` makes of the message's number, which rises with each message.
    /// Never waits for the core.
    ///
    /// # Errors
    /// The error of `make`; or the core wrote what no reader may write.
    pub fn send(&self, make: impl FnOnce(u64) -> Result<Vec<u8>, Error>) -> Result<Sent, Error> {
        let mut mailbox = lock(&self.mailbox);
        let bytes = make(mailbox.number)?;
        mailbox.number += 1;
        mailbox.end.send(&bytes).map_err(Error::new)
    }
}

/// A poisoned lock is still good: a panic while it was held leaves at most a message that was not
/// sent or not looked at.
fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
