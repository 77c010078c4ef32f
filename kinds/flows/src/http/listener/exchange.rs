//! A request and its answer: the body is read, the flow runs, its reply becomes the response.

use std::convert::Infallible;
use std::mem::take;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, ORIGIN,
    RETRY_AFTER, TRANSFER_ENCODING,
};
use hyper::http::request::Parts;
use hyper::{Method, Request as HttpRequest, Response, StatusCode, Version};
use sinew_flow::{Local, Value};
use tokio::time::timeout;

use super::body::{Coming, Refused, collect, stream};
use super::callers::{Callers, Origin};
use super::gzip;
use super::life::Life;
use super::log::Line;
use super::room::{RESERVED_BODY_SIZE_MAX, RETRY_AFTER_S, SMALL_LEN, Share, Why};
use super::worker::Worker;
use crate::http::body::{Body, Content, Sent};
use crate::http::request::{Request, Sending};
use crate::http::response::{of_error, plain, response};
use crate::http::upgrade::Upgrade;

/// Index of the port in the kind's table.
const OUT: usize = 0;

/// A request under way. It is dropped when its answer has been handed over, or nobody waits for it.
pub(super) struct Exchange {
    worker: Rc<Worker>,
    life: Rc<Life>,
    is_head: bool,
    is_http2: bool,
    takes_gzip: bool,
    answered: bool,
    rank: Rank,
    /// The number of its flow; 0 before it has one.
    flow: u64,
    /// The key of the part that was handed over and waits for the client, over HTTP/2.
    unsent: Option<usize>,
    /// What the access log will say of it.
    line: Option<Box<Line>>,
}

/// Among which requests a request is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// Among none, such as a request that is not taken.
    None,
    /// Ordinary requests, which share the room that there is.
    Ordinary,
    /// Among none yet: it may become a reserved one when its body has come.
    Coming,
    /// Requests that end the run or report on it.
    Reserved,
}

/// A request that is to become a packet.
enum Taken {
    /// It has no body.
    Whole(Value),
    /// Its body is still to come. Boxed, so that a connection without a body is smaller.
    Body(Local<'static, Result<Value, Refused>>),
}

impl Sent for Exchange {
    fn sent(&mut self, bytes: Bytes) -> Bytes {
        let len = bytes.len();
        if let Some(line) = &mut self.line {
            line.bytes += len as u64;
        }
        if self.is_http2 {
            self.unsent = Some(self.life.hands_over(self.worker.now()));
        }
        self.hold(bytes)
    }

    fn taken(&mut self) {
        if let Some(unsent) = self.unsent.take() {
            self.life.took_over(unsent);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.set_rank(Rank::None);
        self.taken();
        self.life.end(self.answered, self.worker.now());
        if let (Some(line), Some(log)) = (self.line.take(), &self.worker.log) {
            line.end(log);
        }
    }
}

/// Answers a request. All that can be done at once, such as making the packet, is done before the
/// future begins. That keeps the future small: each connection has room for it, and each request
/// copies it.
pub(super) fn exchange(
    worker: &Rc<Worker>,
    life: &Rc<Life>,
    peer: SocketAddr,
    request: HttpRequest<Incoming>,
) -> impl Future<Output = Result<Response<Body<Exchange>>, Infallible>> + use<> {
    let is_http2 = request.version() == Version::HTTP_2;
    life.begin(is_http2);
    let mut exchange = Exchange {
        worker: Rc::clone(worker),
        life: Rc::clone(life),
        is_head: *request.method() == Method::HEAD,
        is_http2,
        takes_gzip: worker.options.compression && gzip::is_accepted(request.headers()),
        answered: false,
        rank: Rank::None,
        flow: 0,
        unsent: None,
        line: worker.log.as_ref().map(|_| Box::new(Line::begin(peer, &request))),
    };
    let taken = exchange.take_in(peer, request);
    async move {
        let packet = match taken {
            Ok(Taken::Whole(packet)) => exchange.enter(packet),
            Ok(Taken::Body(coming)) => coming.await.and_then(|packet| exchange.enter(packet)),
            Err(refused) => Err(refused),
        };
        let response = match packet {
            Ok(packet) => {
                if let Some(turn) = exchange.turn(&packet) {
                    turn.await;
                }
                exchange.run(packet).await
            }
            Err(refused) => exchange.refuse(refused),
        };
        Ok(exchange.answer(response))
    }
}

impl Exchange {
    fn set_rank(&mut self, rank: Rank) {
        let before = std::mem::replace(&mut self.rank, rank);
        for (rank, change) in [(before, usize::MAX), (rank, 1)] {
            let count = match rank {
                Rank::None | Rank::Coming => continue,
                Rank::Ordinary => &self.worker.ordinary,
                Rank::Reserved => &self.worker.reserved,
            };
            count.set(count.get().wrapping_add(change));
        }
    }

