//! `sinew scope`: numbers of the core from outside, and its messages if there are none.

use std::fs;

use rustix::process::Signal;

use crate::control::Place;
use crate::program::{Running, calm, folder, graph_in, ours, send, wait_until};

fn axis(place: &Place, name: &str) -> (Running, String) {
    place.run(&[&axis_graph(name, "")])
}

/// The axis, with another line in front of it.
fn axis_graph(name: &str, before: &str) -> String {
    // These tests do not check times: on a busy machine no cycle may be too late.
    let text = fs::read_to_string(ours("graphs/axis/axis.yaml")).expect("it is ours");
    let text = text.replace("consecutive_max: 50", "consecutive_max: 10000");
    graph_in(name, &format!("{before}\n{text}"))
}

/// Waits until a scope has mapped the memory of the records.
fn wait_for_scope(look: &Running) {
    wait_until("it has mapped the records", || {
        fs::read_to_string(format!("/proc/{}/maps", look.pid()))
            .is_ok_and(|maps| maps.contains("memfd:sinew-trace"))
    });
}

fn wait_for_cycles(place: &Place, pid: &str) {
    wait_until("there are cycles", || {
        place.domain(pid, "control")["threads"][0]["cycles"].as_u64() > Some(100)
    });
}

#[test]
fn a_capture_is_read_from_a_run_of_two_threads_with_messages_and_files() {
    let place = Place::new("scope");
    let (running, pid) = axis(&place, "scope_axis_read");
    let listed = place.sinew(&["scope", "--list", "--json", "--run", &pid]).ended_with(0).json();
    let there = |name: &str| {
        let all = listed["traces"].as_array().expect("a list");
        all.iter().find(|trace| trace["name"] == name).map(|trace| trace["unit"].clone())
    };
    assert_eq!(there("motor.current_a"), Some("A".into()));
    assert_eq!((there("pid.setpoint"), there("pid.out")), (Some("rad".into()), Some("V".into())));
    let into = folder("scope");
    let (csv, mcap) = (into.join("a.csv"), into.join("a.mcap"));
    let [csv_name, mcap_name] = [&csv, &mcap].map(|path| path.display().to_string());
    let arguments = ["scope", "pid.out", "motor.current_a", "--for", "300ms", "--json"];
    let files = ["--csv", &csv_name, "--mcap", &mcap_name, "--spectrum", "--run", &pid];
    let json = place.sinew(&[&arguments[..], &files].concat()).ended_with(0).json();
    for at in 0..2 {
        let cycles = json["traces"][at]["figures"]["cycles"].as_u64();
        assert!(cycles.is_some_and(|cycles| cycles > 10), "{json}");
    }
    let rows = fs::read_to_string(&csv).expect("a file");
    let head = "time_s,pid.out (V),motor.current_a (A),missing_cycles,life";
    assert!(rows.starts_with(head) && rows.lines().count() > 20, "{rows}");
    assert!(fs::read(&mcap).expect("a file").starts_with(b"\x89MCAP0"));
    // The motor turns back and forth.
    let trigger = ["scope", "pid.setpoint", "--trigger", "pid.setpoint > 0.5", "--pre", "20%"];
    let more = ["--window", "100ms", "--json", "--run", &pid];
    let json = place.sinew(&[&trigger[..], &more].concat()).ended_with(0).json();
    assert_eq!((&json["triggered"], &json["from_s"]), (&true.into(), &(-0.02).into()));
    place.stop(running);
}

