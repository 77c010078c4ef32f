//! Elements and their replies, what holds them back, and what ends them.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use sinew_flow::{FlowFixture, Reply, Stream as Coming};
use tokio::sync::mpsc;
use tokio::task::yield_now;

use crate::testing::{LIMIT, fixture, refusals, run};

use super::*;

/// The node `s` with these parameters and ports, before a node that doubles numbers from 1, gives
/// nothing for 0, and fails for negative numbers.
fn graph(parameters: &str, ports: &str, more: &str) -> FlowFixture {
    let parameters = parameters.replace(", ", "\n          ");
    fixture(&format!(
        "
        - kind: stream
          name: s
          ports: {{out: [{{name: double, port: in}}], {ports}}}
          {parameters}
        - kind: snippet
          name: double
          language: cel
          code: 'packet > 0 ? packet * 2 : (packet == 0 ? null : packet.none)'
        {more}
        "
    ))
}

fn parts(texts: &[&str]) -> Value {
    let parts: Vec<_> =
        texts.iter().map(|text| Ok(Bytes::copy_from_slice(text.as_bytes()))).collect();
    Value::Stream(Coming::new(stream::iter(parts)))
}

/// All of a reply that is a stream, and the status of the error that it ends with.
async fn all(reply: Reply) -> (String, Option<u16>) {
    let Ok(Some(Value::Stream(stream))) = reply else { panic!("no stream: {reply:?}") };
    let (mut parts, mut text) = (stream.take().expect("nobody else reads it"), String::new());
    while let Some(part) = parts.next().await {
        match part {
            Ok(part) => text += std::str::from_utf8(&part).expect("a text"),
            Err(error) => return (text, Some(error.status())),
        }
    }
    (text, None)
}

fn read(parameters: &str, packet: Value) -> (String, Option<u16>) {
    let fixture = graph(parameters, "", "");
    run(async { all(fixture.open("begin", 0, packet, LIMIT).await).await })
}

#[test]
fn replies_are_the_elements_of_the_new_stream() {
    let ndjson = "framing: ndjson";
    assert_eq!(read(ndjson, parts(&["1\n2", "0\n0\n3\n"])), ("2\n40\n6\n".into(), None));
    assert_eq!(read(ndjson, Value::text("1\n2")), ("2\n4\n".into(), None));
    assert_eq!(read(ndjson, Value::Null), (String::new(), None));
    let many = "framing: ndjson, concurrency: 8";
    assert_eq!(read(many, parts(&["1\n2\n3\n", "4\n"])), ("2\n4\n6\n8\n".into(), None));
    let events = "framing: ndjson, as: sse";
    assert_eq!(read(events, parts(&["1\n"])), ("data: 2\n\n".into(), None));
    let packet = Value::map([("body", parts(&["4"]))]);
    assert_eq!(read("framing: ndjson, of: packet.body", packet), ("8\n".into(), None));
}

#[test]
fn an_element_that_fails_ends_the_stream_after_those_before() {
    let ndjson = "framing: ndjson";
    assert_eq!(read(ndjson, parts(&["1\n-1\n3\n"])), ("2\n".into(), Some(500)));
    assert_eq!(read(ndjson, parts(&["1\n{\n3\n"])), ("2\n".into(), Some(400)));
    let long = "line_size_max: 1KiB";
    assert_eq!(read(long, Value::text("x".repeat(1025))).1, Some(413));
    let broken = stream::iter([Ok("1\n".into()), Err(Error::new("gone").with_status(400))]);
    let broken = Value::Stream(Coming::new(broken));
    assert_eq!(read(ndjson, broken), ("2\n".into(), Some(400)));
}

