//! The rules of `serial`, its limits, and what is refused.

use std::time::Duration;

use futures_util::future::{join_all, ready};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt, poll};
use sinew_flow::{FlowFixture, Reply, Value};

use crate::testing::{LIMIT, fixture, run};

/// The packet is `[key, number, pause in ms]`.
fn graph(keys: &str) -> FlowFixture {
    fixture(&format!(
        "
        - {{kind: serial, name: s, key: 'packet[0]'{keys}, ports: {{out: [{{name: w, port: in}}]}}}}
        - kind: sleep
          name: w
          duration_ms: 'packet[2]'
          ports: {{out: [{{name: f, port: in}}]}}
        - kind: switch
          name: f
          matches: [{{when: 'packet[2] == 13', port: 'out[0]'}}]
          otherwise: 'out[1]'
          ports: {{'out[0]': [{{name: t, port: in}}]}}
        - {{kind: throw, name: t, status: 418}}
        "
    ))
}

fn packet(key: &'static str, number: i64, pause_ms: i64) -> Value {
    Value::list([Value::text(key), Value::Integer(number), Value::Integer(pause_ms)])
}

async fn send(fixture: &FlowFixture, packet: Value) -> Reply {
    fixture.open("begin", 0, packet, LIMIT).await
}

#[test]
fn packets_of_a_key_keep_their_order_and_those_of_others_overtake() {
    let fixture = graph("");
    // The first takes longest: without turns the others would overtake it.
    let sent = [("a", 0, 60), ("a", 1, 13), ("a", 2, 1), ("b", 3, 1), ("a", 4, 1)];
    let ended = run(async {
        let flows = sent.map(|(key, number, pause)| {
            send(&fixture, packet(key, number, pause)).map(move |reply| (number, reply.is_ok()))
        });
        flows.into_iter().collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await
    });
    // An error is an answer too: the next packet goes on.
    let expected = [(3, true), (0, true), (1, false), (2, true), (4, true)];
    assert_eq!(ended, expected);
}

#[test]
fn who_waits_too_long_or_goes_away_frees_the_line() {
    let fixture = graph("");
    run(async {
        let mut first = Box::pin(send(&fixture, packet("a", 0, 10_000)));
        assert!(poll!(&mut first).is_pending());
        let limit = Duration::from_millis(5);
        let late = fixture.open("begin", 0, packet("a", 1, 0), limit).await;
        assert_eq!(late.expect_err("the first is not done").status(), 504);
        let mut last = Box::pin(send(&fixture, packet("a", 2, 0)));
        assert!(poll!(&mut last).is_pending());
        drop(first);
        assert_eq!(last.await, Ok(Some(packet("a", 2, 0))));
    });
    assert_eq!(fixture.flows(), 0);
}

#[test]
fn so_many_wait_and_no_more() {
    let fixture = graph(", waiting_max: 2");
    let statuses = run(async {
        let flows = (0..5).map(|number| send(&fixture, packet("a", number, 5)));
        let replies = join_all(flows).await;
        ready(
            replies
                .into_iter()
                .map(|it| it.map_err(|error| (error.status(), error.headers().len()))),
        )
        .await
        .map(|reply| reply.err())
        .collect::<Vec<_>>()
    });
    assert_eq!(statuses, [None, None, None, Some((503, 1)), Some((503, 1))]);
}
