//! A machine that is not the arm, in a program of its own: the errors for bad tables of this
//! program, and its drills.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

const GRAPH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/one_axis/one_axis.yaml");

/// The program, built as it is now.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        // Our own target folder, so what was built for these tests need not be built again.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in target");
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--example", "one_axis", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .env("CARGO_TARGET_DIR", target)
            .status()
            .expect("cargo runs");
        assert!(status.success(), "the example is built");
        target.join("debug/examples/one_axis")
    })
}

/// The answer of the program with additional rows in its table.
fn answer(rows: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env("SINEW_ROW", rows);
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.output().expect("the program runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{errors}"))
}

fn list(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[test]
fn a_bad_table_is_refused_before_anything_else_with_all_that_is_wrong() {
    let wrong = [
        ("unsafe", "kind 'unsafe': port 'in' moves an actuator, and the row has 'safe: None'"),
        ("nowhere", "kind 'nowhere': it is made as a cyclic node and says 'runs_in: Service'"),
        ("twice", "two kinds are named 'sway'"),
    ];
    let rows = wrong.map(|(row, _)| row).join(",");
    for command in ["check", "run", "graph", "drill", "test"] {
        let said = answer(&rows, &[command, GRAPH]);
        let text = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{command}: {text}");
        assert!(said.stdout.is_empty() && !text.contains("panicked at src"), "{command}: {text}");
        for (_, words) in wrong {
            assert!(text.contains(words), "{command}: '{words}' not in {text}");
        }
    }
    let errors = json(&answer(&rows, &["check", "--json", GRAPH]));
    assert!(errors["errors"].as_array().is_some_and(|all| all.len() >= wrong.len()), "{errors}");
    // A user who has just built a bad table must still be able to end a run.
    let list = answer(&rows, &["list", "--json"]);
    assert_eq!(list.status.code(), Some(0), "{}", String::from_utf8_lossy(&list.stderr));
    assert_eq!(answer("", &["check", GRAPH]).status.code(), Some(0));
}

#[test]
fn a_drill_sees_what_the_actuators_of_any_machine_hold() {
    // A controller that the machine delays for a while is still obeyed. Whether the limit is kept
    // depends on how busy the machine is, so it is not checked here.
    let text = fs::read_to_string(GRAPH).expect("the graph");
    let graph = Path::new(env!("CARGO_TARGET_TMPDIR")).join("one_axis_patient.yaml");
    fs::write(&graph, text.replace("after: 20", "after: 200")).expect("a place for it");
    let graph = graph.display().to_string();
    let only = "node=sway,fault=panic,kill";
    let report = json(&answer("", &["drill", &graph, "--only", only, "--json"]));
    let rows = report["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 2, "{report}");
    for (row, bar) in rows.iter().zip([2, 202]) {
        let round = &row["rounds"][0];
        assert_eq!(row["bar_cycles"], bar, "{row}");
        assert!(round["safe_ns"].is_u64() && round["still_ns"].is_u64(), "{row}");
        let mut not_shown = list(&round["not_shown"]);
        assert!(not_shown.all(|why| why.contains("were not read in time")), "{row}");
    }
}

#[test]
fn a_drill_that_cannot_see_whether_it_was_safe_says_so_and_fails() {
    // Long before the fault there are no more commands for the carriage, and its guard has acted.
    let quiet = ["--only", "node=sway,fault=panic", "--set", "sway.pushes_s=0.1"];
    let arguments = [&["drill", GRAPH], &quiet[..]].concat();
    let said = answer("", &[&arguments[..], &["--json"]].concat());
    let report = json(&said);
    assert_eq!((said.status.code(), &report["good"]), (Some(1), &false.into()), "{report}");
    let mut not_shown = list(&report["rows"][0]["rounds"][0]["not_shown"]);
    assert!(not_shown.any(|why| why.contains("no actuator had a command")), "{report}");
    let said = answer("", &arguments);
    let text = String::from_utf8_lossy(&said.stdout);
    assert_eq!(said.status.code(), Some(1), "{text}");
    assert!(text.contains("not shown") && text.contains("NOT SHOWN: 1 drill"), "{text}");
}