#[test]
fn an_element_that_fails_may_be_rejected() {
    let rejects = ("rejected: [{name: n, port: in}]", "- {kind: nop, name: n}");
    let graph = graph("framing: ndjson", rejects.0, rejects.1);
    let (text, error) =
        run(async { all(graph.open("begin", 0, parts(&["1\n-1\n{\n3\n"]), LIMIT).await).await });
    assert_eq!((&*text, error), ("2\n6\n", None));
    let counts = "framing: ndjson, as: counts";
    let counted = |texts: &[&str], (ports, more)| {
        let fixture = self::graph(counts, ports, more);
        run(fixture.open("begin", 0, parts(texts), LIMIT))
    };
    let reply = counted(&["1\n-1\n{\n3\n"], rejects).expect("counts").expect("counts");
    assert_eq!(reply.to_json(), Ok(json!({"read": 4, "done": 2, "rejected": 2})));
    let error = counted(&["1\n", "2\n{\n"], ("", "")).expect_err("malformed");
    assert!(error.status() == 400 && error.text().contains("line 3"), "{error}");
}

/// A stream of lines that counts how many were asked for.
fn counted(asked: &Arc<AtomicUsize>) -> Value {
    let asked = Arc::clone(asked);
    let parts = stream::repeat_with(move || {
        asked.fetch_add(1, Ordering::Relaxed);
        // As long as a part.
        Ok(Bytes::from([&b"x".repeat(16 << 10)[..], b"\n"].concat()))
    });
    Value::Stream(Coming::new(parts))
}

#[test]
fn nothing_is_read_before_there_is_room() {
    let fixture = fixture("- {kind: stream, name: s, as: lines}");
    run(async {
        let asked = Arc::new(AtomicUsize::new(0));
        let reply = fixture.open("begin", 0, counted(&asked), LIMIT).await;
        let Ok(Some(Value::Stream(stream))) = reply else { panic!("no stream: {reply:?}") };
        let mut parts = stream.take().expect("nobody else reads it");
        for taken in 1..20 {
            parts.next().await.expect("a part").expect("no error");
            for _ in 0..100 {
                yield_now().await;
            }
            let asked = asked.load(Ordering::Relaxed);
            assert!(asked <= taken + 1, "{asked} were read when {taken} were taken");
        }
        drop(parts);
        while fixture.flows() > 0 {
            yield_now().await;
        }
    });
}

#[test]
fn who_goes_away_cancels_what_is_under_way() {
    let fixture = fixture(
        "
        - {kind: stream, name: s, framing: ndjson, ports: {out: [{name: long, port: in}]}}
        - {kind: sleep, name: long, duration: 1h}
        ",
    );
    run(async {
        let reply = fixture.open("begin", 0, parts(&["1\n"]), LIMIT).await;
        while fixture.figures("long").waiting() == 0 {
            yield_now().await;
        }
        drop(reply);
        while fixture.figures("long").waiting() > 0 {
            yield_now().await;
        }
    });
}

#[test]
fn an_element_has_time_and_work_of_its_own() {
    let late = fixture(
        "
        - {kind: stream, name: s, deadline: 5ms, ports: {out: [{name: long, port: in}]}}
        - {kind: sleep, name: long, duration: 1h}
        ",
    );
    let ended = run(async { all(late.open("begin", 0, parts(&["1\n"]), LIMIT).await).await });
    assert_eq!(ended, (String::new(), Some(504)));
    let hard = fixture(
        "
        - kind: stream
          name: s
          framing: ndjson
          work_max: 3000
          ports: {out: [{name: hard, port: in}]}
        - kind: snippet
          name: hard
          language: lua
          code: 'for i = 1, 2000 * packet do end return packet'
        ",
    );
    let lines = "1\n".repeat(20) + "100\n";
    let ended = run(async { all(hard.open("begin", 0, parts(&[&lines]), LIMIT).await).await });
    assert_eq!(ended, ("1\n".repeat(20), Some(503)), "each of the first has enough");
}

fn windows(parameters: &str, packet: impl FnOnce() -> Value) -> String {
    let fixture = fixture(&format!("- {{kind: stream, name: s, framing: ndjson, {parameters}}}"));
    let (text, error) = run(async { all(fixture.open("begin", 0, packet(), LIMIT).await).await });
    assert_eq!(error, None);
    text
}

