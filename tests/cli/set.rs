//! Parameters that change while the core runs: set from the command line, over HTTP, by many
//! clients at once. Also their effect on a recording, after a reset, and on the spec.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::api::Api;
use crate::control::Place;
use crate::program::{Answer, graph_in, sinew, wait_until};

/// A motor whose position depends on a number that may be set. The core can be started again.
const GRAPH: &str = "
name: turn
hold: true
domains:
  control: {realtime: {period: 5ms, overrun: {policy: count}}}
  plant: {realtime: {trigger: input, overrun: {policy: count}}}
  recorder: {}
  api: {}
nodes:
  # Where it is to be.
  - kind: constant
    name: place
    domain: control
    value: 1 # one radian
    unit: rad
    ports: {out: [{name: pid, port: setpoint}]}
  - kind: pid
    name: pid
    domain: control
    kp: 2 # softly
    ki: 0
    out_min: -24
    out_max: 24
    unit: V
    ports: {out: [{name: motor, port: voltage, delivery: latest}]}
  - kind: dc_motor
    name: motor
    domain: plant
    inertia_kg_m2: 5e-5
    safe: {voltage: {value: off, after: 100}}
    ports: {position: [{name: pid, port: measured, delay: 1}]}
  - {kind: recorder, name: recorder, domain: recorder}
  - {kind: listener, name: listener, domain: api, port: 0, ports: {out: [{name: set, port: in}]}}
  - kind: set_parameters
    name: set
    domain: api
    parameters: [place.value, pid.kp]
    values: '{{ packet.body }}'
";

/// The current value of a parameter.
fn value(place: &Place, pid: &str, name: &str) -> String {
    let listed = place.sinew(&["set", "--run", pid, "--json"]).ended_with(0).json();
    let all = listed["tunables"].as_array().expect("a list").clone();
    let is_it =
        |it: &&Value| format!("{}.{}", it["node"], it["parameter"]).replace('"', "") == name;
    let found = all.iter().find(is_it).unwrap_or_else(|| panic!("no '{name}' in {listed}"));
    found["value"].as_str().expect("a text").to_owned()
}

/// Asks to set parameters. Repeats this as long as a run has no place for one more client.
fn ask(place: &Place, pid: &str, settings: &[&str]) -> Answer {
    loop {
        let answer = place.sinew(&[&["set", "--run", pid], settings].concat());
        if !answer.err.contains("try again") {
            return answer;
        }
    }
}

/// Sets parameters, and checks the answer.
fn set(place: &Place, pid: &str, settings: &[&str], expected: &str) {
    let answer = ask(place, pid, settings).ended_with(0);
    assert!(answer.out.contains(expected), "{}", answer.out);
}

fn refused(place: &Place, pid: &str, settings: &[&str], expected: &str) {
    let answer = ask(place, pid, settings).ended_with(1);
    assert!(answer.err.contains(expected), "{}", answer.err);
}

fn part(graph: &str) -> String {
    let folder = Path::new(graph).with_file_name("recordings");
    let part = fs::read_dir(folder).expect("the recorder makes it").next().expect("a part");
    part.expect("a part").path().display().to_string()
}

#[test]
fn a_changed_parameter_is_obeyed_recorded_and_replayed() {
    let place = Place::new("set");
    let graph = graph_in("set", GRAPH);
    let (run, pid) = place.run(&[&graph]);
    set(&place, &pid, &["pid.kp=6", "pid.ki=20"], "pid.kp 2 -> 6, pid.ki 0 -> 20");
    set(&place, &pid, &["place.value=-2.5"], "place.value 1 -> -2.5");
    let log = || place.sinew(&["log", &pid]).ended_with(0).out;
    assert!(log().contains("tuned       place.value 1 -> -2.5, by process "), "{}", log());
    // A new life of the core begins with the values that were set.
    place.sinew(&["halt", &pid]).ended_with(0);
    place.sinew(&["reset", &pid]).ended_with(0);
    assert_eq!(value(&place, &pid, "pid.kp"), "6");
    wait_until("the core runs", || place.domain(&pid, "plant")["threads"][0]["cycles"] != 0);
    place.stop(run);
    let replayed = sinew(["replay", &part(&graph), "--json"]).ended_with(0).json();
    assert_eq!(replayed["identical"], true, "{replayed:#}");
    assert!(replayed["cycles"].as_u64() > Some(10), "{replayed:#}");
    // With another inertia the replay differs, so a parameter that is set has an effect.
    let other = sinew(["replay", &part(&graph), "--set", "motor.inertia_kg_m2=1e-4", "--json"]);
    assert_eq!(other.ended_with(1).json()["identical"], false);
}