    /// Makes a packet of the request, as soon as its body is there.
    fn take_in(
        &mut self,
        peer: SocketAddr,
        request: HttpRequest<Incoming>,
    ) -> Result<Taken, Refused> {
        let (mut parts, incoming) = request.into_parts();
        check(&parts, &self.worker.options.callers)?;
        let is_empty = incoming.is_end_stream();
        let len = if is_empty { 0 } else { incoming.size_hint().lower() };
        let streams = self.worker.options.streams;
        let admitted = match len > self.worker.options.body_size_max as u64 {
            true => Err(Refused::Bad(StatusCode::PAYLOAD_TOO_LARGE)),
            false => self.admit(&parts, len as usize, is_empty || streams).map_err(Refused::Room),
        };
        if admitted.is_err() && !is_empty {
            self.life.unread.set(true);
        }
        let (share, scheme) = (admitted?, self.worker.options.scheme());
        if is_empty {
            self.life.is_whole.set(true);
            let body = Sending::Whole(Bytes::new());
            return Ok(Taken::Whole(packet(parts, body, scheme, peer)));
        }
        let coming = Coming::new(incoming, &mut parts.headers)
            .inspect_err(|_| self.life.unread.set(true))?;
        // A reserved request is not streamed: it is small, and gets its place only when all of it
        // is here.
        if streams && self.rank == Rank::Ordinary {
            let options = &self.worker.options;
            let stream = stream(coming, options, self.life.streams());
            return Ok(Taken::Whole(packet(parts, Sending::Stream(stream), scheme, peer)));
        }
        let mut size_max = self.worker.options.body_size_max;
        let mut gives_way = None;
        if self.rank == Rank::Coming {
            size_max = size_max.min(RESERVED_BODY_SIZE_MAX);
            gives_way = Some(self.worker.gives_way());
        }
        let (worker, life) = (Rc::clone(&self.worker), Rc::clone(&self.life));
        Ok(Taken::Body(Box::pin(async move {
            let deadline = worker.options.body_deadline;
            let body = async {
                tokio::select! {
                    biased;
                    body = timeout(deadline, collect(coming, size_max, share)) => body,
                    () = worker.outlet.must_end() => {
                        Ok(Err(Refused::Bad(StatusCode::SERVICE_UNAVAILABLE)))
                    }
                }
            };
            let body = match gives_way {
                None => body.await,
                Some(gives_way) => tokio::select! {
                    biased;
                    body = body => body,
                    () = gives_way => Ok(Err(Refused::Room(Why::Requests))),
                },
            };
            let body = body.unwrap_or(Err(Refused::Bad(StatusCode::REQUEST_TIMEOUT)));
            let what = if body.is_ok() { &life.is_whole } else { &life.unread };
            what.set(true);
            body.map(|bytes| packet(parts, Sending::Whole(bytes), scheme, peer))
        })))
    }

