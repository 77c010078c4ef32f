//! The answer of another server as a packet: `status`, `header`, and `body`, whole or as a stream.

use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use futures_util::stream::unfold;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::http::response::Parts;
use hyper::upgrade::OnUpgrade;
use sinew_flow::{Document, Error, Stream, Value};
use tokio::time::timeout;

use super::BAD_GATEWAY;
use crate::http::decode;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    status: u16,
    headers: HeaderMap,
    body: ReplyBody,
    header: OnceLock<Value>,
    /// The connection, if it is a websocket from now on.
    upgraded: Option<OnUpgrade>,
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum ReplyBody {
    /// The whole body, and the value that it is decoded to when that is first needed.
    Whole(Bytes, OnceLock<Result<Value, Error>>),
    /// A body that is still to come.
    Stream(Stream),
}

impl Answer {
    /// An answer with this body.
    pub(super) fn new(parts: Parts, body: ReplyBody) -> Answer {
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Answer { status, headers, body, header: OnceLock::new(), upgraded: None }
    }

    /// An answer with which its connection becomes a websocket.
    pub(super) fn switching(parts: Parts, upgraded: OnUpgrade) -> Answer {
        let body = ReplyBody::Whole(Bytes::new(), OnceLock::new());
        Answer { upgraded: Some(upgraded), ..Answer::new(parts, body) }
    }

    /// Takes that connection; `None` if it was taken before.
    pub(super) fn take_upgraded(&mut self) -> Option<OnUpgrade> {
        self.upgraded.take()
    }

    fn body(&self) -> Result<Value, Error> {
        match &self.body {
            ReplyBody::Stream(stream) => Ok(Value::Stream(stream.clone())),
            ReplyBody::Whole(bytes, decoded) => {
                let decode = || {
                    let decoded = decode::body(self.headers.get(CONTENT_TYPE), bytes);
                    // The client of this machine did not send this body, so it does not get that
                    // error's 400 or text.
                    decoded.map_err(|error| {
                        let text = format_args!(
                            "the answer's body does not fit its content type: {}",
                            error.text()
                        );
                        Error::new(text).with_status(BAD_GATEWAY)
                    })
                };
                decoded.get_or_init(decode).clone()
            }
        }
    }
}

impl Document for Answer {
    fn field(&self, name: &str) -> Result<Value, Error> {
        Ok(match name {
            "status" => Value::Integer(self.status.into()),
            "header" => self.header.get_or_init(|| decode::headers(&self.headers)).clone(),
            "body" => self.body()?,
            _ => Value::Null,
        })
    }

    fn price(&self, name: &str) -> u64 {
        match &self.body {
            ReplyBody::Whole(bytes, decoded) if name == "body" && decoded.get().is_none() => {
                decode::price(self.headers.get(CONTENT_TYPE), bytes.len())
            }
            _ => 0,
        }
    }

    fn heavy(&self) -> Option<&'static str> {
        let ReplyBody::Whole(bytes, decoded) = &self.body else { return None };
        let is_heavy = decode::is_heavy(&self.headers, bytes.len());
        (is_heavy && decoded.get().is_none()).then_some("body")
    }

    fn names(&self) -> &[ByteString] {
        static NAMES: LazyLock<[ByteString; 3]> =
            LazyLock::new(|| ["status", "header", "body"].map(ByteString::from_static));
        &*NAMES
    }
}

/// Reads a whole body.
///
/// # Errors
/// It is longer than `bytes_max`, or breaks off.
pub(super) async fn gather(body: Incoming, bytes_max: u64) -> Result<Bytes, String> {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    match Limited::new(body, bytes_max).collect().await {
        Ok(all) => Ok(all.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(format!(
            "the answer has more than {bytes_max} bytes; raise 'body_size_max', or write \
             'stream: true'"
        )),
        Err(error) => Err(format!("the answer breaks off: {}", super::chain(&*error))),
    }
}

/// The parts of a body, each of which must come within `patience`. An error is the last of them.
/// Their length is known if the server says it. An answer to HEAD says the length of a body that
/// does not come.
pub(super) fn stream(body: Incoming, patience: Duration) -> Stream {
    let len = body.size_hint().exact().filter(|len| *len > 0);
    let stream = Stream::new(unfold(Some(body), move |body| async move {
        let mut body = body?;
        loop {
            let part = match timeout(patience, body.frame()).await {
                Err(_) => Err(Error::new(format_args!(
                    "no part of the answer has come for {patience:?}; raise 'deadline'"
                ))),
                Ok(None) => return None,
                Ok(Some(Err(error))) => {
                    let text = format_args!("the answer breaks off: {}", super::chain(&error));
                    Err(Error::new(text))
                }
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => return Some((Ok(bytes), Some(body))),
                    // Trailers are no part of the body.
                    Err(_) => continue,
                },
            };
            return Some((part, None));
        }
    }));
    match len {
        Some(len) => stream.with_len(len),
        None => stream,
    }
}