#[test]
fn what_is_out_of_its_limits_is_refused_whoever_asks_and_changes_nothing() {
    let place = Place::new("set_refused");
    let (run, pid) = place.run(&[&graph_in("set_refused", GRAPH)]);
    for (settings, expected) in [
        (&["pid.kp=1e99"][..], "kp cannot be '1e99': write a number from -1e9 to 1e9"),
        (&["pid.kp=nan"], "kp cannot be 'nan'"),
        (&["pid.kp=3", "pid.out_min=25"], "out_min 25 is not below out_max 24; lower out_min"),
        (&["pid.kp=3", "pid.kp=4"], "'pid.kp' is set twice"),
        (&["pid.kq=3"], "'pid' has no parameter 'kq'; did you mean 'kp'?"),
        (&["pid.unit=V"], "'pid.unit' is fixed while the graph runs; tunable are: kp, "),
        (&["pit.kp=3"], "there is no node 'pit'; did you mean 'pid'?"),
        (
            &["recorder.folder=3"],
            "node 'recorder' is a 'recorder', which has no tunable parameters",
        ),
        (&["pid.kp"], "'pid.kp' sets nothing; write NODE.PARAMETER=VALUE"),
    ] {
        refused(&place, &pid, settings, expected);
    }
    // The good half of the request is not set either.
    assert_eq!(["pid.kp", "pid.out_min"].map(|name| value(&place, &pid, name)), ["2", "-24"]);
    // Five clients at once, each alternating between values beyond and within the limits.
    std::thread::scope(|scope| {
        for client in 0..5 {
            let (place, pid) = (&place, &pid);
            scope.spawn(move || {
                for turn in 0..4 {
                    let good = format!("pid.kp={}", 1 + client * 10 + turn);
                    set(place, pid, &[&good], "pid.kp ");
                    refused(place, pid, &["pid.kp=-1e10"], "kp cannot be '-1e10'");
                }
            });
        }
    });
    let kp: f64 = value(&place, &pid, "pid.kp").parse().expect("a number");
    assert!([4.0, 14.0, 24.0, 34.0, 44.0].contains(&kp), "the last of one of them: {kp}");
    place.stop(run);
}

#[test]
fn a_saved_value_stands_in_the_spec_with_all_its_comments() {
    let place = Place::new("set_saved");
    let graph = graph_in("set_saved", GRAPH);
    let (run, pid) = place.run(&["--watch", &graph]);
    set(
        &place,
        &pid,
        &["pid.kp=3.5", "place.value=2", "--save"],
        "pid.kp=3.5, place.value=2 written",
    );
    let saved = fs::read_to_string(&graph).expect("a spec");
    let expected =
        GRAPH.replace("kp: 2 # softly", "kp: 3.5 # softly").replace("value: 1 #", "value: 2 #");
    assert_eq!(saved, expected);
    // The edited file is no edit of the graph: the graph runs with these values already.
    set(&place, &pid, &["pid.kp=4", "--save"], "pid.kp 3.5 -> 4");
    let log = place.sinew(&["log", &pid]).ended_with(0).out;
    assert!(!log.contains("edit_refused"), "{log}");
    // An edit of flows does not undo values that were set and not saved.
    set(&place, &pid, &["pid.ki=1"], "pid.ki 0 -> 1");
    let text = fs::read_to_string(&graph).expect("a spec");
    fs::write(&graph, text.replace("[place.value, pid.kp]", "[pid.kp]")).expect("our file");
    let log = || place.sinew(&["log", &pid]).ended_with(0).out;
    wait_until("the edit is taken or refused", || {
        log().contains("1 node changed (set)") || log().contains("edit_refused")
    });
    assert!(!log().contains("edit_refused"), "{}", log());
    assert_eq!(value(&place, &pid, "pid.ki"), "1");
    fs::remove_file(&graph).expect("our file");
    let unsaved = place.sinew(&["set", "--run", &pid, "pid.kp=5", "--save"]).ended_with(1).err;
    assert!(unsaved.contains("pid.kp 4 -> 5; pid.kp=5 not written to '"), "{unsaved}");
    place.stop(run);
}

#[test]
fn an_api_sets_what_it_may_and_nothing_else() {
    let place = Place::new("set_api");
    let (run, pid) = place.run(&[&graph_in("set_api", GRAPH)]);
    let api = Api::of(&place, &pid, "api");
    let json = "Content-Type: application/json\r\n";
    let post = |body: &Value| api.ask_with("POST", "/", json, &body.to_string());
    assert_eq!(post(&json!({})), (200, json!({"place.value": 1.0, "pid.kp": 2.0})));
    let done = post(&json!({"place.value": -1, "pid.kp": 2.25}));
    assert_eq!(done, (200, json!({"place.value": -1.0, "pid.kp": 2.25})));
    for (body, status, expected) in [
        (json!({"pid.ki": 1}), 400, "'pid.ki' may not be set here"),
        (json!({"pid.kp": "3"}), 400, "takes a finite number or a flag"),
        (json!([1]), 400, "expected values by their names"),
        (json!({"pid.kp": 1e12}), 409, "kp cannot be '1000000000000'"),
    ] {
        let (found, answer) = post(&body);
        let text = answer["error"].as_str().unwrap_or_default();
        assert!(found == status && text.contains(expected), "{found} {answer}");
    }
    assert_eq!(value(&place, &pid, "pid.kp"), "2.25");
    place.stop(run);
}
