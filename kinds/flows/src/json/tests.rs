//! What JSON is written, and what it costs.

use std::pin::pin;

use bytes::Bytes;
use sinew_flow::Stream;

use super::*;
use crate::testing::{fixture, run};

const NOTHING: &str = "- {kind: nop, name: a}";

fn written(value: &Value) -> String {
    let flow = fixture(NOTHING).flow();
    let text = run(flow.in_time(pin!(write(&flow, value)))).expect("JSON");
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn every_value_is_written_as_its_tree_would_be() {
    let long = "\"ä\\\n☃".repeat(PIECE_LEN);
    let all = Value::list([
        Value::Null,
        Value::Bool(true),
        Value::Integer(i64::MIN),
        Value::Number(1.5e300),
        Value::Number(2.0),
        Value::Number(f64::NAN),
        Value::text("a \"b\" \u{1} ä"),
        Value::text(long.clone()),
        Value::text("x".repeat(2 * PIECE_LEN)),
        Value::Bytes(Bytes::from_static(b"a\xffb")),
        Value::list([]),
        Value::Map(Arc::default()),
        Value::map([("b\"", Value::list([Value::Null])), ("a", Value::map([("", Value::Null)]))]),
        Value::Stream(Stream::new(futures_util::stream::empty())),
        Value::map([(long, Value::Integer(1))]),
    ]);
    let Value::List(each) = &all else { panic!("a list") };
    // Alone, most values are written without a wait; together they are not.
    for value in each.iter().chain([&all, &Value::text("")]) {
        assert_eq!(written(value), value.to_json().expect("a tree").to_string());
    }
    let deep = (0..10_000).fold(Value::Null, |value, _| Value::list([value]));
    assert_eq!(written(&deep).len(), 20_004);
    // Not dropped: to drop the nested values needs more stack than there is.
    std::mem::forget(deep);
}

#[test]
fn what_is_written_is_paid_by_its_length() {
    let fixture = fixture(NOTHING);
    let long = Value::list((0..100_000).map(|_| Value::Integer(7)));
    for (value, len) in [(long, 200_001), (Value::text("x".repeat(1 << 20)), (1 << 20) + 2)] {
        let flow = fixture.flow();
        flow.allow(1 << 20);
        let text = run(flow.in_time(pin!(write(&flow, &value)))).expect("enough");
        assert_eq!(text.len(), len);
        assert_eq!((1 << 20) - flow.work_left(), (len / BYTES_PER_UNIT) as u64);
        flow.allow((len / BYTES_PER_UNIT) as u64 - 1);
        let error = run(flow.in_time(pin!(write(&flow, &value)))).expect_err("too little");
        assert_eq!((error.status(), flow.work_left()), (503, 0), "{error}");
    }
}
