//! What scripts cost, beside a node `nop` in their place, interleaved.
//! `cargo bench -p sinew-flows --bench script`

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[expect(dead_code, reason = "it has no bar")]
mod begin;

use begin::{flow_ns, interleave};
use sinew_flow::Value;
use sinew_flow::testing::fixture;
use sinew_flows::FLOWS;

const ROUNDS: usize = 31;
/// Flows of a round of each contender.
const FLOWS_PER_ROUND: usize = 4_000;

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

fn packet() -> Value {
    let user = Value::map([("name", Value::text("Ada")), ("age", Value::Integer(36))]);
    let list = Value::list((0..10).map(Value::Integer));
    Value::map([("path", Value::text("/x")), ("user", user), ("list", list)])
}

fn main() {
    let graph = |node: &str| fixture(&format!("- {{{node}, name: a}}"), FLOWS);
    let contenders: Vec<_> = CONTENDERS.iter().map(|(_, node)| graph(node)).collect();
    let packet = packet();
    let figures = interleave(ROUNDS, &contenders, async |contender| {
        flow_ns(contender, &packet, FLOWS_PER_ROUND).await
    });
    println!("{ROUNDS} rounds, interleaved, of {FLOWS_PER_ROUND} flows each; ns of a flow");
    println!("{:>40} {:>9} {:>9} {:>9} {:>9}", "", "least", "median", "max", "beyond nop");
    for ((name, _), [least, median, max]) in CONTENDERS.iter().zip(&figures) {
        let beyond = median - figures[0][1];
        println!("{name:>40} {least:>9.0} {median:>9.0} {max:>9.0} {beyond:>9.0}");
    }
}
