//! The frames of a connection: each is its length and then a list of values as CBOR.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use bytestring::ByteString;
use sinew_otlp::SpanContext;

use super::FRAME_LEN_MAX;
use crate::value::cbor;
use crate::{Error, Reply, Value};

/// Bytes of the length before a frame.
const LEN_LEN: usize = 4;

/// More bytes than most frames need.
const USUAL_LEN: usize = 512;

/// One frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// Sent by the side that takes a connection: it serves now.
    Hello,
    /// A packet for an input of a node.
    Call(SentPacket),
    /// Nobody waits for the reply any more.
    Cancel { id: u64 },
    /// The reply, and the work that went into it.
    Reply { id: u64, work: u64, reply: Reply },
}

/// A packet, where it goes, and what may be spent on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SentPacket {
    pub(super) id: u64,
    pub(super) node: ByteString,
    pub(super) input: ByteString,
    pub(super) deadline_ms: u64,
    pub(super) work: u64,
    /// The span of the node that sends the packet, if there is one.
    pub(super) context: Option<SpanContext>,
    pub(super) packet: Value,
}

const HELLO: i64 = 0;
const CALL: i64 = 1;
const CANCEL: i64 = 2;
const REPLY: i64 = 3;
const NOTHING: i64 = 4;
const FAILED: i64 = 5;

impl Frame {
    /// As bytes.
    ///
    /// # Errors
    /// Its value is too long (413), or cannot cross because its bytes are still to come.
    pub(super) fn bytes(self) -> Result<Bytes, Error> {
        let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        let said = match self {
            Frame::Hello => vec![Value::Integer(HELLO)],
            Frame::Call(SentPacket { id, node, input, deadline_ms, work, context, packet }) => {
                let (node, input) = (Value::Text(node), Value::Text(input));
                let limits = [number(deadline_ms), number(work)];
                let [deadline, work] = limits;
                let context = context_out(context);
                vec![Value::Integer(CALL), number(id), node, input, deadline, work, context, packet]
            }
            Frame::Cancel { id } => vec![Value::Integer(CANCEL), number(id)],
            Frame::Reply { id, work, reply } => {
                let (verb, value) = match reply {
                    Ok(Some(value)) => (REPLY, value),
                    Ok(None) => (NOTHING, Value::Null),
                    Err(error) => (FAILED, error.to_wire()),
                };
                vec![Value::Integer(verb), number(id), number(work), value]
            }
        };
        let mut frame = Vec::with_capacity(USUAL_LEN);
        frame.extend_from_slice(&[0; LEN_LEN]);
        cbor::send(&Value::list(said), &mut frame, FRAME_LEN_MAX)?;
        let len = (frame.len() - LEN_LEN) as u32;
        frame[..LEN_LEN].copy_from_slice(&len.to_le_bytes());
        Ok(frame.into())
    }

    /// Takes the first frame of the bytes that have come, if it is complete.
    ///
    /// # Errors
    /// The bytes are not a frame.
    pub(super) fn take(come: &mut BytesMut) -> Result<Option<Frame>, Error> {
        let Some(len) = come.first_chunk::<LEN_LEN>() else { return Ok(None) };
        let len = u32::from_le_bytes(*len) as usize;
        if len > FRAME_LEN_MAX {
            return Err(Error::new(format_args!("a frame of {len} bytes")));
        }
        if come.len() < LEN_LEN + len {
            return Ok(None);
        }
        // A copy in memory of its own, so that the frame does not keep later bytes alive.
        let frame = Bytes::copy_from_slice(&come[LEN_LEN..LEN_LEN + len]);
        come.advance(LEN_LEN + len);
        Frame::of(cbor::sent(&frame)?).map(Some)
    }

    fn of(value: Value) -> Result<Frame, Error> {
        let wrong = || Error::new("a frame of an unknown type");
        let Value::List(said) = value else { return Err(wrong()) };
        let said = Arc::unwrap_or_clone(said);
        let number = |value: &Value| match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        let frame = match <[Value; 1]>::try_from(said) {
            Ok([Value::Integer(HELLO)]) => Some(Frame::Hello),
            Ok(_) => None,
            Err(said) => match said.as_slice() {
                [Value::Integer(CANCEL), id] => number(id).map(|id| Frame::Cancel { id }),
                [Value::Integer(verb), id, work, value] => {
                    let reply = match *verb {
                        REPLY => Some(Ok(Some(value.clone()))),
                        NOTHING => Some(Ok(None)),
                        FAILED => Error::of_wire(value).map(Err),
                        _ => None,
                    };
                    let both = number(id).zip(number(work)).zip(reply);
                    both.map(|((id, work), reply)| Frame::Reply { id, work, reply })
                }
                [
                    Value::Integer(CALL),
                    id,
                    Value::Text(node),
                    Value::Text(input),
                    ms,
                    work,
                    context,
                    packet,
                ] => {
                    let numbers = number(id).zip(number(ms)).zip(number(work));
                    numbers.map(|((id, deadline_ms), work)| {
                        let (node, input, packet) = (node.clone(), input.clone(), packet.clone());
                        let context = context_in(context);
                        Frame::Call(SentPacket {
                            id,
                            node,
                            input,
                            deadline_ms,
                            work,
                            context,
                            packet,
                        })
                    })
                }
                _ => None,
            },
        };
        frame.ok_or_else(wrong)
    }
}

/// The context as in the HTTP headers `traceparent` and `tracestate`.
fn context_out(context: Option<SpanContext>) -> Value {
    let Some(context) = context else { return Value::Null };
    let state = context.state.as_deref().map(Value::text);
    Value::list([Value::text(context.to_string())].into_iter().chain(state))
}

/// A malformed context counts as none, as in HTTP.
fn context_in(value: &Value) -> Option<SpanContext> {
    let Value::List(lines) = value else { return None };
    let mut lines = lines.iter().filter_map(Value::as_text);
    Some(SpanContext::parse(lines.next()?.as_bytes())?.with_state(lines))
}
