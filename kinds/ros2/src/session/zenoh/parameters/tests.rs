//! Which names are listed, and the hashes of services as rosbags computes them.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::*;
use crate::session::zenoh::wire::TRIGGER;

fn names(prefixes: &[&str], depth: u64) -> (Vec<String>, Vec<String>) {
    let all = ["gain", "arm.speed", "arm.tool.mass", "armed"].map(str::to_owned).to_vec();
    let prefixes = prefixes.iter().map(|it| (*it).to_owned()).collect();
    let ListParametersResult { names, prefixes } =
        listed(all, &ListParametersRequest { prefixes, depth });
    (names, prefixes)
}

#[test]
fn names_are_listed_by_prefix_and_depth() {
    let all = ["gain", "arm.speed", "arm.tool.mass", "armed"].map(str::to_owned).to_vec();
    assert_eq!(names(&[], 0), (all, vec!["arm".into(), "arm.tool".into()]));
    assert_eq!(names(&[], 1), (vec!["gain".into(), "armed".into()], vec![]));
    let arm = ["arm.speed", "arm.tool.mass"].map(str::to_owned).to_vec();
    assert_eq!(names(&["arm"], 0).0, arm);
    assert_eq!(names(&["arm"], 1), (vec!["arm.speed".into()], vec!["arm".into()]));
    assert_eq!(names(&["gain", "other"], 0).0, vec!["gain".to_owned()]);
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
#[test]
fn rosbags_has_the_same_hashes_of_services() {
    let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let good = Command::new(&python).args(["-c", "import rosbags"]).stderr(Stdio::null()).status();
    if !good.is_ok_and(|status| status.success()) {
        let missing =
            format!("'{python}' cannot import rosbags; name another in SINEW_TEST_PYTHON");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("skipped: {missing}");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rosbags_hashes.py");
    let output = Command::new(python).arg(script).output().expect("python runs");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // This hash is in rmw_zenoh's docs/design.md, so the way of computing hashes is right.
    assert_eq!(
        said["example_interfaces/srv/AddTwoInts"],
        "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a"
    );
    assert_eq!(said["std_srvs/srv/Trigger"], TRIGGER);
    assert_eq!(said["rcl_interfaces/msg/ParameterEvent"], EVENT);
    for (_, ty, hash) in SERVICES {
        assert_eq!(said[format!("rcl_interfaces/srv/{ty}")], hash, "{ty}");
    }
}
