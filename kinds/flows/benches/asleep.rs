//! What flows that wait cost: memory of each, and time of another flow beside them, with 10, 1 000
//! and 100 000 asleep. `cargo bench -p sinew-flows --bench asleep`
//!
//! The figures to hold: less than 2 KB of each, and no difference for the other flow.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[expect(dead_code, reason = "its rounds are not those of the others")]
mod begin;

use std::fs;
use std::rc::Rc;
use std::time::Duration;

use begin::{flow_ns, summary, verdict};
use sinew_flow::testing::{fixture, run};
use sinew_flow::{FlowFixture, Value};
use sinew_flows::FLOWS;
use tokio::task::{JoinSet, yield_now};

const ASLEEP: [usize; 4] = [0, 10, 1_000, 100_000];
const ROUNDS: usize = 21;
const FLOWS_PER_ROUND: usize = 20_000;
const BAR_BYTES: u64 = 2048;

const GRAPH: &str = "
- {kind: sleep, name: sleep, duration: 1h, ports: {out: [{name: end, port: in}]}}
- {kind: nop, name: end}
- {kind: test, name: begin, ports: {out: [{name: pong, port: in}]}}
- {kind: nop, name: pong}
";

/// Memory that this process holds, in bytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("a number of kB") * 1024
}

/// Nanoseconds of a flow that does not wait, on average of a round, each after a turn of all else.
async fn ping(fixture: &FlowFixture) -> f64 {
    let (turns, mut all) = (FLOWS_PER_ROUND / 100, 0.0);
    for _ in 0..turns {
        yield_now().await;
        all += flow_ns(fixture, &Value::text("x"), 100).await;
    }
    all / turns as f64
}

/// So many flows that sleep, and the bytes of each by what the process grew.
async fn sleepers(fixture: &Rc<FlowFixture>, count: usize) -> (JoinSet<()>, Option<u64>) {
    let (mut asleep, before) = (JoinSet::new(), resident());
    for _ in 0..count {
        let fixture = Rc::clone(fixture);
        asleep.spawn_local(async move {
            let limit = Duration::from_secs(7200);
            fixture.open("sleeper", 0, Value::Null, limit).await.expect("nobody wakes it");
        });
    }
    while fixture.figures("sleep").waiting() < count as u64 {
        yield_now().await;
    }
    let grown = resident().saturating_sub(before);
    // Fewer are lost among the pages of the process.
    (asleep, (count >= 1000).then(|| grown / count as u64))
}

fn main() {
    let fixtures = ASLEEP.map(|_| Rc::new(fixture(GRAPH, FLOWS)));
    let mut ping_ns: [Vec<f64>; 4] = Default::default();
    let mut each = [None; 4];
    // All first flows of a graph are made before memory is looked at.
    run(ping(&fixtures[0]));
    for (at, count) in ASLEEP.iter().enumerate() {
        each[at] = run(sleepers(&fixtures[at], *count)).1;
    }
    for round in 0..ROUNDS {
        for at in 0..ASLEEP.len() {
            // Forwards and backwards in turn: making sleepers leaves the heap as it leaves it.
            let at = if round % 2 == 0 { at } else { ASLEEP.len() - 1 - at };
            ping_ns[at].push(run(async {
                let (_asleep, _) = sleepers(&fixtures[at], ASLEEP[at]).await;
                ping(&fixtures[at]).await
            }));
        }
    }
    println!("{ROUNDS} rounds, interleaved, of {FLOWS_PER_ROUND} flows each");
    println!(
        "{:>10} {:>12} {:>10} {:>10} {:>10}",
        "asleep", "bytes each", "least ns", "median", "max"
    );
    for ((count, all), each) in ASLEEP.iter().zip(ping_ns).zip(each) {
        let [least, median, max] = summary(all);
        let each = each.map_or("-".into(), |bytes| bytes.to_string());
        println!("{count:>10} {each:>12} {least:>10.1} {median:>10.1} {max:>10.1}");
    }
    let most = each.into_iter().flatten().max().unwrap_or_default();
    println!("bar {BAR_BYTES} bytes of a flow: {}", verdict(most < BAR_BYTES));
}
