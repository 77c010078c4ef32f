//! What a node on the path of a flow costs: chains of 1, 10 and 100 `nop` nodes, interleaved.
//! `cargo bench -p sinew-flows --bench chain`
//!
//! The figures to hold: one more node costs 40 ns at most, execution times taken, and the hundredth
//! as much as the tenth.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod begin;

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use sinew_flow::{Fixture, Value};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

const CHAINS: [usize; 3] = [1, 10, 100];
const ROUNDS: usize = 31;
/// Nodes that packets pass in a round of each chain.
const NODES_PER_ROUND: usize = 200_000;
const BAR_NS: f64 = 40.0;
/// Between the costs of a node in the short and in the long half; what more would not be linear.
const BEND_MAX: f64 = 1.25;

/// `begin`, and so many `nop` nodes behind each other.
fn chain(nodes: usize) -> Fixture {
    let mut text =
        "- {kind: begin, name: begin, ports: {out: [{name: n1, port: in}]}}\n".to_owned();
    for at in 1..nodes {
        let next = at + 1;
        let ports = format!("{{out: [{{name: n{next}, port: in}}]}}");
        writeln!(text, "- {{kind: nop, name: n{at}, ports: {ports}}}").expect("memory");
    }
    writeln!(text, "- {{kind: nop, name: n{nodes}}}").expect("memory");
    begin::fixture(&text)
}

/// Nanoseconds of a flow through the chain, on average of a round.
async fn round(chain: &Fixture, nodes: usize) -> f64 {
    let flows = NODES_PER_ROUND / nodes;
    let begun = Instant::now();
    for _ in 0..flows {
        let packet = Value::text("x");
        let reply = chain.open("begin", 0, black_box(packet), Duration::from_secs(30)).await;
        black_box(reply).expect("nothing fails");
    }
    begun.elapsed().as_nanos() as f64 / flows as f64
}

fn main() {
    let chains = CHAINS.map(|nodes| (nodes, chain(nodes)));
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut flow_ns: [Vec<f64>; 3] = Default::default();
    LocalSet::new().block_on(&runtime, async {
        for _ in 0..ROUNDS {
            for ((nodes, chain), flow_ns) in chains.iter().zip(&mut flow_ns) {
                flow_ns.push(round(chain, *nodes).await);
            }
        }
    });
    println!("{ROUNDS} rounds, interleaved, of {NODES_PER_ROUND} nodes each; ns of a flow");
    println!("{:>10} {:>10} {:>10} {:>10} {:>10}", "nodes", "least", "median", "max", "per node");
    let median = flow_ns.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all
    });
    for (nodes, all) in CHAINS.iter().zip(&median) {
        let (least, mid, max) = (all[0], all[ROUNDS / 2], all[ROUNDS - 1]);
        println!("{nodes:>10} {least:>10.1} {mid:>10.1} {max:>10.1} {:>10.1}", mid / *nodes as f64);
    }
    let [one, ten, hundred] = median.map(|all| all[ROUNDS / 2]);
    let (short, long) = ((ten - one) / 9.0, (hundred - ten) / 90.0);
    let bend = long / short;
    println!("one more node: {short:.1} ns from 1 to 10, {long:.1} ns from 10 to 100");
    let reached = |good: bool| if good { "reached" } else { "not reached" };
    println!("bar {BAR_NS:.0} ns: {}", reached(short.max(long) <= BAR_NS));
    println!("bend {bend:.2}, bar {BEND_MAX}: {}", reached(bend <= BEND_MAX));
}
