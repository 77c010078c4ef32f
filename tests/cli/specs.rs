//! Specs that are refused: each folder of `tests/graphs` holds a `graph.yaml`, the files that it
//! names, and in `expected.txt` what `sinew check` says of it. `SINEW_BLESS=1` writes what it says
//! now; read the difference as a newcomer would.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::program::{Running, SINEW, arm, graph_in, ours, sinew};

/// What the answer says of this machine.
const CPUS: &str = "this process may use: ";

#[test]
fn every_bad_graph_is_answered_as_written_down() {
    let mut cases: Vec<_> = fs::read_dir(ours("tests/graphs"))
        .expect("the folder of cases")
        .map(|entry| entry.expect("a case").path())
        .collect();
    cases.sort();
    assert!(cases.len() > 25, "{} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let mut command = Command::new(SINEW);
        command.args(["check", "graph.yaml"]).current_dir(case);
        let answer = Running::start(command).answer();
        let text = without_cpus(&answer.err);
        let expected = case.join("expected.txt");
        if std::env::var_os("SINEW_BLESS").is_some() {
            fs::write(&expected, &text).expect("a place for the answer");
        }
        let as_expected = fs::read_to_string(&expected).is_ok_and(|expected| expected == text);
        if !as_expected || answer.status != Some(2) || !answer.out.is_empty() {
            let (case, status) = (case.display(), answer.status);
            writeln!(wrong, "{case}: {status:?} {}\n{text}", answer.out).expect("to a string");
        }
    }
    assert!(wrong.is_empty(), "not status 2, or not as in expected.txt:\n{wrong}");
}

fn without_cpus(text: &str) -> String {
    let line = |line: &str| match line.split_once(CPUS) {
        Some((before, _)) => format!("{before}{CPUS}(those of this machine)\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn run_refuses_what_check_refuses_with_the_same_words() {
    for case in ["unknown_kind", "waypoints_malformed", "path_out_of_reach"] {
        let graph = ours(&format!("tests/graphs/{case}/graph.yaml")).display().to_string();
        let checked = sinew(["check", &graph]).ended_with(2);
        let run = sinew(["run", &graph]).ended_with(2);
        assert_eq!((run.err, run.out), (checked.err, String::new()));
        let checked = sinew(["check", "--json", &graph]).ended_with(2).json();
        let run = sinew(["run", "--json", &graph]).ended_with(2).json();
        assert!(run["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{run}");
        assert_eq!(run, checked);
    }
}

#[test]
fn all_errors_stand_in_one_answer() {
    let text = fs::read_to_string(arm()).expect("the arm's spec");
    let text = text.replace("kind: ik", "kind: ikk").replace("deadline:", "dedline:");
    let graph = graph_in("all_errors", &text);
    let answer = sinew(["check", "--json", &graph]).ended_with(2).json();
    let help = |error: &serde_json::Value| error["help"].as_str().map(str::to_owned);
    let help: Vec<_> = answer["errors"].as_array().expect("a list").iter().map(help).collect();
    let wanted = |text: &str| help.contains(&Some(format!("did you mean '{text}'?")));
    assert!(wanted("ik") && wanted("deadline"), "{answer:#}");
}
