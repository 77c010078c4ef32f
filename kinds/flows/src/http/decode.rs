//! Decodes what comes over HTTP to values: the query, forms, headers, and bodies by their content
//! type. None of it is trusted. Malformed input is an error that its sender may see.

use std::borrow::Cow;
use std::mem::take;
use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, SET_COOKIE};
use indexmap::map::Entry;
use percent_encoding::percent_decode_str;
use sinew_flow::{Error, Map, Value};

/// Names and values of a query or a form, without percent encoding. A name that comes several times
/// has the list of its values.
///
/// # Errors
/// A decoded name or value is not UTF-8 (400).
pub fn form(text: &str) -> Result<Value, Error> {
    let mut fields = Map::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = Value::Text(plain(value)?);
        match fields.entry(plain(name)?) {
            Entry::Vacant(new) => drop(new.insert(value)),
            // Nobody else holds the list, so nothing is copied.
            Entry::Occupied(known) => match known.into_mut() {
                Value::List(values) => Arc::make_mut(values).push(value),
                first => *first = Value::list([take(first), value]),
            },
        }
    }
    Ok(Value::Map(fields.into()))
}

/// A piece of a query or a form without its encoding.
fn plain(text: &str) -> Result<ByteString, Error> {
    if !text.contains(['%', '+']) {
        return Ok(text.into());
    }
    let spaced = text.replace('+', " ");
    match percent_decode_str(&spaced).decode_utf8() {
        Ok(plain) => Ok(plain.into_owned().into()),
        Err(_) => Err(malformed(400, format!("'{text}' is not UTF-8 with percent encoding"))),
    }
}

/// Headers by their names in lower case. Several of one name are joined with commas, as RFC 9110
/// (5.3) says, cookies with semicolons. Cookies that a server sets cannot be joined: several are a
/// list. Bytes that are not UTF-8 are replaced.
pub fn headers(headers: &HeaderMap) -> Value {
    let text = |value| Value::text(&*lossy(value));
    let value = |name: &HeaderName| match several(headers, name) {
        Some(_) if name == SET_COOKIE => Value::list(headers.get_all(name).iter().map(text)),
        Some(joined) => Value::text(joined),
        None => headers.get(name).map_or(Value::Null, text),
    };
    Value::map(headers.keys().map(|name| (name.as_str(), value(name))))
}

/// The values of a name joined; `None` if there is only one.
fn several(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter().map(lossy);
    let (first, second) = (values.next()?, values.next()?);
    let between = if name == COOKIE { "; " } else { ", " };
    let all: Vec<_> = [first, second].into_iter().chain(values).collect();
    Some(all.join(between))
}

fn lossy(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Bytes that are decoded for one unit of work, at least. The worst case is JSON of small numbers
/// only.
const BYTES_PER_UNIT: usize = 4;
/// Bytes of text for one unit of work: text is only checked, and then shared.
const TEXT_BYTES_PER_UNIT: usize = 1024;

/// What it costs to decode a body of so many bytes, in units of work.
pub(super) fn price(content_type: Option<&HeaderValue>, len: usize) -> u64 {
    let bytes_per_unit = match sort(content_type) {
        Sort::Form | Sort::Json => BYTES_PER_UNIT,
        Sort::Text => TEXT_BYTES_PER_UNIT,
        Sort::Bytes => return 0,
    };
    (len / bytes_per_unit) as u64
}

/// Longest body that a worker decodes itself, in some twenty milliseconds at most. A longer one is
/// decoded on a thread for blocking work, before the packet goes on.
const WORKER_LEN_MAX: usize = 1 << 20;

/// Whether a body of so many bytes would keep its worker for long. Text and bytes never do.
pub(super) fn is_heavy(headers: &HeaderMap, len: usize) -> bool {
    // The length is checked first, because nearly every request comes here.
    len > WORKER_LEN_MAX && matches!(sort(headers.get(CONTENT_TYPE)), Sort::Form | Sort::Json)
}

/// How a body is decoded.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Form,
    Json,
    Text,
    Bytes,
}

/// How a body of this content type is decoded.
fn sort(content_type: Option<&HeaderValue>) -> Sort {
    let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match &*essence {
        "application/x-www-form-urlencoded" => Sort::Form,
        "application/json" => Sort::Json,
        _ if essence.ends_with("+json") => Sort::Json,
        _ if essence.starts_with("text/") => Sort::Text,
        _ => Sort::Bytes,
    }
}

/// A body as its content type says: JSON is a value, a form is a mapping, text is a text; anything
/// else is bytes, and an empty body is nothing.
///
/// # Errors
/// It is not what its type says (400), or text in another encoding than UTF-8 (415).
pub fn body(content_type: Option<&HeaderValue>, bytes: &Bytes) -> Result<Value, Error> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    match sort(content_type) {
        Sort::Form => form(&text(content_type, bytes)?),
        Sort::Json => json(bytes),
        Sort::Text => text(content_type, bytes).map(Value::Text),
        Sort::Bytes => Ok(Value::Bytes(bytes.clone())),
    }
}

