//! The rules as a table: small graphs, a packet, and the reply that must come.

use serde_json::Value as Json;
use sinew_flow::{Reply, Value};

use crate::begin::reply;

/// Each rule in words, a graph that shows it, and `packet -> reply`. The packet, which goes to the
/// first node, is JSON. The reply is JSON, `nothing`, or the error's text and status.
const RULES: &str = r#"
# what is sent to a port that leads nowhere is the reply
- {kind: nop, name: a}
[1, {"x": null}] -> [1, {"x": null}]

# who passes a packet on answers with the reply of the next
- {kind: step, name: a, says: a, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, says: b}
1 -> ["b", ["a", 1]]

# a node may answer with nothing
- {kind: step, name: a, does: nothing}
1 -> nothing

# an error goes back to the source
- {kind: nop, name: a, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, does: fail}
1 -> node 'b': failed (418)

# a panic is an error of the node
- {kind: step, name: a, does: panic, ports: {error: [{name: b, port: in}]}}
- {kind: nop, name: b}
1 -> {"error": "panicked: on purpose", "status": 500, "node": "a"}

# an 'error' port gives the reply instead
- {kind: step, name: a, does: fail, ports: {error: [{name: b, port: in}]}}
- {kind: step, name: b, says: b}
1 -> ["b", {"error": "failed", "status": 418, "node": "a"}]

# an 'error' port is for the node's own errors, not for those of the nodes behind it
- {kind: step, name: a, ports: {out: [{name: b, port: in}],
   error: [{name: c, port: in}]}}
- {kind: step, name: b, does: fail}
- {kind: nop, name: c}
1 -> node 'b': failed (418)

# an error of who handles errors goes back as its own
- {kind: step, name: a, does: fail, ports: {error: [{name: b, port: in}]}}
- {kind: throw, name: b, message: '{{ packet.node }} again', status: 502}
1 -> node 'b': a again (502)

# fan-out: nothing from all is nothing
- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
- {kind: step, name: b, does: nothing}
- {kind: step, name: c, does: nothing}
1 -> nothing

# fan-out: one reply is itself
- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
- {kind: step, name: b, does: nothing}
- {kind: step, name: c, says: c}
1 -> ["c", 1]

# fan-out: several replies are a list in the order of the links, whoever is first
- {kind: nop, name: a, ports: {out: [{name: s, port: in}, {name: c, port: in}]}}
- {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, says: b}
- {kind: step, name: c, says: c}
1 -> [["b", 1], ["c", 1]]

# fan-out: any error makes one error of all errors
- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in},
   {name: d, port: in}]}}
- {kind: step, name: b, does: fail}
- {kind: step, name: c, says: c}
- {kind: throw, name: d, message: no, status: 404}
1 -> node 'b': failed; node 'd': no (500)

# fan-out: errors of one status keep it
- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
- {kind: step, name: b, does: fail}
- {kind: step, name: c, does: fail}
1 -> node 'b': failed; node 'c': failed (418)

# pipe: each reply is the next packet
- {kind: pipe, name: a, ports: {'out[0]': [{name: b, port: in}],
   'out[1]': [{name: c, port: in}]}}
- {kind: step, name: b, says: b}
- {kind: step, name: c, says: c}
1 -> ["c", ["b", 1]]

# pipe: without steps the packet is the reply
- {kind: pipe, name: a}
1 -> 1

# pipe: nothing ends it with nothing
- {kind: pipe, name: a, ports: {'out[0]': [{name: b, port: in}],
   'out[7]': [{name: c, port: in}]}}
- {kind: step, name: b, does: nothing}
- {kind: step, name: c, does: fail}
1 -> nothing

# pipe: an error of a step is the pipe's, which its 'error' port may answer
- {kind: pipe, name: a, ports: {'out[0]': [{name: b, port: in}],
   'out[1]': [{name: c, port: in}], error: [{name: d, port: in}]}}
- {kind: nop, name: b}
- {kind: step, name: c, does: fail}
- {kind: step, name: d, says: d}
1 -> ["d", {"error": "failed", "status": 418, "node": "c"}]

# for: replies stand in the order of the elements, null for nothing
- {kind: for, name: a, concurrency: 3, ports: {out: [{name: b, port: in}]}}
- {kind: sleep, name: b, duration_ms: packet}
[9, 5, 1] -> [9, 5, 1]

# for: an element without a reply is null
- {kind: for, name: a, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, does: nothing}
[1, 2] -> [null, null]

# for: an empty list is one
- {kind: for, name: a}
[] -> []

# for: where 'done' leads somewhere, it gets the list
- {kind: for, name: a, items: packet.of, ports: {done: [{name: b, port: in}]}}
- {kind: step, name: b, says: b}
{"of": [1, 2]} -> ["b", [1, 2]]

# for: what is not a list is an error
- {kind: for, name: a}
1 -> node 'a': expected a list, got a whole number (500)

# for: a list that is too long is an error
- {kind: for, name: a, items_max: 2}
[1, 2, 3] -> node 'a': a list of 3 elements, at most 2; raise items_max (500)

# for: after an error no element is begun; those under way end
- {kind: for, name: a, concurrency: 2, ports: {out: [{name: b, port: in}]}}
- {kind: throw, name: b, message: '{{ packet }}', status: 400}
[1, 2, 3, 4] -> node 'a': node 'b': 1; node 'b': 2 (400)

