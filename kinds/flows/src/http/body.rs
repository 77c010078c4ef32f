//! The body of an answer.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, Write};
use std::mem::take;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use sinew_flow::{BytesToCome, Error};

/// What an answer carries.
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// All of it.
    Full(Bytes),
    /// What is still to come.
    Stream(BytesToCome),
    /// The same in fewer bytes.
    Gzip(Box<Gzip>),
}

/// Why a body ends before its end: its stream failed. The connection is closed, so that the client
/// does not take it for the whole.
#[derive(Debug)]
pub(crate) struct Broken(Error);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Broken {}

/// Who hears what of a body is handed over.
pub(crate) trait Sent {
    /// These bytes next; it may count them until they have gone.
    fn sent(&mut self, bytes: Bytes) -> Bytes;

    /// Those before are on their way: more is asked for.
    fn taken(&mut self) {}
}

impl Content {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match self {
            Content::Empty => Poll::Ready(None),
            Content::Full(bytes) => {
                let bytes = take(bytes);
                *self = Content::Empty;
                Poll::Ready(Some(Ok(bytes)))
            }
            Content::Stream(parts) => {
                parts.as_mut().poll_next(context).map(|part| part.map(|it| it.map_err(Broken)))
            }
            Content::Gzip(gzip) => gzip.poll_next(context),
        }
    }
}

/// Compresses a body piece by piece, as it is taken: no answer keeps the others waiting for long.
pub(crate) struct Gzip {
    source: Content,
    /// `None` after the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// Bytes that it has compressed since others could have the worker.
    stretch: usize,
}

/// Bytes that are compressed at a time.
const PIECE_LEN: usize = 16 << 10;
/// Bytes that are compressed before others have their turn, however fast they are taken: some two
/// milliseconds.
const STRETCH_LEN_MAX: usize = 128 << 10;

impl Gzip {
    /// Compresses `source`.
    pub(crate) fn new(source: Content) -> Gzip {
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        Gzip { source, encoder, stretch: 0 }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
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
                Content::Stream(parts) => match ready!(parts.as_mut().poll_next(context)) {
                    Some(Ok(part)) => (Some(part), true),
                    Some(Err(error)) => return Poll::Ready(Some(Err(Broken(error)))),
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
            // A vector takes all that is written to it.
            let packed = packed.map_err(|error| Broken(Error::new(error)));
            if !matches!(&packed, Ok(bytes) if bytes.is_empty()) {
                return Poll::Ready(Some(packed.map(Bytes::from)));
            }
        }
        Poll::Ready(None)
    }
}

/// What comes out for a piece; all of it, if somebody waits for just this piece.
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
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.held.taken();
        let polled = self.content.poll_next(context);
        let frame = |bytes| Frame::data(self.held.sent(bytes));
        polled.map(|part| part.map(|part| part.map(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Full(bytes) => bytes.is_empty(),
            Content::Stream(_) | Content::Gzip(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) | Content::Gzip(_) => SizeHint::default(),
        }
    }
}
