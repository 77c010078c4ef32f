//! What makes a list full, which flow gets which reply, and that a flow that leaves takes no others
//! along.

use std::time::Duration;

use futures_util::future::{join, join_all};
use futures_util::poll;
use sinew_flow::{FlowFixture, Reply, Value};

use crate::testing::{LIMIT, MalformedRequest, fixture, refusals, run};

/// Lists go to the node `next`; nothing but its count or size makes one full.
fn graph(parameters: &str, next: &str) -> FlowFixture {
    fixture(&format!(
        "- {{kind: batch, name: b, wait_max: 1h, {parameters}, \
         ports: {{out: [{{name: next, port: in}}]}}}}\n\
         - {{name: next, {next}}}"
    ))
}

const SAME: &str = "kind: nop";
const SIZE: &str = "kind: snippet, language: cel, code: size(packet)";

async fn send(fixture: &FlowFixture, packet: i64) -> Reply {
    fixture.open("begin", 0, Value::Integer(packet), LIMIT).await
}

/// The replies to the packets 0, 1 and so on, sent at once; for an error its status.
fn replies(fixture: &FlowFixture, count: i64) -> Vec<Result<Option<Value>, u16>> {
    let replies = run(join_all((0..count).map(|packet| send(fixture, packet))));
    replies.into_iter().map(|reply| reply.map_err(|error| error.status())).collect()
}

fn numbers(numbers: impl IntoIterator<Item = i64>) -> Vec<Result<Option<Value>, u16>> {
    numbers.into_iter().map(|number| Ok(Some(Value::Integer(number)))).collect()
}

#[test]
fn a_list_is_full_by_count_by_bytes_or_by_time() {
    assert_eq!(replies(&graph("count_max: 3", SIZE), 6), numbers([3; 6]));
    // Each packet has 16 bytes.
    assert_eq!(replies(&graph("size_max: 1KiB", SIZE), 128), numbers([64; 128]));
    let soon = fixture(
        "- {kind: batch, name: b, wait_max: 1ms, ports: {out: [{name: next, port: in}]}}\n\
         - {kind: snippet, name: next, language: cel, code: size(packet)}",
    );
    assert_eq!(replies(&soon, 5), numbers([5; 5]));
    assert_eq!(replies(&soon, 1), numbers([1]), "and a list of one, later");
}

#[test]
fn packets_keep_their_order_and_each_may_get_its_own_reply() {
    let list = Value::list((0..3).map(Value::Integer));
    assert_eq!(replies(&graph("count_max: 3", SAME), 3), vec![Ok(Some(list)); 3]);
    assert_eq!(replies(&graph("count_max: 3, reply: each", SAME), 6), numbers(0..6));
    let wrong = graph("count_max: 3, reply: each", "kind: snippet, language: cel, code: '[1, 2]'");
    assert_eq!(replies(&wrong, 3), vec![Err(500); 3]);
    let error = run(join_all((0..3).map(|packet| send(&wrong, packet)))).remove(0);
    let text = error.expect_err("it is wrong").text().to_owned();
    assert!(text.starts_with("the reply to 3 packets is a list of 2"), "{text}");
}

#[test]
fn an_error_is_that_of_each() {
    assert_eq!(replies(&graph("count_max: 3", "kind: throw, status: 418"), 3), vec![Err(418); 3]);
}

/// Fails if the list contains 3 or 13; otherwise replies with the length of the list.
const PICKY: &str = "kind: if, when: 'packet.exists(n, n % 10 == 3)', \
                     ports: {'out[0]': [{name: no, port: in}], 'out[1]': [{name: good, port: in}]}}
