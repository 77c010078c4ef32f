//! A real run of the arm, recorded and replayed: by the program that recorded it, which computes
//! the same bits, and with a changed parameter, which gives other bits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::program::{Answer, SINEW, folder, ours, sinew, skip};

/// The arm with a recorder, on a machine that may be busy.
const SPEC: &str = "
name: arm
domains:
  control: {realtime: {period: 2ms, overrun: {policy: count}}}
  plant: {realtime: {trigger: input, overrun: {policy: count}}}
  recorder: {}
nodes:
  - kind: path_planner
    name: planner
    domain: control
    path: square.csv
    arm: irb120.urdf
    laps: 0
    ports: {out: [{name: ik, port: in}]}
  - kind: ik
    name: ik
    domain: control
    arm: irb120.urdf
    ports: {out: [{name: ethercat, port: in}]}
  - kind: ethercat_master
    name: ethercat
    domain: control
    lost_frames_max: 100
    ports:
      out: [{name: drives, port: in, transport: shared_memory, delivery: latest}]
      feedback: [{name: planner, port: feedback, delay: 1}]
  - kind: drives
    name: drives
    domain: plant
    safe: {in: {value: quick_stop, after: 50}}
    ports:
      out:
        - {name: ethercat, port: frame, transport: shared_memory, delivery: latest, delay: 1}
  - {kind: recorder, name: recorder, domain: recorder}
";

/// Runs the arm for a second. Returns the only part of its recording.
fn record(name: &str) -> PathBuf {
    record_from(name, false)
}

/// The same, started in the spec's own folder or in another one.
fn record_from(name: &str, from_there: bool) -> PathBuf {
    let folder = folder(name);
    fs::write(folder.join("arm.yaml"), SPEC).expect("our folder");
    for file in ["square.csv", "irb120.urdf"] {
        fs::copy(ours("graphs/arm").join(file), folder.join(file)).expect("our folder");
    }
    let spec = folder.join("arm.yaml").display().to_string();
    let (spec, from) = if from_there { ("arm.yaml", &*folder) } else { (&*spec, Path::new(".")) };
    let mut run = Command::new(SINEW);
    // On a machine that stalls for long enough the arm faults; then this is what is recorded.
    let ran = run.args(["run", spec, "--duration", "1s", "--json"]).current_dir(from).output();
    ran.expect("it starts");
    let parts = fs::read_dir(folder.join("recordings")).expect("the recorder makes it");
    let mut parts: Vec<_> = parts.map(|entry| entry.expect("a part").path()).collect();
    assert_eq!(parts.len(), 1, "{parts:?}");
    parts.remove(0)
}

fn replay(part: &Path, more: &[&str]) -> Answer {
    let part = part.display().to_string();
    sinew(["replay", &part].into_iter().chain(more.iter().copied()))
}

fn count(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_else(|| panic!("no count '{key}' in {report}"))
}

#[test]
fn a_recorded_run_replays_bit_for_bit() {
    let part = record("replay_same");
    let report = replay(&part, &["--json"]).ended_with(0).json();
    assert_eq!((&report["identical"], &report["graph"]), (&true.into(), &"arm".into()), "{report}");
    let cycles = count(&report, "cycles");
    assert!(cycles > 200, "{report}");
    let compared = ["threads_compared", "ports_compared"].map(|key| count(&report, key));
    assert_eq!((compared, count(&report, "differing_cycles")), ([2, 5], 0), "{report}");
    let text = replay(&part, &[]).ended_with(0).out;
    assert!(
        text.contains(" of 2 threads, 5 ports, ") && text.contains(": bit-identical"),
        "{text}"
    );

    // The recording is sufficient: no other file of the run is needed.
    let alone = folder("replay_alone").join("part.mcap");
    fs::copy(&part, &alone).expect("our folder");
    fs::remove_dir_all(part.ancestors().nth(2).expect("our folder")).expect("our folder");
    let text = replay(&alone, &["--until", "0.1s", "--speed", "50"]).ended_with(0).out;
    assert!(text.contains("bit-identical"), "{text}");

    // Cut, as by a kill, after the last cycles, in the record that ends them. The footer has 20
    // bytes, and 8 bytes follow it. It begins with the place of the summary.
    let bytes = fs::read(&alone).expect("a copy of ours");
    let footer = bytes[bytes.len() - 28..].first_chunk().expect("28 bytes");
    let summary = usize::try_from(u64::from_le_bytes(*footer)).expect("a place in it");
    fs::write(&alone, &bytes[..summary - 1]).expect("our folder");
    let report = replay(&alone, &["--json"]).ended_with(0).json();
    assert_eq!(count(&report, "cycles"), cycles, "{report}");
    assert!(report["notes"].to_string().contains("no end"), "{report}");
}

