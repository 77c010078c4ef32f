//! The rules as a table: small graphs, a packet, the reply that must come.

use serde_json::Value as Json;
use sinew_flow::{Reply, Value};

use crate::begin::reply;

/// A rule, and a graph that shows it. `begin` sends the packet to the node `a`.
struct Rule {
    says: &'static str,
    graph: &'static str,
    packet: &'static str,
    /// JSON; `nothing`; or the error's text and status.
    reply: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        says: "what is sent to a port that leads nowhere is the reply",
        graph: "- {kind: nop, name: a}",
        packet: "[1, {\"x\": null}]",
        reply: "[1, {\"x\": null}]",
    },
    Rule {
        says: "who passes a packet on answers with the reply of the next",
        graph: "- {kind: step, name: a, says: a, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, says: b}",
        packet: "1",
        reply: "[\"b\", [\"a\", 1]]",
    },
    Rule {
        says: "a node may answer with nothing",
        graph: "- {kind: step, name: a, does: nothing}",
        packet: "1",
        reply: "nothing",
    },
    Rule {
        says: "an error goes back to the source",
        graph: "- {kind: nop, name: a, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, does: fail}",
        packet: "1",
        reply: "node 'b': failed (418)",
    },
    Rule {
        says: "a panic is an error of the node",
        graph: "- {kind: step, name: a, does: panic, ports: {error: [{name: b, port: in}]}}
                - {kind: step, name: b, does: nothing}",
        packet: "1",
        reply: "nothing",
    },
    Rule {
        says: "an 'error' port gives the reply instead",
        graph: "- {kind: step, name: a, does: fail, ports: {error: [{name: b, port: in}]}}
                - {kind: step, name: b, says: b}",
        packet: "1",
        reply: "[\"b\", {\"error\": \"failed\", \"status\": 418, \"node\": \"a\"}]",
    },
    Rule {
        says: "an 'error' port is for the node's own errors, not for those of the nodes behind it",
        graph: "- {kind: step, name: a, ports: {out: [{name: b, port: in}],
                   error: [{name: c, port: in}]}}
                - {kind: step, name: b, does: fail}
                - {kind: nop, name: c}",
        packet: "1",
        reply: "node 'b': failed (418)",
    },
    Rule {
        says: "an error of who handles errors goes back as its own",
        graph: "- {kind: step, name: a, does: fail, ports: {error: [{name: b, port: in}]}}
                - {kind: throw, name: b, message: '{{ packet.node }} again', status: 502}",
        packet: "1",
        reply: "node 'b': a again (502)",
    },
    Rule {
        says: "fan-out: nothing from all is nothing",
        graph: "- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
                - {kind: step, name: b, does: nothing}
                - {kind: step, name: c, does: nothing}",
        packet: "1",
        reply: "nothing",
    },
    Rule {
        says: "fan-out: one reply is itself",
        graph: "- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
                - {kind: step, name: b, does: nothing}
                - {kind: step, name: c, says: c}",
        packet: "1",
        reply: "[\"c\", 1]",
    },
    Rule {
        says: "fan-out: several replies are a list in the order of the links, whoever is first",
        graph: "- {kind: nop, name: a, ports: {out: [{name: s, port: in}, {name: c, port: in}]}}
                - {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, says: b}
                - {kind: step, name: c, says: c}",
        packet: "1",
        reply: "[[\"b\", 1], [\"c\", 1]]",
    },
    Rule {
        says: "fan-out: any error makes one error of all errors",
        graph: "- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in},
                   {name: d, port: in}]}}
                - {kind: step, name: b, does: fail}
                - {kind: step, name: c, says: c}
                - {kind: throw, name: d, message: no, status: 404}",
        packet: "1",
        reply: "node 'b': failed; node 'd': no (500)",
    },
    Rule {
        says: "fan-out: errors of one status keep it",
        graph: "- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
                - {kind: step, name: b, does: fail}
                - {kind: step, name: c, does: fail}",
        packet: "1",
        reply: "node 'b': failed; node 'c': failed (418)",
    },
    Rule {
        says: "pipe: each reply is the next packet",
        graph: "- {kind: pipe, name: a, ports: {'out[0]': [{name: b, port: in}],
                   'out[1]': [{name: c, port: in}]}}
                - {kind: step, name: b, says: b}
                - {kind: step, name: c, says: c}",
        packet: "1",
        reply: "[\"c\", [\"b\", 1]]",
    },
    Rule {
        says: "pipe: without steps the packet is the reply",
        graph: "- {kind: pipe, name: a}",
        packet: "1",
        reply: "1",
    },
    Rule {
        says: "pipe: nothing ends it with nothing",
        graph: "- {kind: pipe, name: a, ports: {'out[0]': [{name: b, port: in}],
                   'out[7]': [{name: c, port: in}]}}
                - {kind: step, name: b, does: nothing}
                - {kind: step, name: c, does: fail}",
        packet: "1",
        reply: "nothing",
    },
    Rule {
        says: "pipe: an error of a step is the pipe's, which its 'error' port may answer",
        graph: "- {kind: pipe, name: a, ports: {'out[0]': [{name: b, port: in}],
                   'out[1]': [{name: c, port: in}], error: [{name: d, port: in}]}}
                - {kind: nop, name: b}
                - {kind: step, name: c, does: fail}
                - {kind: step, name: d, says: d}",
        packet: "1",
        reply: "[\"d\", {\"error\": \"failed\", \"status\": 418, \"node\": \"c\"}]",
    },
    Rule {
        says: "for: replies stand in the order of the elements, null for nothing",
        graph: "- {kind: for, name: a, concurrency: 3, ports: {out: [{name: b, port: in}]}}
                - {kind: sleep, name: b, duration_ms: packet}",
        packet: "[9, 5, 1]",
        reply: "[9, 5, 1]",
    },
    Rule {
        says: "for: an element without a reply is null",
        graph: "- {kind: for, name: a, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, does: nothing}",
        packet: "[1, 2]",
        reply: "[null, null]",
    },
    Rule {
        says: "for: an empty list is one",
        graph: "- {kind: for, name: a}",
        packet: "[]",
        reply: "[]",
    },
    Rule {
        says: "for: where 'done' leads somewhere, it gets the list",
        graph: "- {kind: for, name: a, items: packet.of, ports: {done: [{name: b, port: in}]}}
                - {kind: step, name: b, says: b}",
        packet: "{\"of\": [1, 2]}",
        reply: "[\"b\", [1, 2]]",
    },
    Rule {
        says: "for: what is no list is an error",
        graph: "- {kind: for, name: a}",
        packet: "1",
        reply: "node 'a': expected a list, got a whole number (500)",
    },
    Rule {
        says: "for: a list that is too long is an error",
        graph: "- {kind: for, name: a, items_max: 2}",
        packet: "[1, 2, 3]",
        reply: "node 'a': a list of 3 elements, at most 2; raise items_max (500)",
    },
    Rule {
        says: "for: after an error no element is begun; those under way end",
        graph: "- {kind: for, name: a, concurrency: 2, ports: {out: [{name: b, port: in}]}}
                - {kind: throw, name: b, message: '{{ packet }}', status: 400}",
        packet: "[1, 2, 3, 4]",
        reply: "node 'a': node 'b': 1; node 'b': 2 (400)",
    },
    Rule {
        says: "split: each element goes its way, and the replies are joined",
        graph: "- {kind: split, name: a, ports: {'out[0]': [{name: b, port: in}],
                   'out[2]': [{name: c, port: in}]}}
                - {kind: step, name: b, says: b}
                - {kind: step, name: c, does: nothing}",
        packet: "[1, 2, 3]",
        reply: "[[\"b\", 1], 2]",
    },
    Rule {
        says: "split: more elements than outputs are an error",
        graph: "- {kind: split, name: a, ports: {'out[0]': [{name: b, port: in}]}}
                - {kind: nop, name: b}",
        packet: "[1, 2]",
        reply: "node 'a': a list of 2 elements, room for 1; link out[1], or use 'for' (500)",
    },
    Rule {
        says: "split: a mapping is no list",
        graph: "- {kind: split, name: a}",
        packet: "{}",
        reply: "node 'a': expected a list, got a mapping (500)",
    },
    Rule {
        says: "merge: one packet from each input is a list, in the order of the inputs",
        graph: "- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
                - {kind: step, name: b, says: b, ports: {out: [{name: m, port: 'in[1]'}]}}
                - {kind: step, name: c, says: c, ports: {out: [{name: m, port: 'in[0]'}]}}
                - {kind: merge, name: m, ports: {out: [{name: d, port: in}]}}
                - {kind: step, name: d, says: d}",
        packet: "1",
        reply: "[\"d\", [[\"c\", 1], [\"b\", 1]]]",
    },
    Rule {
        says: "merge: what comes later is waited for",
        graph: "- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[0]'},
                   {name: s, port: in}]}}
                - {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: m, port: 'in[1]'}]}}
                - {kind: merge, name: m}",
        packet: "1",
        reply: "[1, 1]",
    },
    Rule {
        says: "merge: when nothing can come any more, that is an error",
        graph: "- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[0]'},
                   {name: s, port: in}]}}
                - {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, does: nothing, ports: {out: [{name: m, port: 'in[1]'}]}}
                - {kind: merge, name: m}",
        packet: "1",
        reply: "node 'm': nothing came to in[1], and nothing can any more (500)",
    },
    Rule {
        says: "merge: an error on the way to it is the answer, at once",
        graph: "- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[0]'},
                   {name: b, port: in}]}}
                - {kind: step, name: b, does: fail, ports: {out: [{name: m, port: 'in[1]'}]}}
                - {kind: merge, name: m}",
        packet: "1",
        reply: "node 'b': failed (418)",
    },
    Rule {
        says: "merge: a step of a pipe that waits for a later one learns that it never comes",
        graph: "- {kind: pipe, name: a, ports: {'out[0]': [{name: m, port: 'in[0]'}],
                   'out[1]': [{name: m, port: 'in[1]'}]}}
                - {kind: merge, name: m}",
        packet: "1",
        reply: "node 'm': nothing came to in[1], and nothing can any more (500)",
    },
    Rule {
        says: "merge: a second packet at an input is an error",
        graph: "- {kind: for, name: a, concurrency: 2, ports: {out: [{name: m, port: 'in[0]'},
                   {name: s, port: in}]}}
                - {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: m, port: 'in[1]'}]}}
                - {kind: merge, name: m}",
        packet: "[1, 2]",
        reply: "node 'm': a second packet came to in[0] before the first was merged; where 'for' \
                repeats what leads here, set concurrency: 1 (500)",
    },
    Rule {
        says: "merge: element by element it merges each",
        graph: "- {kind: for, name: a, ports: {out: [{name: m, port: 'in[0]'},
                   {name: m, port: 'in[1]'}]}}
                - {kind: merge, name: m}",
        packet: "[1, 2]",
        reply: "[[1, 1], [2, 2]]",
    },
    Rule {
        says: "fork: nothing is the answer, whatever becomes of the child",
        graph: "- {kind: fork, name: a, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, does: fail}",
        packet: "1",
        reply: "nothing",
    },
    Rule {
        says: "try: an error from whichever node behind it becomes a packet",
        graph: "- {kind: try, name: a, ports: {out: [{name: b, port: in}],
                   error: [{name: d, port: in}]}}
                - {kind: nop, name: b, ports: {out: [{name: c, port: in}]}}
                - {kind: step, name: c, does: fail}
                - {kind: step, name: d, says: d}",
        packet: "1",
        reply: "[\"d\", {\"error\": \"failed\", \"status\": 418, \"node\": \"c\"}]",
    },
    Rule {
        says: "try: a reply that is none passes through",
        graph: "- {kind: try, name: a, ports: {out: [{name: b, port: in}],
                   error: [{name: c, port: in}]}}
                - {kind: step, name: b, says: b}
                - {kind: step, name: c, says: c}",
        packet: "1",
        reply: "[\"b\", 1]",
    },
    Rule {
        says: "retry: the last error is the answer",
        graph: "- {kind: retry, name: a, backoff: 1ms, ports: {out: [{name: b, port: in}]}}
                - {kind: step, name: b, does: fail}",
        packet: "1",
        reply: "node 'b': failed (418)",
    },
    Rule {
        says: "throw: an error on purpose",
        graph: "- {kind: throw, name: a, message: 'no {{ packet.what }}', \
                   status: '{{ packet.status }}', body: {sorry: '{{ packet.what }}'}}",
        packet: "{\"what\": \"bread\", \"status\": 404}",
        reply: "node 'a': no bread (404)",
    },
];

/// A reply in the words of the table.
fn text(reply: &Reply) -> String {
    match reply {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(value)) => value.to_json().expect("no document").to_string(),
        Err(error) => format!("{error} ({})", error.status()),
    }
}

#[test]
fn every_rule_holds() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let packet: Json = serde_json::from_str(rule.packet).expect("a packet in JSON");
        let indent = "\n                ";
        let graph = rule.graph.replace(indent, "\n");
        let came = text(&reply(&graph, Value::from(packet)));
        let expected = serde_json::from_str::<Json>(rule.reply)
            .map_or_else(|_| rule.reply.to_owned(), |json| json.to_string());
        if came != expected {
            wrong.push(format!("{}\n  expected {expected}\n  came     {came}", rule.says));
        }
    }
    assert!(wrong.is_empty(), "{} rules do not hold:\n{}", wrong.len(), wrong.join("\n"));
}
