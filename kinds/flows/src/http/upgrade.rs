//! A connection on which another protocol goes on after an answer with status 101 (RFC 9110, 7.8).
//!
//! A node leaves an [`Upgrade`] to the listener, and replies with the answer. So what the node does
//! with the connection holds the place of that connection, and ends with it.

use hyper::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Version};
use sinew_flow::{Local, Reply, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::Content;
use super::response::set_headers;

/// A connection, whatever it goes over.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<W: AsyncRead + AsyncWrite + Unpin> Duplex for W {}

/// Takes over a connection, with the bytes of it that were read already.
type Continue = dyn FnOnce(Box<dyn Duplex>, Vec<u8>) -> Local<'static, ()>;

/// Another protocol, which a node speaks.
pub(crate) struct Upgrade {
    protocol: &'static str,
    goes_on: Box<Continue>,
}

impl Upgrade {
    /// The protocol of this name; `goes_on` speaks it.
    pub(crate) fn new(
        protocol: &'static str,
        goes_on: impl FnOnce(Box<dyn Duplex>, Vec<u8>) -> Local<'static, ()> + 'static,
    ) -> Upgrade {
        Upgrade { protocol, goes_on: Box::new(goes_on) }
    }

    /// The answer that a reply with status 101 stands for; `None` for any other reply, after which
    /// the connection goes on with HTTP.
    pub(super) fn answer(&self, reply: &Reply) -> Option<Response<Content>> {
        let Ok(Some(value)) = reply else { return None };
        if value.field("status") != Ok(Value::Integer(SWITCHING)) {
            return None;
        }
        let mut response = Response::new(Content::Empty);
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        set_headers(headers, &value.field("header").ok()?).ok()?;
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(self.protocol));
        Some(response)
    }

    /// Takes over the connection, when the answer is sent.
    pub(super) fn begin(self, wire: Box<dyn Duplex>, first: Vec<u8>) -> Local<'static, ()> {
        (self.goes_on)(wire, first)
    }
}

/// Whether a request asks for a websocket, of whatever version (RFC 6455, 4.1).
pub(crate) fn asks_for_websocket(request: &Parts) -> bool {
    request.method == Method::GET
        && request.version == Version::HTTP_11
        && has_word(&request.headers, &UPGRADE, WEBSOCKET)
        && has_word(&request.headers, &CONNECTION, "upgrade")
}

/// The words of a header that is a list.
pub(crate) fn words<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Whether one of those words is this one, in upper or lower case.
pub(crate) fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    words(headers, name).any(|found| found.eq_ignore_ascii_case(word))
}

/// The name of the websocket protocol in the header `upgrade`.
pub(crate) const WEBSOCKET: &str = "websocket";

/// The status of an answer after which another protocol is spoken.
pub(super) const SWITCHING: i64 = 101;
