//! `sinew scope`: numbers of the core from outside, and what it says where there are none.

use std::fs;

use crate::control::Place;
use crate::program::{Running, calm, folder, graph_in, ours, wait_until};

fn axis(place: &Place, name: &str) -> (Running, String) {
    // Nothing here is about time: on a busy machine no cycle may be too late.
    let text = fs::read_to_string(ours("graphs/axis/axis.yaml")).expect("it is ours");
    let text = text.replace("consecutive_max: 50", "consecutive_max: 10000");
    place.run(&[&graph_in(name, &text)])
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
    let head = "time_s,pid.out (V),motor.current_a (A),missing_cycles";
    assert!(rows.starts_with(head) && rows.lines().count() > 20, "{rows}");
    assert!(fs::read(&mcap).expect("a file").starts_with(b"\x89MCAP0"));
    // The motor turns to and fro.
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
        (&["dashboard.x"], 2, "is of a service"),
        (&[], 2, "sinew scope --list"),
        (&["pid.out", "--window", "1h"], 2, "change the window"),
        (&["pid.out", "--trigger", "pid.out", "--level", "nan"], 2, "expected a finite number"),
        (&["pid.out", "--trigger", "pid.out > x"], 2, "is no number"),
        (&["pid.out", "--sweep", "normal"], 2, "add --trigger"),
        (&["pid.out", "--trigger", "pid.out > 99", "--wait", "100ms"], 1, "no trigger within"),
    ];
    for (arguments, status, expected) in cases {
        let all = [&["scope", "--once", "--run", &pid], arguments].concat();
        let error = place.sinew(&all).ended_with(status).err;
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let error = place.sinew(&["scope", "pid.out", "--run", &pid]).ended_with(2).err;
    assert!(error.contains("no terminal"), "{error}");
    place.stop(running);
}

#[test]
fn a_scope_on_a_run_that_ends_says_so_and_ends() {
    let place = Place::new("scope_end");
    let (running, pid) = axis(&place, "scope_axis_end");
    let look = place.start(&["scope", "pid.out", "--for", "100s", "--run", &pid]);
    // It is heard of by nobody before it is ready; a run that is gone is an end as well.
    wait_until("somebody looks", || {
        fs::read_dir(format!("/proc/{}/fd", look.pid())).is_ok_and(|it| it.count() > 6)
    });
    place.stop(running);
    let error = look.answer().ended_with(1).err;
    assert!(error.contains("has ended: stopped") || error.contains("ended before"), "{error}");
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
