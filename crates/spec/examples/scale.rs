//! Times check and plan of generated graphs: `cargo run --release -p sinew-spec --example scale`.
//!
//! Each graph has four domains, each a chain of filters on two threads; the chains of the domains
//! follow each other. Prints the median and the range of several rounds, and the time per node.

use std::fmt::Write;
use std::time::Instant;

use kinds::compile_on;

#[path = "../tests/kinds/mod.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod kinds;

const DOMAINS: usize = 4;
const ROUNDS: usize = 15;

/// A graph of `count` nodes.
fn graph(count: usize) -> Result<String, std::fmt::Error> {
    let mut text = "name: scale\ndomains:\n".to_owned();
    let share = count / DOMAINS;
    for domain in 0..DOMAINS {
        let release = if domain == 0 { "period: 1ms" } else { "trigger: input" };
        writeln!(text, "  d{domain}:\n    realtime: {{{release}}}\n    threads:")?;
        let first = domain * share;
        let (middle, last) = (first + share / 2, first + share);
        for nodes in [first..middle, middle..last] {
            let names: Vec<String> = nodes.map(|node| format!("n{node}")).collect();
            writeln!(text, "      - {{nodes: [{}]}}", names.join(", "))?;
        }
    }
    text += "nodes:\n";
    for node in 0..share * DOMAINS {
        writeln!(text, "  - kind: filter\n    name: n{node}\n    domain: d{}", node / share)?;
        if node + 1 < share * DOMAINS {
            writeln!(text, "    ports:\n      out: [{{name: n{}, port: in}}]", node + 1)?;
        }
    }
    Ok(text)
}

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:>7} {:>9} {:>10} {:>21} {:>9}", "nodes", "KiB", "median ms", "range ms", "us/node");
    for count in [100, 1_000, 10_000, 100_000] {
        let text = graph(count)?;
        let mut times_ms = Vec::new();
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let plan = compile_on(16, &text).map_err(|errors| errors[0].to_string())?;
            times_ms.push(start.elapsed().as_secs_f64() * 1e3);
            assert_eq!(plan.links.len(), count - 1);
        }
        times_ms.sort_by(f64::total_cmp);
        let median = times_ms[ROUNDS / 2];
        let range = format!("{:.3} to {:.3}", times_ms[0], times_ms[ROUNDS - 1]);
        let per_node_us = median * 1e3 / count as f64;
        let kib = text.len() / 1024;
        println!("{count:>7} {kib:>9} {median:>10.3} {range:>21} {per_node_us:>9.2}");
    }
    Ok(())
}