# split: each element goes its way, and the replies are joined
- {kind: split, name: a, ports: {'out[0]': [{name: b, port: in}],
   'out[2]': [{name: c, port: in}]}}
- {kind: step, name: b, says: b}
- {kind: step, name: c, does: nothing}
[1, 2, 3] -> [["b", 1], 2]

# split: more elements than outputs are an error
- {kind: split, name: a, ports: {'out[0]': [{name: b, port: in}]}}
- {kind: nop, name: b}
[1, 2] -> node 'a': a list of 2 elements, room for 1; link out[1], or use 'for' (500)

# split: a mapping is not a list
- {kind: split, name: a}
{} -> node 'a': expected a list, got a mapping (500)

# merge: one packet from each input is a list, in the order of the inputs
- {kind: nop, name: a, ports: {out: [{name: b, port: in}, {name: c, port: in}]}}
- {kind: step, name: b, says: b, ports: {out: [{name: m, port: 'in[1]'}]}}
- {kind: step, name: c, says: c, ports: {out: [{name: m, port: 'in[0]'}]}}
- {kind: merge, name: m, ports: {out: [{name: d, port: in}]}}
- {kind: step, name: d, says: d}
1 -> ["d", [["c", 1], ["b", 1]]]

# merge: what comes later is waited for
- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[0]'},
   {name: s, port: in}]}}
- {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: m, port: 'in[1]'}]}}
- {kind: merge, name: m}
1 -> [1, 1]

# merge: when nothing can come any more, that is an error
- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[0]'},
   {name: s, port: in}]}}
- {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, does: nothing, ports: {out: [{name: m, port: 'in[1]'}]}}
- {kind: merge, name: m}
1 -> node 'm': nothing came to in[1], and nothing can any more (500)

# merge: an error on the way to it is the answer, at once
- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[0]'},
   {name: b, port: in}]}}
- {kind: step, name: b, does: fail, ports: {out: [{name: m, port: 'in[1]'}]}}
- {kind: merge, name: m}
1 -> node 'b': failed (418)

# merge: a step of a pipe that waits for a later one learns that it never comes
- {kind: pipe, name: a, ports: {'out[0]': [{name: m, port: 'in[0]'}],
   'out[1]': [{name: m, port: 'in[1]'}]}}
- {kind: merge, name: m}
1 -> node 'm': nothing came to in[1], and nothing can any more (500)

# merge: a second packet at an input is an error
- {kind: for, name: a, concurrency: 2, ports: {out: [{name: m, port: 'in[0]'},
   {name: s, port: in}]}}
- {kind: sleep, name: s, duration: 5ms, ports: {out: [{name: m, port: 'in[1]'}]}}
- {kind: merge, name: m}
[1, 2] -> node 'm': a second packet came to in[0] before the first was merged; where 'for'
  repeats what leads here, set concurrency: 1 (500)

# merge: element by element it merges each
- {kind: for, name: a, ports: {out: [{name: m, port: 'in[0]'},
   {name: m, port: 'in[1]'}]}}
- {kind: merge, name: m}
[1, 2] -> [[1, 1], [2, 2]]

# merge: one input makes a list of one
- {kind: nop, name: a, ports: {out: [{name: m, port: 'in[4]'}]}}
- {kind: merge, name: m}
7 -> [7]

# fork: nothing is the answer, whatever becomes of the child
- {kind: fork, name: a, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, does: fail}
1 -> nothing

# try: an error from whichever node behind it becomes a packet
- {kind: try, name: a, ports: {out: [{name: b, port: in}],
   error: [{name: d, port: in}]}}
- {kind: nop, name: b, ports: {out: [{name: c, port: in}]}}
- {kind: step, name: c, does: fail}
- {kind: step, name: d, says: d}
1 -> ["d", {"error": "failed", "status": 418, "node": "c"}]

# try: a reply that is none passes through
- {kind: try, name: a, ports: {out: [{name: b, port: in}],
   error: [{name: c, port: in}]}}
- {kind: step, name: b, says: b}
- {kind: step, name: c, says: c}
1 -> ["b", 1]

# retry: the last error is the answer
- {kind: retry, name: a, backoff: 1ms, ports: {out: [{name: b, port: in}]}}
- {kind: step, name: b, does: fail}
1 -> node 'b': failed (418)

# retry: a reply needs no other attempt
- {kind: retry, name: a}
1 -> 1

# throw: an error on purpose
- {kind: throw, name: a, message: 'no {{ packet.what }}', status: '{{ packet.status }}',
   body: {sorry: '{{ packet.what }}'}}
{"what": "bread", "status": 404} -> node 'a': no bread (404)
"#;

/// A reply as the table writes it.
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
    for rule in RULES.trim().split("\n\n") {
        let (says, shown) = rule.split_once('\n').expect("a graph");
        let (before, expected) = shown.split_once(" -> ").expect("a reply");
        let (graph, packet) = before.rsplit_once('\n').expect("a packet");
        let packet: Json = serde_json::from_str(packet).expect("a packet in JSON");
        let came = text(&reply(graph, Value::from(packet)));
        let expected = expected.replace("\n ", "");
        let expected = serde_json::from_str::<Json>(&expected)
            .map_or_else(|_| expected, |json| json.to_string());
        if came != expected {
            wrong.push(format!("{says}\n  expected {expected}\n  came     {came}"));
        }
    }
    assert!(wrong.is_empty(), "{} rules do not hold:\n{}", wrong.len(), wrong.join("\n"));
}
