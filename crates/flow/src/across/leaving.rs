//! A packet on its way to a node elsewhere, as the bytes that it is said in.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::frame::{Frame, SentPacket};
use crate::{Error, Reply};

/// Longest packet or reply that leaves the machine, in bytes: what its carrier holds of many at a
/// time must be bounded. A longer packet is refused (413), and so is a longer reply.
pub const RELAYED_MAX: usize = 1 << 20;

/// A packet that leaves the machine. Who carries it need not know what is in it.
pub struct Leaving {
    /// The input of who carries it: so it knows where to.
    pub input: String,
    /// So long its reply is waited for.
    pub wait: Duration,
    /// The packet.
    pub bytes: Vec<u8>,
    answer: oneshot::Sender<Answered>,
}

/// The bytes of a reply, or why there is none: a status of HTTP's, and in words.
type Answered = Result<Vec<u8>, (u16, String)>;

impl Leaving {
    /// Whether nobody waits for a reply any more.
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    /// Gives it the reply that its receiver has made bytes of.
    pub fn answer(self, bytes: Vec<u8>) {
        // Nobody waits any more.
        let _ = self.answer.send(Ok(bytes));
    }

    /// Says that there will be none.
    pub fn fail(self, status: u16, why: String) {
        // As above.
        let _ = self.answer.send(Err((status, why)));
    }
}

/// Hands a packet to who carries it, and waits for what comes of it.
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

/// What came is a reply, or no word of it is believed.
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
