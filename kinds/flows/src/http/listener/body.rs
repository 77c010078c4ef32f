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
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap};
use sinew_flow::{Error, Stream};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::gunzip::{self, Coding, Gunzip};
use super::options::Options;
use super::room::{Share, Why};

/// Why a request is answered at once, without a flow.
pub(super) enum Refused {
    /// It is not a request that can be served.
    Bad(StatusCode),
    /// Its sender is not allowed: this sentence says why.
    Caller(String),
    /// There is no room for it now.
    Room(Why),
}

/// Reads a whole body, if it is small enough. A body that comes in one piece is not copied.
pub(super) async fn collect(
    mut coming: Coming,
    size_max: usize,
    mut share: Option<Share>,
) -> Result<Bytes, Refused> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(part) = coming.next().await {
        let data = part.map_err(|_| Refused::Bad(StatusCode::BAD_REQUEST))?;
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
            all.reserve(first.len() + data.len().max(coming.len_min()));
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

/// A body on its way, part by part. A compressed body is decompressed.
pub(super) struct Coming {
    incoming: Incoming,
    gunzip: Option<Box<Gunzip>>,
}

impl Coming {
    /// A body as these headers describe it. Headers that are not true of the decoded body are
    /// removed.
    ///
    /// # Errors
    /// It is coded in a way that is not known here (415).
    pub(super) fn new(incoming: Incoming, headers: &mut HeaderMap) -> Result<Coming, Refused> {
        let unknown = Refused::Bad(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        let gunzip = match gunzip::coding(headers).ok_or(unknown)? {
            Coding::None => None,
            Coding::Gzip => {
                headers.remove(CONTENT_ENCODING);
                headers.remove(CONTENT_LENGTH);
                Some(Box::default())
            }
        };
        Ok(Coming { incoming, gunzip })
    }

    /// How many bytes come, if that is known.
    fn known_len(&self) -> Option<u64> {
        self.incoming.size_hint().exact().filter(|_| self.gunzip.is_none())
    }

    /// At least so many bytes are still to come.
    fn len_min(&self) -> usize {
        if self.gunzip.is_some() { 0 } else { self.incoming.size_hint().lower() as usize }
    }

    /// Whether nothing more comes.
    fn is_over(&self) -> bool {
        self.incoming.is_end_stream() && self.gunzip.as_ref().is_none_or(|gunzip| gunzip.is_over())
    }

    /// The next part, which is not empty; `None` after the last one. The error says what is wrong.
    async fn next(&mut self) -> Option<Result<Bytes, String>> {
        loop {
            if let Some(part) = self.gunzip.as_mut().and_then(|gunzip| gunzip.next()) {
                // A few bytes can be made to take long to decode, so others get their turn.
                yield_now().await;
                return Some(part);
            }
            let data = match self.incoming.frame().await {
                // Trailers say nothing that a flow could use.
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Some(Err(format!("breaks off: {error}"))),
                None => return self.gunzip.as_mut().and_then(|gunzip| gunzip.end()),
            };
            match &mut self.gunzip {
                Some(gunzip) => gunzip.take(data),
                None if data.is_empty() => {}
                None => return Some(Ok(data)),
            }
        }
    }
}

/// A body that is read as its flow takes it; `is_over` is set at its end. hyper reads no faster
/// than the flow, so the client waits when its window and the kernel's memory are full.
pub(super) fn stream(coming: Coming, options: &Options, is_over: Arc<AtomicBool>) -> Stream {
    let len = coming.known_len();
    let arriving = Arriving {
        coming,
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
    coming: Coming,
    len: usize,
    size_max: usize,
    patience: Duration,
    is_over: Arc<AtomicBool>,
}

impl Arriving {
    async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let failed = |text: String, status| {
            let text = format_args!("the request's body {text}");
            Some(Err(Error::new(text).with_status(status)))
        };
        let data = match timeout(self.patience, self.coming.next()).await {
            Ok(Some(Ok(data))) => data,
            Ok(Some(Err(text))) => return failed(text, 400),
            Ok(None) => {
                // Relaxed: no other data depends on this flag.
                self.is_over.store(true, Ordering::Relaxed);
                return None;
            }
            Err(_) => {
                let patience = self.patience;
                let text = format!("has had no part for {patience:?}; raise 'body_deadline'");
                return failed(text, 408);
            }
        };
        self.len += data.len();
        if self.len > self.size_max {
            let size_max = self.size_max;
            let text = format!("has more than {size_max} bytes; raise 'body_size_max'");
            return failed(text, 413);
        }
        if self.coming.is_over() {
            // A reader that knows the length need not ask for more.
            self.is_over.store(true, Ordering::Relaxed);
        }
        Some(Ok(data))
    }
}
