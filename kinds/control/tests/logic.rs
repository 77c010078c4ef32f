//! The kinds of logic in one graph, as a user writes it. The graph checks itself: its last node
//! divides by 0 unless all values are as expected.

use std::path::Path;

use sinew_control_kinds::NODES;
use sinew_core::cycle::executor::Executor;
use sinew_core::{Cycle, Fault};
use sinew_spec::plan::TargetMachine;
use sinew_spec::{SpecSource, catalogue_errors, compile, render};

const GRAPH: &str = "
name: logic
messages: {axis: {position_rad: f64, enabled: bool, mode: u8}}
domains: {control: {realtime: {period: 1ms}}}
nodes:
  - kind: constant
    name: two
    domain: control
    value: 2
    ports:
      out:
        - {name: formula, port: a}
        - {name: total, port: y}
        - {name: choice, port: low}
  - kind: expression
    name: formula
    domain: control
    inputs: [a]
    expression: a * 3 + sin(0)
    ports:
      out: [{name: total, port: x}]
      holds:
        - {name: choice, port: index}
        - {name: machine, port: go}
        - {name: axis, port: enabled}
  - kind: sum
    name: total
    domain: control
    inputs: [x, y]
    gains: [1, -1]
    ports: {out: [{name: choice, port: high}, {name: axis, port: position_rad}]}
  - kind: select
    name: choice
    domain: control
    inputs: [low, high]
    ports: {out: [{name: check, port: chosen}]}
  - kind: state_machine
    name: machine
    domain: control
    inputs: [go]
    outputs: [mode]
    flags: [is_going]
    initial: waits
    states:
      waits: {outputs: {mode: 1, is_going: 0}, transitions: [{to: goes, if: go, after: 2ms}]}
      goes: {outputs: {mode: 3, is_going: go * 5}, end: true}
    ports:
      mode: [{name: axis, port: mode}]
      is_going: [{name: check, port: is_going}]
      state: [{name: check, port: state}]
  - kind: mux
    name: axis
    domain: control
    message: axis
    waits_for: all
    ports:
      out:
        - {name: check, port: position_rad, field: position_rad}
        - {name: check, port: enabled, field: enabled}
        - {name: check, port: mode, field: mode}
  - kind: expression
    name: check
    domain: control
    inputs: [chosen, state, position_rad, enabled, mode, is_going]
    expression: >-
      1 / (chosen == 4 and position_rad == 4 and enabled and mode == 2 * state + 1 and
      is_going == state and state < LAST)
";

/// Runs four cycles of the graph. In the third one the machine goes on to its state 1.
fn run(last_state: &str) -> Result<(), Fault> {
    let text = GRAPH.replace("LAST", last_state);
    let kinds: Vec<_> = NODES.iter().map(|entry| entry.kind).collect();
    let source = SpecSource::of("logic.yaml", &text);
    let plan = compile(&source, &kinds, &TargetMachine::of(vec![0]))
        .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)));
    let mut executor = Executor::fused(&plan, NODES, Path::new(".")).expect("makes");
    (0..4).try_for_each(|number| executor.cycle(&Cycle::new(number, 1_000_000), u64::MAX))
}

#[test]
fn a_graph_of_logic_does_what_it_says() {
    run("2").expect("all is as it was meant");
}

#[test]
fn the_graph_would_notice() {
    let fault = run("1").expect_err("the machine came to its state 1");
    let text = "is inf with chosen = 4.0, position_rad = 4.0, enabled = 1.0, mode = 3.0, ...";
    assert!(fault.text().contains(text), "{fault}");
}

#[test]
fn the_tables_hold() {
    let kinds: Vec<_> = NODES.iter().map(|entry| entry.kind).collect();
    assert_eq!(catalogue_errors(&kinds), Vec::<String>::new());
}
