//! Compression of answers, where the client accepts it and it saves enough.

use hyper::Response;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
    ETAG, HeaderMap, HeaderValue, VARY,
};

use crate::http::body::{Content, EVENT_STREAM, Gzip};

/// Below this the answer fits into one packet of the network anyway.
const SIZE_MIN: usize = 1024;

/// Types that get much smaller, beside `text/...` and what ends in `+json` or `+xml`.
const TYPES: [&str; 5] = [
    "application/json",
    "application/javascript",
    "application/xml",
    "application/wasm",
    "application/x-ndjson",
];

/// Whether a request takes gzip.
pub(super) fn is_accepted(headers: &HeaderMap) -> bool {
    let quality = |wanted: &str| {
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
        values.flat_map(|value| value.split(',')).find_map(|coding| {
            let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
            let named = name.trim().eq_ignore_ascii_case(wanted);
            named.then(|| weight.trim().trim_start_matches(['q', 'Q']).trim_start())
        })
    };
    let weight = quality("gzip").or_else(|| quality("*"));
    let is_zero = |weight: &str| {
        weight.strip_prefix('=').and_then(|it| it.trim().parse::<f32>().ok()) == Some(0.0)
    };
    weight.is_some_and(|weight| !is_zero(weight))
}

/// Bytes that are compressed for one unit of work, at least.
const BYTES_PER_UNIT: usize = 8;

/// What it will cost to compress this answer, in units of work. A stream costs its flow nothing.
pub(super) fn price(response: &Response<Content>) -> u64 {
    match response.body() {
        Content::Full(bytes) if pays(response) => (bytes.len() / BYTES_PER_UNIT) as u64,
        _ => 0,
    }
}

/// Compresses an answer if that saves enough.
pub(super) fn compress(response: &mut Response<Content>, is_accepted: bool) {
    if !pays(response) {
        return;
    }
    // Caches must know that the answer has two forms.
    response.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    if !is_accepted {
        return;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(CONTENT_LENGTH);
    weaken(headers);
    let content = std::mem::replace(response.body_mut(), Content::Empty);
    *response.body_mut() = Content::Gzip(Box::new(Gzip::new(content)));
}

fn pays(response: &Response<Content>) -> bool {
    let headers = response.headers();
    let size = match response.body() {
        Content::Empty | Content::Gzip(_) => 0,
        Content::Full(bytes) => bytes.len(),
        Content::Stream(..) => usize::MAX,
    };
    let content_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    // Events are short, and a client of events would hold the memory of an encoder for hours.
    let is_endless = essence == EVENT_STREAM;
    let shrinks = essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || TYPES.contains(&&*essence);
    let keeps = headers.get(CACHE_CONTROL).and_then(|it| it.to_str().ok());
    let keeps = keeps.is_some_and(|it| it.contains("no-transform"));
    let is_whole = !headers.contains_key(CONTENT_ENCODING) && !headers.contains_key(CONTENT_RANGE);
    size >= SIZE_MIN && shrinks && is_whole && !keeps && !is_endless
}

/// Makes the tag a weak one: a strong tag is for the uncompressed bytes (RFC 9110, 8.8.3.3).
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")) else {
        return;
    };
    let weak = [b"W/", tag.as_bytes()].concat();
    if let Ok(weak) = HeaderValue::from_bytes(&weak) {
        headers.insert(ETAG, weak);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_client_says_whether_it_takes_gzip() {
        let takes = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            is_accepted(&headers)
        };
        for value in ["gzip", "br, GZIP;q=0.5", "*", "deflate, gzip;q=1.0, *;q=0"] {
            assert!(takes(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip; q=0.000, *", "identity", "*;q=0"] {
            assert!(!takes(value), "{value}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }

    fn answer(content_type: &'static str, size: usize, header: Option<&'static str>) -> bool {
        let mut response = Response::new(Content::Full(Bytes::from(vec![b'x'; size])));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(ETAG, HeaderValue::from_static("\"1\""));
        if let Some((name, value)) = header.and_then(|header| header.split_once(": ")) {
            headers.insert(name, HeaderValue::from_static(value));
        }
        compress(&mut response, true);
        let headers = response.headers();
        let is_gzip = headers.get(CONTENT_ENCODING).is_some_and(|it| it == "gzip");
        assert_eq!(is_gzip, headers.contains_key(VARY));
        assert_eq!(is_gzip, headers[ETAG] == "W/\"1\"");
        is_gzip
    }

    #[test]
    fn only_what_gets_smaller_is_compressed() {
        assert!(answer("text/html; charset=utf-8", SIZE_MIN, None));
        assert!(answer("application/problem+json", SIZE_MIN, None));
        assert!(!answer("application/json", SIZE_MIN - 1, None));
        assert!(!answer("image/png", 1 << 20, None));
        assert!(!answer("text/event-stream", 1 << 20, None));
        assert!(!answer("text/html", SIZE_MIN, Some("content-encoding: br")));
        assert!(!answer("text/html", SIZE_MIN, Some("cache-control: no-transform")));
        assert!(!answer("text/html", SIZE_MIN, Some("content-range: bytes 0-1/2")));
    }
}
