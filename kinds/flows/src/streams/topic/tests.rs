//! Which subscribers get a message, who waits for whom, and what is lost.

use futures_util::FutureExt;
use futures_util::StreamExt;
use sinew_flow::{BytesToCome, FlowFixture, FlowLimits};
use tokio::task::yield_now;

use super::*;
use crate::testing::{LIMIT, fixture, refusals, run};

fn graph(topic: &str, subscribe: &str) -> FlowFixture {
    fixture(&format!(
        "
        - {{kind: begin, name: begin, ports: {{out: [{{name: say, port: in}}]}}}}
        - {{kind: begin, name: listen, ports: {{out: [{{name: hear, port: in}}]}}}}
        - {{kind: topic, name: news, {topic}}}
        - {{kind: publish, name: say, topic: news}}
        - {{kind: subscribe, name: hear, topic: news, {subscribe}}}
        "
    ))
}

async fn listen(graph: &FlowFixture) -> BytesToCome {
    let reply = graph.open("listen", 0, Value::Null, LIMIT).await;
    let Ok(Some(Value::Stream(stream))) = reply else { panic!("no stream: {reply:?}") };
    stream.take().expect("nobody else reads it")
}

async fn say(graph: &FlowFixture, value: impl Into<serde_json::Value>) -> Result<(), Error> {
    graph.open("begin", 0, Value::from(value.into()), LIMIT).await.map(drop)
}

async fn next(stream: &mut BytesToCome) -> String {
    let part = stream.next().await.expect("a part").expect("no error");
    String::from_utf8(part.to_vec()).expect("a text")
}

#[test]
fn all_who_subscribe_get_what_is_published_from_then_on() {
    let graph = graph("capacity: 4", "as: sse");
    run(async {
        say(&graph, "nobody hears it").await.expect("published");
        let (mut first, mut second) = (listen(&graph).await, listen(&graph).await);
        say(&graph, serde_json::json!({"event": "a", "data": 1})).await.expect("published");
        for stream in [&mut first, &mut second] {
            assert_eq!(next(stream).await, "event: a\ndata: 1\n\n");
        }
        drop(first);
        for number in 0..20 {
            say(&graph, number).await.expect("who went away keeps nobody waiting");
            assert_eq!(next(&mut second).await, format!("data: {number}\n\n"));
        }
        graph.retire();
        assert!(second.next().await.is_none(), "it ends with its graph");
    });
}

#[test]
fn who_publishes_waits_for_the_slowest() {
    let graph = graph("capacity: 2", "");
    run(async {
        let (mut fast, mut slow) = (listen(&graph).await, listen(&graph).await);
        let mut published = 0;
        let mut waits = loop {
            let mut saying = Box::pin(say(&graph, published));
            let mut done = None;
            for _ in 0..50 {
                done = (&mut saying).now_or_never();
                if done.is_some() {
                    break;
                }
                yield_now().await;
            }
            match done {
                Some(said) => said.expect("published"),
                None => break saying,
            }
            assert_eq!(next(&mut fast).await, format!("{published}\n"));
            published += 1;
            assert!(published < 10, "nobody reads them");
        };
        assert!(published >= 2, "there is room for so many");
        assert_eq!(next(&mut slow).await, "0\n");
        // Now there is room for the waiting message.
        waits.as_mut().await.expect("published");
        drop(waits);
        let expected: String = (1..=published).map(|number| format!("{number}\n")).collect();
        let mut rest = String::new();
        while rest.len() < expected.len() {
            // Messages that are ready together come in one part.
            rest += &next(&mut slow).await;
        }
        assert_eq!(rest, expected, "nothing is lost");
    });
}

#[test]
fn the_slowest_loses_the_oldest_and_it_is_counted() {
    let graph = graph("capacity: 2, when_full: drop", "");
    run(async {
        let mut slow = listen(&graph).await;
        for number in 0..10 {
            say(&graph, number).await.expect("nobody waits");
        }
        let mut text = String::new();
        while !text.ends_with("9\n") {
            text += &next(&mut slow).await;
        }
        assert!(text.ends_with("8\n9\n") && text.lines().count() < 10, "{text}");
    });
}

#[test]
fn what_is_too_much_is_refused() {
    let graph = graph("message_size_max: 1KiB, subscribers_max: 1", "");
    run(async {
        let long = say(&graph, "x".repeat(1024)).await.expect_err("too long");
        assert_eq!(long.status(), 413);
        let one = listen(&graph).await;
        let open = || graph.open("listen", 0, Value::Null, FlowLimits::from(LIMIT));
        assert_eq!(open().await.expect_err("too many").status(), 503);
        drop(one);
        while graph.flows() > 0 {
            yield_now().await;
        }
        assert!(open().await.is_ok(), "its place is free");
    });
    let none = refusals("- {kind: publish, name: a, topic: b}\n- {kind: topic, name: bb}");
    assert!(none[0].message.contains("no topic 'b'") && none[0].help.contains("bb"), "{none:?}");
}
