//! One budget for all that a flow computes, and its turns with other flows.

use std::fmt::Write;
use std::time::Duration;

use sinew_flow::{FlowLimits, Reply, Value, WORK_DEFAULT};
use tokio::task::yield_now;

use super::WORK_MAX;
use crate::testing::{self, fixture, run};

/// Longest that a flow in these tests may take.
const DEADLINE: Duration = Duration::from_secs(600);

/// Computes for long, but within the limit of one evaluation: 3000 steps.
const LONG: &str = "packet.all(a, packet.all(b, a + b >= 0))";

fn numbers(count: i64) -> Value {
    Value::list((0..count).map(Value::Integer))
}

/// A node with `count` entries in its last key; '#' stands for the entry's number.
fn large(keys: &str, count: usize, entry: &str) -> String {
    let entry = |at: usize| format!("\n    {}", entry.replace('#', &at.to_string()));
    format!("- {keys}{}", (0..count).map(entry).collect::<String>())
}

/// A `switch` whose 256 expressions are all evaluated.
fn switch() -> String {
    let keys = "kind: switch\n  name: a\n  otherwise: out[1]\n  matches:";
    large(keys, 256, &format!("- {{when: '!{LONG}', port: 'out[0]'}}"))
}

/// A snippet of 200 templates.
fn templates() -> String {
    let keys = "kind: snippet\n  name: a\n  language: yaml\n  code:";
    large(keys, 200, &format!("- '{{{{ {LONG} }}}}'"))
}

/// 200 values of a flow, with one expression in each; no single one can be interrupted.
fn values() -> String {
    large("kind: set\n  name: a\n  values:", 200, &format!("v#: '{{{{ {LONG} }}}}'"))
}

/// Nodes in a row, with one expression in each.
fn chain() -> String {
    let mut text = String::new();
    for at in 0..40 {
        let ports = format!("{{'out[0]': [{{name: n{}, port: in}}]}}", at + 1);
        writeln!(text, "- {{kind: if, name: n{at}, when: '{LONG}', ports: {ports}}}")
            .expect("memory");
    }
    text + "- {kind: nop, name: n40}\n"
}

fn lua(code: &str) -> String {
    format!("- {{kind: snippet, name: a, language: lua, time: 10s, code: '{code}'}}\n")
}

/// The reply to a packet, and how often other flows of the worker had a turn meanwhile.
fn turns(text: &str, packet: Value, work: u64) -> (Reply, u32) {
    let (fixture, limits) = (fixture(text), FlowLimits { deadline: DEADLINE, work });
    run(testing::turns(fixture.open("begin", 0, packet, limits)))
}

#[test]
fn the_default_is_that_of_the_runtime() {
    assert_eq!(WORK_MAX.default, Some(&*WORK_DEFAULT.to_string()));
}

#[test]
fn whatever_computes_for_long_lets_others_have_their_turn() {
    let list = || numbers(50);
    let cases = [
        ("switch", switch(), list()),
        ("templates", templates(), list()),
        ("a chain", chain(), list()),
        ("set", values(), list()),
        ("a loop of lua", lua("for i = 1, 5e6 do end"), Value::Null),
        (
            "what lua sorts by",
            lua("local t = {} for i = 1, 20000 do t[i] = -i end \
                 table.sort(t, function(a, b) return a < b end)"),
            Value::Null,
        ),
        (
            "what lua puts into a text",
            lua("(\"x\"):rep(20000):gsub(\"x\", function(x) for i = 1, 100 do end end)"),
            Value::Null,
        ),
        (
            "a list that is written into a text",
            "- {kind: snippet, name: a, language: text, code: 't {{ packet }}'}\n".into(),
            numbers(500_000),
        ),
        (
            "lists that are written into texts",
            "- {kind: snippet, name: a, language: yaml, code: ['{{ packet }}', \
             't {{ packet }}', {b: '{{ packet }} t'}]}\n"
                .into(),
            numbers(200_000),
        ),
        (
            "for",
            format!(
                "- {{kind: for, name: a, concurrency: 8, \
                 ports: {{out: [{{name: n, port: in}}]}}}}\n\
                 - {{kind: snippet, name: n, language: cel, code: '{}'}}\n",
                LONG.replace("packet", "[1, 2, 3, 4, 5, 6, 7, 8, 9]")
                    .replace("b >= 0", "b >= packet")
            ),
            numbers(2000),
        ),
    ];
    for (name, text, packet) in cases {
        let (reply, turns) = turns(&text, packet, u64::MAX);
        assert!(reply.is_ok(), "{name}: {reply:?}");
        // The first turn may be before the flow begins, or after its end.
        assert!(turns > 3, "{name}: {turns} turns");
    }
}

#[test]
fn a_flow_has_one_budget_of_work_for_all_that_it_computes() {
    let cases = [
        ("switch", switch(), "a"),
        ("templates", templates(), "a"),
        ("a chain", chain(), "n"),
        ("lua", lua("while true do end"), "a"),
    ];
    for (name, text, node) in cases {
        let (reply, _) = turns(&text, numbers(50), 100_000);
        let error = reply.expect_err(name);
        assert_eq!(error.status(), 503, "{name}: {error}");
        assert!(error.to_string().contains("100000 units"), "{name}: {error}");
        assert!(error.text().contains("'work_max'"), "{name}: {error}");
        let of = error.node().expect("a node");
        assert!(of.starts_with(node), "{name}: of {of}");
    }
}

#[test]
fn what_forked_children_compute_is_drawn_from_their_parent() {
    let text = format!(
        "- {{kind: fork, name: a, ports: {{out: [{{name: n, port: in}}]}}}}\n\
         - {{kind: snippet, name: n, language: cel, code: '{LONG}'}}\n"
    );
    let fixture = fixture(&text);
    run(async {
        let flow = fixture.flow();
        let limits = FlowLimits { deadline: DEADLINE, work: 1_000_000 };
        let reply = fixture.send(&flow, "begin", 0, numbers(50), limits).await;
        assert_eq!(reply, Ok(None));
        let after_fork = flow.work_left();
        while fixture.flows() > 0 {
            yield_now().await;
        }
        assert!(flow.work_left() < after_fork, "{after_fork} left, as before the child");
        assert!(flow.work_left() < 1_000_000 - 50 * 50);
    });
}

#[test]
fn what_an_error_path_says_without_computing_is_said_when_no_work_is_left() {
    let text = format!(
        "- kind: if\n  name: a\n  when: '{LONG}'\n  ports: {{error: [{{name: e, port: in}}]}}\n\
         - {{kind: snippet, name: e, language: cel, code: packet.status}}\n"
    );
    let (reply, _) = turns(&text, numbers(50), 2000);
    assert_eq!(reply, Ok(Some(Value::Integer(503))));
}
