//! A request as the packet of a flow. Its fields are made when a node asks for them, and kept: a
//! path that looks at none of them pays for none.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hyper::Version;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use sinew_runtime::flow::{Document, Error, Map, Value};

use super::decode;

/// A request whose body is there.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    parts: Parts,
    bytes: Bytes,
    scheme: &'static str,
    remote: SocketAddr,
    /// What the router found in the path.
    params: Option<Arc<Map>>,
    query: OnceLock<Result<Value, Error>>,
    header: OnceLock<Value>,
    body: OnceLock<Result<Value, Error>>,
}

impl Request {
    /// A request that came over `scheme` from `remote`.
    pub(crate) fn new(
        parts: Parts,
        bytes: Bytes,
        scheme: &'static str,
        remote: SocketAddr,
    ) -> Request {
        let params = None;
        let (query, header, body) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Request { parts, bytes, scheme, remote, params, query, header, body }
    }

    /// What stands before the body.
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The body as it came.
    pub(crate) fn body_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Sets what stands in the path for the names of a route.
    pub(crate) fn set_params(&mut self, params: Map) {
        self.params = Some(Arc::new(params));
    }

    fn host(&self) -> Option<&str> {
        let authority = self.parts.uri.authority().map(Authority::as_str);
        authority.or_else(|| self.parts.headers.get(HOST)?.to_str().ok())
    }

    fn query(&self) -> Result<Value, Error> {
        let query = || decode::form(self.parts.uri.query().unwrap_or_default());
        self.query.get_or_init(query).clone()
    }

    fn body(&self) -> Result<Value, Error> {
        let body = || decode::body(self.parts.headers.get(CONTENT_TYPE), &self.bytes);
        self.body.get_or_init(body).clone()
    }
}

impl Document for Request {
    fn field(&self, name: &str) -> Result<Value, Error> {
        Ok(match name {
            "method" => Value::text(self.parts.method.as_str()),
            "scheme" => Value::text(self.scheme),
            "host" => self.host().map_or(Value::Null, Value::text),
            "path" => Value::text(self.parts.uri.path()),
            "query" => self.query()?,
            "protocol" => Value::text(protocol(self.parts.version)),
            "header" => self.header.get_or_init(|| decode::headers(&self.parts.headers)).clone(),
            "body" => self.body()?,
            "params" => Value::Map(self.params.clone().unwrap_or_default()),
            "remote" => Value::text(self.remote.to_string()),
            _ => Value::Null,
        })
    }

    fn names(&self) -> &'static [&'static str] {
        &[
            "method", "scheme", "host", "path", "query", "protocol", "header", "body", "params",
            "remote",
        ]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// What its name is on the wire.
pub(crate) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, content_type: &str, body: &'static str) -> Request {
        let request = hyper::Request::post(uri).header(HOST, "here").header("X-A", "b");
        let request = request.header(CONTENT_TYPE, content_type).body(()).expect("a request");
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        Request::new(request.into_parts().0, Bytes::from_static(body.as_bytes()), "http", remote)
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
            "body": [1], "params": {"id": "7"}, "remote": "127.0.0.1:9",
        });
        assert_eq!(document(request).to_json(), Ok(expected));
    }

    #[test]
    fn an_absolute_uri_names_the_host() {
        let request = document(request("http://there:80/x", "text/plain", ""));
        assert_eq!(request.field("host"), Ok(Value::text("there:80")));
        assert_eq!(request.field("path"), Ok(Value::text("/x")));
        assert_eq!(request.field("body"), Ok(Value::Null));
        assert_eq!(request.field("nothing"), Ok(Value::Null));
    }

    #[test]
    fn what_is_malformed_fails_only_where_it_is_asked_for() {
        let request = document(request("/?a=%ff", "application/json", "{"));
        assert_eq!(request.field("query").expect_err("no UTF-8").status(), 400);
        assert_eq!(request.field("body").expect_err("no JSON").status(), 400);
        assert_eq!(request.field("path"), Ok(Value::text("/")));
    }
}
