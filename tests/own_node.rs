//! A user's own node: `examples/own_node` is built as a user builds it, and its arm runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What makes the example patient: a test machine may be busy for longer than an arm may wait.
const PATIENCE: [(&str, &str); 5] = [
    ("../../graphs", concat!(env!("CARGO_MANIFEST_DIR"), "/graphs")),
    ("period: 1ms", "period: 5ms"),
    ("consecutive_max: 50", "consecutive_max: 10000"),
    ("lost_frames_max: 50", "lost_frames_max: 100"),
    ("after: 50", "after: 100"),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file of ours")
}

/// Builds the example and runs its graph; the report.
fn run(graph: &Path) -> Value {
    // Our own target folder: what was built for these tests need not be built again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in target");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/own_node/Cargo.toml"))
        .args(["--", "run", "--duration", "2s", "--json", "--set", "drives.watchdog_ms=2000"])
        .arg(graph)
        .env("CARGO_TARGET_DIR", target)
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("cargo runs");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{out}\n{errors}");
    serde_json::from_str(&out).expect("one JSON object")
}

#[test]
fn a_node_of_ones_own_runs_in_the_arm() {
    let example = read("examples/own_node/filtered_arm.yaml");
    let patient = PATIENCE.iter().fold(example, |text, (from, to)| {
        assert!(text.contains(from), "the example no longer says '{from}'");
        text.replace(from, to)
    });
    let graph = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filtered_arm.yaml");
    fs::write(&graph, patient).expect("a folder to write to");

    let report = run(&graph);
    assert_eq!(report["outcome"], "stopped", "{report:#}");
    let nodes = report["nodes"].as_array().expect("nodes");
    let updates = |name| {
        let node = nodes.iter().find(|node| node["name"] == name).expect("a node of the graph");
        node["execution_ns"]["n"].as_u64().expect("a count")
    };
    assert!(updates("filter") > 0);
    assert_eq!(updates("filter"), updates("ik"), "the filter is updated with the others");
    let error_m = report["tracking_error_m_max"].as_f64().expect("the planner's figure");
    assert!(error_m > 0.0, "targets went through the filter to the drives and came back");
}

#[test]
fn the_readme_shows_the_code_that_is_built() {
    let (readme, built) = (read("README.md"), read("examples/own_node/src/main.rs"));
    let mut shown = readme.split("```").filter_map(|block| block.strip_prefix("rust\n"));
    let shown = shown.find(|block| block.contains("impl Node for")).expect("a node");
    assert!(built.contains(shown), "README.md shows other code than examples/own_node holds");
}