    /// Finds room for a request with a body of `len` bytes, as far as that is known. Gives the
    /// share of the body, if the body is counted.
    fn admit(&mut self, parts: &Parts, len: usize, is_empty: bool) -> Result<Option<Share>, Why> {
        let counts = !is_empty && (len == 0 || len > SMALL_LEN || self.is_http2);
        let worker = &self.worker;
        let why = match worker.is_short_of() {
            _ if !worker.seats(&self.life) => Why::Connections,
            Some(why) => why,
            None => match counts.then(|| worker.room.held.try_take(len)) {
                Some(None) => Why::Held,
                share => {
                    self.set_rank(Rank::Ordinary);
                    return Ok(share.flatten());
                }
            },
        };
        self.squeeze(parts, len).then_some(None).ok_or(why)
    }

    /// Whether a request that finds no room is taken all the same, as a reserved one.
    #[cold]
    fn squeeze(&mut self, parts: &Parts, len: usize) -> bool {
        let text = |text: &str| Value::text(text.to_owned());
        let packet = [("method", text(parts.method.as_str())), ("path", text(parts.uri.path()))];
        let worker = &self.worker;
        let is_taken = len <= RESERVED_BODY_SIZE_MAX
            && worker.takes_reserved()
            && worker.outlet.is_reserved(OUT, &Value::map(packet));
        if is_taken {
            self.set_rank(Rank::Coming);
        }
        is_taken
    }

    /// A reserved request takes its place when all of it is here: half a request keeps no other
    /// out.
    fn enter(&mut self, packet: Value) -> Result<Value, Refused> {
        if self.rank == Rank::Coming {
            if !self.worker.takes_reserved() {
                return Err(Refused::Room(Why::Requests));
            }
            self.set_rank(Rank::Reserved);
        }
        Ok(packet)
    }

    /// What to wait for before the flow begins; `None` for requests that end the run or report on
    /// it.
    fn turn(&mut self, packet: &Value) -> Option<Local<'static, ()>> {
        let worker = &self.worker;
        if self.rank == Rank::Reserved {
            return None;
        }
        let turn = worker.outlet.turn(Rc::as_ptr(&self.life) as usize)?;
        if worker.takes_reserved() && worker.outlet.is_reserved(OUT, packet) {
            self.set_rank(Rank::Reserved);
            return None;
        }
        Some(turn)
    }

    /// Has a flow answer the request, unless there is no room for the answer: others may have taken
    /// the room since the request came.
    async fn run(&mut self, packet: Value) -> Response<Content> {
        if self.rank == Rank::Ordinary && self.worker.room.held.is_over() {
            drop(packet);
            return self.refuse(Refused::Room(Why::Held));
        }
        let begun = self.worker.outlet.begin(self.worker.options.limits);
        self.flow = begun.flow().id();
        let reply = begun.open(OUT, packet).await;
        if let Some(left) = begun.flow().take_left()
            && let Ok(upgrade) = left.downcast::<Upgrade>()
            && let Some(response) = upgrade.answer(&reply)
        {
            begun.answered(response.status().as_u16());
            *self.life.upgrade.borrow_mut() = Some(upgrade);
            return response;
        }
        let response = response(begun.flow(), reply, |error| begun.fail(error)).await;
        let compresses = self.takes_gzip && !self.is_head;
        // The flow is charged for compressing the answer, too.
        if compresses && let Err(error) = begun.flow().spend(gzip::price(&response)) {
            begun.fail(&error);
            let response = Box::pin(of_error(begun.flow(), &error)).await;
            begun.answered(response.status().as_u16());
            return response;
        }
        begun.answered(response.status().as_u16());
        response
    }

