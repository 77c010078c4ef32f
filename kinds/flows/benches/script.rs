//! What scripts cost, beside a node `nop` in their place, interleaved.
//! `cargo bench -p sinew-flows --bench script`

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sinew_flow::{Fixture, Value};
use sinew_flows::FLOWS;
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile};
use tokio::runtime::Builder;
use tokio::task::LocalSet;

const ROUNDS: usize = 31;
/// Flows of a round of each contender.
const FLOWS_PER_ROUND: u32 = 4_000;

/// Each row: what is measured, and its node.
const CONTENDERS: &[(&str, &str)] = &[
    ("nothing (nop)", "kind: nop"),
    ("text: pong", "kind: snippet, language: text, code: pong"),
    (
        "text: 'Hello, {{ packet.user.name }}'",
        "kind: snippet, language: text, code: 'Hello, {{ packet.user.name }}'",
    ),
    (
        "json: {\"name\": \"{{ packet.user.name }}\"}",
        "kind: snippet, language: json, code: '{\"name\": \"{{ packet.user.name }}\"}'",
    ),
    ("cel: packet.user.name", "kind: snippet, language: cel, code: packet.user.name"),
    ("if: packet.path == \"/x\"", "kind: if, when: 'packet.path == \"/x\"'"),
    (
        "if: packet.user.age >= 18 && ...",
        "kind: if, when: 'packet.user.age >= 18 && packet.user.name.startsWith(\"A\")'",
    ),
    (
        "cel: packet.list.map(x, x * 2) of 10",
        "kind: snippet, language: cel, code: 'packet.list.map(x, x * 2)'",
    ),
    ("lua: return 'pong'", "kind: snippet, language: lua, code: \"return 'pong'\""),
    (
        "lua: return {name = packet.user.name}",
        "kind: snippet, language: lua, code: 'return {name = packet.user.name}'",
    ),
    (
        "lua: sum of packet.list of 10",
        "kind: snippet, language: lua, \
         code: 'local n = 0 for _, x in ipairs(packet.list) do n = n + x end return n'",
    ),
];

fn fixture(node: &str) -> Fixture {
    let kinds: Vec<_> = FLOWS.iter().map(|row| row.kind).collect();
    let text = format!(
        "- {{kind: test, name: begin, ports: {{out: [{{name: a, port: in}}]}}}}\n\
         - {{name: a, {node}}}\n"
    );
    let source = Source { file: "script.yaml", text: &text, overrides: &[] };
    let plan = compile(&source, &kinds, &Machine { cpus: vec![0] }).expect("the spec is good");
    Fixture::new(&Arc::new(plan), FLOWS, Path::new(".")).expect("the nodes are good")
}

fn packet() -> Value {
    let user = Value::map([("name", Value::text("Ada")), ("age", Value::Integer(36))]);
    let list = Value::list((0..10).map(Value::Integer));
    Value::map([("path", Value::text("/x")), ("user", user), ("list", list)])
}

/// Nanoseconds of a flow, on average of a round.
async fn round(contender: &Fixture, packet: &Value) -> f64 {
    let begun = Instant::now();
    for _ in 0..FLOWS_PER_ROUND {
        let packet = black_box(packet.clone());
        let reply = contender.open("begin", 0, packet, Duration::from_secs(30)).await;
        black_box(reply).expect("nothing fails");
    }
    begun.elapsed().as_nanos() as f64 / f64::from(FLOWS_PER_ROUND)
}

fn main() {
    let contenders: Vec<Fixture> = CONTENDERS.iter().map(|(_, node)| fixture(node)).collect();
    let packet = packet();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut flow_ns = vec![Vec::with_capacity(ROUNDS); contenders.len()];
    LocalSet::new().block_on(&runtime, async {
        for _ in 0..ROUNDS {
            for (contender, flow_ns) in contenders.iter().zip(&mut flow_ns) {
                flow_ns.push(round(contender, &packet).await);
            }
        }
    });
    println!("{ROUNDS} rounds, interleaved, of {FLOWS_PER_ROUND} flows each; ns of a flow");
    println!("{:>40} {:>9} {:>9} {:>9} {:>9}", "", "least", "median", "max", "beyond nop");
    let mut nothing = None;
    for ((name, _), mut all) in CONTENDERS.iter().zip(flow_ns) {
        all.sort_by(f64::total_cmp);
        let (least, median, max) = (all[0], all[ROUNDS / 2], all[ROUNDS - 1]);
        let beyond = median - *nothing.get_or_insert(median);
        println!("{name:>40} {least:>9.0} {median:>9.0} {max:>9.0} {beyond:>9.0}");
    }
}
