//! `sinew drill` of another host: each fault has proof, and what must follow is seen.

use serde_json::Value;

use crate::hosts::stage::Cell;
use crate::program;

/// Carries out these drills of host 'office'; each must have proof, and must be as expected.
fn drilled(name: &str, faults: &[&str]) -> Vec<Value> {
    let only = format!("host=office,fault={}", faults.join(","));
    let report = Cell::new(name).drill(&["--only", &only]);
    let rows = report["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["fault"].as_str()).collect();
    assert_eq!(names, faults, "{report}");
    for row in rows {
        let round = &row["rounds"][0];
        assert!(round["proof"].is_string(), "nothing shows that it came: {row}");
        let wrong = ["failures", "not_shown"].map(|it| round[it].as_array().map(Vec::len));
        assert_eq!(wrong, [Some(0); 2], "{row}");
    }
    rows.iter().map(|row| row["rounds"][0]["host"].clone()).collect()
}

#[test]
fn the_drill_cuts_one_direction_and_then_the_other() {
    let hosts = drilled("half", &["half"]);
    assert!(hosts[0]["silent_ms"].is_u64() && hosts[0]["heard_ms"].is_u64(), "{hosts:?}");
}

#[test]
fn the_drill_runs_a_host_twice_and_with_another_graph() {
    for host in drilled("twice", &["twin", "skew"]) {
        assert!(host["heard_ms"].is_u64(), "{host}");
        assert!(host["refused"].as_u64() > Some(0), "what the other program says: {host}");
    }
}

#[test]
fn the_drill_sends_misplaced_messages_and_garbage_in_the_name_of_a_host() {
    let hosts = drilled("stranger", &["misplaced", "stranger"]);
    assert!(hosts[0]["misplaced"].as_u64() >= Some(50), "{hosts:?}");
    assert!(hosts[1]["refused"].as_u64() >= Some(2000), "{hosts:?}");
    assert!(hosts[1]["heard_ms"].is_u64(), "{hosts:?}");
}

#[test]
fn each_fault_of_a_host_is_listed_with_what_must_be_seen() {
    let graph = program::ours("graphs/cell/cell.yaml").display().to_string();
    let list = |host: &str, only: &str| {
        let words = ["drill", "--list", "--json", "--host", host, &graph, "--only", only];
        let list = program::sinew(words).ended_with(0).json();
        list["drills"].as_array().expect("drills").clone()
    };
    for row in list("cell", "host=office") {
        let rule = row["rule"].as_str().expect("a rule");
        let (goes_on, must) = rule.split_once("; ").expect("two parts");
        assert_eq!(goes_on, "the machine goes on");
        assert!(must.contains("host") || must.contains("counted"), "{row}");
        assert!(row["skipped"].is_null(), "{row}");
    }
    let words = |rows: Vec<Value>| rows.iter().map(|row| row["fault"].clone()).collect::<Vec<_>>();
    let cuts = words(list("cell", "host=office,fault=cut"));
    assert_eq!(cuts, ["cut_100ms", "cut_2s", "cut"], "a word for all cuts");
    let twin = &list("office", "host=cell,fault=twin")[0];
    assert!(twin["skipped"].as_str().is_some_and(|it| it.contains("meets no second")), "{twin}");
}
