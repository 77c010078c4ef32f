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
use sinew_runtime::flow::{Local, Value};
use tokio::time::timeout;

use super::gzip;
use super::life::Life;
use super::log::Line;
use super::options::Options;
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
    is_head: bool,
    takes_gzip: bool,
    answered: bool,
    /// What the access log will say of it.
    line: Option<Box<Line>>,
}

/// The packet of a request; or the status to answer with at once.
type Packet = Result<Value, StatusCode>;

/// A request on its way to be a packet.
enum Taken {
    /// It has no body.
    Whole(Packet),
    /// Its body is still to come. In a place of its own: without one a connection is smaller.
    Body(Local<'static, Packet>),
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

/// Answers a request. What there is to be done at once is done here, and the request is a packet
/// then: each connection has room for this future, and it is copied with each request.
pub(super) fn exchange(
    worker: &Rc<Worker>,
    life: &Rc<Life>,
    peer: Peer,
    request: HttpRequest<Incoming>,
) -> impl Future<Output = Result<Response<Body<Exchange>>, Infallible>> + use<> {
    life.begin(request.version() == Version::HTTP_2);
    let exchange = Exchange::new(worker, life, peer, &request);
    let taken = exchange.take_in(peer, request);
    async move {
        let packet = match taken {
            Taken::Whole(packet) => packet,
            Taken::Body(coming) => coming.await,
        };
        let (outlet, options) = (&exchange.worker.outlet, &exchange.worker.options);
        let response = match packet {
            Ok(packet) => {
                let reply = outlet.open(OUT, packet, options.deadline).await;
                response(reply, |error| outlet.tell(error))
            }
            Err(status) => plain(status),
        };
        Ok(exchange.answer(response))
    }
}

impl Exchange {
    fn new(
        worker: &Rc<Worker>,
        life: &Rc<Life>,
        peer: Peer,
        request: &HttpRequest<Incoming>,
    ) -> Exchange {
        let compresses = worker.options.compression;
        Exchange {
            worker: Rc::clone(worker),
            life: Rc::clone(life),
            is_head: *request.method() == Method::HEAD,
            takes_gzip: compresses && gzip::is_accepted(request.headers()),
            answered: false,
            line: worker.log.as_ref().map(|_| Box::new(Line::begin(peer.address, request))),
        }
    }

    /// Makes a packet of the request, as soon as its body is there.
    fn take_in(&self, peer: Peer, request: HttpRequest<Incoming>) -> Taken {
        let (parts, incoming) = request.into_parts();
        if let Err(status) = check(&parts) {
            return Taken::Whole(Err(status));
        }
        if incoming.is_end_stream() {
            self.life.whole();
            return Taken::Whole(Ok(packet(parts, Bytes::new(), peer)));
        }
        let (worker, life) = (Rc::clone(&self.worker), Rc::clone(&self.life));
        Taken::Body(Box::pin(async move {
            let body = body(&worker.options, incoming).await;
            match body {
                Ok(_) => life.whole(),
                Err(_) => life.refused_body(),
            }
            body.map(|bytes| packet(parts, bytes, peer))
        }))
    }

    /// The answer as it goes out.
    fn answer(mut self, mut response: Response<Content>) -> Response<Body<Exchange>> {
        if self.worker.options.compression {
            gzip::compress(&mut response, self.takes_gzip);
        }
        if self.is_head {
            without_body(&mut response);
        }
        self.answered = true;
        if let Some(line) = &mut self.line {
            line.answer(response.status());
        }
        response.map(|content| Body::new(content, self))
    }
}

fn packet(parts: Parts, bytes: Bytes, peer: Peer) -> Value {
    Value::Document(Arc::new(Request::new(parts, bytes, peer.scheme, peer.address)))
}

/// What hyper leaves to us.
fn check(parts: &Parts) -> Result<(), StatusCode> {
    if parts.method == Method::CONNECT {
        return Err(StatusCode::NOT_IMPLEMENTED);
    }
    // One look at each costs less than to search for two.
    let (mut hosts, mut expects_more) = (0, false);
    for (name, value) in &parts.headers {
        if *name == HOST {
            hosts += 1;
        } else if *name == EXPECT {
            expects_more |= !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
        }
    }
    if parts.version == Version::HTTP_11 && hosts != 1 {
        return Err(StatusCode::BAD_REQUEST);
    }
    if expects_more { Err(StatusCode::EXPECTATION_FAILED) } else { Ok(()) }
}

/// The body, if it is small enough and comes in time.
async fn body(options: &Options, incoming: Incoming) -> Result<Bytes, StatusCode> {
    if incoming.size_hint().lower() > options.body_size_max as u64 {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let in_time = timeout(options.body_deadline, collect(incoming, options.body_size_max)).await;
    in_time.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
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
