//! The parts of a faulty graph.

use sinew_spec::plan::{NOWHERE, Plan, TargetMachine};
use sinew_spec::{SpecSource, examine};

use crate::kinds::KINDS;

fn parts(text: &str) -> Plan {
    let source = SpecSource::of("graph.yaml", text);
    let examined = examine(&source, KINDS, &TargetMachine::of(vec![0, 1]));
    assert!(!examined.is_good());
    examined.plan.expect("parts")
}

#[test]
fn a_node_that_is_whole_is_there_whatever_its_links_and_domain_are() {
    let plan = parts(
        "
domains: {a: {}, b: {}}
nodes:
  - {kind: begin, name: lost, domain: a, ports: {out: [{name: nobody, port: in}]}}
  - {kind: step, name: homeless, domain: c, code: x}
  - {kind: step, name: faulty, domain: b, pause: never}
  - {kind: stepp, name: misspelt, domain: b}
",
    );
    let nodes: Vec<_> = plan.nodes.iter().map(|it| (it.name.as_str(), it.domain)).collect();
    assert_eq!(nodes, [("lost", 0), ("homeless", NOWHERE)]);
    let left_out = plan.left_out.expect("some");
    let left_out: Vec<_> = left_out
        .iter()
        .map(|it| (it.name.as_str(), it.kind.map(|kind| kind.name), it.domain))
        .collect();
    assert_eq!(left_out, [("faulty", Some("step"), 1), ("misspelt", None, 1)]);
}

#[test]
fn a_node_in_cycles_is_there_if_its_period_is_known() {
    let plan = parts(
        "
domains:
  a: {realtime: {period: 2ms}}
  b: {realtime: {trigger: input}}
nodes:
  - {kind: filter, name: on_time, domain: a, ports: {out: [{name: nobody, port: in}]}}
  - {kind: filter, name: on_input, domain: b}
",
    );
    assert_eq!(plan.nodes.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["on_time"]);
    assert_eq!(plan.domains[0].realtime().expect("realtime").period_ns, 2_000_000);
}

#[test]
fn a_text_without_nodes_has_no_parts() {
    let source = SpecSource::of("graph.yaml", "[");
    assert!(examine(&source, KINDS, &TargetMachine::of(vec![0])).plan.is_none());
}
