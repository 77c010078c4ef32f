//! A request as the packet of a flow. Its fields are made when a node asks for them, and kept. A
//! flow that uses none of them is charged for none, except for a long body of JSON or a form. A
//! body that is not gathered is always a stream.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;
use hyper::header::{CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::{Authority, Uri};
use hyper::{Request as HttpRequest, Version};
use sinew_flow::{AskedFor, Document, Error, Map, SpanContext, Stream, Value};

use super::body::Content;
use super::{cookie, decode};

/// The headers with the span of the caller, and with what others say of its trace (Trace Context of
/// the W3C).
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A body of at most so many bytes may be in the buffer of its connection, beside the head.
const BUFFER_LEN: usize = 8 << 10;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    parts: Parts,
    body: Sending,
    scheme: &'static str,
    remote: SocketAddr,
    /// The parameters that the router found in the path.
    params: Option<Arc<Map>>,
    /// Boxed, so that a request whose fields nobody asks for is smaller.
    made: OnceLock<Box<Made>>,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(crate) enum Sending {
    /// The whole body.
    Whole(Bytes),
    /// A body that is still to come.
    Stream(Stream),
}

/// The fields of a request that have been made so far.
#[derive(Clone, Debug, Default)]
struct Made {
    query: OnceLock<Result<Value, Error>>,
    header: OnceLock<Value>,
    cookies: OnceLock<Value>,
    body: OnceLock<Result<Value, Error>>,
}

impl Request {
    /// A request that came over `scheme` from `remote`.
    #[inline]
    pub(crate) fn new(
        parts: Parts,
        body: Sending,
        scheme: &'static str,
        remote: SocketAddr,
    ) -> Request {
        Request { parts, body, scheme, remote, params: None, made: OnceLock::new() }
    }

    /// A packet as the request of a listener, if it is one.
    pub(crate) fn of(packet: &Value) -> Option<&Request> {
        let Value::Document(document) = packet else { return None };
        (&**document as &dyn Any).downcast_ref()
    }

    /// The head of the request.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The body as it came.
    pub(crate) fn body(&self) -> Value {
        match &self.body {
            Sending::Whole(bytes) => Value::Bytes(bytes.clone()),
            Sending::Stream(stream) => Value::Stream(stream.clone()),
        }
    }

    /// The same, to be sent on.
    ///
    /// # Errors
    /// The stream was read before.
    pub(super) fn content(&self) -> Result<Content, Error> {
        match &self.body {
            Sending::Whole(bytes) => Ok(Content::Full(bytes.clone())),
            Sending::Stream(stream) => {
                let gone = "the request's body was read before; it passes once";
                let parts = stream.take().ok_or_else(|| Error::new(gone))?;
                Ok(Content::Stream(parts, stream.known_len()))
            }
        }
    }

    /// The whole body as it came.
    ///
    /// # Errors
    /// The listener does not gather it.
    pub(crate) fn body_bytes(&self) -> Result<&Bytes, Error> {
        match &self.body {
            Sending::Whole(bytes) => Ok(bytes),
            Sending::Stream(_) => Err(Error::new(
                "the body is a stream, and here all of it is needed; leave 'stream' out of the \
                 listener's parameters",
            )),
        }
    }

    /// The content type that its sender gave.
    pub(crate) fn content_type(&self) -> Option<&HeaderValue> {
        self.parts.headers.get(CONTENT_TYPE)
    }

    /// Sets the values in the path for the names of a route.
    pub(crate) fn set_params(&mut self, params: Map) {
        self.params = Some(Arc::new(params));
    }

    fn host(&self) -> Option<&str> {
        let authority = self.parts.uri.authority().map(Authority::as_str);
        authority.or_else(|| self.parts.headers.get(HOST)?.to_str().ok())
    }

    fn cookies(&self) -> Value {
        // Over HTTP/2 a browser may send cookies in several lines.
        let lines = self.parts.headers.get_all(COOKIE).iter();
        let lines: Vec<_> = lines.map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        Value::Map(cookie::parsed(&lines.join(";")).into())
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(Box::default)
    }

    fn has_decoded(&self) -> bool {
        self.made.get().is_some_and(|made| made.body.get().is_some())
    }
}

impl Document for Request {
    fn field(&self, name: &str) -> Result<Value, Error> {
        let uri = &self.parts.uri;
        let query = || decode::form(uri.query().unwrap_or_default());
        let header = || decode::headers(&self.parts.headers);
        let decode = |bytes| decode::body(self.content_type(), bytes);
        Ok(match name {
            "method" => Value::text(self.parts.method.as_str()),
            "scheme" => Value::text(self.scheme),
            "host" => self.host().map_or(Value::Null, Value::text),
            "path" => Value::text(uri.path()),
            "query" => self.made().query.get_or_init(query).clone()?,
            "protocol" => Value::text(protocol(self.parts.version)),
            "header" => self.made().header.get_or_init(header).clone(),
            "cookies" => self.made().cookies.get_or_init(|| self.cookies()).clone(),
            "body" => match &self.body {
                Sending::Whole(bytes) => self.made().body.get_or_init(|| decode(bytes)).clone()?,
                Sending::Stream(_) => self.body(),
            },
            "params" => Value::Map(self.params.clone().unwrap_or_default()),
            "remote" => Value::text(self.remote.to_string()),
            _ => Value::Null,
        })
    }

    fn price(&self, name: &str) -> u64 {
        match &self.body {
            Sending::Whole(bytes) if name == "body" && !self.has_decoded() => {
                decode::price(self.content_type(), bytes.len())
            }
            _ => 0,
        }
    }

    fn heavy(&self) -> Option<&'static str> {
        let Sending::Whole(bytes) = &self.body else { return None };
        let is_heavy = decode::is_heavy(&self.parts.headers, bytes.len());
        (is_heavy && !self.has_decoded()).then_some("body")
    }

    fn names(&self) -> &[ByteString] {
        static NAMES: LazyLock<[ByteString; 11]> = LazyLock::new(|| {
            [
                "method", "scheme", "host", "path", "query", "protocol", "header", "cookies",
                "body", "params", "remote",
            ]
            .map(ByteString::from_static)
        });
        &*NAMES
    }

    fn is_sent(&self, name: &str) -> bool {
        ["body", "query", "header", "cookies"].contains(&name)
    }

    fn asked(&self) -> Option<AskedFor<'_>> {
        let Parts { method, uri, .. } = &self.parts;
        Some(AskedFor { method: method.as_str(), path: uri.path(), scheme: self.scheme })
    }

    fn context(&self) -> Option<SpanContext> {
        let headers = &self.parts.headers;
        // With few headers, one pass over all costs less than a search.
        let mut parents = headers.iter().filter(|(name, _)| **name == TRACEPARENT);
        let (_, parent) = parents.next()?;
        if parents.next().is_some() {
            // It is not known which of them is meant.
            return None;
        }
        let states = headers.get_all(TRACESTATE).iter().filter_map(|line| line.to_str().ok());
        Some(SpanContext::parse(parent.as_bytes())?.with_state(states))
    }

    /// A copy, because a request as it came holds the buffer that its connection read it into.
    fn compact(&self) -> Option<Arc<dyn Document>> {
        let mut headers = HeaderMap::with_capacity(self.parts.headers.len());
        for (name, value) in &self.parts.headers {
            let mut copy = HeaderValue::from_bytes(value.as_bytes()).ok()?;
            copy.set_sensitive(value.is_sensitive());
            headers.append(name, copy);
        }
        let mut parts = HttpRequest::new(()).into_parts().0;
        (parts.method, parts.version) = (self.parts.method.clone(), self.parts.version);
        parts.uri = Uri::try_from(self.parts.uri.to_string()).ok()?;
        parts.headers = headers;
        let body = match &self.body {
            Sending::Whole(bytes) if bytes.len() <= BUFFER_LEN => {
                Sending::Whole(Bytes::copy_from_slice(bytes))
            }
            other => other.clone(),
        };
        let mut copy = Request::new(parts, body, self.scheme, self.remote);
        copy.params = self.params.clone();
        Some(Arc::new(copy))
    }
}

