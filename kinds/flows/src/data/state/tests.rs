//! The rules of `state`, its limits, and what is refused.

use std::path::Path;

use sinew_flow::{FlowFixture, Reply, Value};

use crate::testing::{LIMIT, fixture, refusals, run, table, try_plan};

/// A `state` with the keys `state`, and its store with the keys `store`.
fn graph(state: &str, store: &str) -> String {
    format!(
        "- {{kind: state, name: s, store: box, {state}}}\n\
         - {{kind: store, name: box{store}}}\n"
    )
}

fn send(fixture: &FlowFixture, packet: Value) -> Reply {
    run(fixture.open("begin", 0, packet, LIMIT))
}

fn map(entries: &[(&'static str, Value)]) -> Value {
    Value::map(entries.iter().cloned())
}

#[test]
fn a_value_of_any_sort_comes_back_as_it_was() {
    let text = graph("do: set, key: packet.k, value: '{{ packet.v }}'", "");
    let fixture = fixture(&text);
    let inner = map(&[("a", Value::Bytes(b"\xff\0".to_vec().into())), ("b", Value::Number(1.5))]);
    let all = [
        Value::Null,
        Value::Bool(true),
        Value::Integer(i64::MIN),
        Value::text("ä"),
        Value::list([inner, Value::list([])]),
    ];
    for value in all {
        let packet = map(&[("k", Value::Integer(7)), ("v", value.clone())]);
        assert_eq!(send(&fixture, packet), Ok(Some(value)));
    }
}

#[test]
fn a_key_is_a_text_or_a_whole_number() {
    let fixture = fixture(&graph("do: increment, key: packet", ""));
    let keys = [(Value::Integer(7), 1), (Value::text("7"), 2), (Value::text(""), 1)];
    for (key, count) in keys {
        assert_eq!(send(&fixture, key), Ok(Some(Value::Integer(count))));
    }
    let bad = [(Value::Null, 400), (Value::list([]), 400), (Value::text("x".repeat(1025)), 413)];
    for (key, status) in bad {
        let error = send(&fixture, key).expect_err("no key");
        assert!(error.status() == status && error.shown().is_some(), "{error}");
    }
}

#[test]
fn what_is_not_there_or_not_as_expected_goes_another_way() {
    let ports = "ports: {otherwise: [{name: no, port: in}]}";
    let other = "- {kind: snippet, name: no, language: cel, code: \"'no ' + packet\"}\n";
    for operation in ["do: get", "do: delete", "do: replace, value: 1, expected: 5"] {
        let text = graph(&format!("{operation}, key: packet, {ports}"), "") + other;
        assert_eq!(send(&fixture(&text), Value::text("x")), Ok(Some(Value::text("no x"))));
    }
    let replace = graph("do: replace, value: 1, expected: 5, key: packet", "");
    assert_eq!(send(&fixture(&replace), Value::text("x")).expect_err("differs").status(), 409);
    let get = graph("do: get, key: packet, into: found", "");
    assert_eq!(send(&fixture(&get), Value::text("x")), Ok(Some(Value::text("x"))));
}

#[test]
fn limits_of_the_store_are_the_senders_to_see() {
    let set = "do: set, key: packet, value: '{{ packet }}'";
    let small = fixture(&graph(set, ", entries_max: 1, value_max: 1KiB"));
    assert_eq!(send(&small, Value::text("abc")), Ok(Some(Value::text("abc"))));
    let long = graph("do: set, key: \"'abc'\", value: '{{ packet }}'", ", value_max: 1KiB");
    let long = send(&fixture(&long), Value::text("x".repeat(1024)));
    assert_eq!(long.expect_err("with its head it is longer").status(), 413);
    assert_eq!(send(&small, Value::text("x")).expect_err("full").status(), 507);
    let figures = "- {kind: state, name: f, store: box, do: figures}\n".to_owned()
        + "- {kind: store, name: box, bytes_max: 2KiB}\n";
    let Ok(Some(Value::Map(figures))) = send(&fixture(&figures), Value::Null) else {
        panic!("a mapping")
    };
    assert!(
        figures
            .keys()
            .eq(["entries", "bytes", "evicted", "expired", "refused", "hits", "misses", "unkept"])
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_write() {
    let rows = [
        ("do: get", "needs 'key'"),
        ("do: set, key: packet", "needs 'value'"),
        ("do: get, key: packet, value: 1", "'value' has no meaning with 'do: get'"),
        ("do: get, key: packet, expire: 1s", "'expire' has no meaning"),
        ("do: set, key: packet, value: 1, expected: 1", "'expected' has no meaning"),
        ("do: figures, key: packet", "'key' has no meaning"),
        ("do: get, key: '5.5'", "a key is a text or a whole number"),
        ("do: get, key: 'packet.'", ""),
        ("do: increment, key: packet, by: 'x +'", ""),
    ];
    for (keys, said) in rows {
        let refusals = refusals(&graph(keys, ""));
        assert!(refusals.len() == 1 && refusals[0].message.contains(said), "{refusals:?}");
    }
    let slip = refusals(&graph("key: packet", "es"));
    assert!(slip[0].message == "there is no store 'box' in this domain", "{slip:?}");
    assert_eq!(slip[0].help, "did you mean 'boxes'?");
    let none = refusals("- {kind: state, name: s, store: box, key: packet}");
    assert_eq!(none[0].help, "add '- {kind: store, name: box}'");
}

#[test]
fn a_store_serves_its_own_domain_and_has_a_file_of_its_own() {
    let made = |text: &str| {
        let plan = try_plan(text).expect("a graph");
        let made = FlowFixture::new(&plan, &table(), Path::new("."));
        made.err().map(|refusals| refusals[0].message.clone()).unwrap_or_default()
    };
    let apart = "
        name: t
        domains: {here: {}, there: {}}
        nodes:
          - {kind: begin, name: b, domain: here, ports: {out: [{name: s, port: in}]}}
          - {kind: state, name: s, domain: here, store: box, key: packet}
          - {kind: store, name: box, domain: there}
    ";
    assert_eq!(made(apart), "there is no store 'box' in this domain");
    let same = "
        - {kind: store, name: a, path: x.store}
        - {kind: store, name: b, path: x.store}
        - {kind: nop, name: n}
        - {kind: begin, name: go, ports: {out: [{name: n, port: in}]}}
    ";
    assert!(made(same).starts_with("another store has the same file"));
}
