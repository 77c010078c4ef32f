//! Ten thousand flows through all kinds that keep something of a flow; some fail, some are
//! cancelled. They never see each other, and nothing of them stays.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytestring::ByteString;
use futures_util::{StreamExt, stream};
use sinew_flow::{Document, Error, FlowFixture, Reply, Value};
use tokio::time::{sleep, timeout};

use crate::begin::{LIMIT, fixture, run};

const FLOWS: i64 = 10_000;
/// How many flows are under way at once.
const TOGETHER: usize = 500;

const NODES: [&str; 8] = ["pipe", "for", "fork", "child", "late", "merge", "retry", "again"];
const GRAPH: &str = "
- {kind: pipe, name: pipe, ports: {'out[0]': [{name: for, port: in}],
    'out[1]': [{name: retry, port: in}]}}
- {kind: for, name: for, ports: {out: [{name: fork, port: in}, {name: merge, port: 'in[0]'},
    {name: late, port: in}]}}
- {kind: fork, name: fork, ports: {out: [{name: child, port: in}]}}
- {kind: sleep, name: child, duration_ms: packet.rest_ms}
- {kind: sleep, name: late, duration_ms: packet.pause_ms,
    ports: {out: [{name: merge, port: 'in[1]'}]}}
- {kind: merge, name: merge}
- {kind: retry, name: retry, backoff: 1ms, ports: {out: [{name: again, port: in}]}}
- {kind: sleep, name: again, duration_ms: 'packet[0][0].pause_ms'}
";

/// A packet that says when it is gone.
#[derive(Debug)]
struct Tracked {
    number: i64,
    /// A negative number makes the flow fail.
    pause_ms: i64,
    _alive: Arc<()>,
}

impl Document for Tracked {
    fn field(&self, name: &str) -> Result<Value, Error> {
        Ok(match name {
            "number" => Value::Integer(self.number),
            "pause_ms" => Value::Integer(self.pause_ms),
            "rest_ms" => Value::Integer(self.pause_ms.abs()),
            _ => Value::Null,
        })
    }

    fn names(&self) -> &[ByteString] {
        static NAMES: LazyLock<[ByteString; 3]> =
            LazyLock::new(|| ["number", "pause_ms", "rest_ms"].map(ByteString::from_static));
        &*NAMES
    }
}

/// How a flow has ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Replied,
    Failed,
    Cancelled,
}

async fn one(fixture: &FlowFixture, number: i64, alive: &Arc<()>) -> End {
    let mut random = fastrand::Rng::with_seed(number as u64);
    let pause_ms = random.i64(-1..4);
    let packet = || {
        let _alive = Arc::clone(alive);
        Value::Document(Arc::new(Tracked { number, pause_ms, _alive }))
    };
    let limit = if random.u8(0..3) == 0 { Duration::from_millis(random.u64(0..9)) } else { LIMIT };
    let packets = Value::list([packet(), packet()]);
    match timeout(limit, fixture.open("begin", 0, packets, LIMIT)).await {
        Err(_) => End::Cancelled,
        Ok(reply) => {
            let failed = reply.is_err();
            assert_eq!(failed, pause_ms < 0, "flow {number}: {reply:?}");
            assert!(failed || is_of(number, &reply), "flow {number}: {reply:?}");
            if failed { End::Failed } else { End::Replied }
        }
    }
}

/// Whether a reply is two pairs of packets of this flow.
fn is_of(number: i64, reply: &Reply) -> bool {
    let own = |value: &Value| value.field("number") == Ok(Value::Integer(number));
    let pair = |value: &Value| matches!(value, Value::List(two) if two.iter().all(own));
    matches!(reply, Ok(Some(Value::List(pairs))) if pairs.len() == 2 && pairs.iter().all(pair))
}

#[test]
fn nothing_stays_of_flows_that_replied_failed_or_were_cancelled() {
    let (alive, fixture) = (Arc::new(()), fixture(GRAPH));
    run(async {
        let flows = (0..FLOWS).map(|number| one(&fixture, number, &alive));
        let ends: Vec<End> = stream::iter(flows).buffer_unordered(TOGETHER).collect().await;
        for end in [End::Replied, End::Failed, End::Cancelled] {
            assert!(ends.contains(&end), "flows end in every way");
        }
        let all_gone = async {
            // Children have pauses of their own.
            while Arc::strong_count(&alive) > 1 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, all_gone).await.expect("every packet is gone");
    });
    for node in NODES {
        assert_eq!(fixture.figures(node).waiting(), 0, "flows wait in '{node}'");
    }
}
