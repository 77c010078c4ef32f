//! The request to another server: made of templates for each packet, and checked.

use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, UPGRADE,
    USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use sinew_flow::{Error, Flow, SpanContext, Value};

use super::proxy::{self, Forwarded};
use super::target::{self, Hosts};
use crate::http::body::{Body, Content};
use crate::http::request::{Request as Packet, TRACEPARENT, TRACESTATE};
use crate::http::response::{FRAMING, plain_text};
use crate::http::upgrade::{WEBSOCKET, asks_for_websocket};
use crate::json;
use crate::script::refused;
use crate::script::template::Template;

/// Whether the client itself sets a header from the url, the body and the connection.
pub(super) fn is_own(name: &HeaderName) -> bool {
    *name == HOST || FRAMING.contains(name)
}

/// Headers that prove who asks. They are sent only to the server that they were written for.
const PROOFS: [HeaderName; 3] =
    [hyper::header::AUTHORIZATION, hyper::header::COOKIE, hyper::header::PROXY_AUTHORIZATION];

const AGENT: HeaderValue = HeaderValue::from_static(concat!("sinew/", env!("CARGO_PKG_VERSION")));
/// The templates that a request is made of.
pub(super) struct Form {
    pub(super) url: Template,
    pub(super) method: Template,
    pub(super) query: Template,
    pub(super) header: Template,
    pub(super) body: Template,
    pub(super) hosts: Hosts,
    /// If requests are passed on: how the other server is told who asks.
    pub(super) proxied: Option<Forwarded>,
}

/// A request that can be sent, and often sent again.
pub(super) struct ClientRequest {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    /// Empty once a stream was sent.
    content: Content,
    is_streamed: bool,
    /// It asks for a websocket.
    upgrades: bool,
}

impl Form {
    /// The request for a packet. Its url begins with `base`, if there is one. It belongs to the
    /// trace of `context`.
    ///
    /// # Errors
    /// A template cannot be rendered, or its value cannot be a part of a request.
    pub(super) async fn fill(
        &self,
        flow: &Flow,
        packet: &Value,
        base: Option<&str>,
        context: Option<&SpanContext>,
    ) -> Result<ClientRequest, Error> {
        let method = method(&self.method.render(flow, packet).await?).map_err(Error::new)?;
        let uri = self.uri(flow, packet, base).await?;
        let mut headers = HeaderMap::new();
        if let Some(forwarded) = self.proxied {
            let came = flow.resolve(&packet.field("header")?)?;
            set_headers(&mut headers, &came).map_err(|text| refused(400, text))?;
            proxy::adapt(&mut headers, packet, forwarded)?;
        }
        if let Some(context) = context {
            set_context(&mut headers, context);
        }
        let fields = flow.resolve(&self.header.render(flow, packet).await?)?;
        let mut own = HeaderMap::new();
        set_headers(&mut own, &fields).map_err(Error::new)?;
        // These replace the headers that came.
        headers.extend(own);
        let upgrades = self.proxied.is_some()
            && Packet::of(packet).is_some_and(|it| asks_for_websocket(it.parts()));
        if upgrades {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        }
        headers.entry(USER_AGENT).or_insert(AGENT);
        let body = match self.proxied {
            Some(_) if Packet::of(packet).is_some() => packet.clone(),
            Some(_) => packet.field("body")?,
            None => self.body.render(flow, packet).await?,
        };
        let (content_type, content) = content(flow, body).await?;
        if let Some(content_type) = content_type {
            headers.entry(CONTENT_TYPE).or_insert(content_type);
        }
        let is_streamed = matches!(content, Content::Stream(..));
        Ok(ClientRequest { method, uri, headers, content, is_streamed, upgrades })
    }

    async fn uri(&self, flow: &Flow, packet: &Value, base: Option<&str>) -> Result<Uri, Error> {
        if self.proxied.is_some() {
            proxy::check_path(packet)?;
        }
        let url = self.url.render(flow, packet).await?;
        let Value::Text(url) = url else {
            return Err(Error::new(format_args!("the url is {}, expected a text", url.sort())));
        };
        let url = match base {
            None => url.to_string(),
            Some(base) if url.is_empty() || url.starts_with('/') => format!("{base}{url}"),
            Some(_) => {
                let text = format!("with 'targets' the url must be a path, found {url:?}");
                return Err(Error::new(text));
            }
        };
        if let Some(query) = self.proxied.and_then(|_| proxy::raw_query(packet)) {
            return target::parse(&format!("{url}?{query}"), &self.hosts).map_err(Error::new);
        }
        let query = flow.resolve(&self.query.render(flow, packet).await?)?;
        let url = target::with_query(&url, &query).map_err(Error::new)?;
        target::parse(&url, &self.hosts).map_err(Error::new)
    }
}

/// Reads a method.
///
/// # Errors
/// It is not a method, or one that cannot be used.
pub(super) fn method(value: &Value) -> Result<Method, String> {
    let parsed = value.as_text().and_then(|text| Method::from_bytes(text.as_bytes()).ok());
    match parsed {
        Some(Method::CONNECT) => {
            Err("the method CONNECT opens tunnels; write another method".to_owned())
        }
        Some(method) => Ok(method),
        None => Err(match plain_text(value) {
            Some(text) => format!("'{text}' is not a method"),
            None => format!("the method is {}, expected a text", value.sort()),
        }),
    }
}

