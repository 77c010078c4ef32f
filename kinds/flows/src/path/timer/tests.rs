//! Times that come due, and what becomes of them; and timers that are refused.

use std::path::Path;
use std::time::Duration;

use sinew_core::Refusal;
use sinew_flow::FlowFixture;
use tokio::time::timeout;

use super::*;
use crate::testing::{LIMIT, fixture, plan, run, table};

fn graph(parameters: &str, next: &str) -> String {
    format!(
        "- {{kind: timer, name: timer{parameters}, ports: {{out: [{{name: next, port: in}}]}}}}\n\
         - {{kind: {next}, name: next}}"
    )
}

fn refusals(parameters: &str) -> Vec<Refusal> {
    let plan = plan(&graph(parameters, "nop"));
    let node = &plan.nodes[0];
    let row = table().into_iter().find(|row| row.kind.name == node.kind.name).expect("its row");
    row.check(&Parameters::of(&plan, node, Path::new("."))).err().unwrap_or_default()
}

/// A timer whose flows go to a node `next` of this kind.
fn timer(overlap: &str, next: &str) -> (Timer, FlowFixture) {
    let (open_max, waiting_max) = bounds(overlap);
    let schedule = Schedule::Every(Duration::from_millis(2));
    let timer = Timer { schedule, open_max, waiting_max, limits: LIMIT.into() };
    (timer, fixture(&graph(", interval: 1s", next)))
}

/// How many are under way, waiting and left out after three times have come and no flow has ended.
fn after_three(overlap: &str) -> (usize, usize, i64) {
    let (timer, fixture) = timer(overlap, "sleep, duration: 60s");
    let mut turns = Turns::new(&timer, fixture.outlet("timer"));
    (0..3).for_each(|_| turns.come((Timestamp::UNIX_EPOCH, 0)));
    (turns.open.len(), turns.waiting.len(), turns.missed)
}

#[test]
fn what_comes_while_a_flow_is_under_way_is_left_out_waits_or_begins() {
    assert_eq!(after_three("skip"), (1, 0, 2));
    assert_eq!(after_three("queue"), (1, 1, 1));
    assert_eq!(after_three("allow"), (3, 0, 0));
}

#[test]
fn a_packet_says_when_which_and_what_was_left_out() {
    let (timer, fixture) = timer("queue", "nop");
    run(async {
        let mut turns = Turns::new(&timer, fixture.outlet("timer"));
        let at = |ms| Timestamp::from_millisecond(ms).expect("a time");
        turns.come((at(1000), 0));
        turns.come((at(2000), 4));
        turns.come((at(3000), 0));
        let mut packets = Vec::new();
        while let Some(reply) = turns.open.next().await {
            let packet = reply.expect("no error").expect("the packet");
            packets.push(["time_ms", "number", "missed"].map(|name| packet.field(name)));
            turns.begin();
        }
        let packet = |values: [i64; 3]| values.map(|value| Ok(Value::Integer(value)));
        assert_eq!(packets, [packet([1000, 0, 0]), packet([2000, 1, 5])]);
    });
}

#[test]
fn a_timer_that_stops_lets_its_flow_end_and_begins_none() {
    let (timer, fixture) = timer("queue", "sleep, duration: 10ms");
    run(async {
        let (stopper, stop) = StopSignal::new();
        let serving = Box::new(timer).serve(fixture.outlet("timer"), stop);
        let stops = async {
            while fixture.figures("next").packets() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stopper.end();
        };
        let both = async { tokio::join!(serving, stops).0 };
        timeout(LIMIT, both).await.expect("it stops").expect("no fault");
        assert_eq!(fixture.figures("next").waiting(), 0);
    });
}

#[test]
fn what_can_never_be_is_refused() {
    for (bad, said) in [
        ("", "neither"),
        (", interval: 10us", "interval cannot be 10"),
        (", interval: 1s, cron: '* * * * *'", "both"),
        (", cron: 'at noon'", "cron cannot be"),
        (", cron: '61 * * * *'", "cron cannot be"),
        (", cron: '0 0 30 2 *'", "never comes"),
        (", cron: '* * * * *', timezone: Mars/Olympus", "no timezone 'Mars/Olympus'"),
    ] {
        let refusals = refusals(bad);
        let message = refusals.first().map_or("", |refusal| &refusal.message);
        assert!(message.contains(said), "{bad}: {refusals:?}");
    }
    for good in [", interval: 1s", ", cron: '30 6 * * MON-FRI'", ", cron: '*/5 * * * * *'"] {
        assert_eq!(refusals(good), [], "{good}");
    }
}
