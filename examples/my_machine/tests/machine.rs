//! The whole machine, as `cargo run -- ...` runs it.

use std::path::Path;
use std::process::Command;

/// Runs our `sinew`. Returns its standard output.
fn sinew(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_my_machine"));
    let output = command.args(arguments).output().expect("it runs");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{arguments:?}: {out}\n{errors}");
    out.into_owned()
}

#[test]
fn the_graph_is_good() {
    sinew(&["check", "graph.yaml"]);
}

#[test]
fn the_tests_in_the_graph_pass() {
    sinew(&["test", "graph.yaml"]);
}

#[test]
fn it_runs_for_a_second() {
    let journal = Path::new(env!("CARGO_TARGET_TMPDIR")).join("journal.txt");
    let file = format!("journal.file={}", journal.display());
    // Any free port, and enough time on a busy machine.
    let mut arguments = vec!["run", "graph.yaml", "--duration", "1s", "--json"];
    for set in [&file, "journal.every=100ms", "listener.port=0"] {
        arguments.extend(["--set", set]);
    }
    let report = sinew(&arguments);
    assert!(report.contains("\"outcome\":\"stopped\""), "{report}");
    let journal = std::fs::read_to_string(journal).expect("the service has written it");
    assert!(journal.lines().any(|line| line.ends_with("W, Heat")), "{journal}");
}
