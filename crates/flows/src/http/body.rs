//! The body of an answer.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use sinew_runtime::flow::{BytesToCome, Error};

/// What an answer carries.
pub(crate) enum Content {
    /// Nothing.
    Empty,
    /// All of it.
    Full(Bytes),
    /// What is still to come.
    Stream(BytesToCome),
}

/// Why a body ends before its end: its stream failed. The connection is closed, so that the client
/// does not take it for the whole.
#[derive(Debug)]
pub(crate) struct Broken(Error);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Broken {}

/// A body, and what is held until it has been handed over.
pub(crate) struct Body<H> {
    content: Content,
    _held: H,
}

impl<H> Body<H> {
    /// A body that holds `held` until its end.
    pub(crate) fn new(content: Content, held: H) -> Body<H> {
        Body { content, _held: held }
    }
}

impl<H: Unpin> HttpBody for Body<H> {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match std::mem::replace(&mut self.content, Content::Empty) {
            Content::Empty => Poll::Ready(None),
            Content::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Content::Stream(mut parts) => {
                let polled = parts.as_mut().poll_next(context);
                if !matches!(polled, Poll::Ready(None)) {
                    self.content = Content::Stream(parts);
                }
                polled.map(|part| part.map(|part| part.map(Frame::data).map_err(Broken)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Empty => true,
            Content::Full(bytes) => bytes.is_empty(),
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Empty => SizeHint::with_exact(0),
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
