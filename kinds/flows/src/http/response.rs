//! What a listener makes of a reply.
//!
//! A reply of nothing is 204. A text, bytes, a stream and the request itself (its body comes back)
//! are a body of that type. A mapping with no other keys than `status`, `header` and `body` is the
//! whole answer. Any other value is JSON. An error has its status, and shows what it may show.

use std::mem::take;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
    TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Response, StatusCode};
use sinew_flow::{Error, Flow, Map, Reply, Value};

use super::body::{Content, EVENT_STREAM, TEXT};
use super::request::Request;
use crate::json;

/// The fields of a mapping that is an answer.
const FIELDS: [&str; 3] = ["status", "header", "body"];

/// Headers of the connection and of the body's framing. The listener and the client set them
/// themselves, and do not pass on those of a message that came from elsewhere.
pub(super) const FRAMING: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    CONTENT_LENGTH,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The answer that the reply of a flow stands for. The flow is charged for writing it. A reply that
/// cannot be an answer is an error of the flow, which `fail` gets.
pub(crate) async fn response(
    flow: &Flow,
    reply: Reply,
    fail: impl FnOnce(&Error),
) -> Response<Content> {
    let mut response = Response::new(Content::Empty);
    let failed = match reply {
        Ok(reply) => {
            let filled = fill(flow, &mut response, reply.unwrap_or_default()).await;
            filled.inspect_err(fail).err()
        }
        // The caller that ran the flow has reported it.
        Err(error) => Some(error),
    };
    match failed {
        None => response,
        // Boxed, as are all rare cases: each connection has room for the rest.
        Some(error) => Box::pin(of_error(flow, &error)).await,
    }
}

/// Fills an empty response in place: it is large, and to return it would copy it.
async fn fill(flow: &Flow, response: &mut Response<Content>, value: Value) -> Result<(), Error> {
    if let Some(request) = Request::of(&value) {
        echo(response, request)?;
    } else if is_answer(&value) {
        Box::pin(fill_answer(flow, response, &value)).await?;
    } else {
        match content(flow, value).await? {
            Some((content_type, content)) => fill_typed(response, content_type, content),
            None => *response.status_mut() = StatusCode::NO_CONTENT,
        }
    }
    Ok(())
}

/// Answers with the body of the request as it came.
fn echo(response: &mut Response<Content>, request: &Request) -> Result<(), Error> {
    *response.body_mut() = request.content()?;
    if let Some(content_type) = request.content_type() {
        response.headers_mut().insert(CONTENT_TYPE, content_type.clone());
    }
    Ok(())
}

/// A body and its type; `None` for null.
async fn content(flow: &Flow, value: Value) -> Result<Option<(HeaderValue, Content)>, Error> {
    let gone = "the reply's stream was read before; reply with it once, and read it nowhere else";
    Content::of(value, gone, async |it| flow.in_time(pin!(json::write(flow, &it))).await).await
}

fn fill_typed(response: &mut Response<Content>, content_type: HeaderValue, content: Content) {
    *response.body_mut() = content;
    let is_endless = content_type == EVENT_STREAM;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    if is_endless {
        response.headers_mut().entry(CACHE_CONTROL).or_insert(NO_STORE);
    }
}

/// For event streams: what they send now is of no use later.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// Whether a mapping has some of the fields of an answer, and no others.
fn is_answer(value: &Value) -> bool {
    match value {
        Value::Map(map) => !map.is_empty() && map.keys().all(|key| FIELDS.contains(&&**key)),
        Value::Document(document) => document.names().iter().all(|name| FIELDS.contains(&&**name)),
        _ => false,
    }
}

async fn fill_answer(
    flow: &Flow,
    response: &mut Response<Content>,
    value: &Value,
) -> Result<(), Error> {
    let field = |name| match value {
        Value::Document(document) => flow.field(&**document, name),
        other => other.field(name),
    };
    let body = field("body")?;
    let body = match Request::of(&body) {
        Some(request) => request.body(),
        None => body,
    };
    let content = content(flow, body).await?;
    let status = status(&field("status")?, content.is_some())?;
    let (content_type, content) = content.unzip();
    *response.status_mut() = status;
    let headers = response.headers_mut();
    set_headers(headers, &flow.resolve(&field("header")?)?)?;
    if let Some(content_type) = content_type
        && *headers.entry(CONTENT_TYPE).or_insert(content_type) == EVENT_STREAM
    {
        headers.entry(CACHE_CONTROL).or_insert(NO_STORE);
    }
    if ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status) {
        *response.body_mut() = content.unwrap_or(Content::Empty);
    }
    Ok(())
}

fn status(value: &Value, has_body: bool) -> Result<StatusCode, Error> {
    let code = match value {
        Value::Null => return Ok(if has_body { StatusCode::OK } else { StatusCode::NO_CONTENT }),
        Value::Integer(code) => *code,
        // A script may give a whole number in this form.
        Value::Number(code) if code.fract() == 0.0 => *code as i64,
        other => return Err(refused("status", &format!("is {}", other.sort()), A_STATUS)),
    };
    let status = u16::try_from(code).ok().filter(|code| (200..600).contains(code));
    let status = status.and_then(|code| StatusCode::from_u16(code).ok());
    status.ok_or_else(|| refused("status", &format!("is {code}"), A_STATUS))
}

