//! Suites: what passes, what fails, and what a failure says.

use std::path::Path;

use super::*;
use crate::testing::{plan, refusals, table};

const LINKS: &str = "ports: {out: [{name: nop, port: in}]}";

/// The outcome of a test with these keys, whose packet comes back as it is.
fn outcome(keys: &str) -> TestOutcome {
    run(&format!("- {{kind: test, name: t, {LINKS}, {keys}}}\n- {{kind: nop, name: nop}}\n"))
}

/// The outcome of the test `t` of a graph.
fn run(graph: &str) -> TestOutcome {
    suite(graph).run("t").expect("a test of this name")
}

fn suite(graph: &str) -> Suite {
    let made = Suite::new(&plan(graph), &table(), Path::new("."));
    made.unwrap_or_else(|refusals| panic!("{refusals:?}"))
}

#[test]
fn a_reply_as_expected_passes() {
    for keys in [
        "packet: {a: [1, x]}, expect: 'reply.a == [1, \"x\"]'",
        "packet: pong, expect: reply == 'pong' && packet == reply && error == null",
        "packet: '{{ 1 + 1 }}', expect: reply == 2",
        "expect: 'reply == {}'",
        "packet: 1",
    ] {
        let outcome = outcome(keys);
        assert!(outcome.passed, "{keys}: {outcome}");
        assert_eq!(outcome.to_string(), "ok      t");
    }
}

#[test]
fn another_reply_says_what_was_expected_and_what_came() {
    let outcome = outcome("packet: {n: 1}, expect: reply.n == 2");
    assert_eq!(outcome.to_string(), "FAILED  t\n  expected: reply.n == 2\n  came: {\"n\":1}");
}

#[test]
fn what_cannot_be_said_of_the_reply_fails_and_says_why() {
    for (expect, but) in [
        ("reply.m == 2", "reply.m"),
        ("reply.n", "not true or false"),
        ("error.status == 404", "error"),
    ] {
        let outcome = outcome(&format!("packet: {{n: 1}}, expect: {expect}"));
        assert!(!outcome.passed);
        assert!(outcome.reason.as_deref().is_some_and(|reason| reason.contains(but)), "{outcome}");
    }
}

/// A graph whose node fails.
fn failing(keys: &str) -> String {
    format!(
        "
        - {{kind: test, name: t, ports: {{out: [{{name: no, port: in}}]}}, packet: 5, {keys}}}
        - {{kind: assert, name: no, expect: packet == 4}}
        "
    )
}

#[test]
fn an_error_passes_only_where_it_is_looked_at() {
    let expected = run(&failing("expect: error.status == 500 && error.node == 'no'"));
    assert!(expected.passed, "{expected}");
    for careless in ["expect: reply == null", "deadline: 1s"] {
        let outcome = run(&failing(careless));
        assert!(!outcome.passed);
        let text = outcome.to_string();
        assert!(text.contains("but: the reply is an error"), "{text}");
        assert!(text.contains("expected packet == 4, found packet 5"), "{text}");
    }
}

#[test]
fn tests_stand_in_the_order_of_the_spec_and_each_has_a_flow_of_its_own() {
    let graph = format!(
        "
        - {{kind: test, name: b, {LINKS}, packet: '{{{{ flow.id }}}}'}}
        - {{kind: nop, name: nop}}
        - {{kind: test, name: a, {LINKS}, packet: '{{{{ flow.id }}}}'}}
        "
    );
    let suite = suite(&graph);
    assert_eq!(suite.names().collect::<Vec<_>>(), ["b", "a"]);
    let id = |name| suite.run(name).expect("a test").reply.expect("no error").expect("a reply");
    assert_ne!(id("b"), id("a"));
    assert!(suite.run("c").is_none());
}

#[test]
fn a_graph_without_tests_has_none() {
    let graph = format!("- {{kind: begin, name: begin, {LINKS}}}\n- {{kind: nop, name: nop}}\n");
    assert_eq!(suite(&graph).names().count(), 0);
}

