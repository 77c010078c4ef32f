//! Tests of states and transitions, and of what is refused.

use std::path::Path;

use sinew_core::NodeFixture;
use sinew_plan::{Item, Span};
use sinew_spec::alone;

use super::*;
use crate::testing::fixture;

/// A door: inputs at ports 0 to 2, the number of the state at 3, outputs at 4 and 5.
const STATES: &str = "{
    closed: {outputs: {speed: 0}, transitions: [
        {to: broken, if: 'max(sqrt(want) - 100, 0)'},
        {to: opens, if: 'want > 0.5 and not stop', after: 3ms}]},
    opens: {outputs: {speed: 'if(t < 0.0015, 0.1, want)', lamp: true}, transitions: [
        {to: closed, if: stop},
        {to: open, if: 'place >= 1'},
        {to: late, after: 5ms}]},
    open: {finish: true},
    late: {outputs: {speed: 1 / place, lamp: 2}, end: true},
    broken: {fault: 'the door wants too much; lower want'}}";
const INPUTS: &str = "[want, place, stop]";
const WANT: usize = 0;
const PLACE: usize = 1;
const STOP: usize = 2;
const STATE_PORT: usize = 3;
const SPEED: usize = 4;
const LAMP: usize = 5;

const CLOSED: f64 = 0.0;
const OPENS: f64 = 1.0;
const OPEN: f64 = 2.0;
const LATE: f64 = 3.0;

fn door() -> NodeFixture {
    let given = [
        ("inputs", INPUTS),
        ("outputs", "[speed, lamp]"),
        ("initial", "closed"),
        ("states", STATES),
        ("defaults", "{speed: 0, lamp: 0}"),
    ];
    fixture(&NODE, &given).expect("makes")
}

fn put(node: &mut NodeFixture, port: usize, value: f64) {
    node.put(port, &Real { value });
}

/// Runs a cycle. Returns the state and the outputs.
fn cycle(node: &mut NodeFixture) -> (f64, [f64; 2]) {
    node.update().expect("goes on");
    let get = |port| node.get::<Real>(port).expect("writes in every cycle").value;
    assert_eq!(node.signal(STATE), [get(STATE_PORT)]);
    (get(STATE_PORT), [SPEED, LAMP].map(get))
}

#[test]
fn it_goes_where_the_first_guard_that_holds_leads() {
    let mut node = door();
    put(&mut node, WANT, 0.7);
    // 3 ms, counted from the first cycle.
    for _ in 0..3 {
        assert_eq!(cycle(&mut node), (CLOSED, [0.0, 0.0]));
    }
    assert_eq!(cycle(&mut node), (OPENS, [0.1, 1.0]), "t is 0 in its first cycle");
    assert_eq!(cycle(&mut node), (OPENS, [0.1, 1.0]));
    assert_eq!(cycle(&mut node), (OPENS, [0.7, 1.0]), "2 ms");
    put(&mut node, STOP, 1.0);
    put(&mut node, PLACE, 1.0);
    assert_eq!(cycle(&mut node), (CLOSED, [0.0, 0.0]), "both hold; one transition a cycle");
    put(&mut node, STOP, 0.0);
    for _ in 0..2 {
        assert_eq!(cycle(&mut node).0, CLOSED, "the time begins anew");
    }
    assert_eq!(cycle(&mut node).0, OPENS);
    assert!(!node.cycle.is_finished());
    assert_eq!(cycle(&mut node), (OPEN, [0.0, 0.0]), "of the defaults");
    assert!(node.cycle.is_finished());
    let entered = ["opens", "closed", "opens", "open"];
    let said = entered.map(|name| (Level::Info, format!("enters state '{name}'")));
    assert_eq!(node.lines(), said, "each once");
}

#[test]
fn lost_periods_count_as_time() {
    let mut node = door();
    put(&mut node, WANT, 1.0);
    assert_eq!(cycle(&mut node).0, CLOSED);
    node.cycle.skipped = 1;
    assert_eq!(cycle(&mut node).0, CLOSED, "2 ms");
    node.cycle.skipped = 0;
    assert_eq!(cycle(&mut node).0, OPENS);
    node.cycle.skipped = u64::MAX;
    put(&mut node, PLACE, 0.5);
    assert_eq!(cycle(&mut node), (LATE, [2.0, 2.0]));
    assert_eq!(cycle(&mut node), (LATE, [2.0, 2.0]), "it stays");
}

