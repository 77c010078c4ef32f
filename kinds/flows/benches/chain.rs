//! What a node on the path of a flow costs: chains of 1, 10 and 100 `nop` nodes, interleaved.
//! `cargo bench -p sinew-flows --bench chain`
//!
//! The figures to hold: one more node costs 40 ns at most, execution times taken, and the hundredth
//! as much as the tenth.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

mod begin;

use std::fmt::Write;

use begin::{flow_ns, interleave, verdict};
use sinew_flow::testing::fixture;
use sinew_flow::{FlowFixture, Value};
use sinew_flows::FLOWS;

const CHAINS: [usize; 3] = [1, 10, 100];
const ROUNDS: usize = 31;
/// Nodes that packets pass in a round of each chain.
const NODES_PER_ROUND: usize = 200_000;
const BAR_NS: f64 = 40.0;
/// Between the costs of a node in the short and in the long half; what more would not be linear.
const BEND_MAX: f64 = 1.25;

/// A source, and so many `nop` nodes behind each other.
fn chain(nodes: usize) -> FlowFixture {
    let mut text = String::new();
    for at in 1..nodes {
        let next = at + 1;
        let ports = format!("{{out: [{{name: n{next}, port: in}}]}}");
        writeln!(text, "- {{kind: nop, name: n{at}, ports: {ports}}}").expect("memory");
    }
    writeln!(text, "- {{kind: nop, name: n{nodes}}}").expect("memory");
    fixture(&text, FLOWS)
}

fn main() {
    let chains = CHAINS.map(|nodes| (nodes, chain(nodes)));
    let figures = interleave(ROUNDS, &chains, async |(nodes, chain)| {
        flow_ns(chain, &Value::text("x"), NODES_PER_ROUND / nodes).await
    });
    println!("{ROUNDS} rounds, interleaved, of {NODES_PER_ROUND} nodes each; ns of a flow");
    println!("{:>10} {:>10} {:>10} {:>10} {:>10}", "nodes", "least", "median", "max", "per node");
    for (nodes, [least, mid, max]) in CHAINS.iter().zip(&figures) {
        println!("{nodes:>10} {least:>10.1} {mid:>10.1} {max:>10.1} {:>10.1}", mid / *nodes as f64);
    }
    let median = |at: usize| figures[at][1];
    let (short, long) = ((median(1) - median(0)) / 9.0, (median(2) - median(1)) / 90.0);
    let bend = long / short;
    println!("one more node: {short:.1} ns from 1 to 10, {long:.1} ns from 10 to 100");
    println!("bar {BAR_NS:.0} ns: {}", verdict(short.max(long) <= BAR_NS));
    println!("bend {bend:.2}, bar {BEND_MAX}: {}", verdict(bend <= BEND_MAX));
}
