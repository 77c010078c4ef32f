//! For every text the compiler returns a plan, or diagnostics that can be shown.

use crate::compile::AXIS;
use crate::kinds::{ARM, compile_on, compile_with, plan};
use proptest::prelude::*;
use sinew_spec::chain::Chain;
use sinew_spec::firewall::Firewall;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{picture, render};

/// A core of one node, with services around it.
const BESIDE: &str = "domains:
  core: {realtime: {period: 1ms}}
  screen: {restart: {policy: always, backoff: 10ms}, limits: {memory: 64MiB, descriptors: 20}}
  log: {heartbeat: 1s, user: nobody}
nodes:
  - kind: filter
    name: a
    domain: core
    ports: {out: [{name: screen, port: in}, {name: log, port: in, delivery: broadcast}]}
  - kind: gauge
    name: screen
    domain: screen
    ports: {out: [{name: log, port: extra, wait: park}]}
  - {kind: gauge, name: log, domain: log, ports: {out: [{name: a, port: in, full: drop}]}}
";

/// Flow nodes, in blocks and around them.
const FLOWS: &str = "- {kind: begin, ports: {out: [{name: auth, port: in}, {name: fan, port: in}]}}
- kind: block
  name: auth
  nodes:
    - {kind: step, name: check, ports: {error: [{name: more, port: in}]}}
    - kind: block
      name: more
      nodes: [{kind: step, name: check, pause: 1m, body_max: 4KiB}]
      inputs: {in: [{name: check, port: in}]}
      outputs: {out: [{name: check, port: out}]}
  inputs: {in: [{name: check, port: in}]}
  outputs: {out: [{name: check, port: out}, {name: more, port: out}]}
  ports: {out: [{name: fan, port: in}]}
- {kind: fan, ports: {\"out[0]\": [{name: last, port: in}], \"out[9]\": [{name: last, port: in}]}}
- kind: step
  name: last
  code: |
    return 1
";

/// Characters and words that mean something to the parser or to the compiler.
const WORDS: &[&str] = &[
    "{", "}", "[", "]", ":", "- ", "\n", "\t", "  ", "'", "\"", "&a ", "*a", "!t ", "#", "|", ">",
    "%", "---", "? ", ", ", "~", "\u{feff}", "µ", "\u{2028}", "0", "-1", "1e999", "nan", "1ms",
    "in", "out", "name", "planner", "drives", "ports", "delay: 1", "realtime", "<<: ", "safe",
];
/// Longer pieces of a spec.
const PIECES: &[&str] = &[
    "99999999999s",
    "trigger: input",
    "threads: [{cpu: 1, nodes: [ik]}]",
    "delivery: broadcast",
    "capacity: 7",
    "  screen: {restart: {policy: always}}\n",
    "restart: {backoff: 1h, restarts_max: 1000000}",
    "limits: {memory: 8MiB, cpu: 1%, processes: 2}",
    "cpus: [1, 0]",
    "domain: screen",
    "- {kind: gauge, name: g, domain: screen, ports: {out: [{name: planner, port: feedback}]}}\n",
    "{name: g, port: in, delivery: broadcast}",
    "99999999999999999GiB",
    "kind: block",
    "nodes: [{kind: step}]",
    "inputs: {in: [{name: check, port: in}]}",
    "outputs: {out: [{name: check, port: out}]}",
    "\"out[1023]\"",
    "auth/check",
    "flows: {workers: 2}",
    "field: position_rad",
    "field: 'force_n[2]'",
    "messages: {axis: {a: 'f64[65537]', b: bool, __: u8}}\n",
    "inputs: [a, a, '']",
];

/// A word or a piece.
fn piece() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        (0..WORDS.len()).prop_map(|at| WORDS[at]),
        (0..PIECES.len()).prop_map(|at| PIECES[at]),
    ]
}

fn check(text: &str, overrides: &[(String, String)]) {
    let errors = match compile_with(2, text, overrides) {
        Ok(plan) => return show(&plan),
        Err(errors) => errors,
    };
    assert!(!errors.is_empty());
    let lines = text.split('\n').count();
    for error in &errors {
        assert!(error.line <= lines, "{error}");
        assert!(error.length >= 1 && !error.message.is_empty() && !error.help.is_empty());
    }
    assert!(!render(&errors, text, true).is_empty());
}

/// Makes everything that can be shown of a plan.
fn show(plan: &Plan) {
    let firewall = Firewall::of(plan, &TargetMachine::of(vec![0, 1]));
    assert!(firewall.violations.is_empty(), "{:?}", firewall.violations);
    let texts = [picture::summary(plan), picture::text(plan, 80), picture::svg(plan)];
    assert!(texts.iter().all(|text| !text.is_empty()));
    let _ = (firewall.text(plan), firewall.json(plan), picture::json(plan));
    let chain = Chain::longest(plan, |node| node as u64);
    assert!(chain.nodes.len() <= plan.nodes.len());
}

