//! Ten thousand flows at once. Some fail, panic, are cancelled or come too late.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use sinew_flow::{FlowFixture, Value};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::kinds::{LONG, expect_booms, fixture, run, waiting};

const FLOWS: usize = 10_000;

/// Each flow keeps its packet, waits on two branches, one of which may fail, and shows what it
/// kept.
const GRAPH: &str = "
- {kind: act, name: a, does: keep, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
- {kind: act, name: b, does: wait, ports: {out: [{name: b2, port: in}]}}
- {kind: act, name: b2, does: show}
- {kind: act, name: c, does: wait, ports: {out: [{name: d, port: in}]}}
- {kind: act, name: d, does: wait}
";

/// What becomes of a flow whose packet is `ms`. Its wait tells it apart from other flows.
async fn flow(
    fixture: Rc<FlowFixture>,
    ms: i64,
    limit: Duration,
    patience: Duration,
) -> &'static str {
    let packet = Value::Integer(ms);
    match timeout(patience, fixture.open("begin", 0, packet.clone(), limit)).await {
        Err(_) => "cancelled",
        Ok(Ok(reply)) => {
            let expected = Value::list([packet.clone(), packet]);
            assert_eq!(reply, Some(expected), "nobody else's value");
            "replied"
        }
        Ok(Err(error)) => {
            assert_eq!(error.status(), 504, "{error}");
            "late"
        }
    }
}

#[test]
fn ten_thousand_flows_never_see_each_other_and_leave_nothing() {
    let fixture = Rc::new(fixture(GRAPH));
    let ended = run(async {
        // The same flows in every run.
        let (mut flows, mut random) = (JoinSet::new(), Rng::with_seed(0x5eed));
        for _ in 0..FLOWS {
            let ms = random.i64(0..40);
            let limit = if random.u8(0..4) == 0 { Duration::from_millis(20) } else { LONG };
            let patience = Duration::from_millis(random.u64(10..1010));
            flows.spawn_local(flow(Rc::clone(&fixture), ms, limit, patience));
        }
        let mut ended = BTreeMap::<_, usize>::new();
        while let Some(one) = flows.join_next().await {
            *ended.entry(one.expect("no assertion failed")).or_default() += 1;
        }
        ended
    });
    assert!(ended.len() == 3 && ended.values().sum::<usize>() == FLOWS, "{ended:?}");
    assert_eq!((waiting(), fixture.flows()), (0, 0));
    for node in ["b", "c", "d"] {
        assert_eq!(fixture.figures(node).waiting(), 0, "{node}");
    }
    let packets = fixture.figures("begin").packets() as usize;
    assert_eq!(packets, FLOWS - ended["cancelled"], "a flow that was cancelled has not ended");
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
            // Each flow waits for ever, because its packet is not a number.
            assert!(timeout(Duration::ZERO, flow).await.is_err());
        }
        // In each flow one branch waits, and soon its child does too.
        assert!(Arc::strong_count(&held) > 1000);
    });
    assert_eq!((Arc::strong_count(&held), waiting(), fixture.flows()), (1, 0, 0));
    let figures = ["b", "c", "f"].map(|node| fixture.figures(node).waiting());
    assert_eq!(figures, [0, 0, 0]);
    assert_eq!(fixture.figures("c").errors(), 1000);
}