#[test]
fn cycles_do_not_allocate() {
    let mut node = door();
    let counted = allocation_counter::measure(|| {
        put(&mut node, WANT, 0.7);
        for _ in 0..6 {
            node.update().expect("goes on");
        }
    });
    assert_eq!(counted.count_total, 0);
}

#[test]
fn a_state_may_be_a_fault_and_so_is_a_formula_that_is_not_finite() {
    let mut node = door();
    put(&mut node, WANT, 1e6);
    let fault = node.update().expect_err("too much");
    assert_eq!(fault.text(), "state 'broken': the door wants too much; lower want");
    let mut node = door();
    put(&mut node, WANT, -1.0);
    let fault = node.update().expect_err("no root");
    let text = "state 'closed': if 'max(sqrt(want) - 100, 0)' is NaN with want = -1.0";
    assert!(fault.text().starts_with(text), "{fault}");
    let mut node = door();
    put(&mut node, WANT, 1.0);
    for _ in 0..8 {
        node.update().expect("goes on");
    }
    let fault = node.update().expect_err("1 / 0");
    let text = "state 'late': output '1 / place' is inf with place = 0.0; keep it finite with if() \
                or clamp()";
    assert_eq!(fault.text(), text);
}

/// The error for a machine with input `a` and output `out`, and the piece of the spec to which the
/// error points: the item that its path leads to, or the key of that item.
fn refused(states: &str, initial: &str) -> (String, Item, Option<Span>) {
    let given = [("inputs", "[a]"), ("outputs", "[out]"), ("initial", initial), ("states", states)];
    let node = alone(&INFO, &given, "").unwrap_or_else(|bad| panic!("{bad}"));
    let parameters = Parameters {
        kind: node.kind,
        values: &node.values,
        base: Path::new("."),
        spans: &node.spans,
        period_ns: 1_000_000,
        messages: vec![],
        home: None,
    };
    let fault = make(&parameters).err().unwrap_or_else(|| panic!("takes {states}"));
    (fault.text().to_owned(), parameters.yaml("states").clone(), fault.span())
}

/// States that are refused, and the error.
const REFUSED: &[(&str, &str)] = &[
    (
        "x",
        "states is a mapping, found a single value; \
             write {idle: {outputs: {...}, transitions: [...]}}",
    ),
    ("{}", "0 states; write 1 to 256"),
    ("{b: {outputs: {out: 0}, end: true}}", "initial: no state 's'; there are b"),
    ("{s: {}}", "state 's' has no exit; add transitions, or 'end: true' if it is to stay in it"),
    (
        "{s: {end: true}}",
        "state 's' does not say output 'out'; add it to its outputs, \
             such as {out: 0}, or to 'defaults'",
    ),
    (
        "{s: {outputs: {out: 0, ou: 1}, end: true}}",
        "state 's': no output 'ou'; 'outputs' of the node has [out]",
    ),
    (
        "{s: {outputs: [0], end: true}}",
        "outputs of state 's' is a mapping, found a list; write {output: 0}",
    ),
    (
        "{s: {outputs: {out: [0]}, end: true}}",
        "state 's', output 'out' is a list; write a formula or a number",
    ),
    (
        "{s: {outputs: {out: a +}, end: true}}",
        "state 's', output 'out', column 4: expected a number, a name or '(', found the end",
    ),
    (
        "{s: {outputs: {out: out}, end: true}}",
        "state 's', output 'out', column 1: no name 'out'; there are a, t",
    ),
    (
        "{s: {outputs: {out: 0}, ends: true}}",
        "unknown key 'ends' in state 's'; it has outputs, transitions, end, finish, fault",
    ),
    ("{s: {outputs: {out: 0}, end: yes}}", "'end' of state 's' is true or false"),
    (
        "{s: {outputs: {out: 0}, end: false}}",
        "state 's' has no exit; add transitions, or 'end: true' if it is to stay in it",
    ),
    (
        "{s: {outputs: {out: 0}, end: true, finish: true}}",
        "state 's' has 'end' and 'finish'; keep one of them",
    ),
    (
        "{s: {outputs: {out: 0}, finish: true, transitions: [{to: s, if: a}]}}",
        "state 's' has 'transitions' and 'finish'; keep one of them",
    ),
    (
        "{s: {fault: broken, outputs: {out: 0}}}",
        "state 's' is a fault: the core stops at once; remove its outputs",
    ),
    ("{s: {fault: }}", "fault of state 's' is nothing; write what is wrong, as a text"),
    (
        "{s: {outputs: {out: 0}, transitions: {to: s}}}",
        "transitions of state 's' is a list, found a mapping; write [{to: other, if: 'a > 1'}]",
    ),
    (
        "{s: {outputs: {out: 0}, transitions: [{if: a}]}}",
        "state 's', transition 1 leads nowhere; add 'to: ' and a state",
    ),
    (
        "{s: {outputs: {out: 0}, transitions: [{to: s}]}}",
        "state 's', transition 1 has no condition; add 'if', 'after' or both",
    ),
    (
        "{s: {outputs: {out: 0}, transitions: [{to: s, if: a, aft: 1}]}}",
        "unknown key 'aft' in state 's', transition 1; it has to, if, after",
    ),
    (
        "{s: {outputs: {out: 0}, transitions: [{to: r, if: a}]}}",
        "state 's', transition 1: no state 'r'; there are s",
    ),
    (
        "{s: {outputs: {out: 0}, transitions: [{to: s, if: a and}]}}",
        "state 's', transition 1, if, column 6: expected a number, \
             a name or '(', found the end",
    ),
    (
        "{s: {outputs: {out: 0}, transitions: [{to: s, after: 100}]}}",
        "state 's', transition 1: after cannot be '100'; a bare number has no unit: \
             write 100ms, 100us or 100s",
    ),
];

