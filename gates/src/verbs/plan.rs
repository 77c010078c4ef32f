//! From the text of a graph to its plan. The graph has four domains, each a chain of nodes on two
//! threads.

use std::fmt::Write;
use std::hint::black_box;

use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile};

use super::cycle::PASS;
use super::{TIMES, Work};

const DOMAINS: usize = 4;

/// The text of a graph with this many nodes.
fn graph(count: usize) -> String {
    let mut text = "name: scale\ndomains:\n".to_owned();
    let share = count / DOMAINS;
    let names = |from: usize, to: usize| {
        (from..to).map(|node| format!("n{node}")).collect::<Vec<_>>().join(", ")
    };
    for domain in 0..DOMAINS {
        let release = if domain == 0 { "period: 1ms" } else { "trigger: input" };
        let (first, last) = (domain * share, (domain + 1) * share);
        let middle = first + share / 2;
        let threads = [names(first, middle), names(middle, last)];
        let [one, two] = threads.map(|nodes| format!("{{nodes: [{nodes}]}}"));
        writeln!(text, "  d{domain}: {{realtime: {{{release}}}, threads: [{one}, {two}]}}")
            .expect("memory");
    }
    text += "nodes:\n";
    for node in 0..count {
        let domain = node / share;
        let next = (node + 1 < count).then(|| format!("{{name: n{}, port: in}}", node + 1));
        let ports = format!("{{out: [{}]}}", next.unwrap_or_default());
        writeln!(text, "  - {{kind: pass, name: n{node}, domain: d{domain}, ports: {ports}}}")
            .expect("memory");
    }
    text
}

/// Plans a graph of a thousand nodes.
pub(super) fn compiled() -> Work {
    let text = graph(TIMES);
    Box::new(move || {
        let text = black_box(text.as_str());
        let source = SpecSource::of("scale.yaml", text);
        let machine = TargetMachine::of((0..16).collect());
        black_box(compile(&source, &[&PASS], &machine).expect("a good graph"));
    })
}
