//! Scopes of viewers, which may ask for anything.

use serde_json::{Value, json};
use sinew_services::dashboard::protocol::scope::SCOPES_MAX;

use super::client::{Viewer, ask};
use super::shown::Shown;

/// The first number is the cycle's.
const CYCLE: &str = "probe.actual_m[0]";

/// A scope of the probe's cycles over 100 ms, with some of it changed.
fn scope(change: impl FnOnce(&mut Value)) -> Value {
    let mut order = json!({
        "do": "scope", "id": 5, "traces": [CYCLE, "probe.brake[1]"],
        "settings": {
            "window_ns": 100_000_000, "pre": 0.5, "sweep": "roll",
            "trigger": {"trace": 0, "slope": "above", "level": 0.0, "hysteresis": 0.0},
        },
        "look": {"columns": 10}, "frozen": false,
    });
    change(&mut order);
    order
}

fn set(viewer: &mut Viewer, change: impl FnOnce(&mut Value)) -> Result<String, String> {
    viewer.say(scope(change).to_string());
    viewer.answer(5)
}

fn cycles(picture: &Value) -> u64 {
    picture["traces"][0]["figures"]["cycles"].as_u64().unwrap_or(0)
}

pub(super) fn followed() {
    let shown = Shown::start(&[]);
    let (address, token) = shown.address();
    let mut viewer = Viewer::open(&address);
    assert!(set(&mut viewer, |_| {}).is_ok());
    let picture = viewer.text_that("scope", |it| cycles(it) >= 40);
    assert_eq!((&picture["doing"], &picture["ended"]), (&json!("rolling"), &json!(null)));
    let trace = &picture["traces"][0];
    assert_eq!(
        (&trace["name"], &trace["min"].as_array().map(Vec::len)),
        (&json!(CYCLE), &Some(10))
    );
    // The trace counts: no cycle is missing, and each column begins where the one before ended.
    let number = |it: &Value| it.as_f64().expect("a number");
    let (least, most) = (number(&trace["figures"]["min"]), number(&trace["figures"]["max"]));
    assert_eq!(most - least + 1.0, cycles(&picture) as f64);
    assert!(number(&trace["max"][9]) > number(&trace["min"][5]));
    assert_eq!(picture["traces"][1]["labels"], json!(["open", "closed"]));

    assert!(set(&mut viewer, |it| it["settings"]["sweep"] = json!("single")).is_ok());
    let done = viewer.text_that("scope", |it| it["doing"] == "done");
    assert_eq!((&done["triggered"], done["window_s"][0].as_f64()), (&json!(true), Some(-0.05)));
    let key = done["key"].as_u64().expect("a key");
    let csv = ask(&address, &get(&format!("/scope/{key}.csv"), &address));
    assert!(csv.contains("attachment") && csv.contains(&format!("time_s,{CYCLE}")), "{csv}");
    let mcap = ask(&address, &get(&format!("/scope/{key}.mcap"), &address));
    assert!(mcap.contains("200 OK") && mcap.contains("MCAP0"), "{mcap}");
    let none = ask(&address, &get("/scope/4711.csv", &address));
    assert!(none.contains("409") && none.contains("shows no capture"), "{none}");
    for bad in ["/scope/1.exe", "/scope/csv", "/scope/-1.csv", "/scope/..%2f1.csv"] {
        assert!(ask(&address, &get(bad, &address)).contains("404"), "{bad}");
    }

    assert!(set(&mut viewer, |_| {}).is_ok());
    assert!(viewer.order(&token, json!({"do": "halt"})).is_ok());
    let ended = viewer.text_that("scope", |it| it["ended"].is_string());
    assert!(ended["ended"].as_str().is_some_and(|it| it.contains("has stopped")), "{ended}");
    assert!(viewer.order(&token, json!({"do": "reset"})).is_ok());
    viewer.text_that("scope", |it| it["ended"].is_null() && it["life"] == 1 && cycles(it) > 10);
    viewer.say(json!({"do": "unscope", "id": 6}).to_string());
    assert!(viewer.answer(6).is_ok());
    viewer.say(json!({"do": "arm", "id": 7}).to_string());
    assert!(viewer.answer(7).is_err_and(|it| it.contains("there is no scope")));
    shown.stop();
}

fn get(path: &str, host: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

pub(super) fn hostile() {
    let shown = Shown::start(&[]);
    let (address, _) = shown.address();
    let mut viewer = Viewer::open(&address);
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 14] = [
        (|it| it["traces"] = json!([]), "0 traces; expected 1 to 8"),
        (|it| it["traces"] = json!(vec![CYCLE; 9]), "9 traces; expected 1 to 8"),
        (|it| it["traces"] = json!(["x".repeat(201)]), "a name of 201 bytes"),
        (|it| it["traces"] = json!(["prob.actual_m[0]"]), "there is no node 'prob'"),
        (|it| it["traces"] = json!(["probe.actual_m"]), "stands for 3 numbers"),
        (|it| it["traces"] = json!(["film.out"]), "is in a service"),
        (|it| it["look"]["columns"] = json!(1), "1 columns; expected 2 to 1000"),
        (|it| it["look"]["columns"] = json!(4_000_000_000_u64), "expected 2 to 1000"),
        (|it| it["look"]["span_s"] = json!([1.0, 1.0]), "ends before it begins"),
        (|it| it["look"]["bode"] = json!([0, 2]), "there is no trace 2, expected less than 2"),
        (|it| it["settings"]["window_ns"] = json!(u64::MAX), "change the window"),
        (|it| it["settings"]["pre"] = json!(1.5), "expected 0 to 1"),
        (
            |it| {
                it["settings"]["sweep"] = json!("auto");
                it["settings"]["trigger"]["trace"] = json!(usize::MAX);
            },
            "the trigger is trace",
        ),
        (|it| it["token"] = json!("x"), "not an order"),
    ];
    for (change, expected) in cases {
        let error = set(&mut viewer, change).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
    // A part that cannot be shown gives the reason, and the rest is shown nevertheless.
    assert!(set(&mut viewer, |it| it["look"]["step"] = json!({"input": 1, "output": 0})).is_ok());
    let picture = viewer.text_that("scope", |it| it["step"]["Err"].is_string() && cycles(it) > 0);
    assert!(picture["spectrum"].is_null());
    let mut others: Vec<_> = (1..SCOPES_MAX).map(|_| Viewer::open(&address)).collect();
    others.iter_mut().for_each(|viewer| assert!(set(viewer, |_| {}).is_ok()));
    let mut last = Viewer::open(&address);
    assert!(set(&mut last, |_| {}).is_err_and(|it| it.contains("scopes are open already")));
    assert!(set(&mut viewer, |it| it["frozen"] = json!(true)).is_ok(), "one that is open stays so");
    viewer.text_that("scope", |it| it["doing"] == "frozen");
    drop(others.pop());
    last.text_that("figures", |it| it["viewers"] == SCOPES_MAX);
    assert!(set(&mut last, |_| {}).is_ok(), "whose viewer has gone is closed");
    shown.stop();
}
