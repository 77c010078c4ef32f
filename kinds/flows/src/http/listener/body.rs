//! The body of a request: gathered before its flow begins, or read as the flow takes it.

use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::unfold;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as HttpBody, Incoming};
use sinew_flow::{Error, Stream};
use tokio::time::timeout;

use super::options::Options;
use super::room::{Share, Why};

/// Why a request is answered at once.
pub(super) enum Refused {
    /// It is no request that can be served.
    Bad(StatusCode),
    /// Who asks may not: this sentence says why.
    Caller(String),
    /// There is no room for it now.
    Room(Why),
}

/// All of a body, if it is small enough. One that comes in one piece is not copied.
pub(super) async fn collect(
    mut incoming: Incoming,
    size_max: usize,
    mut share: Option<Share>,
) -> Result<Bytes, Refused> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return Err(Refused::Bad(StatusCode::BAD_REQUEST)) };
        // Trailers say nothing that a flow could use.
        let Ok(data) = frame.into_data() else { continue };
        let len = first.len() + all.len() + data.len();
        if len > size_max {
            return Err(Refused::Bad(StatusCode::PAYLOAD_TOO_LARGE));
        }
        if share.as_mut().is_some_and(|share| !share.grow(len)) {
            return Err(Refused::Room(Why::Held));
        }
        if len == data.len() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(first.len() + data.len().max(incoming.size_hint().lower() as usize));
            all.extend_from_slice(&take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    let body = if all.is_empty() { first } else { all.freeze() };
    Ok(match share {
        Some(share) => share.keep(body),
        None => body,
    })
}

/// A body as its flow takes it, which `is_over` tells of: hyper reads no more before that, so who
/// sends it waits when his window and the kernel's memory are full.
pub(super) fn stream(incoming: Incoming, options: &Options, is_over: Arc<AtomicBool>) -> Stream {
    let len = incoming.size_hint().exact();
    let arriving = Arriving {
        incoming,
        len: 0,
        size_max: options.body_size_max,
        patience: options.body_deadline,
        is_over,
    };
    let stream = Stream::new(unfold(Some(arriving), |arriving| async move {
        let mut arriving = arriving?;
        let part = arriving.next().await?;
        let goes_on = part.is_ok();
        Some((part, goes_on.then_some(arriving)))
    }));
    match len {
        Some(len) => stream.with_len(len),
        None => stream,
    }
}

/// A body that is read as it comes.
struct Arriving {
    incoming: Incoming,
    len: usize,
    size_max: usize,
    patience: Duration,
    is_over: Arc<AtomicBool>,
}

impl Arriving {
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        loop {
            let frame = match timeout(self.patience, self.incoming.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => {
                    let text = format_args!("the request's body breaks off: {error}");
                    return Some(Err(Error::new(text).with_status(400)));
                }
                Ok(None) => {
                    // Relaxed: it goes with nothing else.
                    self.is_over.store(true, Ordering::Relaxed);
                    return None;
                }
                Err(_) => {
                    let text = format_args!(
                        "no part of the request's body has come for {:?}; raise 'body_deadline'",
                        self.patience
                    );
                    return Some(Err(Error::new(text).with_status(408)));
                }
            };
            // Trailers say nothing that a flow could use.
            let Ok(data) = frame.into_data() else { continue };
            self.len += data.len();
            if self.len > self.size_max {
                let text = format_args!(
                    "the request's body has more than {} bytes; raise 'body_size_max'",
                    self.size_max
                );
                return Some(Err(Error::new(text).with_status(413)));
            }
            if self.incoming.is_end_stream() {
                // Who knows the length need not ask for more.
                self.is_over.store(true, Ordering::Relaxed);
            }
            if !data.is_empty() {
                return Some(Ok(data));
            }
        }
    }
}