    /// The answer to a request that is not taken.
    #[cold]
    fn refuse(&self, refused: Refused) -> Response<Content> {
        let status = match &refused {
            Refused::Bad(status) => *status,
            Refused::Caller(_) => StatusCode::FORBIDDEN,
            Refused::Room(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        // It is not certain where a bad request ends.
        let mut closes = status == StatusCode::BAD_REQUEST;
        let mut response = plain(status);
        match refused {
            Refused::Bad(StatusCode::UNSUPPORTED_MEDIA_TYPE) => {
                response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            }
            Refused::Bad(_) => {}
            Refused::Caller(text) => *response.body_mut() = Content::Full(text.into()),
            Refused::Room(why) => {
                self.worker.refused(why);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
                closes = why == Why::Connections;
            }
        }
        if closes && !self.is_http2 {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        response
    }

    /// These bytes of the answer, counted until they have been sent. Bytes that a node also keeps
    /// are not counted: here they take no further memory.
    fn hold(&self, bytes: Bytes) -> Bytes {
        let is_held = (bytes.len() > SMALL_LEN || self.is_http2) && bytes.is_unique();
        match is_held {
            true => self.worker.room.held.take(bytes.len(), Some(self.life.held())).keep(bytes),
            false => bytes,
        }
    }

    /// The answer as it goes out.
    fn answer(mut self, mut response: Response<Content>) -> Response<Body<Exchange>> {
        if self.rank == Rank::Reserved && !matches!(response.body(), Content::Stream(..)) {
            // A client that is slow to take it keeps no other from ending the run.
            self.set_rank(Rank::None);
        }
        if self.worker.options.compression {
            if let Content::Full(bytes) = response.body_mut()
                && self.takes_gzip
            {
                // All of it is held until the last of it is compressed.
                *bytes = self.hold(take(bytes));
            }
            gzip::compress(&mut response, self.takes_gzip);
        }
        if self.is_head {
            // The answer to HEAD has the headers of the answer to GET.
            if let Some(length) = response.body().known_len() {
                let length = HeaderValue::from(length);
                response.headers_mut().insert(CONTENT_LENGTH, length);
            }
            *response.body_mut() = Content::Empty;
        }
        if self.life.answers() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        if self.flow > 0 && (self.worker.options.flow_id || response.status().is_server_error()) {
            response.headers_mut().insert(FLOW_ID, HeaderValue::from(self.flow));
        }
        self.answered = true;
        if let Some(line) = &mut self.line {
            (line.status, line.flow) = (Some(response.status()), self.flow);
        }
        response.map(|content| Body::new(content, self))
    }
}

/// The header that says which flow an answer comes from, as the log and the access log name it.
const FLOW_ID: HeaderName = HeaderName::from_static("x-flow-id");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

fn packet(parts: Parts, body: Sending, scheme: &'static str, peer: SocketAddr) -> Value {
    Value::Document(Arc::new(Request::new(parts, body, scheme, peer)))
}

/// Checks what hyper does not check.
fn check(parts: &Parts, callers: &Callers) -> Result<(), Refused> {
    if parts.method == Method::CONNECT {
        return Err(Refused::Bad(StatusCode::NOT_IMPLEMENTED));
    }
    // One pass over all headers costs less than several searches.
    let (mut hosts, mut host, mut origin) = (0, None, Origin::None);
    let (mut expects_more, mut codings, mut is_chunked) = (false, 0, true);
    for (name, value) in &parts.headers {
        if *name == HOST {
            hosts += 1;
            host = Some(value.as_bytes());
        } else if *name == ORIGIN {
            origin = match origin {
                Origin::None => Origin::One(value.as_bytes()),
                _ => Origin::Several,
            };
        } else if *name == EXPECT {
            expects_more |= !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
        } else if *name == TRANSFER_ENCODING {
            codings += 1;
            is_chunked &= value.as_bytes().eq_ignore_ascii_case(b"chunked");
        }
    }
    if parts.version == Version::HTTP_11 && hosts != 1 {
        return Err(Refused::Bad(StatusCode::BAD_REQUEST));
    }
    // hyper checks the last coding only; a proxy before us may have used another one.
    if codings > 1 || !is_chunked {
        return Err(Refused::Bad(StatusCode::BAD_REQUEST));
    }
    if expects_more {
        return Err(Refused::Bad(StatusCode::EXPECTATION_FAILED));
    }
    let host = parts.uri.authority().map(|it| it.as_str().as_bytes()).or(host);
    callers.check(host, origin).map_err(Refused::Caller)
}
