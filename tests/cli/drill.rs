//! `sinew drill`: which drills there are, what is refused, and that its gate passes and fails.

use std::fs;

use serde_json::Value;

use crate::api::patient;
use crate::hold::holding;
use crate::program::{calm, edited, folder, ours, sinew};

#[test]
fn without_a_graph_there_is_the_arm_with_every_fault_of_every_node() {
    let list = sinew(["drill", "--list", "--json"]).ended_with(0).json();
    assert_eq!(list["graph"], "arm");
    let rows = list["drills"].as_array().expect("a list");
    for node in ["planner", "ik", "ethercat", "drives"] {
        for fault in ["panic", "error", "segv", "kill", "stop", "hang", "late", "fail_start"] {
            let is_it = |row: &&Value| row["subject"] == node && row["fault"] == fault;
            assert_eq!(rows.iter().filter(is_it).count(), 1, "{node} {fault}");
        }
    }
    for fault in ["kill", "stop", "freeze_30ms", "freeze_50ms", "freeze_80ms", "freeze_1s"] {
        let is_it = |row: &&Value| row["subject"] == "control" && row["fault"] == fault;
        assert_eq!(rows.iter().filter(is_it).count(), 1, "{fault}");
    }
    // Beside another arm: the service with an API is flooded, and services that write have no room.
    for (subject, fault) in [("api", "flood"), ("api", "full_disk"), ("recorder", "full_disk")] {
        let is_it = |row: &&Value| row["subject"] == subject && row["fault"] == fault;
        assert_eq!(rows.iter().filter(is_it).count(), 1, "{subject} {fault}");
    }
    let text = sinew(["drill", "--list"]).ended_with(0).out;
    assert!(text.contains("2 cycles + after (50)"), "{text}");
}

#[test]
fn a_request_that_cannot_be_met_is_refused_before_anything_runs() {
    for (arguments, words) in [
        (&["--only", "node=elbow"][..], "there are: planner, ik, ethercat, drives"),
        (&["--only", "fault=sneeze"], "expected one of panic, error"),
        (&["--only", "ik"], "expected AXIS=VALUE"),
        (&["--only", "domain=control,fault=panic"], "no drill matches all of it"),
        (&["--rounds", "0"], "0 is not in 1..=10000"),
        (&["--report", "/nowhere/drill.html"], "cannot write '/nowhere/drill.html'"),
        (&["--article", "--quick"], "cannot be used with"),
        (&["nothing.yaml"], "cannot read the spec"),
        (&["graphs/http/ping.yaml"], "has no realtime domain"),
        (&["--set", "planner.laps=1"], "need a graph; name its file"),
        (&["--beside", "a.yaml"], "required arguments were not provided"),
    ] {
        let answer = sinew([&["drill"], arguments].concat()).ended_with(2);
        assert!(answer.err.contains(words), "{arguments:?}: {}", answer.err);
    }
    let json = sinew(["drill", "--json", "--only", "node=elbow"]).ended_with(2).json();
    assert!(json["errors"][0]["message"].as_str().expect("words").contains("elbow"), "{json}");
}

