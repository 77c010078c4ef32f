//! The body of an answer, or of a request that the client sends.

use std::io::{self, Write};
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use hyper::header::HeaderValue;
use sinew_flow::{BytesToCome, Error, Value};

pub(super) const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// Server-sent events (HTML, 9.2).
pub(super) const EVENT_STREAM: &str = "text/event-stream";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What a message carries.
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// The whole body.
    Full(Bytes),
    /// A body that is still to come, and its length if known.
    Stream(BytesToCome, Option<u64>),
    /// Another content, compressed.
    Gzip(Box<Gzip>),
}

/// Is told which bytes of a body are handed over.
pub(crate) trait Sent {
    /// These bytes are handed over next. The receiver may count them until they have been sent.
    fn sent(&mut self, bytes: Bytes) -> Bytes {
        bytes
    }

    /// The bytes before are on their way: more are asked for.
    fn taken(&mut self) {}
}

/// Tells nobody.
impl Sent for () {}

impl Content {
    /// A value as content, and its type; `None` for null. `gone` is the error for a stream that was
    /// read before. `write` makes JSON of all but text, bytes and streams.
    pub(super) async fn of(
        value: Value,
        gone: &str,
        write: impl AsyncFnOnce(Value) -> Result<Vec<u8>, Error>,
    ) -> Result<Option<(HeaderValue, Content)>, Error> {
        Ok(Some(match value {
            Value::Null => return Ok(None),
            Value::Text(text) => (TEXT, Content::Full(text.into_bytes())),
            Value::Bytes(bytes) => (BYTES, Content::Full(bytes)),
            Value::Stream(stream) => {
                let parts = stream.take().ok_or_else(|| Error::new(gone))?;
                let content_type = stream.content_type().map_or(BYTES, HeaderValue::from_static);
                (content_type, Content::Stream(parts, stream.known_len()))
            }
            // Boxed, so that the future stays small where no JSON is written.
            other => (JSON, Content::Full(Box::pin(write(other)).await?.into())),
        }))
    }

    /// Its length, if there is a body and its length is known.
    pub(super) fn known_len(&self) -> Option<u64> {
        match self {
            Content::Full(bytes) => Some(bytes.len() as u64),
            Content::Stream(_, len) => *len,
            Content::Empty | Content::Gzip(_) => None,
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        match self {
            Content::Empty => Poll::Ready(None),
            Content::Full(bytes) => {
                let bytes = take(bytes);
                *self = Content::Empty;
                Poll::Ready(Some(Ok(bytes)))
            }
            Content::Stream(parts, _) => parts.as_mut().poll_next(context),
            Content::Gzip(gzip) => gzip.poll_next(context),
        }
    }
}

/// Compresses a body piece by piece, as it is taken: no answer keeps the others waiting for long.
pub(crate) struct Gzip {
    source: Content,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Bytes that it has compressed since it last let others have the worker.
    stretch: usize,
}

/// Bytes that are compressed at a time.
const PIECE_LEN: usize = 16 << 10;
/// Bytes that are compressed before others have their turn, even if the client takes them at once.
/// This takes some two milliseconds.
const STRETCH_LEN_MAX: usize = 128 << 10;

impl Gzip {
    /// Compresses `source`.
    pub(crate) fn new(source: Content) -> Gzip {
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        Gzip { source, encoder, stretch: 0 }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        while let Some(encoder) = &mut self.encoder {
            if self.stretch >= STRETCH_LEN_MAX {
                self.stretch = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let (piece, is_awaited) = match &mut self.source {
                Content::Full(bytes) if !bytes.is_empty() => {
                    (Some(bytes.split_to(bytes.len().min(PIECE_LEN))), false)
                }
                Content::Stream(parts, _) => match ready!(parts.as_mut().poll_next(context)) {
                    Some(Ok(part)) => (Some(part), true),
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => (None, false),
                },
                _ => (None, false),
            };
            self.stretch += piece.as_ref().map_or(0, Bytes::len);
            let packed = match piece {
                Some(piece) => pack(encoder, &piece, is_awaited),
                None => {
                    self.encoder.take().map(GzEncoder::finish).unwrap_or_else(|| Ok(Vec::new()))
                }
            };
            // Writing to a vector does not fail.
            let packed = packed.map_err(Error::new);
            if !matches!(&packed, Ok(bytes) if bytes.is_empty()) {
                return Poll::Ready(Some(packed.map(Bytes::from)));
            }
        }
        Poll::Ready(None)
    }
}

/// The compressed bytes of a piece. With `flush` all of them come out now, as the client may be
/// waiting for just this piece.
fn pack(encoder: &mut GzEncoder<Vec<u8>>, piece: &[u8], flush: bool) -> io::Result<Vec<u8>> {
    encoder.write_all(piece)?;
    if flush {
        encoder.flush()?;
    }
    Ok(take(encoder.get_mut()))
}

/// A body, and what is held until it has been handed over.
pub(crate) struct Body<H> {
    content: Content,
    held: H,
}

impl<H> Body<H> {
    /// A body that holds `held` until its end.
    pub(crate) fn new(content: Content, held: H) -> Body<H> {
        Body { content, held }
    }
}

impl<H: Sent + Unpin> HttpBody for Body<H> {
    type Data = Bytes;
    /// On an error the connection is closed, so that the client does not take a part for the whole.
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.held.taken();
        let polled = self.content.poll_next(context);
        let frame = |bytes| Frame::data(self.held.sent(bytes));
        polled.map(|part| part.map(|part| part.map(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            content => content.known_len().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
