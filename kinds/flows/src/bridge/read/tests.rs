//! `read` with both ends of a link in this process.

use std::time::Duration;

use sinew_core::Message;
use sinew_core::transport::Sender;
use sinew_core::zerocopy::IntoBytes;
use sinew_flow::testing::link;
use sinew_flow::{MessageInput, Reply, Value};
use sinew_spec::plan::Delivery;

use crate::bridge::testing::{Graph, Word, try_plan};
use crate::testing::run;

/// A `Word` with this number.
fn word(sequence: u64) -> Word {
    Word { sequence, speed_m_per_s: [0.5, -1.0], what: 3, reserved: 0 }
}

fn say(sender: &mut dyn Sender, sequence: u64) {
    sender.send(word(sequence).as_bytes()).expect("no fault");
}

/// A `read` with these keys, and a link to it.
fn graph(keys: &str, delivery: Delivery) -> (Graph, Box<dyn Sender>) {
    let (sender, receiver) = link(Word::TYPE, delivery, 2);
    let input = MessageInput::new(Word::TYPE, receiver);
    (Graph::reads(keys, Some(input)).expect("a graph"), sender)
}

fn status(reply: Reply) -> (u16, String) {
    let error = reply.expect_err("no message to be shown");
    (error.status(), error.text().to_owned())
}

#[test]
fn the_newest_message_is_the_packet() {
    for delivery in [Delivery::Latest, Delivery::Broadcast, Delivery::Queue] {
        let (graph, mut sender) = graph("stale_after: 0s", delivery);
        say(&mut *sender, 1);
        say(&mut *sender, 2);
        for _ in 0..2 {
            let reply = graph.reply(Value::text("whatever")).expect("a message").expect("it");
            assert_eq!(reply.field("sequence"), Ok(Value::Integer(2)), "{delivery:?}");
            let speeds = Value::list([Value::Number(0.5), Value::Number(-1.0)]);
            assert_eq!(reply.field("speed_m_per_s"), Ok(speeds));
        }
    }
}

#[test]
fn before_the_first_message_the_core_is_unavailable() {
    let (graph, _sender) = graph("stale_after: 0s", Delivery::Latest);
    let reply = graph.reply(Value::Null);
    let shown = reply.as_ref().expect_err("nothing").shown().cloned();
    assert_eq!(
        shown,
        Some(Value::map([("error", Value::text("the core has sent no message yet"))]))
    );
    assert_eq!(status(reply).0, 503);
}

#[test]
fn a_core_that_says_nothing_more_is_unavailable() {
    let (graph, mut sender) = graph("stale_after: 5ms", Delivery::Latest);
    say(&mut *sender, 1);
    let (code, text) = status(graph.reply(Value::Null));
    assert_eq!((code, &*text), (503, "the core has sent nothing for 5ms"));
}

#[test]
fn a_core_that_has_stopped_is_known_at_once() {
    let (graph, mut sender) = graph("stale_after: 3600s", Delivery::Latest);
    say(&mut *sender, 1);
    drop(sender);
    assert_eq!(status(graph.reply(Value::Null)), (503, "the core has stopped".into()));
}

#[test]
fn a_message_of_unknown_age_is_shown_once_another_one_comes() {
    let (graph, mut sender) = graph("stale_after: 3600s", Delivery::Latest);
    say(&mut *sender, 1);
    let reply = run(async {
        let says = tokio::task::spawn_local(async move {
            for sequence in 2.. {
                tokio::time::sleep(super::PAUSE_MIN).await;
                say(&mut *sender, sequence);
            }
        });
        let reply = graph.send(Value::Null).await;
        says.abort();
        reply
    });
    let reply = reply.expect("a message").expect("it");
    assert_ne!(reply.field("sequence"), Ok(Value::Integer(1)));
}

#[test]
fn who_waits_for_a_silent_core_looks_ever_less_often() {
    let (mut waited, mut looks) = (Duration::ZERO, 0);
    while waited < Duration::from_secs(1) {
        let pause = super::pause(waited);
        assert!(pause <= (waited / 8).max(super::PAUSE_MIN) && pause <= super::PAUSE_MAX);
        waited += pause;
        looks += 1;
    }
    assert!(looks < 80, "{looks} looks in a second");
}

#[test]
fn a_time_that_nobody_can_keep_is_refused() {
    let refusals = Graph::reads("stale_after: 1ms", None).err().expect("too short");
    assert!(refusals.len() == 1 && refusals[0].message.contains("too short"), "{refusals:?}");
}

#[test]
fn without_a_core_it_is_unavailable() {
    let reply = Graph::reads("stale_after: 1s", None).expect("a graph").reply(Value::Null);
    assert_eq!(status(reply), (503, "no core runs here".into()));
}

#[test]
fn the_link_must_be_there_once_and_carry_messages() {
    let read = "
- {kind: begin, name: begin, domain: api, ports: {out: [{name: read, port: in}]}}
- {kind: read, name: read, domain: api}
";
    let cases = [
        ("", "from"),
        (
            "
- {kind: core, name: a, domain: core, ports: {says: [{name: read, port: from}]}}
- {kind: core, name: b, domain: core, ports: {says: [{name: read, port: from}]}}
",
            "from",
        ),
        (
            "
- {kind: begin, name: other, domain: api, ports: {out: [{name: read, port: from}]}}
",
            "packet",
        ),
    ];
    for (core, part) in cases {
        let errors = try_plan(&format!("{read}{core}")).expect_err("no such graph");
        assert!(errors.contains(part), "{part}:\n{errors}");
    }
}
