//! A client's request, as values: a line with the query and a form, a line with the content type,
//! header lines up to an empty one, and the body.
#![no_main]

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use sinew_flows::decode;

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |&byte| byte == b'\n');
    let mut next = || parts.next().unwrap_or_default();
    let (query, content_type, rest) = (next(), next(), next());
    check(decode::form(&String::from_utf8_lossy(query)));
    let (head, body) = match rest.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&rest[..at], &rest[at + 2..]),
        None => (&rest[..0], rest),
    };
    let headers = headers(head);
    let decoded = decode::headers(&headers);
    let names = decoded.to_json().expect("texts");
    assert_eq!(names.as_object().map(|all| all.len()), Some(headers.keys_len()));
    let content_type = HeaderValue::from_bytes(content_type).ok();
    check(decode::body(content_type.as_ref(), &Bytes::copy_from_slice(body)));
    // With the type, so that the fuzzer reaches JSON without having to find it.
    let json = HeaderValue::from_static("application/json");
    check(decode::body(Some(&json), &Bytes::copy_from_slice(body)));
});

fn headers(head: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in head.split(|&byte| byte == b'\n') {
        let Some(at) = line.iter().position(|&byte| byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..at]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&line[at + 1..])) {
            headers.append(name, value);
        }
    }
    headers
}

/// The result must be a value that can be shown, or an error of the sender.
fn check(decoded: Result<sinew_flow::Value, sinew_flow::Error>) {
    match decoded {
        Ok(value) => drop(value.to_json().expect("a value can be shown")),
        Err(error) => assert!([400, 415].contains(&error.status()), "{error:?}"),
    }
}
