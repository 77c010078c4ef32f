//! The rules of `limit`, its limits, and what is refused.

use std::thread;

use futures_util::future::join_all;
use sinew_flow::FlowFixture;

use super::*;
use crate::testing::{LIMIT, fixture, refusals, reply, run};

const RATE: Rate = Rate { gap_ns: 100, slack_ns: 200, keys_max: 1000 };

#[test]
fn a_bucket_gives_a_burst_and_then_the_rate() {
    let buckets = Buckets::default();
    let takes = [
        (1000, Ok(())),
        (1000, Ok(())),
        (1000, Ok(())),
        (1000, Err(100)),
        (1060, Err(40)),
        (1100, Ok(())),
        (1100, Err(100)),
        (9000, Ok(())),
        (9000, Ok(())),
        (9000, Ok(())),
        (9000, Err(100)),
    ];
    for (at_ns, expected) in takes {
        assert_eq!(buckets.take("a", RATE, at_ns), expected, "at {at_ns} ns");
    }
    assert_eq!(buckets.take("b", RATE, 9000), Ok(()));
}

/// In any span of time no more packets pass than the burst and the rate allow, however packets
/// come.
#[test]
fn no_way_of_coming_gets_more_than_the_rate() {
    let mut random = fastrand::Rng::with_seed(3);
    let (buckets, mut now_ns, mut taken) = (Buckets::default(), 1_000_000, Vec::new());
    for _ in 0..5000 {
        now_ns += if random.bool() { random.u64(..10) } else { random.u64(..400) };
        if buckets.take("a", RATE, now_ns).is_ok() {
            taken.push(now_ns);
        }
    }
    for (count, span) in (1..100).flat_map(|len| taken.windows(len).map(move |it| (len, it))) {
        let span_ns = span[count - 1] - span[0];
        assert!(count as u64 <= 3 + span_ns / RATE.gap_ns, "{count} in {span_ns} ns");
    }
}

#[test]
fn many_keys_neither_reset_a_limit_nor_take_more_memory() {
    let rate = Rate { keys_max: 10, ..RATE };
    let (buckets, now_ns) = (Buckets::default(), 1000);
    for _ in 0..3 {
        assert!(buckets.take("mine", rate, now_ns).is_ok());
    }
    // All but the first nine keys share one bucket of three.
    let passed = (0..500).filter(|it| buckets.take(&format!("{it}"), rate, now_ns).is_ok());
    assert_eq!(passed.count(), 9 + 3);
    assert!(buckets.take("mine", rate, now_ns).is_err(), "it was not forgotten");
    // Keys at rest make room, and that gives nobody more packets.
    assert!(buckets.take("new", rate, now_ns + 100).is_ok());
    assert!(buckets.take("new", rate, now_ns + 100).is_ok());
    let due = buckets.0.lock().expect("nobody panicked");
    assert!(due.by_key.len() <= 10 && due.by_time.len() == due.by_key.len());
}

#[test]
fn workers_share_a_limit() {
    let (buckets, rate) =
        (Buckets::default(), Rate { gap_ns: 1 << 40, slack_ns: 99 << 40, ..RATE });
    let take = || (0..100).filter(|_| buckets.take("a", rate, 5).is_ok()).count();
    let sum: usize = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        workers.into_iter().map(|it| it.join().expect("no panic")).sum()
    });
    assert_eq!(sum, 100);
}

async fn statuses(fixture: &FlowFixture, keys: &[&'static str]) -> Vec<u16> {
    let flows = keys.iter().map(|key| fixture.open("begin", 0, Value::text(*key), LIMIT));
    let replies = join_all(flows).await;
    replies.into_iter().map(|reply| reply.map_or_else(|it| it.status(), |_| 200)).collect()
}

#[test]
fn what_is_over_the_rate_is_refused_and_told_when_there_is_room() {
    let fixture = fixture("- {kind: limit, name: l, key: packet, rate: 2, per: 1h}");
    run(async {
        assert_eq!(statuses(&fixture, &["a", "a", "b", "a"]).await, [200, 200, 200, 429]);
        let error = fixture.open("begin", 0, Value::text("a"), LIMIT).await.expect_err("over");
        let [(name, seconds)] = error.headers() else { panic!("{error}") };
        let seconds: u32 = seconds.parse().expect("seconds");
        assert!(name == "retry-after" && (1..=1800).contains(&seconds) && error.shown().is_some());
    });
}

#[test]
fn what_is_over_goes_where_the_port_leads() {
    let text = "
        - kind: limit
          name: l
          key: \"'all'\"
          rate: 1
          per: 1h
          ports: {over: [{name: o, port: in}]}
        - {kind: throw, name: o, status: 402}
    ";
    let fixture = fixture(text);
    assert_eq!(run(statuses(&fixture, &["a", "b"])), [200, 402]);
}

#[test]
fn so_many_are_under_way_at_once_and_who_is_refused_uses_nothing_of_the_rate() {
    let text = "
        - kind: limit
          name: l
          key: packet
          concurrency: 2
          rate: 3
          per: 1h
          ports: {out: [{name: s, port: in}]}
        - {kind: sleep, name: s, duration: 5ms}
    ";
    let fixture = fixture(text);
    run(async {
        let together = statuses(&fixture, &["a", "a", "a", "b"]).await;
        assert_eq!(together, [200, 200, 429, 200]);
        let mut gone = Box::pin(fixture.open("begin", 0, Value::text("b"), LIMIT));
        assert!(futures_util::poll!(&mut gone).is_pending());
        // After a cancel, its place is free, but its part of the rate stays used.
        drop(gone);
        assert_eq!(statuses(&fixture, &["a", "a", "b", "b"]).await, [200, 429, 200, 429]);
    });
}

#[test]
fn a_limit_that_limits_nothing_and_a_key_that_is_none_are_refused() {
    for (keys, said) in [("", "limits nothing"), (", burst: 5, concurrency: 1", "needs a 'rate'")] {
        let refusals = refusals(&format!("- {{kind: limit, name: l, key: packet{keys}}}"));
        assert!(refusals[0].message.contains(said), "{refusals:?}");
    }
    let text = "- {kind: limit, name: l, key: packet, rate: 1}";
    assert_eq!(reply(text, Value::Null).expect_err("no key").status(), 400);
}