#[derive(Clone, Debug)]
enum Change {
    Cut(usize, usize),
    Put(usize, &'static str),
    Double(usize),
    Swap(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0..4096usize;
    prop_oneof![
        (at.clone(), 1..40usize).prop_map(|(at, len)| Change::Cut(at, len)),
        (at.clone(), piece()).prop_map(|(at, piece)| Change::Put(at, piece)),
        at.clone().prop_map(Change::Double),
        (at.clone(), at).prop_map(|(a, b)| Change::Swap(a, b)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    let place = |at: usize| text.floor_char_boundary(at % (text.len() + 1));
    let mut lines: Vec<&str> = text.lines().collect();
    let line = |at: usize| at % text.lines().count().max(1);
    match *change {
        Change::Cut(at, len) => {
            let end = text.floor_char_boundary((place(at) + len).min(text.len()));
            text[..place(at)].to_owned() + &text[end..]
        }
        Change::Put(at, piece) => text[..place(at)].to_owned() + piece + &text[place(at)..],
        _ if lines.is_empty() => String::new(),
        Change::Double(at) => {
            lines.insert(line(at), lines[line(at)]);
            lines.join("\n")
        }
        Change::Swap(a, b) => {
            lines.swap(line(a), line(b));
            lines.join("\n")
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn on_arbitrary_text(text in any::<String>()) {
        check(&text, &[]);
    }

    #[test]
    fn on_pieces_of_specs(pieces in prop::collection::vec(piece(), 0..60)) {
        check(&pieces.concat(), &[]);
    }

    #[test]
    fn on_changed_specs(changes in prop::collection::vec(change(), 1..6)) {
        for spec in [ARM, BESIDE, FLOWS, AXIS] {
            check(&changes.iter().fold(spec.to_owned(), |text, change| apply(&text, change)), &[]);
        }
    }

    #[test]
    fn on_any_override(path in any::<String>(), value in any::<String>()) {
        check(ARM, &[(path.clone(), value.clone()), ("planner.laps".to_owned(), value.clone())]);
        check(FLOWS, &[(path, value.clone()), ("auth/more/check.code".to_owned(), value)]);
    }
}

/// Large in every direction in which a spec can be large. Code that is not linear would not end.
#[test]
fn large_graphs_of_every_shape_are_compiled() {
    const COUNT: usize = 5_000;
    const END: &str = "inputs: {in: [{name: s, port: in}]}, outputs: {out: [{name: s, port: out}]}";
    // `COUNT` rows, each with its number and a link to the next one; the last row has none.
    let rows = |row: fn(usize, &str) -> String| -> String {
        let next = |at: usize| format!("ports: {{out: [{{name: n{}, port: in}}]}}", at + 1);
        let last = (COUNT, "ports: {}".to_owned());
        let all = (0..COUNT).map(|at| (at, next(at))).chain([last]);
        all.map(|(at, next)| row(at, &next)).collect()
    };
    let one = "domains: {d: {realtime: {period: 1ms}}}\nnodes:\n".to_owned();
    let chain =
        one.clone() + &rows(|at, next| format!("- {{kind: filter, name: n{at}, {next}}}\n"));
    let star =
        one + "- kind: filter\n  name: n0\n  ports:\n    out:\n"
            + &rows(|at, _| {
                if at == 0 { String::new() } else { format!("    - {{name: n{at}, port: in}}\n") }
            })
            + &rows(|at, _| {
                if at == 0 { String::new() } else { format!("- {{kind: filter, name: n{at}}}\n") }
            });
    let domains = "domains:\n".to_owned()
        + &rows(|at, _| {
            let release = if at == 0 { "period: 1ms" } else { "trigger: input" };
            format!("  d{at}: {{realtime: {{{release}}}}}\n")
        })
        + "nodes:\n"
        + &rows(|at, next| format!("- {{kind: filter, name: n{at}, domain: d{at}, {next}}}\n"));
    let services = "domains:\n".to_owned()
        + &rows(|at, _| format!("  d{at}: {{limits: {{descriptors: 64}}}}\n"))
        + "nodes:\n"
        + &rows(|at, next| format!("- {{kind: gauge, name: n{at}, domain: d{at}, {next}}}\n"));
    let blocks = rows(|at, next| match at {
        0 => format!("- {{kind: begin, name: n{at}, {next}}}\n"),
        _ => format!(
            "- {{kind: block, name: n{at}, {END}, nodes: [{{kind: step, name: s}}], {next}}}\n"
        ),
    });
    for text in [&chain, &star, &domains, &services, &blocks] {
        let plan = plan(text);
        let links = plan.links.len() + plan.flow_links.len();
        assert_eq!((plan.nodes.len(), links), (COUNT + 1, COUNT));
    }
    // The same with an error on every line: unknown names are searched for, but only a limited
    // number.
    let errors = compile_on(4, &chain.replace("{name: n", "{name: m")).unwrap_err();
    assert!(errors.last().unwrap().message.contains("more errors are not shown"));
}
