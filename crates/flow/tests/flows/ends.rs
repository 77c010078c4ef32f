//! How flows and their children end: by a reply, a failure, a panic, their deadline, or when they
//! are cancelled.

use std::time::Duration;

use sinew_flow::{Reply, Value};
use tokio::task::{spawn_local, yield_now};
use tokio::time::timeout;

use crate::kinds::{LONG, expect_booms, fixture, run, waiting};

fn reply(nodes: &str) -> Reply {
    expect_booms();
    run(fixture(nodes).open("begin", 0, Value::Integer(1), LONG))
}

#[test]
fn a_panic_is_a_failure_of_its_node() {
    for does in ["panic", "wait_panic"] {
        let error = reply(&format!("- {{kind: act, name: a, does: {does}}}")).expect_err("a panic");
        assert_eq!((error.node().map(|node| &**node), error.status()), (Some("a"), 500));
        assert!(error.text().starts_with("panicked: boom"), "{error}");
    }
}

#[test]
fn a_panic_in_one_branch_leaves_the_others_to_their_end() {
    expect_booms();
    let nodes = "
        - {kind: act, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
        - {kind: act, name: b, does: panic}
        - {kind: act, name: c, does: wait}
    ";
    let fixture = fixture(nodes);
    run(async {
        for _ in 0..3 {
            let error = fixture.open("begin", 0, Value::Integer(1), LONG).await;
            assert_eq!(error.expect_err("b panicked").text(), "panicked: boom");
        }
    });
    assert_eq!((fixture.figures("b").errors(), fixture.figures("c").packets()), (3, 3));
}

#[test]
fn what_a_node_puts_around_a_packet_those_behind_it_find_and_no_others() {
    let nodes = "
        - {kind: act, name: a, ports: {out: [{name: b, port: in}, {name: d, port: in}]}}
        - {kind: act, name: b, does: surround, ports: {out: [{name: w, port: in}]}}
        - {kind: act, name: w, does: wait, ports: {out: [{name: c, port: in}, {name: d, port: in}]}}
        - {kind: act, name: c, does: surround, ports: {out: [{name: d, port: in}]}}
        - {kind: act, name: d, does: around}
    ";
    let list = |count: usize| Value::list(vec![Value::Integer(1); count]);
    let expected = Value::list([Value::list([list(2), list(1)]), list(0)]);
    assert_eq!(reply(nodes), Ok(Some(expected)));
}

#[test]
fn what_has_not_ended_by_its_deadline_is_dropped_and_says_so() {
    let fixture = fixture("- {kind: act, name: a, does: wait}");
    let limit = Duration::from_millis(5);
    let error = run(fixture.open("begin", 0, Value::text("for ever"), limit)).expect_err("late");
    assert_eq!((error.status(), error.node().map(|name| &**name)), (504, Some("a")));
    assert_eq!(error.text(), "the flow has not ended within 5ms, its deadline");
    let figures = fixture.figures("a");
    assert_eq!((waiting(), figures.waiting(), figures.errors(), fixture.flows()), (0, 0, 1, 0));
}

#[test]
fn an_error_port_gets_the_deadline_of_what_waits_and_of_what_is_behind() {
    let waits = "{kind: act, name: a, does: wait, ports: {error: [{name: e, port: in}]}}";
    let behind = "{kind: act, name: s, does: surround, ports: {out: [{name: b, port: in}], \
        error: [{name: e, port: in}]}}\n- {kind: act, name: b, ports: {out: \
        [{name: w, port: in}, {name: v, port: in}]}}\n- {kind: act, name: w, does: wait}\n\
        - {kind: act, name: v, does: wait}";
    for (nodes, named) in [(waits, vec!["a"]), (behind, vec!["w", "v"])] {
        let fixture = fixture(&format!("- {nodes}\n- {{kind: act, name: e, does: reply}}"));
        let limit = Duration::from_millis(5);
        let packet = Value::text("for ever");
        let reply = run(fixture.open("begin", 0, packet, limit)).expect("caught").expect("some");
        let field = |value: &Value, name: &str| match value {
            Value::Map(map) => map.get(name).cloned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(field(&reply, "status"), Some(Value::Integer(504)));
        let said = format!("{:?} {:?}", field(&reply, "node"), field(&reply, "error"));
        assert!(named.iter().all(|name| said.contains(name)), "{said}");
        assert_eq!((waiting(), fixture.flows()), (0, 0));
    }
}

#[test]
fn what_is_done_about_a_deadline_is_bounded_too() {
    let nodes = "
        - {kind: act, name: a, does: wait, ports: {error: [{name: e, port: in}]}}
        - {kind: act, name: e, does: wait}
    ";
    let fixture = fixture(nodes);
    let limit = Duration::from_millis(5);
    let reply = run(fixture.open("begin", 0, Value::text("for ever"), limit));
    let error = reply.expect_err("both wait for ever");
    assert_eq!((error.status(), error.node().map(|name| &**name)), (504, Some("e")));
    assert_eq!((waiting(), fixture.flows()), (0, 0));
}

#[test]
fn a_deadline_is_known_before_the_first_wait() {
    assert_eq!(reply("- {kind: act, name: a, does: deadline}"), Ok(Some(Value::Bool(true))));
}

#[test]
fn a_flow_that_is_dropped_is_gone_from_every_branch() {
    let nodes = "
        - {kind: act, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
        - {kind: act, name: b, does: wait}
        - {kind: act, name: c, does: wait}
    ";
    let fixture = fixture(nodes);
    run(async {
        let mut flow = Box::pin(fixture.open("begin", 0, Value::Null, LONG));
        // One poll, after which the flow still waits.
        assert!(timeout(Duration::ZERO, &mut flow).await.is_err());
        assert_eq!((waiting(), fixture.figures("c").waiting(), fixture.flows()), (2, 1, 1));
        drop(flow);
    });
    assert_eq!((waiting(), fixture.figures("c").waiting(), fixture.flows()), (0, 0, 0));
}

#[test]
fn a_child_sees_what_its_parent_keeps_and_not_the_other_way_round() {
    let nodes = "
        - {kind: act, name: a, does: keep, ports: {out: [{name: b, port: in}, {name: e, port: in}]}}
        - {kind: act, name: b, does: fork, ports: {out: [{name: c, port: in}]}}
        - {kind: act, name: c, ports: {out: [{name: d, port: in}]}}
        - {kind: act, name: d, does: fail}
        - {kind: act, name: e, does: wait, ports: {out: [{name: f, port: in}]}}
        - {kind: act, name: f, does: show}
    ";
    let fixture = fixture(nodes);
    let reply = run(fixture.open("begin", 0, Value::Integer(5), LONG));
    assert_eq!(reply, Ok(Some(Value::Integer(5))), "the child's error is not the parent's");
    assert_eq!((fixture.figures("b").errors(), fixture.figures("d").errors()), (1, 1));
    assert_eq!(fixture.flows(), 0);
}

#[test]
fn too_many_children_are_refused_and_the_others_go_on() {
    let nodes = "
        - {kind: act, name: a, does: fork, ports: {out: [{name: b, port: in}]}}
        - {kind: act, name: b, does: wait}
    ";
    let fixture = fixture(nodes);
    run(async {
        for _ in 0..10_000 {
            let reply = fixture.open("begin", 0, Value::Null, LONG).await;
            assert_eq!(reply, Ok(None));
        }
        let error = fixture.open("begin", 0, Value::Null, LONG).await.expect_err("too many");
        assert_eq!(error.status(), 503);
        // Lets the children run until all of them wait.
        spawn_local(yield_now()).await.expect("it ends");
        assert_eq!((waiting(), fixture.flows()), (10_000, 10_000));
    });
    assert_eq!((waiting(), fixture.flows()), (0, 0), "they end with their worker");
}
