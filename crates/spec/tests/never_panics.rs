//! Whatever the text, the compiler answers with a plan or with diagnostics that can be shown.

use std::fmt::Write;

use crate::kinds::{ARM, compile_on, compile_with};
use proptest::prelude::*;
use sinew_spec::chain::Chain;
use sinew_spec::firewall::Firewall;
use sinew_spec::plan::{Machine, Plan};
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

/// Pieces that mean something to the parser or to the compiler.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "\n",
    "\t",
    "  ",
    "'",
    "\"",
    "&a ",
    "*a",
    "!t ",
    "#",
    "|",
    ">",
    "%",
    "---",
    "? ",
    ", ",
    "~",
    "\u{feff}",
    "µ",
    "\u{2028}",
    "0",
    "-1",
    "1e999",
    "nan",
    "1ms",
    "99999999999s",
    "in",
    "out",
    "name",
    "planner",
    "drives",
    "ports",
    "delay: 1",
    "trigger: input",
    "realtime",
    "threads: [{cpu: 1, nodes: [ik]}]",
    "delivery: broadcast",
    "capacity: 7",
    "<<: ",
    "safe",
    "  screen: {restart: {policy: always}}\n",
    "restart: {backoff: 1h, restarts_max: 1000000}",
    "limits: {memory: 8MiB, cpu: 1%, processes: 2}",
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
];

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

/// All that can be shown of a plan.
fn show(plan: &Plan) {
    let firewall = Firewall::of(plan, &Machine { cpus: vec![0, 1] });
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
    Put(usize, usize),
    Double(usize),
    Swap(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0..4096usize;
    prop_oneof![
        (at.clone(), 1..40usize).prop_map(|(at, len)| Change::Cut(at, len)),
        (at.clone(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Put(at, piece)),
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
        Change::Put(at, piece) => text[..place(at)].to_owned() + PIECES[piece] + &text[place(at)..],
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
    fn on_pieces_of_specs(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        check(&text, &[]);
    }

    #[test]
    fn on_changed_specs(changes in prop::collection::vec(change(), 1..6)) {
        let text = changes.iter().fold(ARM.to_owned(), |text, change| apply(&text, change));
        check(&text, &[]);
    }

    #[test]
    fn on_changed_specs_with_services(changes in prop::collection::vec(change(), 1..6)) {
        let text = changes.iter().fold(BESIDE.to_owned(), |text, change| apply(&text, change));
        check(&text, &[]);
    }

    #[test]
    fn on_changed_specs_with_flows(changes in prop::collection::vec(change(), 1..6)) {
        let text = changes.iter().fold(FLOWS.to_owned(), |text, change| apply(&text, change));
        check(&text, &[]);
    }

    #[test]
    fn on_any_override(path in any::<String>(), value in any::<String>()) {
        check(ARM, &[(path.clone(), value.clone()), ("planner.laps".to_owned(), value.clone())]);
        check(FLOWS, &[(path, value.clone()), ("auth/more/check.code".to_owned(), value)]);
    }
}

/// In every direction in which a spec can be large. What is not linear here would not come back.
#[test]
fn large_graphs_of_every_shape_are_compiled() {
    const COUNT: usize = 5_000;
    let one = "domains: {d: {realtime: {period: 1ms}}}\nnodes:\n";
    let chain: String = (0..COUNT).fold(one.to_owned(), |mut text, i| {
        let next = (i + 1).min(COUNT);
        writeln!(
            text,
            "- {{kind: filter, name: n{i}, ports: {{out: [{{name: n{next}, port: in}}]}}}}"
        )
        .unwrap();
        text
    }) + &format!("- {{kind: filter, name: n{COUNT}}}\n");
    let mut star = one.to_owned() + "- kind: filter\n  name: hub\n  ports:\n    out:\n";
    let mut domains = "domains:\n  d0: {realtime: {period: 1ms}}\n".to_owned();
    let mut nodes = String::new();
    for i in 0..COUNT {
        writeln!(star, "    - {{name: n{i}, port: in}}").unwrap();
        writeln!(domains, "  d{}: {{realtime: {{trigger: input}}}}", i + 1).unwrap();
        let link = format!("ports: {{out: [{{name: n{}, port: in}}]}}", i + 1);
        writeln!(nodes, "- {{kind: filter, name: n{i}, domain: d{i}, {link}}}").unwrap();
    }
    for i in 0..COUNT {
        writeln!(star, "- {{kind: filter, name: n{i}}}").unwrap();
    }
    writeln!(nodes, "- {{kind: filter, name: n{COUNT}, domain: d{COUNT}}}").unwrap();
    let domains = domains + "nodes:\n" + &nodes;
    let mut services = "domains:\n".to_owned();
    let mut nodes = String::new();
    for i in 0..=COUNT {
        writeln!(services, "  s{i}: {{limits: {{descriptors: 64}}}}").unwrap();
        let next =
            if i == COUNT { String::new() } else { format!("{{name: n{}, port: in}}", i + 1) };
        let links = format!("ports: {{out: [{next}]}}");
        writeln!(nodes, "- {{kind: gauge, name: n{i}, domain: s{i}, {links}}}").unwrap();
    }
    let services = services + "nodes:\n" + &nodes;
    let mut blocks = "- {kind: begin, name: x, ports: {out: [{name: n0, port: in}]}}\n".to_owned();
    for i in 0..COUNT {
        let next = if i + 1 == COUNT { "" } else { &format!("{{name: n{}, port: in}}", i + 1) };
        let ends = "inputs: {in: [{name: s, port: in}]}, outputs: {out: [{name: s, port: out}]}";
        let links = format!("ports: {{out: [{next}]}}");
        writeln!(
            blocks,
            "- {{kind: block, name: n{i}, {ends}, nodes: [{{kind: step, name: s}}], {links}}}"
        )
        .unwrap();
    }
    for text in [&chain, &star, &domains, &services, &blocks] {
        let plan = compile_on(4, text).unwrap_or_else(|errors| panic!("{}", errors[0]));
        let links = plan.links.len() + plan.flow_links.len();
        assert_eq!((plan.nodes.len(), links), (COUNT + 1, COUNT));
    }
    // The same with an error on every line: unknown names are searched for, but not without end.
    let errors = compile_on(4, &chain.replace("{name: n", "{name: m")).unwrap_err();
    assert!(errors.last().unwrap().message.contains("more errors are not shown"));
}