#[test]
fn what_cannot_be_looked_at_is_refused_with_what_there_is() {
    let place = Place::new("scope_bad");
    let error = place.sinew(&["scope", "a.b", "--once", "--run", "1"]).ended_with(2).err;
    assert!(error.contains("no run '1'"), "{error}");
    let (running, pid) = axis(&place, "scope_axis_bad");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["motr.current_a"], 2, "did you mean 'motor'?"),
        (&["motor.curent_a"], 2, "did you mean 'motor.current_a'?"),
        (&["dashboard.x"], 2, "is in a service"),
        (&[], 2, "sinew scope --list"),
        (&["pid.out", "--window", "1h"], 2, "change the window"),
        (&["pid.out", "--trigger", "pid.out", "--level", "nan"], 2, "expected a finite number"),
        (&["pid.out", "--trigger", "pid.out > x"], 2, "is not a number"),
        (&["pid.out", "--sweep", "normal"], 2, "add --trigger"),
        (&["pid.out", "--trigger", "pid.out > 99", "--wait", "100ms"], 1, "no trigger within"),
    ];
    for (arguments, status, expected) in cases {
        let all = [&["scope", "--once", "--run", &pid], arguments].concat();
        let error = place.sinew(&all).ended_with(status).err;
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    place.stop(running);
}

#[test]
fn a_scope_on_a_run_that_ends_says_so_and_ends() {
    let place = Place::new("scope_end");
    let (running, pid) = axis(&place, "scope_axis_end");
    let look = place.start(&["scope", "pid.out", "--for", "100s", "--run", &pid]);
    wait_for_scope(&look);
    place.stop(running);
    let error = look.answer().ended_with(1).err;
    // It is also an end if the run no longer exists.
    assert!(error.contains("has ended: stopped") || error.contains("ended before"), "{error}");
}

/// The values in the columns `wanted` of a CSV, row by row.
fn columns(csv: &str, wanted: &[&str]) -> Vec<Vec<f64>> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let places = wanted.iter().map(|name| head.iter().position(|it| it == name));
    let places: Vec<_> = places.map(|place| place.expect("a column")).collect();
    let number = |row: &Vec<&str>, at: usize| row[at].parse::<f64>().expect("a number");
    lines.map(|row| places.iter().map(|&at| number(&row, at)).collect()).collect()
}

#[test]
fn a_scope_goes_on_after_a_reset_and_tells_the_lives_of_the_core_apart() {
    let place = Place::new("scope_reset");
    let into = folder("scope_reset_files");
    let [rows, csv] = ["rows.csv", "scope.csv"].map(|name| into.join(name).display().to_string());
    let (running, pid) = place.run(&["--csv", &rows, &axis_graph("scope_reset", "hold: true")]);
    wait_for_cycles(&place, &pid);
    let arguments = ["scope", "pid.error", "--for", "100s", "--json", "--spectrum"];
    let look = place.start(&[&arguments[..], &["--csv", &csv, "--run", &pid]].concat());
    wait_for_scope(&look);
    place.sinew(&["halt", &pid]).ended_with(0);
    place.sinew(&["reset", &pid]).ended_with(0);
    wait_for_cycles(&place, &pid);
    place.stop(running);
    // The window is not over. The part that exists is shown, with the reason and the matching
    // status.
    let answer = look.answer().ended_with(1);
    assert!(answer.err.contains("has ended: stopped"), "{}", answer.err);
    let json = answer.json();
    assert!(json["ended"].as_str().is_some_and(|text| text.contains("has ended")), "{json}");
    assert_eq!(json["resets"], 1);
    // Results that would join cycles of both lives are not shown.
    let why = json["spectrum"][0]["not_shown"].as_str().expect("a reason");
    assert!(why.contains("the core was started again"), "{why}");
    assert!(json["traces"][0]["figures"]["frequency_hz"].is_null(), "{json}");
    // The run itself wrote the same cycles. Each life has its own counts.
    let rows = fs::read_to_string(rows).expect("a file");
    let is_control = |line: &&str| !line.starts_with("plant,");
    let rows: Vec<_> = rows.lines().filter(is_control).collect();
    let rows = columns(&rows.join("\n"), &["cycle", "pid.error"]);
    let second = rows.iter().rposition(|row| row[0] == 0.0).expect("a first cycle");
    let seen = fs::read_to_string(csv).expect("a file");
    let seen = columns(&seen, &["pid.error (rad)", "missing_cycles", "life", "time_s"]);
    assert!(seen.is_sorted_by(|one, next| one[3] < next[3] && one[2] <= next[2]));
    for (life, written) in [(1.0, &rows[..second]), (2.0, &rows[second..])] {
        let ours: Vec<_> = seen.iter().filter(|row| row[2] == life).collect();
        // It has the end of the first life, and the whole second life, or says how many cycles are
        // missing.
        let missing: f64 = ours.iter().map(|row| row[1]).sum();
        let count = ours.len() as f64 + missing;
        assert!(!ours.is_empty() && life == 1.0 || count == written.len() as f64, "{count}");
        let from = written.len() - ours.len();
        let is_same = ours.iter().zip(&written[from..]).all(|(our, row)| our[0] == row[1]);
        assert!(missing > 0.0 || is_same, "life {life}");
    }
}