#[test]
fn what_it_refuses_says_what_to_change() {
    let ends = "outputs: {out: 0}, end: true";
    for (states, text) in REFUSED {
        assert_eq!(refused(states, "s").0, *text, "{states}");
    }
    let lonely = format!("{{s: {{{ends}}}, u: {{{ends}}}}}");
    let text = "state 'u' cannot be reached from 's'; add a transition to it, or remove it";
    assert_eq!(refused(&lonely, "s").0, text);
    let many: String = (0..257).map(|at| format!("s{at}: {{{ends}}}, ")).collect();
    assert_eq!(refused(&format!("{{{many}}}"), "s0").0, "257 states; write 1 to 256");
    let many = "{to: s, if: a}, ".repeat(33);
    let many = format!("{{s: {{outputs: {{out: 0}}, transitions: [{many}]}}}}");
    assert_eq!(refused(&many, "s").0, "state 's' has 33 transitions; at most 32");
}

#[test]
fn a_refusal_points_into_the_states() {
    let states = "{s: {outputs: {out: 0}, transitions: [{to: s, if: 'a > bc'}, {to: x, if: a}]}}";
    let (_, item, span) = refused(states, "s");
    let transitions = item.get("s").and_then(|it| it.get("transitions")).expect("it is there");
    let sinew_plan::Data::List(transitions) = &transitions.data else { panic!("it is a list") };
    let guard = transitions[0].get("if").expect("it is there");
    assert_eq!(span, Some(Span { start: guard.span.start + 5, len: 1, ..guard.span }));
    let states = states.replace("bc", "1");
    let (_, item, span) = refused(&states, "s");
    let transitions = item.get("s").and_then(|it| it.get("transitions")).expect("it is there");
    let sinew_plan::Data::List(transitions) = &transitions.data else { panic!("it is a list") };
    assert_eq!(span, Some(transitions[1].get("to").expect("it is there").span));
}

#[test]
fn the_time_is_no_name_of_an_input() {
    let given = [("inputs", "[t]"), ("initial", "s"), ("states", "{s: {end: true}}")];
    let fault = fixture(&NODE, &given).err().expect("refuses");
    let text = "input 't' is the time in a state; write another name, such as 'in_t'";
    assert_eq!(fault.text(), text);
}

#[test]
fn a_machine_without_outputs_shows_its_state() {
    let states =
        "{s: {transitions: [{to: u, after: 0s}]}, u: {transitions: [{to: s, if: t >= 0.002}]}}";
    let mut node = fixture(&NODE, &[("initial", "s"), ("states", states)]).expect("makes");
    let walked = [(); 6].map(|()| {
        node.update().expect("goes on");
        node.signal(STATE)[0]
    });
    assert_eq!(walked, [1.0, 1.0, 0.0, 1.0, 1.0, 0.0]);
}