#[test]
fn all_that_is_wrong_with_a_test_is_refused_at_once() {
    let graph = format!(
        "- {{kind: test, name: t, {LINKS}, packet: '{{{{ ( }}}}', expect: 'reply =='}}\n\
         - {{kind: nop, name: nop}}\n"
    );
    let made = Suite::new(&plan(&graph), &table(), Path::new("."));
    assert_eq!(made.err().map(|refusals| refusals.len()), Some(2));
    let unknown = format!(
        "- {{kind: begin, name: begin, {LINKS}}}\n- {{kind: assert, name: nop, expect: reply}}\n"
    );
    assert_eq!(refusals(&unknown).len(), 1, "an assert has no reply");
}

const FIND: &str = "ports: {out: [{name: find, port: in}]}";

/// A graph that asks another server. There is none, so only a mock answers.
fn asking(keys: &str) -> String {
    format!(
        "
        - {{kind: test, name: t, {FIND}, packet: {{id: 7}}, {keys}}}
        - {{kind: test, name: bare, {FIND}, packet: {{id: 7}},
           expect: error.node == 'find' && error.error != 'no answer'}}
        - {{kind: http, name: find, method: GET, url: 'http://127.0.0.1:9/{{{{ packet.id }}}}',
           ports: {{out: [{{name: greet, port: in}}]}}}}
        - {{kind: snippet, name: greet, language: text, code: 'Hello, {{{{ packet.body.name }}}}'}}
        "
    )
}

#[test]
fn a_mock_answers_for_a_node_in_its_test_alone() {
    for keys in [
        "mocks: {find: {answer: {body: {name: 'Ada {{ packet.id }}'}}}}, \
         expect: \"reply == 'Hello, Ada 7'\"",
        "mocks: {find: {answer: {body: {name: x}}}, greet: {answer: y}}, expect: reply == 'y'",
        "mocks: {find: {error: {status: 502, error: no answer}}}, \
         expect: error.status == 502 && error.node == 'find' && error.error == 'no answer'",
        "mocks: {find: {error: {}}}, expect: error.status == 500 && error.error == 'mocked'",
        "mocks: {find: {error: {status: 409, body: {of: '{{ packet.id }}'}}}}, \
         expect: error.status == 409 && error.body.of == 7",
        "mocks: {find: {answer: '{{ packet.nothing }}'}}, expect: error.node == 'find'",
    ] {
        let suite = suite(&asking(keys));
        let mocked = suite.run("t").expect("a test of this name");
        assert!(mocked.passed, "{keys}: {mocked}");
        let bare = suite.run("bare").expect("a test of this name");
        assert!(bare.passed, "beside {keys}: {bare}");
    }
}

#[test]
fn a_test_says_which_time_it_is() {
    let now = "now: 2026-01-31T12:00:00Z, packet: '{{ now() }}'";
    let outcome = outcome(&format!("{now}, expect: reply == 1769860800000"));
    assert!(outcome.passed, "{outcome}");
}

#[test]
fn a_mock_that_cannot_be_meant_is_refused_where_it_stands() {
    for (keys, expected, help) in [
        ("mocks: 5", "mocks are a mapping", "NODE: {answer"),
        ("mocks: {fnd: {answer: 1}}", "no flow node 'fnd'", "did you mean 'find'?"),
        ("mocks: {find: 5}", "this is not a mock", "NODE: {answer"),
        ("mocks: {find: {answer: 1, error: {}}}", "this is not a mock", "NODE: {answer"),
        ("mocks: {find: {error: 5}}", "an error is a mapping", "NODE: {answer"),
        ("mocks: {find: {error: {state: 500}}}", "unknown key 'state'", "status"),
        ("mocks: {find: {error: {status: 200}}}", "'200' is not a status", "400 to 599"),
        ("mocks: {find: {answer: '{{ packet.'}}", "", ""),
        ("now: yesterday", "'yesterday' is not a time", "2026-01-31T12:00:00Z"),
    ] {
        let made = Suite::new(&plan(&asking(keys)), &table(), Path::new("."));
        let found = made.err().unwrap_or_else(|| panic!("{keys}"));
        assert_eq!(found.len(), 1, "{keys}: {found:?}");
        assert!(found[0].message.contains(expected), "{keys}: {found:?}");
        assert!(found[0].help.contains(help), "{keys}: {found:?}");
    }
}