#[test]
fn a_scope_on_a_core_that_stands_shows_its_last_cycles_and_says_why_no_more_come() {
    let place = Place::new("scope_held");
    let (running, pid) = place.run(&[&axis_graph("scope_held", "hold: true")]);
    wait_for_cycles(&place, &pid);
    let control = place.domain(&pid, "control")["pid"].as_u64().expect("a process");
    send(control as u32, Signal::KILL);
    wait_until("it is held", || {
        place.listed(running.pid()).is_some_and(|run| run["phase"] == "held")
    });
    let said = |error: &str| {
        let parts = ["the core has stopped ('sinew reset'", "faulted: control: its process was"];
        parts.iter().for_each(|part| assert!(error.contains(part), "{error}"));
    };
    let scope = ["scope", "pid.error", "--json", "--wait", "100ms", "--run", &pid];
    let answer = place.sinew(&[&scope[..], &["--for", "1s"]].concat()).ended_with(1);
    said(&answer.err);
    said(answer.json()["ended"].as_str().expect("a reason"));
    assert!(answer.json()["traces"][0]["figures"]["cycles"].as_u64() > Some(0));
    // Past cycles do not trigger.
    let trigger = ["--trigger", "pid.error", "--level", "-99", "--slope", "above"];
    let answer = place.sinew(&[&scope[..], &trigger].concat()).ended_with(1).json();
    said(answer["errors"][0]["message"].as_str().expect("a reason"));
    place.sinew(&["stop", &pid]).ended_with(1);
    running.answer().ended_with(1);
    let gone = place.sinew(&scope).ended_with(2).json();
    let gone = gone["errors"][0]["message"].as_str().expect("a reason");
    assert!(gone.contains(&format!("no run '{pid}'")), "{gone}");
}

#[test]
fn messages_stand_in_the_records_of_a_run_that_nobody_observes_if_it_is_asked_to() {
    let place = Place::new("scope_observe");
    let (running, pid) = place.run(&[&calm()]);
    let list = |pid: &str| {
        let listed = place.sinew(&["scope", "--list", "--json", "--run", pid]).ended_with(0).json();
        let all = listed["traces"].as_array().expect("a list").clone();
        let last = all[all.len() - 1]["name"].as_str().expect("a name").to_owned();
        (listed["messages"].clone(), all.len(), last)
    };
    let (messages, few, _) = list(&pid);
    assert_eq!(messages, false);
    let error = place.sinew(&["scope", "ik.out", "--once", "--run", &pid]).ended_with(2).err;
    assert!(error.contains("sinew run --observe"), "{error}");
    place.stop(running);
    let (running, pid) = place.run(&["--observe", &calm()]);
    let (messages, many, last) = list(&pid);
    assert!(messages == true && many > few, "{messages} {few} {many}");
    let json = place.sinew(&["scope", "--for", "100ms", "--json", &last, "--run", &pid]);
    let json = json.ended_with(0).json();
    assert!(json["traces"][0]["figures"].is_object(), "{json}");
    place.stop(running);
}
