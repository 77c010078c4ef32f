//! Ten thousand flows at once, of which some fail, panic, are cancelled or come too late.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sinew_flow::{Fixture, Value};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::kinds::{LONG, expect_booms, fixture, run, waiting};

const FLOWS: usize = 10_000;

/// Xorshift: the same flows in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Each keeps its packet, waits on two branches, one of which may fail, and shows what it kept.
const GRAPH: &str = "
- {kind: act, name: a, does: keep, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
- {kind: act, name: b, does: wait, ports: {out: [{name: b2, port: in}]}}
- {kind: act, name: b2, does: show}
- {kind: act, name: c, does: wait, ports: {out: [{name: d, port: in}]}}
- {kind: act, name: d, does: wait}
";

/// What became of them.
#[derive(Debug, Default)]
struct Tally {
    replied: usize,
    late: usize,
    cancelled: usize,
}

/// A flow whose packet is `ms`, with `own` hidden in none of it: how long it waits tells it apart.
async fn flow(fixture: Rc<Fixture>, ms: i64, limit: Duration, patience: Duration) -> Tally {
    let packet = Value::Integer(ms);
    let mut tally = Tally::default();
    match timeout(patience, fixture.open("begin", 0, packet.clone(), limit)).await {
        Err(_) => tally.cancelled += 1,
        Ok(Ok(reply)) => {
            let expected = Value::list([packet.clone(), packet]);
            assert_eq!(reply, Some(expected), "nobody else's value");
            tally.replied += 1;
        }
        Ok(Err(error)) => {
            assert_eq!(error.status(), 504, "{error}");
            tally.late += 1;
        }
    }
    tally
}

#[test]
fn ten_thousand_flows_never_see_each_other_and_leave_nothing() {
    let fixture = Rc::new(fixture(GRAPH));
    let tally = run(async {
        let (mut flows, mut chance) = (JoinSet::new(), Chance(0x5eed));
        for _ in 0..FLOWS {
            let ms = chance.below(40) as i64;
            let limit = if chance.below(4) == 0 { Duration::from_millis(20) } else { LONG };
            let patience = Duration::from_millis(10 + chance.below(1000));
            flows.spawn_local(flow(Rc::clone(&fixture), ms, limit, patience));
        }
        let mut all = Tally::default();
        while let Some(one) = flows.join_next().await {
            let one = one.expect("no assertion failed");
            all.replied += one.replied;
            all.late += one.late;
            all.cancelled += one.cancelled;
        }
        all
    });
    assert_eq!(tally.replied + tally.late + tally.cancelled, FLOWS, "{tally:?}");
    assert!(tally.replied > 0 && tally.late > 0 && tally.cancelled > 0, "{tally:?}");
    assert_eq!((waiting(), fixture.flows()), (0, 0));
    for node in ["b", "c", "d"] {
        assert_eq!(fixture.figures(node).waiting(), 0, "{node}");
    }
    let ended = fixture.figures("begin").packets() as usize;
    assert_eq!(ended, tally.replied + tally.late, "a flow that was cancelled has not ended");
}

#[test]
fn failures_and_panics_of_many_leave_no_packet_behind() {
    const GRAPH: &str = "
- kind: act
  name: a
  ports: {out: [{name: b, port: in}, {name: c, port: in}, {name: d, port: in}]}
- {kind: act, name: b, does: wait_panic, ports: {error: [{name: e, port: in}]}}
- {kind: act, name: c, does: fail}
- {kind: act, name: d, does: fork, ports: {out: [{name: f, port: in}]}}
- {kind: act, name: e, does: fail}
- {kind: act, name: f, does: wait}
";
    expect_booms();
    let fixture = fixture(GRAPH);
    let held = Arc::new(vec![Value::Integer(1)]);
    run(async {
        let mut flows = Vec::new();
        for _ in 0..1000 {
            flows.push(Box::pin(fixture.open("begin", 0, Value::List(Arc::clone(&held)), LONG)));
        }
        for flow in &mut flows {
            // Each waits for ever, for its packet is no number.
            assert!(timeout(Duration::ZERO, flow).await.is_err());
        }
        // Two branches of each wait, and the child soon does.
        assert!(Arc::strong_count(&held) > 1000);
    });
    assert_eq!((Arc::strong_count(&held), waiting(), fixture.flows()), (1, 0, 0));
    let figures = ["b", "c", "f"].map(|node| fixture.figures(node).waiting());
    assert_eq!(figures, [0, 0, 0]);
    assert_eq!(fixture.figures("c").errors(), 1000);
}