- {kind: throw, name: no, status: 422}
- {kind: snippet, name: good, language: cel, code: size(packet)";

#[test]
fn halves_find_the_packets_at_which_a_list_fails() {
    let alone = replies(&graph("count_max: 16, halve_when: error.status == 422", PICKY), 16);
    let bad: Vec<usize> = (0..16).filter(|&at| alone[at] == Err(422)).collect();
    assert_eq!(bad, [3, 13]);
    // 0 to 7 without 3 come in the lists 4 to 7, 0 and 1, and 2.
    assert_eq!(alone[..3], numbers([2, 2, 1]));
    assert_eq!(alone[4..8], numbers([4; 4]));
    // An error for which `halve_when` is false goes to all packets.
    let whole = replies(&graph("count_max: 16, halve_when: error.status == 409", PICKY), 16);
    assert_eq!(whole, vec![Err(422); 16]);
}

#[test]
fn who_leaves_before_the_list_is_sent_is_not_in_it() {
    let fixture = graph("count_max: 3", SAME);
    run(async {
        let late = fixture.open("begin", 0, Value::Integer(7), Duration::from_millis(5)).await;
        assert_eq!(late.expect_err("nobody else came").status(), 504);
        let mut gone = Box::pin(send(&fixture, 8));
        assert!(poll!(&mut gone).is_pending());
        drop(gone);
        let list = Value::list((0..3).map(Value::Integer));
        let replies = join_all((0..3).map(|packet| send(&fixture, packet))).await;
        assert_eq!(replies, vec![Ok(Some(list)); 3]);
    });
    assert_eq!(fixture.flows(), 0);
}

#[test]
fn who_leaves_while_the_list_is_under_way_does_not_end_it() {
    let fixture = graph("count_max: 2", "kind: sleep, duration: 30ms");
    run(async {
        let short = fixture.open("begin", 0, Value::Integer(0), Duration::from_millis(5));
        let (short, long) = join(short, send(&fixture, 1)).await;
        assert_eq!(short.expect_err("it was late").status(), 504);
        assert_eq!(long, Ok(Some(Value::list((0..2).map(Value::Integer)))));
    });
    assert_eq!(fixture.flows(), 0);
}

#[test]
fn one_list_is_under_way_at_a_time_unless_the_graph_says_more() {
    // The first list waits in `sleep`; the second one shows whether it may begin meanwhile.
    for (concurrency, others) in [(1, true), (2, false)] {
        let fixture = graph(
            &format!("count_max: 1, concurrency: {concurrency}"),
            "kind: sleep, duration_ms: 'packet[0] == 0 ? 10000 : 0'",
        );
        run(async {
            let mut slow = Box::pin(send(&fixture, 0));
            assert!(poll!(&mut slow).is_pending());
            let limit = Duration::from_millis(100);
            let quick = fixture.open("begin", 0, Value::Integer(1), limit).await;
            assert_eq!(quick.is_err(), others, "{concurrency}");
        });
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let some = replies(&graph("count_max: 4, waiting_max: 4", SIZE), 6);
    assert_eq!(some[..4], numbers([4; 4]));
    assert_eq!(some[4..], [Err(503), Err(503)]);
    let fixture = graph("size_max: 1KiB, count_max: 1", SAME);
    let long = Value::text("x".repeat(1009));
    let error = run(fixture.open("begin", 0, long, LIMIT)).expect_err("it is too long");
    assert!(error.status() == 413 && error.text().contains("1025 bytes"), "{error}");
    let malformed = Value::Document(std::sync::Arc::new(MalformedRequest));
    let error = run(fixture.open("begin", 0, malformed, LIMIT)).expect_err("no JSON");
    assert_eq!(error.status(), 400);
    let refusals = refusals("- {kind: batch, name: b, halve_when: 'error ='}");
    assert_eq!(refusals.len(), 1, "{refusals:?}");
}

#[test]
fn a_list_has_a_deadline_of_its_own() {
    let fixture =
        graph("count_max: 2, deadline: 5ms, halve_when: 'true'", "kind: sleep, duration: 1h");
    assert_eq!(replies(&fixture, 2), vec![Err(504); 2]);
}

#[test]
fn a_packet_within_a_transaction_is_refused() {
    let fixture = fixture(
        "
        - {kind: transaction, name: t, sql: db, ports: {'out[0]': [{name: b, port: in}]}}
        - {kind: batch, name: b, ports: {out: [{name: n, port: in}]}}
        - {kind: nop, name: n}
        - {kind: sql, name: db, database: 'sqlite://:memory:'}
        ",
    );
    let error = run(fixture.open("begin", 0, Value::Null, LIMIT)).expect_err("it is within one");
    assert!(error.text().contains("put the transaction behind 'out'"), "{error}");
}
