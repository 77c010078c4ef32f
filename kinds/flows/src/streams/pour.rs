//! A stream that is the reply of a flow, and is made beside the flow: each part is made when the
//! part before was taken.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{LocalBoxStream, StreamExt, poll_fn as stream_of};
use sinew_flow::{At, Error, Stream, Value};
use tokio::sync::mpsc::{self, Sender};
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::framing::write::{COMMENT, Outgoing};

/// Elements that are ready together make a part of about this many bytes.
const PART_SIZE: usize = 16 << 10;

/// How a stream is made.
#[derive(Clone, Copy)]
pub(super) struct Pour {
    pub(super) outgoing: Outgoing,
    /// Longest silence: then a comment is sent, if the format has comments.
    pub(super) heartbeat: Duration,
    /// Whether it has no end of its own, so that it ends when the worker stops or the graph is
    /// edited.
    pub(super) is_endless: bool,
}

impl Pour {
    /// The stream of what `make` makes in a child of the flow, which has this much work. The child
    /// ends with the stream, or when nobody can take the stream any more.
    ///
    /// # Errors
    /// Too many children of this worker are under way (503).
    pub(super) fn begin(
        self,
        at: At<'_>,
        work: u64,
        make: impl for<'a> FnOnce(At<'a>) -> LocalBoxStream<'a, Result<Bytes, Error>> + 'static,
    ) -> Result<Value, Error> {
        let beside = at.beside(work)?;
        let (sender, mut receiver) = mpsc::channel(1);
        spawn_local(beside.run(async move |at: At<'_>| self.send(at, make(at), sender).await));
        let stream = Stream::new(stream_of(move |context| receiver.poll_recv(context)));
        Ok(Value::Stream(stream.with_content_type(self.outgoing.content_type())))
    }

    async fn send(
        self,
        at: At<'_>,
        elements: LocalBoxStream<'_, Result<Bytes, Error>>,
        sender: Sender<Result<Bytes, Error>>,
    ) -> Result<(), Error> {
        let has_comments = self.outgoing == Outgoing::Sse;
        let mut parts = Parts { elements, failure: None };
        let (mut gone, mut retired) = (pin!(sender.closed()), pin!(at.retired()));
        loop {
            // Room means that the part before was taken.
            let Ok(room) = sender.reserve().await else { return Ok(()) };
            let silence = async {
                match has_comments {
                    true => sleep(self.heartbeat).await,
                    false => pending().await,
                }
            };
            let part = tokio::select! {
                biased;
                () = &mut gone => return Ok(()),
                part = parts.next() => part,
                () = &mut retired, if self.is_endless || has_comments => return Ok(()),
                () = silence => Some(Ok(Bytes::from_static(COMMENT))),
            };
            match part {
                None => return Ok(()),
                Some(Ok(part)) => room.send(Ok(part)),
                Some(Err(error)) => {
                    room.send(Err(error.clone()));
                    return Err(error);
                }
            }
        }
    }
}

/// Makes parts of elements.
struct Parts<'a> {
    elements: LocalBoxStream<'a, Result<Bytes, Error>>,
    /// An error that came after the elements of the last part.
    failure: Option<Error>,
}

impl Parts<'_> {
    /// The elements that are ready, up to a size; waits for the first.
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        if let Some(error) = self.failure.take() {
            return Some(Err(error));
        }
        let first = match self.elements.next().await? {
            Ok(first) => first,
            Err(error) => return Some(Err(error)),
        };
        let mut more = Vec::new();
        poll_fn(|context| {
            while first.len() + more.len() < PART_SIZE {
                match self.elements.poll_next_unpin(context) {
                    Poll::Ready(Some(Ok(element))) => {
                        if more.is_empty() {
                            more.extend_from_slice(&first);
                        }
                        more.extend_from_slice(&element);
                    }
                    Poll::Ready(Some(Err(error))) => {
                        self.failure = Some(error);
                        break;
                    }
                    Poll::Ready(None) | Poll::Pending => break,
                }
            }
            Poll::Ready(())
        })
        .await;
        Some(Ok(if more.is_empty() { first } else { more.into() }))
    }
}
