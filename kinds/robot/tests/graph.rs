//! The example graph compiles with the table, and its nodes can be made.

use std::path::{Path, PathBuf};

use sinew_core::Parameters;
use sinew_robot::NODES;
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{SpecSource, compile, render};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm")
}

fn plan(cpus: Vec<u32>, overrides: &[(String, String)]) -> Plan {
    let file = folder().join("arm.yaml");
    let text = std::fs::read_to_string(&file).expect("the file is there");
    let source = SpecSource { overrides, ..SpecSource::of("arm.yaml", &text) };
    let kinds: Vec<_> = NODES.iter().map(|entry| entry.kind).collect();
    compile(&source, &kinds, &TargetMachine::of(cpus))
        .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)))
}

fn make_all(plan: &Plan) {
    for node in &plan.nodes {
        let parameters = Parameters {
            kind: node.kind,
            values: &node.values,
            base: &folder(),
            spans: &node.spans,
            period_ns: plan.domains[node.domain].realtime().expect("realtime").period_ns,
            messages: vec![],
            home: None,
        };
        let entry = NODES.iter().find(|entry| entry.kind == node.kind);
        let made = (entry.expect("the plan names our kinds").make)(&parameters);
        assert!(made.is_ok(), "{}: {}", node.name, made.err().expect("a fault"));
    }
}

#[test]
fn the_arm_compiles_for_one_cpu_and_for_many() {
    for cpus in [vec![0], vec![0, 1], (0..8).collect()] {
        let plan = plan(cpus, &[]);
        let names: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["planner", "ik", "ethercat", "drives"]);
        make_all(&plan);
    }
}

#[test]
fn controller_and_machine_live_apart_and_only_they() {
    let plan = plan(vec![0, 1], &[]);
    let fused = |name: &str| {
        let link = plan.links.iter().find(|link| plan.nodes[link.to.node].name == name);
        link.expect("a link to it").fused
    };
    assert!(fused("ik") && fused("planner") && !fused("drives"));
    assert_eq!(plan.domains.len(), 2);
    let drives = plan.nodes.iter().find(|node| node.name == "drives").expect("is there");
    assert_eq!((drives.actuators[0].safe, drives.actuators[0].after), (0, 50));
}

#[test]
fn the_arm_takes_g_code_as_its_comment_says() {
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let overrides =
        [set("planner.path", "plate.gcode"), set("planner.work_origin_mm", "[290, -40, 340]")];
    make_all(&plan(vec![0, 1], &overrides));
}
