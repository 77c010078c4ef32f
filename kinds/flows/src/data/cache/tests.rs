//! The rules of `cache`, its limits, and what is refused.

use futures_util::future::{join, join_all};
use sinew_flow::{FlowFixture, Value};

use crate::testing::{LIMIT, fixture, run};

/// A cache before a node that counts its packets; `between` is the kind of the node behind the
/// counter.
fn graph(cache: &str, store: &str, between: &str) -> String {
    format!(
        "- {{kind: cache, name: c, store: box, key: packet{cache}, \
           ports: {{out: [{{name: slow, port: in}}]}}}}\n\
         - {{kind: sleep, name: slow, duration: 20ms, ports: {{out: [{{name: n, port: in}}]}}}}\n\
         - {{kind: state, name: n, store: made, do: increment, key: packet, \
           ports: {{out: [{{name: then, port: in}}]}}}}\n\
         - {{kind: {between}, name: then}}\n\
         - {{kind: store, name: box{store}}}\n\
         - {{kind: store, name: made}}\n\
         - {{kind: begin, name: look, ports: {{out: [{{name: f, port: in}}]}}}}\n\
         - {{kind: state, name: f, store: box, do: figures}}\n"
    )
}

async fn ask(fixture: &FlowFixture, key: &'static str) -> Result<Value, u16> {
    let reply = fixture.open("begin", 0, Value::text(key), LIMIT).await;
    reply.map(Option::unwrap_or_default).map_err(|error| error.status())
}

async fn figures(fixture: &FlowFixture) -> [i64; 4] {
    let figures = fixture.open("look", 0, Value::Null, LIMIT).await.expect("figures");
    ["hits", "misses", "evicted", "unkept"].map(|name| {
        let figure = figures.as_ref().map(|it| it.field(name));
        let Some(Ok(Value::Integer(figure))) = figure else { panic!("{figure:?}") };
        figure
    })
}

const ONE: Result<Value, u16> = Ok(Value::Integer(1));

#[test]
fn a_reply_is_made_once_for_all_who_want_it() {
    let fixture = fixture(&graph("", "", "nop"));
    run(async {
        let together = join_all((0..5).map(|_| ask(&fixture, "a"))).await;
        assert!(together.iter().all(|reply| *reply == ONE), "{together:?}");
        assert_eq!(join(ask(&fixture, "a"), ask(&fixture, "b")).await, (ONE, ONE));
        assert_eq!(figures(&fixture).await, [5, 2, 0, 0]);
    });
}

#[test]
fn a_reply_is_made_anew_when_its_time_is_over() {
    let fixture = fixture(&graph(", expire: 1ms", "", "nop"));
    run(async {
        assert_eq!(ask(&fixture, "a").await, ONE);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        assert_eq!(ask(&fixture, "a").await, Ok(Value::Integer(2)));
    });
}

#[test]
fn who_waits_makes_the_reply_when_the_first_is_cancelled() {
    let fixture = fixture(&graph("", "", "nop"));
    run(async {
        let mut first = Box::pin(ask(&fixture, "a"));
        assert!(futures_util::poll!(&mut first).is_pending());
        let second = ask(&fixture, "a");
        drop(first);
        assert_eq!(second.await, ONE);
        assert_eq!(figures(&fixture).await[1], 2);
    });
}

#[test]
fn errors_are_not_kept_and_what_cannot_be_kept_is_answered_and_counted() {
    let fails = fixture(&graph("", "", "throw, status: 418"));
    let long = "snippet, language: lua, code: 'return string.rep(\"x\", 2000)'";
    let tiny = fixture(&graph("", ", value_max: 1KiB", long));
    let full = fixture(&graph("", ", entries_max: 1", "nop"));
    let evicts = fixture(&graph("", ", entries_max: 1, full: evict", "nop"));
    run(async {
        for _ in 0..2 {
            assert_eq!(ask(&fails, "a").await, Err(418));
            assert_eq!(ask(&tiny, "a").await, Ok(Value::text("x".repeat(2000))));
        }
        assert_eq!((figures(&fails).await, figures(&tiny).await), ([0, 2, 0, 0], [0, 2, 0, 2]));
        for key in ["a", "b"] {
            assert_eq!((ask(&full, key).await, ask(&evicts, key).await), (ONE, ONE));
        }
        assert_eq!((figures(&full).await, figures(&evicts).await), ([0, 2, 0, 1], [0, 2, 1, 0]));
    });
}
