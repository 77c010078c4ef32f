//! A packet on its way to a node on another machine, as the bytes that are sent.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::frame::{Frame, SentPacket};
use crate::{Error, Reply};

/// Longest packet or reply that leaves the machine, in bytes: the carrier holds many at a time, and
/// its memory must be bounded. A longer packet is refused (413), and so is a longer reply.
pub const RELAYED_MAX: usize = 1 << 20;

/// A packet that leaves the machine. The carrier need not know its content.
pub struct Leaving {
    /// The carrier's input; it tells the carrier where the packet goes.
    pub input: String,
    /// How long its reply is waited for.
    pub wait: Duration,
    /// The packet.
    pub bytes: Vec<u8>,
    answer: oneshot::Sender<Answered>,
}

/// The bytes of a reply, or why there is none: an HTTP status and a text.
type Answered = Result<Vec<u8>, (u16, String)>;

impl Leaving {
    /// Whether nobody waits for a reply any more.
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    /// Gives the reply, as the bytes that the receiver made of it.
    pub fn answer(self, bytes: Vec<u8>) {
        // An error means that nobody waits any more.
        let _ = self.answer.send(Ok(bytes));
    }

    /// Says that there will be no reply, and why.
    pub fn fail(self, status: u16, why: String) {
        // An error means that nobody waits any more.
        let _ = self.answer.send(Err((status, why)));
    }
}

/// Hands a packet to the carrier `take`, and waits for its reply.
pub(super) async fn leave(call: SentPacket, take: &dyn Fn(Leaving)) -> (Reply, u64) {
    let (input, wait) = (call.input.to_string(), Duration::from_millis(call.deadline_ms));
    let bytes = match Frame::Call(call).bytes().and_then(short) {
        Ok(bytes) => bytes.into(),
        Err(error) => return (Err(error), 0),
    };
    let (answer, answered) = oneshot::channel();
    take(Leaving { input, wait, bytes, answer });
    match answered.await {
        Ok(Ok(bytes)) => reply(&bytes),
        Ok(Err((status, why))) => (Err(Error::new(why).with_status(status)), 0),
        Err(_) => (
            Err(Error::new("the node that carries packets to other hosts dropped it")
                .with_status(502)),
            0,
        ),
    }
}

/// The reply in these bytes; anything else becomes an error.
fn reply(bytes: &[u8]) -> (Reply, u64) {
    match only(bytes) {
        Some(Frame::Reply { reply, work, .. }) => (reply, work),
        _ => (
            Err(Error::new("the other host sent something that is not a reply").with_status(502)),
            0,
        ),
    }
}

/// A frame with nothing behind it.
pub(super) fn only(bytes: &[u8]) -> Option<Frame> {
    let mut come = BytesMut::from(bytes);
    let frame = Frame::take(&mut come).ok()??;
    come.is_empty().then_some(frame)
}

/// A frame that may leave the machine.
pub(super) fn short(frame: Bytes) -> Result<Bytes, Error> {
    let len = frame.len();
    let why = || {
        let text = format_args!(
            "a packet of {len} bytes cannot leave the machine; at most {RELAYED_MAX} bytes"
        );
        Error::new(text).with_status(413)
    };
    if len > RELAYED_MAX { Err(why()) } else { Ok(frame) }
}
