//! `sinew kinds`: the list, one kind as text and as JSON, and an example that can be put into a
//! graph.

use serde_json::Value;

use crate::program::sinew;

#[test]
fn every_kind_is_listed_once_with_its_first_sentence() {
    let text = sinew(["kinds"]).ended_with(0).out;
    let listed = |name: &str| {
        let begins = |line: &&str| line.split_whitespace().next() == Some(name);
        text.lines()
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter(begins)
            .count()
    };
    let all = sinew::kinds().catalogue();
    for kind in &all {
        assert_eq!(listed(kind.name), 1, "{}", kind.name);
    }
    assert!(all.len() > 60);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "80 columns do");
}

#[test]
fn a_kind_is_shown_with_ports_units_and_defaults() {
    let text = sinew(["kinds", "dc_motor"]).ended_with(0).out;
    for part in [
        "in  voltage",
        "(V)",
        "moves an actuator",
        "resistance_ohm",
        "default 0.6",
        "default 24.",
        "[tunable",
        "velocity_rad_per_s",
    ] {
        assert!(text.contains(part), "'{part}' is not in:\n{text}");
    }
    let json: Value =
        serde_json::from_str(&sinew(["kinds", "mux", "--json"]).ended_with(0).out).expect("JSON");
    assert_eq!(json["ports"][1]["message"], "the message of 'message'");
    assert_eq!(json["parameters"][0]["default"], Value::Null);
    assert_eq!(json["parameters"][0]["tunable"], false);
    let text = sinew(["kinds", "constant", "--json"]).ended_with(0).out;
    let json: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["parameters"][0]["tunable"], true);
}

#[test]
fn an_unknown_kind_is_refused_with_the_nearest() {
    let refused = sinew(["kinds", "dc_moter"]).ended_with(2);
    assert!(refused.err.contains("did you mean 'dc_motor'?"), "{}", refused.err);
}
