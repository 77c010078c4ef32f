//! Every sort of reply, and the answer that it becomes.

use std::future::poll_fn;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::body::Body as _;
use sinew_flow::Stream;

use super::*;
use crate::http::body::{Body, Gzip};
use crate::testing::{fixture, run, turns};

/// A graph that does nothing.
const NOTHING: &str = "- {kind: nop, name: a}";

/// The answer, and the error that was told.
fn response(reply: Reply) -> (Response<Content>, Option<Error>) {
    let mut told = None;
    let flow = fixture(NOTHING).flow();
    let answer = run(super::response(&flow, reply, |error: &Error| told = Some(error.clone())));
    (answer, told)
}

/// Status, content type and body of the answer to a reply.
fn answer(reply: Reply) -> (u16, Option<String>, Option<String>) {
    let (parts, content) = response(reply).0.into_parts();
    let content_type = parts.headers.get(CONTENT_TYPE).map(|it| it.to_str().unwrap().to_owned());
    let body = match content {
        Content::Empty => None,
        Content::Full(bytes) => Some(String::from_utf8(bytes.to_vec()).expect("text")),
        _ => Some("a stream".to_owned()),
    };
    (parts.status.as_u16(), content_type, body)
}

fn seen(status: u16, content_type: &str, body: &str) -> (u16, Option<String>, Option<String>) {
    (status, Some(content_type.to_owned()), Some(body.to_owned()))
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn header(name: &'static str, value: Value) -> Value {
    Value::map([("header", Value::map([(name, value)]))])
}

#[test]
fn each_sort_of_value_is_its_own_answer() {
    let json = "application/json";
    assert_eq!(answer(Ok(None)), (204, None, None));
    assert_eq!(answer(Ok(Some(Value::Null))), (204, None, None));
    assert_eq!(answer(Ok(Some(Value::text("pong")))), seen(200, PLAIN, "pong"));
    let bytes = Value::Bytes(Bytes::from_static(b"x"));
    assert_eq!(answer(Ok(Some(bytes))), seen(200, "application/octet-stream", "x"));
    let list = Value::list([Value::Integer(1), Value::Bool(true)]);
    assert_eq!(answer(Ok(Some(list))), seen(200, json, "[1,true]"));
    let map = Value::map([("status", Value::Integer(1)), ("other", Value::Null)]);
    assert_eq!(answer(Ok(Some(map))), seen(200, json, r#"{"status":1,"other":null}"#));
    assert_eq!(answer(Ok(Some(Value::Map(Arc::default())))), seen(200, json, "{}"));
}

#[test]
fn a_mapping_of_status_header_and_body_is_the_whole_answer() {
    let map = |entries: Vec<(&'static str, Value)>| Ok(Some(Value::map(entries)));
    assert_eq!(answer(map(vec![("status", Value::Integer(201))])), (201, None, None));
    let both = vec![("status", Value::Number(404.0)), ("body", Value::text("no"))];
    assert_eq!(answer(map(both)), seen(404, PLAIN, "no"));
    let typed = vec![
        ("header", Value::map([("Content-Type", Value::text("text/html"))])),
        ("body", Value::text("<p>")),
    ];
    assert_eq!(answer(map(typed)), seen(200, "text/html", "<p>"));
    let without = vec![("status", Value::Integer(304)), ("body", Value::text("x"))];
    assert_eq!(answer(map(without)).2, None);
}

#[test]
fn a_header_with_a_list_comes_several_times_and_framing_is_the_listeners() {
    let texts = Value::list([Value::text("a=1"), Value::Integer(2)]);
    let (answer, error) = response(Ok(Some(header("set-cookie", texts))));
    assert!(error.is_none());
    let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "2"]);
    for name in FRAMING {
        let name: &'static str = name.to_string().leak();
        let (answer, error) = response(Ok(Some(header(name, Value::text("9")))));
        assert!(error.is_none() && answer.headers().is_empty(), "{name}");
    }
}

#[test]
fn a_reply_that_is_no_answer_is_an_error_and_says_nothing_of_it() {
    let bad = [
        Value::map([("status", Value::Integer(99))]),
        Value::map([("status", Value::Integer(101))]),
        Value::map([("status", Value::Integer(70_000))]),
        Value::map([("status", Value::text("200"))]),
        Value::map([("header", Value::Integer(1))]),
        header("a b", Value::text("x")),
        header("a", Value::text("x\r\nb: y")),
        header("a", Value::map([("b", Value::Null)])),
    ];
    for value in bad {
        let told = response(Ok(Some(value.clone()))).1.expect("an error");
        assert!(told.text().contains("expected"), "{told}");
        assert_eq!(answer(Ok(Some(value))), seen(500, PLAIN, "Internal Server Error"));
    }
}

#[test]
fn an_error_shows_what_may_be_shown_and_no_more() {
    let secret = || Error::new("password 'secret' is wrong");
    assert_eq!(answer(Err(secret())), seen(500, PLAIN, "Internal Server Error"));
    let shown = secret().with_status(409).with_shown(Value::map([("a", Value::Integer(1))]));
    assert_eq!(answer(Err(shown)), seen(409, "application/json", r#"{"a":1}"#));
    assert_eq!(answer(Err(secret().with_status(7))).0, 500);
    let allowed = secret().with_status(405).with_header("Allow", "GET").with_header("\n", "");
    let allowed = response(Err(allowed)).0;
    assert_eq!(allowed.headers().get("allow").expect("the header"), "GET");
}

#[test]
fn a_stream_is_an_answer_once() {
    let parts = [Ok(Bytes::from_static(b"a")), Err(Error::new("gone"))];
    let stream = Value::Stream(Stream::new(futures_util::stream::iter(parts)));
    let content = response(Ok(Some(stream.clone()))).0.into_body();
    assert_eq!(answer(Ok(Some(stream))).0, 500);
    let mut body = Body::new(content, ());
    run(async {
        let mut next = async || poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let frame = next().await.expect("a frame").expect("the first");
        assert_eq!(frame.into_data().expect("data"), "a");
        assert!(next().await.expect("a frame").is_err());
    });
}

#[test]
fn a_long_reply_is_paid_and_lets_others_have_their_turn() {
    let fixture = fixture(NOTHING);
    let list = Value::list((0..1_000_000).map(Value::Integer));
    let reply = || Ok(Some(Value::map([("body", list.clone()), ("status", Value::Integer(200))])));
    run(async {
        let flow = fixture.flow();
        let answers = super::response(&flow, reply(), |error| panic!("{error}"));
        let (answer, turns) = turns(answers).await;
        assert_eq!(answer.status(), 200);
        assert!(turns > 3, "{turns} turns");
        let mut told = None;
        flow.allow(1000);
        let fail = |error: &Error| told = Some(error.clone());
        let answer = super::response(&flow, reply(), fail).await;
        assert_eq!(answer.status(), 503);
        assert!(told.expect("an error").text().contains("'work_max'"));
    });
}

#[test]
fn compressing_lets_others_have_their_turn() {
    const SIZE: usize = 4 << 20;
    let content = Content::Full(Bytes::from(vec![b'x'; SIZE]));
    let mut body = Body::new(Content::Gzip(Box::new(Gzip::new(content))), ());
    let (mut turns, mut packed) = (0, Vec::new());
    run(poll_fn(|context| {
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(Some(frame)) => {
                    let data = frame.expect("a frame").into_data().expect("data");
                    packed.extend_from_slice(&data);
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => {
                    turns += 1;
                    return Poll::Pending;
                }
            }
        }
    }));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut plain).expect("gzip");
    assert!(plain == vec![b'x'; SIZE]);
    assert!(turns > 16, "{turns} turns");
}