/// The spec was named from its own folder, and its data files from there.
#[test]
fn a_recording_replays_from_any_folder() {
    let part = record_from("anywhere", true);
    let report = replay(&part, &["--json"]).ended_with(0).json();
    let notes = report["notes"].as_array().expect("a list");
    assert!(!notes.iter().any(|note| note.as_str().is_some_and(|it| it.contains("square.csv"))));
    // The files are reported as changed only after they have changed.
    let folder = part.parent().and_then(Path::parent).expect("the spec's");
    fs::write(folder.join("square.csv"), "0,0,0\n").expect("our folder");
    let report = replay(&part, &["--json"]).ended_with(0).json();
    let mut notes = report["notes"].as_array().expect("a list").iter().filter_map(Value::as_str);
    assert!(notes.any(|note| note.contains("square.csv' has changed")), "{report}");
}

#[test]
fn another_parameter_is_found_where_it_is_used_first() {
    let part = record("replay_other");
    let set = ["--set", "planner.speed_mm_per_s=100"];
    let report = replay(&part, &[&set[..], &["--json"]].concat()).ended_with(1).json();
    let [control, plant] = report["threads"].as_array().expect("a list").as_slice() else {
        panic!("two threads are expected: {report}");
    };
    let first = &control["first"];
    assert_eq!((&control["thread"], &first["node"]), (&"control/0".into(), &"planner".into()));
    let differs = |field: &str| {
        let rows = first["differences"].as_array().expect("a list");
        rows.iter().any(|row| row["field"] == field && row["recorded"] != row["now"])
    };
    assert!(differs("planner.out.path_speed_m_per_s"), "{first}");
    assert!(first["cycle"].as_u64() > Some(0) && first["fails_now"].is_null(), "{first}");
    // The replay feeds it what the planner had sent in the run.
    assert_eq!((count(plant, "differing_cycles"), &plant["first"]), (0, &Value::Null));
    assert!(count(plant, "cycles") > 100, "{plant}");

    let text = replay(&part, &[&set[..], &["--diff"]].concat()).ended_with(1).out;
    for expected in ["is the first that differs, in node 'planner'", "came in:", "node 'ik': "] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

#[test]
fn a_bad_request_is_refused_and_nothing_is_replayed() {
    let spec = ours("graphs/arm/arm.yaml").display().to_string();
    let answer = sinew(["replay", &spec]).ended_with(2);
    assert!(answer.err.contains("is not an MCAP file"), "{}", answer.err);
    let answer = sinew(["replay", "/nowhere.mcap", "--json"]).ended_with(2);
    assert!(answer.json()["errors"][0]["message"].is_string(), "{}", answer.out);
    for bad in [["--speed", "0"], ["--speed", "fast"], ["--until", "soon"], ["--until", "-1"]] {
        sinew(["replay", &spec].into_iter().chain(bad)).ended_with(2);
    }
    sinew(["replay"]).ended_with(2);
}

#[test]
fn a_page_is_one_file_of_what_the_recording_has() {
    let part = record("replay_page");
    let beside = part.parent().expect("our folder");
    let page = |name: &str| beside.join(name).display().to_string();
    let whole = page("whole.html");
    let made = replay(&part, &["--page", &whole, "--trace", "planner.path_speed_m_per_s"]);
    if made.err.contains("the page is not in this program") {
        return skip(&made.err);
    }
    let said = made.err;
    assert!(said.contains("page: ") && said.contains(" MB"), "{said}");
    let html = fs::read_to_string(&whole).expect("the page");
    assert!(html.contains("<script type=\"application/json\" id=\"recording\">"), "{}", html.len());
    assert!(!html.contains("src=\"app.js\"") && !html.contains("href=\"app.css\""));

    // An existing file stays. Nothing is made of a file that does not exist.
    for (more, expected) in [
        (vec!["--page", &whole], "exists already; name a new file"),
        (vec!["--page", &page("a.html"), "--trace", "planner.nothing"], "no such signal or port"),
        (vec!["--page", &page("b.html"), "--speed", "1"], "cannot be used with"),
        (vec!["--trace", "planner.path_speed_m_per_s"], "--page <FILE>"),
    ] {
        let said = replay(&part, &more).ended_with(2).err;
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(fs::read_to_string(&whole).expect("the page"), html);

    // Cut, as by a kill: nothing is complete after the beginning.
    let bytes = fs::read(&part).expect("the recording");
    let cut = folder("replay_page_cut").join("part.mcap");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("our folder");
    let short = page("short.html");
    replay(&cut, &["--page", &short]);
    assert!(fs::read_to_string(&short).expect("the page").len() < html.len());
    let none = beside.join("none.mcap");
    let said = replay(&none, &["--page", &page("c.html")]).ended_with(2).err;
    assert!(said.contains("none.mcap") && !beside.join("c.html").exists(), "{said}");
}