#[test]
fn elements_go_together_by_count_and_time() {
    let five = || parts(&["1\n2\n3", "\n4\n5\n"]);
    assert_eq!(windows("window_count: 2", five), "[1,2]\n[3,4]\n[5]\n");
    assert_eq!(windows("window_time: 1h", five), "[1,2,3,4,5]\n");
    let fixture =
        fixture("- {kind: stream, name: s, framing: ndjson, window_count: 9, window_time: 5ms}");
    run(async {
        let (sender, mut receiver) = mpsc::channel(1);
        let coming = stream::poll_fn(move |context| receiver.poll_recv(context));
        let packet = Value::Stream(Coming::new(coming));
        let reply = fixture.open("begin", 0, packet, LIMIT).await;
        let Ok(Some(Value::Stream(stream))) = reply else { panic!("no stream: {reply:?}") };
        let mut parts = stream.take().expect("nobody else reads it");
        for number in ["1\n", "2\n"] {
            sender.send(Ok(Bytes::from(number))).await.expect("it reads");
            let part = parts.next().await.expect("a part").expect("no error");
            assert_eq!(part, format!("[{}]\n", number.trim()), "the time is over");
        }
    });
}

#[test]
fn events_beat_while_nothing_comes_and_end_when_the_worker_stops() {
    let fixture = fixture("- {kind: stream, name: s, framing: ndjson, as: sse, heartbeat: 2ms}");
    run(async {
        let never = Value::Stream(Coming::new(stream::pending()));
        let reply = fixture.open("begin", 0, never, LIMIT).await;
        let Ok(Some(Value::Stream(stream))) = reply else { panic!("no stream: {reply:?}") };
        assert_eq!(stream.content_type(), Some("text/event-stream"));
        let mut parts = stream.take().expect("nobody else reads it");
        for _ in 0..3 {
            assert_eq!(parts.next().await.expect("a part").expect("no error"), ":\n\n");
        }
        fixture.retire();
        while let Some(part) = parts.next().await {
            assert_eq!(part.expect("no error"), ":\n\n");
        }
    });
}

#[test]
fn fast_elements_let_others_have_the_worker() {
    let fixture = fixture("- {kind: stream, name: s, framing: ndjson, as: counts}");
    let text = "1\n".repeat(100_000);
    let turns = Rc::new(Cell::new(0));
    let seen = Rc::clone(&turns);
    let limits = sinew_flow::FlowLimits { deadline: LIMIT, work: u64::MAX };
    let reply = run(async {
        let other = tokio::task::spawn_local(async move {
            loop {
                seen.set(seen.get() + 1);
                yield_now().await;
            }
        });
        let reply = fixture.open("begin", 0, Value::text(text), limits).await;
        other.abort();
        reply
    });
    assert!(turns.get() > 3, "{} turns", turns.get());
    let counts = reply.expect("counts").expect("counts");
    assert_eq!(counts.field("read"), Ok(Value::Integer(100_000)));
}

#[test]
fn what_is_no_stream_is_refused_and_one_passes_once() {
    let fixture = graph("framing: ndjson", "", "");
    let error = run(fixture.open("begin", 0, Value::Integer(1), LIMIT)).expect_err("no stream");
    assert!(error.text().contains("of: packet.body"), "{error}");
    let packet = parts(&["1\n"]);
    let twice = run(async {
        let first = fixture.open("begin", 0, packet.clone(), LIMIT).await;
        assert!(first.is_ok());
        fixture.open("begin", 0, packet, LIMIT).await
    });
    assert!(twice.expect_err("read before").text().contains("passes once"));
    let refused = refusals("- {kind: stream, name: s, framing: csv, separator: ab}");
    assert!(refused[0].message.contains("separator"), "{refused:?}");
}
