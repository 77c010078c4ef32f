//! What an edit may change, and what it may not.

use sinew_flow::{input, output};
use sinew_spec::catalogue::{Kind, MessageType, Parameter, ParameterType, Port, RunsIn};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, compile, render};

use super::*;

static WORD: MessageType = MessageType { name: "word", size: 8, align: 8, fields: &[], hash: 0 };

static GIVE: Kind = kind("give", RunsIn::Realtime, &[Port::output("out", "", &WORD).optional()]);
static TAKE: Kind = kind("take", RunsIn::Service, &[Port::input("in", "", &WORD).optional()]);
static BEGIN: Kind = kind("begin", RunsIn::Flow, &[output("out", "")]);
static NODE: Kind = kind("node", RunsIn::Flow, &[input("in", ""), output("out", "")]);

const fn kind(name: &'static str, runs_in: RunsIn, ports: &'static [Port]) -> Kind {
    const PARAMETERS: &[Parameter] = &[Parameter::new("value", ParameterType::Yaml).or("1")];
    Kind { parameters: PARAMETERS, ..Kind::new(name, runs_in, ports) }
}

const GRAPH: &str = "
name: machine
domains:
  core: {realtime: {period: 1ms}}
  log: {}
  web: {}
nodes:
  - {kind: give, name: give, domain: core, ports: {out: [{name: take, port: in}]}}
  - {kind: take, name: take, domain: log}
  - {kind: begin, name: begin, domain: web, ports: {out: [{name: a, port: in}]}}
  - {kind: node, name: a, domain: web, value: {x: 1}, ports: {out: [{name: b, port: in}]}}
  - {kind: node, name: b, domain: web}
";

fn plan(text: &str) -> Plan {
    let source = SpecSource::of("test.yaml", text);
    let kinds = [&GIVE, &TAKE, &BEGIN, &NODE];
    let plan = compile(&source, &kinds, &TargetMachine::of(vec![0, 1]));
    plan.unwrap_or_else(|errors| panic!("{}", render(&errors, text, false)))
}

/// What comes of the edit that puts `new` in the place of `old`.
fn edited(old: &str, new: &str) -> Result<Vec<String>, String> {
    assert!(GRAPH.contains(old), "{old}");
    let text = GRAPH.replace(old, new);
    let edition = Edition { plan: plan(&text), text, touched: vec![], outside: vec![] };
    changes(&plan(GRAPH), &edition)
}

#[test]
fn only_flow_nodes_that_differ_have_changed() {
    let none: [&str; 0] = [];
    assert_eq!(edited("  log: {}\n", "\n  # a remark\n  log: {}\n").expect("no change"), none);
    assert_eq!(edited("{x: 1}", "{x:   1}").expect("no change"), none);
    assert_eq!(edited("{x: 1}", "{x: '1'}").expect("a text is not a number"), ["a"]);
    let another =
        "name: b, port: in}, {name: c, port: in}]}}\n  - {kind: node, name: c, domain: web}";
    assert_eq!(edited("name: b, port: in}]}}", another).expect("a link"), ["a", "c"]);
    let value = edited("- {kind: node, name: b", "- {kind: node, name: b, value: 2");
    assert_eq!(value.expect("a value"), ["b"]);
    let edition = Edition {
        text: GRAPH.into(),
        plan: plan(GRAPH),
        touched: vec!["a".into()],
        outside: vec![],
    };
    assert_eq!(changes(&plan(GRAPH), &edition).expect("a file of it was edited"), ["a"]);
}

#[test]
fn a_flow_node_may_come_before_nodes_that_stay() {
    let first = "- kind: begin
    name: z
    domain: web
    ports: {out: [{name: b, port: in}]}
  - {kind: give";
    assert_eq!(edited("- {kind: give", first).expect("the core stays"), ["z"]);
}

#[test]
fn what_is_made_once_must_stay() {
    let cases = [
        ("name: machine", "name: other", "the graph's name changed from 'machine' to 'other'"),
        ("period: 1ms", "period: 2ms", "the settings of domain 'core' changed"),
        ("  log: {}", "  log: {cpus: [0]}", "the settings of domain 'log' changed"),
        ("  web: {}", "  web: {flows: {workers: 3}}", "the settings of domain 'web'"),
        ("  web: {}", "  web: {user: nobody}", "the settings of domain 'web' changed"),
        ("name: give, domain", "name: give, value: 2, domain", "node 'give' of the core changed"),
        (
            "take, domain: log}",
            "take, value: 2, domain: log}",
            "node 'take' of domain 'log' changed",
        ),
        (
            "- {kind: take",
            "- {kind: begin, name: f, domain: log}\n  - {kind: take",
            "domain 'log' had no flow node and gets one",
        ),
    ];
    for (old, new, expected) in cases {
        let refused = edited(old, new).expect_err(new);
        assert!(refused.contains(expected), "{new}: {refused}");
        assert!(refused.ends_with("; stop the graph and run it again"), "{refused}");
    }
}

#[test]
fn a_node_of_the_core_neither_comes_nor_goes() {
    let more = "- {kind: give, name: more, domain: core}\n  - {kind: take";
    let refused = edited("- {kind: take", more).expect_err("a new node");
    assert!(refused.starts_with("node 'more' of the core is new"), "{refused}");
    let fewer = plan(GRAPH);
    let text = GRAPH.replace("- {kind: take", more);
    let edition = Edition { text: String::new(), plan: fewer, touched: vec![], outside: vec![] };
    let refused = changes(&plan(&text), &edition).expect_err("one less");
    assert!(refused.starts_with("node 'more' of the core is gone"), "{refused}");
}