/// Sets the headers of a mapping, except those that the client itself sets.
fn set_headers(headers: &mut HeaderMap, fields: &Value) -> Result<(), String> {
    let fields = match fields {
        Value::Null => return Ok(()),
        Value::Map(fields) => fields,
        other => return Err(format!("header is {}, expected a mapping", other.sort())),
    };
    for (name, value) in &**fields {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is not a name of a header"))?;
        if is_own(&key) {
            continue;
        }
        let mut append = |value: &Value| {
            let text =
                plain_text(value).ok_or_else(|| format!("header {name} is {}", value.sort()))?;
            let value = HeaderValue::try_from(text)
                .map_err(|_| format!("header {name} has line ends or other control characters"))?;
            headers.append(&key, value);
            Ok::<(), String>(())
        };
        match value {
            Value::Null => {}
            Value::List(values) => values.iter().try_for_each(append)?,
            value => append(value)?,
        }
    }
    Ok(())
}

/// Sets the headers of the trace to this context, in place of those that came.
fn set_context(headers: &mut HeaderMap, context: &SpanContext) {
    let state = context.state.as_deref().map(str::to_owned);
    for (name, text) in [(TRACEPARENT, Some(context.to_string())), (TRACESTATE, state)] {
        headers.remove(&name);
        // They are plain text.
        let value = text.and_then(|text| HeaderValue::try_from(text).ok());
        headers.extend(value.map(|value| (name, value)));
    }
}

/// A body and its type. A request's own body stays as it came, and so do text, bytes and streams.
/// Any other value becomes JSON.
async fn content(flow: &Flow, value: Value) -> Result<(Option<HeaderValue>, Content), Error> {
    if let Some(packet) = Packet::of(&value) {
        return Ok((packet.content_type().cloned(), packet.content()?));
    }
    let gone = "the stream in 'body' was read before";
    let typed = Content::of(value, gone, async |it| json::write(flow, &it).await).await?;
    Ok(typed.map_or((None, Content::Empty), |(content_type, it)| (Some(content_type), it)))
}

impl ClientRequest {
    /// The request for the log. Its query is left out, as it may be secret.
    pub(super) fn shown(&self) -> String {
        let (scheme, authority) = (self.uri.scheme_str(), self.uri.authority());
        let (scheme, authority) =
            (scheme.unwrap_or_default(), authority.map_or("", |it| it.as_str()));
        format!("{} {scheme}://{authority}{}", self.method, self.uri.path())
    }

    /// Whether it can be sent to another server after one could not be reached.
    pub(super) fn can_move(&self) -> bool {
        !self.is_streamed
    }

    /// Whether it can be sent twice, and twice does no more than once (RFC 9110, 9.2.2).
    pub(super) fn can_repeat(&self) -> bool {
        self.method.is_idempotent() && !self.is_streamed
    }

    /// Whether it asks for a websocket.
    pub(super) fn upgrades(&self) -> bool {
        self.upgrades
    }

    /// Its body, which is empty once a stream was sent.
    fn take_content(&mut self) -> Content {
        match &self.content {
            Content::Full(bytes) => Content::Full(bytes.clone()),
            _ => std::mem::replace(&mut self.content, Content::Empty),
        }
    }

    /// The request to be sent. It may be sent again only where
    /// [`ClientRequest::can_repeat`] says so.
    pub(super) fn request(&mut self) -> Request<Body<()>> {
        let mut request = Request::new(Body::new(self.take_content(), ()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// The next request, if an answer is a redirect (RFC 9110, 15.4).
    ///
    /// # Errors
    /// It leads to a host that is not allowed, or needs a streamed body once more.
    pub(super) fn redirected<B>(
        &mut self,
        answer: &Response<B>,
        hosts: &Hosts,
    ) -> Result<Option<ClientRequest>, String> {
        let keeps = match answer.status() {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method != Method::POST,
            StatusCode::SEE_OTHER => [Method::GET, Method::HEAD].contains(&self.method),
            _ => return Ok(None),
        };
        let Some(location) = answer.headers().get(LOCATION) else { return Ok(None) };
        let location = location.to_str().map_err(|_| "the location is not text".to_owned())?;
        let uri = target::follow(&self.uri, location, hosts)?;
        let mut headers = self.headers.clone();
        if uri.authority() != self.uri.authority() {
            PROOFS.iter().for_each(|name| drop(headers.remove(name)));
        }
        let upgrades = self.upgrades;
        if keeps && self.is_streamed {
            return Err("a body that was streamed cannot be sent to another place".to_owned());
        }
        let (method, content) = if keeps {
            (self.method.clone(), self.take_content())
        } else {
            headers.remove(CONTENT_TYPE);
            (Method::GET, Content::Empty)
        };
        Ok(Some(ClientRequest { method, uri, headers, content, is_streamed: false, upgrades }))
    }
}