#[test]
fn a_drill_says_what_happened_and_leaves_nothing_behind() {
    // Whether the limit of two cycles is kept depends on how busy the machine is, so it is not
    // checked here.
    let page = folder("drill").join("drill.html");
    let page_name = page.display().to_string();
    let only = "node=ik,fault=panic,not_finite";
    let answer = sinew(["drill", &calm(), "--only", only, "--json", "--report", &page_name]);
    let report = answer.json();
    let rows = report["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 2, "{report}");
    for (row, cause) in rows.iter().zip(["panic", "not_finite"]) {
        let round = &row["rounds"][0];
        assert_eq!((&row["subject"], &row["fault"]), (&"ik".into(), &cause.into()));
        assert!(round["proof"].as_str().expect("it was carried out").contains(cause), "{round}");
        assert!(round["ending"].as_str().expect("words").starts_with("control, node 'ik'"));
        assert!(round["safe_ns"].is_u64() && round["moved_rad"][5].is_f64(), "{round}");
        assert_eq!(round["left"], serde_json::json!([]), "{round}");
    }
    let page = fs::read_to_string(&page).expect("the page");
    assert!(page.contains("<h1>Sinew drill: ") && page.contains("id=\"report\""));
}

/// Whether the limit of two cycles is kept is not checked here.
#[test]
fn machines_that_are_not_the_arm_end_safely() {
    for (graph, node, ports) in [
        ("axis", "pid", &["dashboard.listen='127.0.0.1:0'"][..]),
        ("crane", "feedback", &["dashboard.listen='127.0.0.1:0'"]),
        ("rover", "follower", &["dashboard.listen='127.0.0.1:0'", "listener.port=0"]),
    ] {
        let file = ours(&format!("graphs/{graph}/{graph}.yaml")).display().to_string();
        let only = format!("node={node},fault=panic,kill");
        let mut arguments = vec!["drill", &file, "--only", &only, "--json"];
        arguments.extend(ports.iter().flat_map(|port| ["--set", port]));
        let report = sinew(&arguments).json();
        let rows = report["rows"].as_array().expect("a list");
        assert_eq!(rows.len(), 2, "{graph}: {report}");
        for row in rows {
            let round = &row["rounds"][0];
            assert!(round["proof"].is_string() && round["safe_ns"].is_u64(), "{graph}: {round}");
            assert_eq!(round["left"], serde_json::json!([]), "{graph}: {round}");
        }
    }
}

#[test]
fn two_graphs_are_drilled_side_by_side() {
    let (calm, arm) = (calm(), ours("graphs/arm/arm.yaml").display().to_string());
    let only = ["--beside", &arm, "--only", "node=ik,fault=panic"];
    let list = sinew([&["drill", &calm, "--list", "--json"], &only[..]].concat());
    let list = list.ended_with(0).json();
    let of: Vec<_> =
        list["drills"].as_array().expect("a list").iter().map(|it| &it["of"]).collect();
    assert_eq!(of, [&Value::Null, &"arm".into()], "{list}");
    // Whether the limit of two cycles is kept is not checked here.
    let text = sinew([&["drill", &calm], &only[..]].concat()).out;
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no '{words}' in {text}"));
    assert!(at("\n  ik, panic") < at("\n  ik of arm, panic"), "{text}");
}

#[test]
fn a_service_that_is_struck_comes_back_and_the_core_goes_on() {
    let spec = ours("tests/cli/calm_log.yaml").display().to_string();
    let file = format!("log.file={}", folder("drill_log").join("axes.csv").display());
    let only = "node=log,fault=panic";
    let answer = sinew(["drill", &spec, "--only", only, "--set", &file, "--json"]);
    let report = answer.ended_with(0).json();
    assert_eq!(report["good"], true);
    let round = &report["rows"][0]["rounds"][0];
    assert_eq!((&round["ending"], &round["safe_ns"]), (&"stopped".into(), &Value::Null));
    let told: Vec<_> = round["restarted"].as_array().expect("a list").iter().collect();
    assert_eq!(told[0], "restarting: in 10 ms", "{round}");
    assert!(round["core_after"]["cycles"].as_u64().is_some_and(|n| n > 0), "{round}");
}

#[test]
fn a_graph_that_holds_is_stopped_once_its_core_stands() {
    // After a fault from outside it holds, and nobody resets it. Four such runs would wait for
    // their limits, which takes longer than a test may.
    let file = holding("drill_holds");
    let only = "domain=control,plant,fault=kill,stop";
    let answer = sinew(["drill", &file, "--only", only, "--json"]).ended_with(0).json();
    assert_eq!(answer["good"], true, "{answer}");
    assert_eq!(answer["rows"].as_array().map(Vec::len), Some(4), "{answer}");
}

#[test]
fn what_nobody_sends_is_struck_from_outside_or_not_at_all() {
    // There are no requests to this API, so its mailbox stays empty. Whether the core keeps its
    // deadlines is not checked here.
    let api = patient("drill_api");
    let report = sinew(["drill", &api, "--only", "link=command->planner", "--json"]).json();
    let rows = report["rows"].as_array().expect("a list");
    let faults: Vec<_> = rows.iter().map(|row| row["fault"].as_str().expect("a word")).collect();
    assert_eq!(faults, ["peer_gone", "stalled", "hostile"]);
    for row in &rows[..2] {
        let why = row["skipped"].as_str().expect("why it is not carried out");
        assert!(why.contains("no node waits for the messages of a service"), "{why}");
        assert_eq!(row["rounds"], serde_json::json!([]));
    }
    let proof = rows[2]["rounds"][0]["proof"].as_str().expect("it was carried out");
    assert!(proof.contains("garbage"), "{proof}");
}

#[test]
fn a_full_disk_and_a_flood_are_shown_or_not_carried_out() {
    // The log serves nothing. Whether the core keeps its deadlines is not checked here.
    let spec = ours("tests/cli/calm_log.yaml").display().to_string();
    let file = format!("log.file={}", folder("drill_full").join("axes.csv").display());
    let only = "domain=log,fault=flood,full_disk";
    let report = sinew(["drill", &spec, "--only", only, "--set", &file, "--json"]).json();
    let rows = report["rows"].as_array().expect("a list");
    let row = |fault| rows.iter().find(|row| row["fault"] == fault).expect("a drill");
    let why = row("flood")["skipped"].as_str().expect("why it is not carried out");
    assert!(why.contains("serves nothing over HTTP"), "{why}");
    let proof = row("full_disk")["rounds"][0]["proof"].as_str().expect("it was carried out");
    assert!(proof.contains("axes.csv"), "{proof}");
}

#[test]
fn a_gate_that_must_fail_fails() {
    // No cycle keeps this deadline, so the graph faults long before the drill injects its fault.
    let file = edited(
        "drill_tight",
        &[
            ("period: 5ms,", "period: 5ms, deadline: 1us,"),
            ("consecutive_max: 10000", "consecutive_max: 0"),
        ],
    );
    let answer = sinew(["drill", &file, "--only", "node=ik,fault=panic"]).ended_with(1);
    assert!(
        answer.out.contains("not carried out: nothing shows that the fault came"),
        "{}",
        answer.out
    );
    assert!(answer.out.contains("NOT AS EXPECTED"), "{}", answer.out);
}