/// The name of a version on the wire.
pub(crate) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt;
    use sinew_flow::{FlowFixture, FlowLimits, NodeContext, Pool};
    use tokio::task::yield_now;

    use super::*;
    use crate::testing::{plan, run, table};

    fn request(uri: &str, content_type: &str, body: &'static str) -> Request {
        let request = hyper::Request::post(uri).header(HOST, "here").header("X-A", "b");
        let request = request.header(CONTENT_TYPE, content_type).body(()).expect("a request");
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let body = Sending::Whole(Bytes::from_static(body.as_bytes()));
        Request::new(request.into_parts().0, body, "http", remote)
    }

    fn document(request: Request) -> Value {
        Value::Document(Arc::new(request))
    }

    #[test]
    fn a_request_has_all_its_fields() {
        let mut request = request("/a%20b/7?x=1&x=%32", "application/json", "[1]");
        request.set_params(Map::from_iter([("id".into(), Value::text("7"))]));
        let expected = serde_json::json!({
            "method": "POST", "scheme": "http", "host": "here", "path": "/a%20b/7",
            "query": {"x": ["1", "2"]}, "protocol": "HTTP/1.1",
            "header": {"host": "here", "x-a": "b", "content-type": "application/json"},
            "cookies": {},
            "body": [1], "params": {"id": "7"}, "remote": "127.0.0.1:9",
        });
        let request = document(request);
        assert_eq!(request.to_json(), Ok(expected));
        assert_eq!(request.field("nothing"), Ok(Value::Null));
    }

    #[test]
    fn a_compact_request_is_the_same_and_holds_no_buffer() {
        let buffer = Bytes::from_static(b"/a?b=c here [1]");
        // Static bytes have no owner; these are owned as those of a connection are.
        let buffer = Bytes::from(buffer.repeat(100));
        let request = HttpRequest::post(Uri::from_maybe_shared(buffer.slice(..6)).expect("a URI"));
        let host = HeaderValue::from_maybe_shared(buffer.slice(7..11)).expect("a value");
        let request = request.header(HOST, host).header("X-A", "1").header("X-A", "2");
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let mut request = Request::new(parts, Sending::Whole(buffer.slice(12..15)), "http", remote);
        request.set_params(Map::from_iter([("id".into(), Value::text("7"))]));
        let whole = document(request);
        let expected = whole.to_json();
        let compact = whole.clone().compact();
        assert!(!buffer.is_unique(), "the request holds it");
        drop(whole);
        assert!(buffer.is_unique(), "its copy does not");
        assert_eq!(compact.to_json(), expected);
    }

    #[test]
    fn a_part_that_a_client_left_out_is_his_mistake_and_he_is_told_which() {
        let graph = |node: &str| {
            format!(
                "
                - {{kind: begin, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}
                - {{name: a, {node}}}
                "
            )
        };
        let ask = |node: &str, packet: Value| crate::testing::reply(&graph(node), packet);
        let sent = || document(request("/?n=1", "application/json", "{}"));
        for (node, part) in [
            ("kind: set, values: {t: '{{ packet.body.position.x }}'}", "body.position"),
            ("kind: snippet, language: cel, code: packet.body.x + 1", "body.x"),
            ("kind: snippet, language: yaml, code: {a: '{{ packet.query.m }}'}", "query.m"),
            ("kind: if, when: packet.header.token == 'a'", "header.token"),
        ] {
            let error = ask(node, sent()).expect_err(node);
            assert_eq!(error.status(), 400, "{node}: {error}");
            let shown = error.shown().map(Value::to_json).expect("shown").expect("JSON");
            assert_eq!(shown, serde_json::json!({"error": format!("the request has no {part}")}));
        }
        let asks = "kind: snippet, language: cel, code: has(packet.body.x)";
        assert_eq!(ask(asks, sent()), Ok(Some(Value::Bool(false))));
        // A value that the graph itself has made is the graph's mistake.
        let made = Value::map([("body", Value::map([("y", Value::Null)]))]);
        let error = ask("kind: set, values: {t: '{{ packet.body.x }}'}", made).expect_err("none");
        assert_eq!((error.status(), error.shown()), (500, None));
    }

    #[test]
    fn a_body_is_paid_for_wherever_it_lies() {
        let body: &'static str = Box::leak(format!("[{}1]", "1,".repeat(40_000)).into_boxed_str());
        let (decoded, written) = (body.len() as u64 / 4, body.len() as u64 / 8);
        let cases = [
            ("text, code: 't {{ packet }}'", decoded + written),
            ("text, code: 't {{ packet.p }}'", decoded + written),
            ("text, code: 't {{ packet.p.body }} t'", decoded + written),
            ("json, code: ['t {{ packet }}', '{{ flow.id }}']", decoded + written),
            ("cel, code: size(packet.p.body) > 0", decoded),
            // Lua is also charged for each value that it gets.
            ("lua, time: 10s, code: 'return #packet.p.body'", decoded + 40_000 * 8 / 10),
        ];
        for (snippet, price) in cases {
            let fixture = crate::testing::fixture(&format!(
                "- {{kind: begin, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}\n\
                 - {{kind: snippet, name: a, language: {snippet}}}\n"
            ));
            let packet = Value::map([("p", document(request("/", "application/json", body)))]);
            let limits = FlowLimits { deadline: Duration::from_secs(60), work: u64::MAX };
            let flow = fixture.flow();
            let reply = run(fixture.send(&flow, "begin", 0, packet, limits));
            assert!(reply.is_ok(), "{snippet}: {reply:?}");
            let paid = u64::MAX - flow.work_left();
            assert!(paid >= price, "{snippet}: {paid} units for {price}");
        }
    }

    #[test]
    fn what_is_not_taken_apart_costs_next_to_nothing() {
        let body: &'static str = Box::leak("x".repeat(1 << 20).into_boxed_str());
        let price = |content_type| request("/", content_type, body).price("body");
        assert_eq!(price("application/octet-stream"), 0);
        assert_eq!(price("text/plain; charset=utf-8"), 1 << 10);
        assert_eq!(price("application/json"), 1 << 18);
        assert_eq!(price("application/x-www-form-urlencoded"), 1 << 18);
    }

    #[test]
    fn a_large_body_is_decoded_on_another_thread_and_paid() {
        let graph = "- {kind: begin, name: begin, ports: {out: [{name: a, port: in}]}}\n\
                     - {kind: snippet, name: a, language: cel, code: 'packet.body[0]'}\n";
        let pool = Pool::start(1).expect("a thread");
        let site = |_: usize, site: &mut NodeContext| site.pool = pool.clone();
        let made = FlowFixture::with_sites(&plan(graph), &table(), Path::new("."), site);
        let fixture = made.unwrap_or_else(|refusals| panic!("{refusals:?}"));
        let limits = |work| FlowLimits { deadline: Duration::from_secs(60), work };
        let list = |len: usize| -> &'static str {
            Box::leak(format!("[{}1]", "1,".repeat(len / 2 - 2)).into_boxed_str())
        };
        let [small, large] = [list(1 << 20), list(2 << 20)];
        let packet = |body| document(request("/", "application/json", body));
        let one = || Ok(Some(Value::Integer(1)));
        run(async {
            let open = |body, work| fixture.open("begin", 0, packet(body), limits(work));
            let (go_on, wait) = mpsc::channel::<()>();
            let mut held = Box::pin(pool.run(move || wait.recv()));
            assert!((&mut held).now_or_never().is_none());
            assert_eq!(open(small, u64::MAX).await, one(), "it needs no thread");
            let mut large_one = Box::pin(open(large, u64::MAX));
            for _ in 0..100 {
                assert!((&mut large_one).now_or_never().is_none(), "no thread is free");
                yield_now().await;
            }
            // Longer than a node waits for its CPU on a busy machine.
            std::thread::sleep(Duration::from_secs(2));
            drop(go_on);
            assert_eq!(large_one.await, one());
            let longest = |node| fixture.figures(node).ticks_max();
            assert!(longest("a") < longest("begin") / 2, "it waited for the decoding elsewhere");
            let flow = fixture.flow();
            let work = large.len() as u64 / 4;
            let error = fixture.send(&flow, "begin", 0, packet(large), limits(work - 1)).await;
            let error = error.expect_err("too little");
            assert_eq!((error.status(), flow.work_left()), (503, 0), "{error}");
            assert_eq!(error.node().map(|it| &**it), Some("a"), "{error}");
            let passes = crate::testing::fixture(
                "- {kind: begin, name: begin, ports: {out: [{name: a, port: in}]}}\n\
                 - {kind: nop, name: a}\n",
            );
            let passed = passes.open("begin", 0, packet(large), limits(work - 1)).await;
            assert!(passed.is_ok(), "nobody looks at it: {passed:?}");
            assert_eq!(request("/", "text/plain", large).heavy(), None);
            let bad = packet(&large[1..]);
            let error = fixture.open("begin", 0, bad, limits(u64::MAX)).await.expect_err("none");
            assert_eq!((error.status(), error.node().map(|it| &**it)), (400, Some("a")), "{error}");
        });
    }
}