fn json(bytes: &Bytes) -> Result<Value, Error> {
    serde_json::from_slice(bytes)
        .map_err(|error| malformed(400, format!("the body is not JSON: {error}")))
}

/// The bytes as text, shared.
fn text(content_type: Option<&HeaderValue>, bytes: &Bytes) -> Result<ByteString, Error> {
    let content_type = content_type.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let charset = content_type.split(';').skip(1).find_map(|attribute| {
        let (name, value) = attribute.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    let known = |charset: &str| {
        ["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known))
    };
    if let Some(other) = charset.filter(|charset| !known(charset)) {
        return Err(malformed(415, format!("text in '{other}' is not read; send UTF-8")));
    }
    ByteString::try_from(bytes.clone())
        .map_err(|_| malformed(400, "the body is not UTF-8, as its content type says".to_owned()))
}

/// An error that the sender has made, and may see.
fn malformed(status: u16, text: String) -> Error {
    let shown = Value::text(text.clone());
    Error::new(text).with_status(status).with_shown(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(content_type: &'static str, bytes: &'static [u8]) -> Result<Value, Error> {
        body(Some(&HeaderValue::from_static(content_type)), &Bytes::from_static(bytes))
    }

    #[test]
    fn a_query_gives_texts_and_lists_of_them() {
        let query = form("a=1&b=x+y%20z&a=2&&c&a=3&%C3%A4=%26").expect("a query");
        let texts = |all: &[&'static str]| Value::list(all.iter().map(|text| Value::text(*text)));
        let expected = Value::map([
            ("a", texts(&["1", "2", "3"])),
            ("b", Value::text("x y z")),
            ("c", Value::text("")),
            ("ä", Value::text("&")),
        ]);
        assert_eq!(query, expected);
    }

    #[test]
    fn a_query_that_is_not_utf8_is_the_senders_error() {
        let error = form("a=%ff").expect_err("not UTF-8");
        assert_eq!(error.status(), 400);
        assert!(error.shown().is_some());
    }

    #[test]
    fn a_percent_sign_that_encodes_nothing_stays() {
        assert_eq!(form("a=100%&b=%zz"), form("a=100%25&b=%25zz"));
    }

    #[test]
    fn a_body_is_what_its_content_type_says() {
        let one = Value::map([("a", Value::Integer(1))]);
        assert_eq!(typed("application/json", br#"{"a":1}"#), Ok(one.clone()));
        assert_eq!(typed("application/problem+JSON; x=y", br#"{"a":1}"#), Ok(one));
        let form = Value::map([("a", Value::text("b c"))]);
        assert_eq!(typed("application/x-www-form-urlencoded", b"a=b+c"), Ok(form));
        assert_eq!(typed("text/plain;charset=UTF-8", b"hi"), Ok(Value::text("hi")));
        let bytes = Value::Bytes(Bytes::from_static(b"\xff"));
        assert_eq!(typed("image/png", b"\xff"), Ok(bytes.clone()));
        assert_eq!(body(None, &Bytes::from_static(b"\xff")), Ok(bytes));
        assert_eq!(typed("application/json", b""), Ok(Value::Null));
    }

    #[test]
    fn a_body_that_is_not_what_its_type_says_is_the_senders_error() {
        let status = |content_type, bytes| typed(content_type, bytes).expect_err("bad").status();
        assert_eq!(status("application/json", b"{"), 400);
        assert_eq!(status("text/plain", b"\xff"), 400);
        assert_eq!(status("application/x-www-form-urlencoded", b"a=%ff"), 400);
        assert_eq!(status("text/plain; charset=latin1", b"x"), 415);
        let deep: &'static [u8] = "[".repeat(100_000).leak().as_bytes();
        assert_eq!(status("application/json", deep), 400);
    }

    #[test]
    fn headers_of_one_name_are_joined() {
        let mut all = HeaderMap::new();
        for (name, value) in [("accept", "a"), ("cookie", "x=1"), ("accept", "b"), ("via", "c")] {
            all.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        all.append(COOKIE, HeaderValue::from_static("y=2"));
        for cookie in ["a=1; expires=Mon, 01 Jan 2035 00:00:00 GMT", "b=2"] {
            all.append(SET_COOKIE, HeaderValue::from_static(cookie));
        }
        let set = ["a=1; expires=Mon, 01 Jan 2035 00:00:00 GMT", "b=2"].map(Value::text);
        let expected = Value::map([
            ("accept", Value::text("a, b")),
            ("cookie", Value::text("x=1; y=2")),
            ("via", Value::text("c")),
            ("set-cookie", Value::list(set)),
        ]);
        assert_eq!(headers(&all), expected);
    }
}