const A_STATUS: &str = "a whole number from 200 to 599";

pub(super) fn set_headers(headers: &mut HeaderMap, value: &Value) -> Result<(), Error> {
    let map = match value {
        Value::Null => return Ok(()),
        Value::Map(map) => map,
        other => return Err(refused("header", &format!("is {}", other.sort()), "a mapping")),
    };
    for (name, value) in &**map {
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_| refused("header", &format!("has '{name}'"), "names"))?;
        if FRAMING.contains(&parsed) {
            continue;
        }
        match value {
            Value::List(values) => {
                for value in &**values {
                    headers.append(&parsed, header_value(name, value)?);
                }
            }
            Value::Null => {}
            one => drop(headers.append(parsed, header_value(name, one)?)),
        }
    }
    Ok(())
}

fn header_value(name: &str, value: &Value) -> Result<HeaderValue, Error> {
    let text = plain_text(value).ok_or_else(|| {
        let found = format!("has {} at '{name}'", value.sort());
        refused("header", &found, "a text, or a list of texts")
    })?;
    HeaderValue::try_from(text)
        .map_err(|_| refused("header", &format!("has control characters at '{name}'"), "none"))
}

/// A reply with these headers too. `vary` and `set-cookie` are added to its own values, the others
/// replace them.
pub(crate) fn with_headers(
    flow: &Flow,
    reply: Value,
    headers: Vec<(&'static str, ByteString)>,
) -> Result<Value, Error> {
    let mut answer = Map::new();
    let mut own = Map::new();
    if let Some(request) = Request::of(&reply) {
        if let Some(content_type) = request.content_type().and_then(|it| it.to_str().ok()) {
            own.insert(CONTENT_TYPE.as_str().into(), Value::text(content_type));
        }
        answer.insert(BODY, request.body());
    } else if is_answer(&reply) {
        for name in FIELDS {
            let field = match &reply {
                Value::Document(document) => flow.field(&**document, name)?,
                other => other.field(name)?,
            };
            match (name, field) {
                (_, Value::Null) => {}
                ("header", field) => match flow.resolve(&field)? {
                    Value::Map(map) => own = (*map).clone(),
                    other => {
                        return Err(refused(
                            "header",
                            &format!("is {}", other.sort()),
                            "a mapping",
                        ));
                    }
                },
                (name, field) => drop(answer.insert(name.into(), field)),
            }
        }
    } else if let Value::Null = reply {
        answer.insert("status".into(), Value::Integer(204));
    } else {
        answer.insert(BODY, reply);
    }
    for (name, value) in headers {
        add_header(&mut own, name, value);
    }
    answer.insert("header".into(), Value::Map(own.into()));
    Ok(Value::Map(answer.into()))
}

const BODY: ByteString = ByteString::from_static("body");

fn add_header(headers: &mut Map, name: &'static str, value: ByteString) {
    let known = headers.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let value = Value::Text(value);
    match (name, known) {
        (_, None) => drop(headers.insert(name.into(), value)),
        ("vary" | "set-cookie", Some((_, Value::List(values)))) => {
            Arc::make_mut(values).push(value);
        }
        ("set-cookie", Some((_, known))) => *known = Value::list([take(known), value]),
        ("vary", Some((_, known))) => {
            let texts = [&*known, &value].map(|it| plain_text(it).unwrap_or_default());
            *known = Value::text(texts.join(", "));
        }
        (_, Some((_, known))) => *known = value,
    }
}

/// A single value as text.
pub(super) fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Integer(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cold]
fn refused(field: &str, found: &str, expected: &str) -> Error {
    Error::new(format_args!("the reply's {field} {found}; expected {expected}"))
}

/// The answer that an error stands for, with nothing internal in it.
#[cold]
pub(super) async fn of_error(flow: &Flow, error: &Error) -> Response<Content> {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // If it cannot be written, the answer stays the plain one. Such errors are reported elsewhere.
    let shown = match error.shown() {
        Some(shown) => content(flow, shown.clone()).await.ok().flatten(),
        None => None,
    };
    let mut response = plain(status);
    if let Some((content_type, content)) = shown {
        fill_typed(&mut response, content_type, content);
    }
    for (name, value) in error.headers() {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

/// The answer of a status without a flow.
pub(super) fn plain(status: StatusCode) -> Response<Content> {
    let mut response = Response::new(Content::Empty);
    *response.status_mut() = status;
    let reason = status.canonical_reason().unwrap_or("Error").as_bytes();
    fill_typed(&mut response, TEXT, Content::Full(Bytes::from_static(reason)));
    response
}

#[cfg(test)]
mod tests;
