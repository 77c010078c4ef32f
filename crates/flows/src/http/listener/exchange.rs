//! A request and its answer: the body is read, the flow runs, its reply becomes the response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::mem::take;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as HttpBody, Incoming};
use hyper::header::{CONTENT_LENGTH, EXPECT, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request as HttpRequest, Response, StatusCode, Version};
use sinew_runtime::flow::Value;
use tokio::time::timeout;

use super::gzip;
use super::life::Life;
use super::log::Line;
use super::worker::Worker;
use crate::http::body::{Body, Content, Sent};
use crate::http::request::Request;
use crate::http::response::{plain, response};

/// Index of the port in the kind's table.
const OUT: usize = 0;

/// The other side of a connection.
#[derive(Clone, Copy)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) scheme: &'static str,
}

/// A request under way; dropped when its answer has been handed over, or nobody waits for it.
pub(super) struct Exchange {
    worker: Rc<Worker>,
    life: Rc<Life>,
    answered: bool,
    /// What the access log will say of it.
    line: Option<Box<Line>>,
}

impl Sent for Exchange {
    fn sent(&mut self, bytes: usize) {
        if let Some(line) = &mut self.line {
            line.add(bytes);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.life.end(self.answered, self.worker.now());
        if let (Some(line), Some(log)) = (self.line.take(), &self.worker.log) {
            line.end(log);
        }
    }
}

/// Answers a request.
pub(super) fn exchange(
    worker: &Rc<Worker>,
    life: &Rc<Life>,
    peer: Peer,
    request: HttpRequest<Incoming>,
) -> impl Future<Output = Result<Response<Body<Exchange>>, Infallible>> + use<> {
    life.begin(request.version() == Version::HTTP_2);
    let (worker, life) = (Rc::clone(worker), Rc::clone(life));
    let exchange = Exchange { worker, life, answered: false, line: None };
    async move { Ok(exchange.answer(peer, request).await) }
}

impl Exchange {
    async fn answer(
        mut self,
        peer: Peer,
        request: HttpRequest<Incoming>,
    ) -> Response<Body<Exchange>> {
        let (parts, incoming) = request.into_parts();
        self.line = self.worker.log.as_ref().map(|_| Box::new(Line::begin(peer.address, &parts)));
        let is_head = parts.method == Method::HEAD;
        let compresses = self.worker.options.compression;
        let takes_gzip = compresses && gzip::is_accepted(&parts.headers);
        let mut response = match self.take_in(&parts, incoming).await {
            Ok(bytes) => self.flow(Request::new(parts, bytes, peer.scheme, peer.address)).await,
            Err(status) => plain(status),
        };
        if compresses {
            gzip::compress(&mut response, takes_gzip);
        }
        if is_head {
            without_body(&mut response);
        }
        self.answered = true;
        if let Some(line) = &mut self.line {
            line.answer(response.status());
        }
        response.map(|content| Body::new(content, self))
    }

    async fn flow(&self, request: Request) -> Response<Content> {
        let packet = Value::Document(Arc::new(request));
        let deadline = self.worker.options.deadline;
        let outlet = &self.worker.outlet;
        response(outlet.open(OUT, packet, deadline).await, |error| outlet.tell(error))
    }

    /// The body; or the status to answer with at once.
    async fn take_in(&self, parts: &Parts, incoming: Incoming) -> Result<Bytes, StatusCode> {
        check(parts)?;
        if incoming.is_end_stream() {
            return Ok(Bytes::new());
        }
        let options = &self.worker.options;
        let result = match incoming.size_hint().lower() > options.body_size_max as u64 {
            true => Err(StatusCode::PAYLOAD_TOO_LARGE),
            false => {
                let body = collect(incoming, options.body_size_max);
                // In a place of its own: a connection that has no body to wait for is smaller.
                let in_time = Box::pin(timeout(options.body_deadline, body)).await;
                in_time.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
            }
        };
        if result.is_err() {
            self.life.refused_body();
        }
        result
    }
}

/// What hyper leaves to us.
fn check(parts: &Parts) -> Result<(), StatusCode> {
    if parts.method == Method::CONNECT {
        return Err(StatusCode::NOT_IMPLEMENTED);
    }
    if parts.version == Version::HTTP_11 {
        let mut hosts = parts.headers.get_all(HOST).iter();
        if hosts.next().is_none() || hosts.next().is_some() {
            return Err(StatusCode::BAD_REQUEST);
        }
    }
    match parts.headers.get(EXPECT) {
        Some(expected) if !expected.as_bytes().eq_ignore_ascii_case(b"100-continue") => {
            Err(StatusCode::EXPECTATION_FAILED)
        }
        _ => Ok(()),
    }
}

/// All of a body. One that comes in one piece is not copied.
async fn collect(mut incoming: Incoming, size_max: usize) -> Result<Bytes, StatusCode> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await {
        let Ok(frame) = frame else { return Err(StatusCode::BAD_REQUEST) };
        // Trailers say nothing that a flow could use.
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > size_max {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(first.len() + data.len().max(incoming.size_hint().lower() as usize));
            all.extend_from_slice(&take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The answer to HEAD: the headers of the answer to GET.
fn without_body(response: &mut Response<Content>) {
    if let Content::Full(bytes) = response.body() {
        let length = HeaderValue::from(bytes.len());
        response.headers_mut().insert(CONTENT_LENGTH, length);
    }
    *response.body_mut() = Content::Empty;
}
