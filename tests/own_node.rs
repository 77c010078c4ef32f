//! A user's own node: `examples/own_node` is built as a user builds it, and its arm runs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_node_of_ones_own_runs_in_the_arm() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own_node");
    // Our own target folder: what was built for these tests need not be built again.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in target");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--manifest-path"])
        .arg(example.join("Cargo.toml"))
        .args(["--", "run", "--duration", "2s", "--json"])
        // A test machine may be busy; the arm waits for its frames.
        .args(["--set", "ethercat.lost_frames_max=100"])
        .arg(example.join("filtered_arm.yaml"))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{errors}", String::from_utf8_lossy(&output.stdout));

    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["outcome"], "stopped", "{report:#}\n{errors}");
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
