//! `send` with both ends of a link in this process.

use sinew_core::Message;
use sinew_core::transport::Receiver;
use sinew_core::zerocopy::{FromZeros, IntoBytes};
use sinew_flow::testing::link;
use sinew_flow::{MessageOutput, Value};
use sinew_spec::plan::Delivery;

use crate::bridge::testing::{Graph, Word, try_plan};

/// A `send` with these keys, and the other end of its link.
fn graph(keys: &str) -> (Graph, Box<dyn Receiver>) {
    let (sender, receiver) = link(Word::TYPE, Delivery::Queue, 2);
    let graph = Graph::sends(keys, vec![MessageOutput::new(Word::TYPE, sender)]);
    (graph.expect("a graph"), receiver)
}

fn heard(receiver: &mut dyn Receiver) -> Word {
    let mut word = Word::new_zeroed();
    receiver.receive(word.as_mut_bytes()).expect("no fault");
    word
}

/// A packet with all fields of a `Word`, with this value for `what`.
fn word(what: Value) -> Value {
    let speeds = Value::list([Value::Number(0.5), Value::Integer(1)]);
    Value::map([
        ("sequence", Value::Integer(1)),
        ("speed_m_per_s", speeds),
        ("what", what),
        ("reserved", Value::Integer(0)),
    ])
}

#[test]
fn a_value_arrives_as_a_message() {
    let (graph, mut receiver) =
        graph("value: {sequence: 7, speed_m_per_s: ['{{ packet.x }}', 1], what: 2, reserved: 0}");
    let reply = graph.reply(Value::map([("x", Value::Number(0.25))]));
    assert_eq!(reply, Ok(Some(Value::map([("sent", Value::Bool(true))]))));
    let word = heard(&mut *receiver);
    assert_eq!((word.sequence, word.speed_m_per_s, word.what), (7, [0.25, 1.0], 2));
}

#[test]
fn what_is_no_such_message_never_reaches_the_core() {
    let (graph, mut receiver) = graph("count: ''");
    let cases = [
        (Value::Null, "a Word is a mapping, found nothing"),
        (word(Value::Integer(-1)), "'what' of a Word must be a whole number from 0 to 4294967295"),
        (word(Value::Number(f64::NAN)), "found NaN"),
        (word(Value::text("2; DROP TABLE paths")), "found a text"),
        (Value::map([("what", Value::Integer(1))]), "a Word needs 'sequence'"),
        (Value::map([("speed", Value::Integer(1))]), "a Word has no field 'speed'; it has: seq"),
    ];
    for (packet, expected) in cases {
        let error = graph.reply(packet).expect_err(expected);
        assert!(error.text().contains(expected), "{error}");
        assert_eq!(error.status(), 400);
        let shown = error.shown().expect("who asked may know").field("error");
        assert_eq!(shown, Ok(Value::text(error.text().to_owned())));
    }
    assert_eq!(heard(&mut *receiver).sequence, 0, "nothing came");
}

#[test]
fn a_full_mailbox_and_a_closed_one_are_answered_at_once() {
    let (graph, receiver) = graph("value: '{{ packet }}'");
    let send = || graph.reply(word(Value::Integer(1)));
    assert!(send().is_ok() && send().is_ok(), "it holds two");
    let full = send().expect_err("full");
    assert_eq!((full.status(), full.text()), (503, "the mailbox is full; try again"));
    assert_eq!(full.headers().len(), 1, "retry-after");
    drop(receiver);
    let closed = send().expect_err("closed");
    assert_eq!((closed.status(), closed.text()), (503, "the core has stopped"));
}

#[test]
fn a_field_that_counts_is_filled_in() {
    let value = "value: {speed_m_per_s: [0, 0], what: '{{ packet }}', reserved: 0}";
    let (graph, mut receiver) = graph(&format!("{value}, count: sequence"));
    let mut last = 0;
    for what in 1..=4 {
        assert!(graph.reply(Value::Integer(what)).is_ok());
        let word = heard(&mut *receiver);
        assert_eq!(i64::from(word.what), what);
        assert!(word.sequence > last);
        last = word.sequence;
    }
}

#[test]
fn a_field_that_counts_is_given_once() {
    let (graph, _receiver) = graph("count: sequence");
    let error = graph.reply(word(Value::Integer(1))).expect_err("two sequences");
    assert_eq!(error.status(), 400);
    assert_eq!(error.text(), "'sequence' is filled in by this node; leave it out");
}

#[test]
fn fields_that_do_not_fit_the_mailbox_are_refused_before_the_start() {
    let cases: [(&str, &[&str]); 4] = [
        (
            "value: {sequence: 1, sped_m_per_s: [0, 0], what: 1, reserved: 0}",
            &[
                "no field 'sped_m_per_s'; did you mean 'speed_m_per_s'?",
                "a Word needs 'speed_m_per_s'; add 'speed_m_per_s: ...' to 'value'",
            ],
        ),
        (
            "count: sequence, value: {sequence: 1, speed_m_per_s: [0, 0], what: 1, reserved: 0}",
            &["'sequence' is filled in by 'count: sequence'; remove one of them"],
        ),
        ("count: speed_m_per_s", &["no field 'speed_m_per_s' that could count; known: seq"]),
        ("count: sequnce", &["no field 'sequnce' that could count; did you mean 'sequence'?"]),
    ];
    for (keys, expected) in cases {
        let refusals = Graph::sends(keys, vec![]).err().expect("a refusal");
        assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
        for (refusal, part) in refusals.iter().zip(expected) {
            assert!(refusal.to_string().contains(part), "{refusal}");
        }
    }
}

#[test]
fn without_a_core_it_is_unavailable() {
    let graph = Graph::sends("count: ''", vec![]).expect("a graph");
    let error = graph.reply(Value::Null).expect_err("no core");
    assert_eq!((error.status(), error.text()), (503, "no core runs here"));
}

#[test]
fn the_link_must_be_there() {
    let errors = try_plan(
        "
- {kind: begin, name: begin, domain: api, ports: {out: [{name: send, port: in}]}}
- {kind: send, name: send, domain: api}
",
    );
    assert!(errors.expect_err("no link").contains("to"));
}
