//! `sinew advise` on a small graph that is not the arm's: what it writes, what it keeps, and how it
//! refuses. Which choice it makes depends on the machine, so no test checks it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::program::{Answer, edited, folder, refused, sinew};

/// The calm graph on two threads, with comments, and what it requires.
fn graph(name: &str, requires: &str) -> String {
    let control = format!(
        "threads: [{{nodes: [planner, ik]}}, {{nodes: [ethercat]}}] # two threads
    requires: {requires}
    realtime: {{period: 5ms,"
    );
    edited(name, &[("realtime: {period: 5ms,", &*control)])
}

/// Its answer for a graph, with few rounds.
fn advise(file: &str, more: &[&str]) -> Answer {
    let few = ["advise", "--rounds", "3", "--watch", "300ms"];
    sinew([&few[..], more, &[file]].concat())
}

#[test]
fn a_run_says_which_requirements_it_broke_and_fails_if_that_is_wanted() {
    let file = graph("requires_broken", "{latency_max: 100ns, isolation: process}");
    let run = |more: &[&str]| {
        sinew([&["run", "--json", "--duration", "500ms"], more, &[&*file]].concat())
    };
    let answer = run(&[]).ended_with(0);
    assert!(
        answer.err.contains("requires latency_max 0.1 us (line 6): broken, at most"),
        "{}",
        answer.err
    );
    let judged = answer.json()["requirements"].clone();
    assert_eq!((&judged[0]["kept"], &judged[1]["kept"]), (&json!("broken"), &json!("kept")));
    assert_eq!(judged[1]["requires"], "isolation process");
    let links = answer.json()["links"].clone();
    assert!(links[0]["latency_ns"]["n"].as_u64().is_some_and(|n| n > 10), "{links}");
    // If the kernel refuses a privilege, the run fails because of that.
    let answer = run(&["--strict"]).ended_with(1);
    let is_told = ["latency_max 0.1 us", "--strict"].iter().any(|text| answer.err.contains(text));
    assert!(is_told, "{}", answer.err);
}

#[test]
fn advice_is_applied_and_its_receipt_holds_until_something_changes() {
    let file = graph("advise_applied", "{latency_max: 10s}");
    let receipt = folder("advise_applied_receipt").join("receipt.json");
    let before = fs::read_to_string(&file).expect("it is there");
    let named = receipt.display().to_string();
    let answer = advise(&file, &["--apply", "--receipt", &named]).ended_with(0);
    assert!(answer.out.contains("Alternatives: cycle latency and CPU time"), "{}", answer.out);
    assert!(answer.err.contains("its actuators move"), "{}", answer.err);
    let after = fs::read_to_string(&file).expect("it is there");
    let comments = |text: &str| text.matches("# ").count();
    let kept = comments(&after) + usize::from(!after.contains("# two threads"));
    assert_eq!(kept, comments(&before), "{after}");
    fs::write(&file, format!("# One more comment.\n{after}")).expect("it is ours");
    sinew(["check", "--receipt", &*named, &*file]).ended_with(0);
    fs::write(&file, after.replace("5ms", "6ms")).expect("it is ours");
    let text = sinew(["check", "--receipt", &*named, &*file]).ended_with(1).err;
    assert!(text.contains("does not hold: graph: domains: 'control': "), "{text}");
    assert!(text.contains("run 'sinew advise' again"), "{text}");
}

#[test]
fn contradictory_requirements_are_named_and_nothing_is_written() {
    let file = graph("advise_contradiction", "{latency_max: 100ns, cpu: 1%}");
    let before = fs::read(&file).expect("it is there");
    let said = advise(&file, &["--apply"]).ended_with(1).out;
    assert!(said.contains("no alternative here was shown to keep 'latency_max 0.1 us'"), "{said}");
    assert!(said.contains("nothing was written"), "{said}");
    assert_eq!(fs::read(&file).expect("it is there"), before);
}

#[test]
fn what_cannot_be_advised_is_refused_before_anything_moves() {
    let flows = concat!(env!("CARGO_MANIFEST_DIR"), "/graphs/http/ping.yaml");
    refused(&["advise", flows], "there is nothing to choose in graph 'ping': it has no core");
    let file = graph("advise_read_only", "{latency_max: 10s}");
    fs::set_permissions(&file, Permissions::from_mode(0o444)).expect("it is ours");
    refused(&["advise", "--apply", &*file], "it is read-only; make it writable");
    let other = folder("advise_other").join("receipt.json");
    fs::write(&other, "{\"receipt\": 1}").expect("a place for it");
    let other = other.display().to_string();
    refused(&["check", "--receipt", &*other, &*file], "is not a receipt");
    refused(&["check", "--receipt", "/nowhere", &*file], "cannot read the receipt '/nowhere'");
}
