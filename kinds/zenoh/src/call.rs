//! A call between two hosts: a question of zenoh and its answer.
//!
//! A call is never repeated: what may have been carried out is never carried out again. Question
//! and answer bear the number of the call's key, and each the number of the host that sends it.
//!
//! ```text
//! question: the header of messages | u64 how long the caller waits, ms | the packet
//! answer:   the header of messages, with the question's sequence | the reply
//! ```
//!
//! An empty reply says that the other side has no room for one more.

use std::fmt;
use std::time::{Duration, Instant};

use sinew_hosts::{ECHO_LEN, ECHOES_MAX, Echo, HEADER_LEN, MessageHeader};
use zenoh::query::Query;

use crate::configuration::CALL_MAX;
use crate::not_taken::NotTaken;
use crate::room::Place;

/// Bytes of the time that the caller waits.
const WAIT_LEN: usize = 8;
/// Most bytes of a question.
pub(crate) const QUESTION_MAX: usize = HEADER_LEN + ECHOES_MAX * ECHO_LEN + WAIT_LEN + CALL_MAX;

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// The other host was not heard yet.
    Unheard,
    /// It is silent.
    Silent,
    /// Its links between hosts are of another version.
    OtherVersion,
    /// Too many calls are under way, here or there.
    Full,
    /// It got the packet, or may have got it.
    Lost,
}

impl CallFailure {
    /// As an HTTP status: 503 if it is certain that the other host did not get the packet, else
    /// 502.
    pub fn status(self) -> u16 {
        if self == CallFailure::Lost { 502 } else { 503 }
    }
}

impl fmt::Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallFailure::Unheard => "was not heard yet",
            CallFailure::Silent => "is silent",
            CallFailure::OtherVersion => "runs another version of the graph",
            CallFailure::Full => "has not answered earlier packets; it is too slow",
            CallFailure::Lost => "did not take the packet, or was lost while it had it",
        })
    }
}

/// Gets the outcome of a call, once, on any thread.
pub type AnswerTaker = Box<dyn FnOnce(Result<Vec<u8>, CallFailure>) + Send>;

/// Whoever waits for the answer of a call. When this is dropped, they are told that there is none.
pub(crate) struct Waits(Option<(AnswerTaker, Place)>);

impl Waits {
    pub(crate) fn new(answer: AnswerTaker, place: Place) -> Waits {
        Waits(Some((answer, place)))
    }

    pub(crate) fn say(&mut self, said: Result<Vec<u8>, CallFailure>) {
        if let Some((answer, place)) = self.0.take() {
            // First the place is freed, for the caller may call again at once.
            drop(place);
            answer(said);
        }
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.say(Err(CallFailure::Lost));
    }
}

/// A question of this host that waits to be sent.
pub(crate) struct Question {
    /// Its place among the setting's calls.
    pub(crate) at: usize,
    pub(crate) wait: Duration,
    /// Since when the caller waits.
    pub(crate) since: Instant,
    /// The stamps that were heard when it was asked. The question is judged by them, however long
    /// it waits to be sent.
    pub(crate) echoes: Vec<Echo>,
    pub(crate) packet: Vec<u8>,
    pub(crate) waits: Waits,
}

/// An answer of this host that waits to be sent.
pub(crate) struct Reply {
    pub(crate) query: Query,
    /// The place of its input among those that others call.
    pub(crate) at: usize,
    pub(crate) sequence: u64,
    pub(crate) bytes: Vec<u8>,
    /// The place of the call, held until the answer is sent. `None`: the call has found no place.
    pub(crate) _place: Option<Place>,
}

/// A question as bytes.
pub(crate) fn question(header: &MessageHeader, wait: Duration, packet: &[u8]) -> Vec<u8> {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    header.write(&[&wait_ms.to_le_bytes(), packet].concat())
}

/// Splits a question into its header, how long the caller waits, and the packet.
///
/// # Errors
/// The bytes are not a question.
pub(crate) fn read(bytes: &[u8]) -> Result<(MessageHeader, Duration, &[u8]), NotTaken> {
    let (header, rest) = MessageHeader::split(bytes)?;
    let (wait_ms, packet) = rest.split_first_chunk::<WAIT_LEN>().ok_or(NotTaken::Malformed)?;
    Ok((header, Duration::from_millis(u64::from_le_bytes(*wait_ms)), packet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_as_it_was_written_and_nothing_else_is_one() {
        let echo = Echo { host: 1, life: 2, stamp_ns: 3 };
        let (life, echoes) = (5, vec![echo]);
        let header = MessageHeader { life, sequence: 6, echoes, ..MessageHeader::default() };
        let wait = Duration::from_millis(1500);
        let bytes = question(&header, wait, b"packet");
        assert_eq!(read(&bytes), Ok((header.clone(), wait, &b"packet"[..])));
        assert_eq!(read(&question(&header, wait, b"")), Ok((header, wait, &b""[..])));
        let head = bytes.len() - 6;
        for len in 0..head {
            assert_eq!(read(&bytes[..len]), Err(NotTaken::Malformed), "{len}");
        }
        assert_eq!(read(&[0xff; 100]), Err(NotTaken::Malformed));
    }
}
