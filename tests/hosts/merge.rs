//! Recordings of two hosts that ran, merged by `sinew replay --merge` and read by an independent
//! reader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::hosts::stage::Cell;
use crate::program::{folder, ours, refused, sinew, skip, wait_until};

/// A day.
const DAY_NS: &str = "86400000000000";
/// The link from the office's planner, and the cycles of the thread that reads it, in the merged
/// file.
const LINK: [&str; 3] = ["/office/planner/out", "/cell/limiter/in", "/cell/control/0/cycle"];

/// The reader, with Python's package `mcap`.
struct Python(String);

impl Python {
    fn find() -> Option<Python> {
        let python = std::env::var("SINEW_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
        let tried = Command::new(&python).args(["-c", "import mcap"]).output();
        if tried.is_ok_and(|output| output.status.success()) {
            return Some(Python(python));
        }
        skip(&format!("'{python}' cannot import mcap; see tests/python"));
        None
    }

    fn run(&self, words: &[&str]) -> String {
        let script = ours("tests/python/merged.py");
        let output = Command::new(&self.0).arg(script).args(words).output().expect("python runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn look(&self, file: &str) -> Value {
        let said = self.run(&[&["look", file][..], &LINK].concat());
        serde_json::from_str(&said).expect("the script says JSON")
    }
}

/// Runs both hosts with a recorder, until each knows the clock of the other, and some seconds more.
/// Returns the parts of their recordings.
fn record(folder: &Path) -> [String; 2] {
    let cell = Cell::new("merged");
    let place = |host: &str| folder.join(host);
    let recorder = |host: &str| {
        let folder = place(host).display().to_string();
        format!("  - {{kind: recorder, name: rec-{host}, domain: rec-{host}, folder: {folder}}}")
    };
    let nodes = format!("nodes:\n{}\n{}", recorder("cell"), recorder("office"));
    let domains = "  camera: {host: hall}\n  rec-cell: {host: cell}\n  rec-office: {host: office}";
    let edits = [("  camera: {host: hall}", domains), ("nodes:", nodes.as_str())];
    let (here, office) = (cell.run_edited("cell", &edits), cell.run_edited("office", &edits));
    wait_until("each knows the other's clock", || {
        here.seen("office")["clock"].is_object() && office.seen("cell")["clock"].is_object()
    });
    let clock = here.seen("office")["clock"].clone();
    for key in ["at_ns", "monotonic_offset_ns", "day_offset_ns", "uncertainty_ns"] {
        assert!(clock[key].is_i64(), "{key}: {clock}");
    }
    // Both hosts are on this machine, so they have the same monotonic clock.
    let [offset, uncertainty] = ["monotonic_offset_ns", "uncertainty_ns"]
        .map(|key| clock[key].as_i64().unwrap_or_default());
    assert!(offset.abs() <= uncertainty && uncertainty > 0, "{clock}");
    (0..5).for_each(|_| here.obeys_more_targets("while it is recorded"));
    office.stop();
    here.stop();
    ["cell", "office"].map(|host| {
        let mut parts = fs::read_dir(place(host)).expect("the recorder's folder");
        let part = |it: std::io::Result<fs::DirEntry>| it.expect("its name").path();
        let is_part = |path: &PathBuf| path.extension().is_some_and(|it| it == "mcap");
        let part = parts.by_ref().map(part).find(is_part).expect("a part");
        part.display().to_string()
    })
}

#[test]
fn recordings_of_two_hosts_become_one_whatever_their_clocks_of_day_say() {
    let Some(python) = Python::find() else { return };
    let folder = folder("hosts-merged");
    let [cell, office] = record(&folder);
    let at = |name: &str| folder.join(name).display().to_string();
    let merge = |files: [&str; 2], to: &str| {
        sinew([&["replay", "--json"][..], &files, &["--merge", to]].concat())
    };
    let report = merge([&cell, &office], &at("both.mcap")).ended_with(0).json();
    let of_office = &report["hosts"][1];
    assert_eq!((&of_office["name"], &of_office["clock"]), (&"office".into(), &"estimated".into()));
    assert!(of_office["estimates"].as_u64().is_some_and(|it| it >= 4), "{report}");
    let looked = python.look(&at("both.mcap"));
    assert_eq!(looked["in_order"], true);
    assert_eq!(looked["order"]["hosts"], report["hosts"], "the file says it too");
    let link = report["links"].as_array().expect("links").iter();
    let link =
        link.into_iter().find(|it| it["link"] == "planner.out at office -> limiter.in at cell");
    let link = link.unwrap_or_else(|| panic!("the link is recorded on both sides: {report}"));
    // No message is out of order by more than the stated error. The independent reader finds the
    // same.
    assert_eq!(link["beyond_uncertainty"], 0, "{report}");
    assert!(looked["found"].as_u64().is_some_and(|found| found > 50), "{looked}");
    assert_eq!((&looked["found"], &looked["early"]), (&link["found"], &link["before_sent"]));
    for topic in ["/cell/@clock/office", "/office/@clock/cell", LINK[0], LINK[1]] {
        assert!(looked["topics"][topic].as_u64().is_some_and(|it| it > 0), "{topic}: {looked}");
    }

    // The same, if the office's wall clock had been a day ahead.
    python.run(&["shift", &office, &at("ahead.mcap"), DAY_NS]);
    merge([&cell, &at("ahead.mcap")], &at("both-ahead.mcap")).ended_with(0);
    assert_eq!(python.look(&at("both-ahead.mcap"))["digest"], looked["digest"]);

    // Without estimates there are only wall clocks. They are trusted, and a difference of a day is
    // too much.
    for (name, of) in [("cell-only", &cell), ("office-only", &office)] {
        python.run(&["forget", of, &at(&format!("{name}.mcap"))]);
    }
    let only = [at("cell-only.mcap"), at("office-only.mcap")];
    let report = merge([&only[0], &only[1]], &at("trusted.mcap")).ended_with(0).json();
    assert_eq!(report["hosts"][1]["clock"], "trusted", "{report}");
    assert_eq!((&report["unsure"], &report["not_shown"]), (&0.into(), &report["neighbours"]));
    python.run(&["shift", &only[1], &at("office-ahead.mcap"), DAY_NS]);
    let ahead = ["replay", &only[0], &at("office-ahead.mcap"), "--merge", &at("x.mcap")];
    refused(&ahead, "were not recorded at the same time");
    refused(&["replay", &cell, &office, "--merge", &cell], "exists already");
    refused(&["replay", &at("both.mcap")], "was merged from recordings of several hosts");
    assert!(!folder.join("x.mcap").exists());
    // Each recording alone is replayed as before, including its clocks.
    let report = sinew(["replay", "--json", &cell]).ended_with(0).json();
    assert_eq!((&report["identical"], &report["notes"]), (&true.into(), &Value::Array(vec![])));
}
