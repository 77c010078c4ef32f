//! Tests how `pid` controls, against transfer functions and loops of scipy; how it is switched,
//! limited and held; and which parameters it refuses.

use std::path::Path;

use sinew_core::NodeFixture;
use sinew_spec::alone;

use super::*;
use crate::testing::{fixture, hold, reference};

const PERIOD_S: f64 = 1e-3;

fn pid(given: &[(&str, &str)]) -> NodeFixture {
    fixture(&NODE, given).expect("makes")
}

fn put(node: &mut NodeFixture, port: usize, value: f64) {
    node.put(port, &Real { value });
}

fn enable(node: &mut NodeFixture, is_enabled: bool) {
    node.put(ENABLED, &Flag { value: is_enabled.into() });
}

/// The output of the next cycle.
fn next(node: &mut NodeFixture) -> f64 {
    node.update().expect("a cycle");
    node.get::<Real>(OUT).expect("it says so every cycle").value
}

fn control(node: &mut NodeFixture, setpoint: f64, measured: f64) -> f64 {
    put(node, SETPOINT, setpoint);
    put(node, MEASURED, measured);
    next(node)
}

/// Numbers of a random walk. The first is zero.
fn wander(seed: u64, count: usize) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 0.0;
    let mut step = || {
        let here = at;
        at += random.f64() - 0.5;
        here
    };
    (0..count).map(|_| step()).collect()
}

#[test]
fn its_linear_part_is_that_of_the_transfer_functions() {
    for (seed, of) in [(1, "measured"), (2, "error")] {
        let mut node = pid(&[
            ("kp", "-2.5"),
            ("ki", "-40"),
            ("kd", "-0.02"),
            ("derivative_filter_s", "0.004"),
            ("setpoint_weight", "0.6"),
            ("derivative_of", of),
        ]);
        let [setpoint, measured, forward] = [0, 10, 20].map(|more| wander(seed + more, 2000));
        let cycle = |at: usize| {
            put(&mut node, FEED_FORWARD, forward[at]);
            control(&mut node, setpoint[at], measured[at])
        };
        let ours: Vec<f64> = (0..2000).map(cycle).collect();
        let with = serde_json::json!({
            "kp": -2.5, "ki": -40, "kd": -0.02, "filter_s": 0.004, "weight": 0.6,
            "of_error": of == "error", "period_s": PERIOD_S, "setpoint": setpoint,
            "measured": measured, "forward": forward,
        });
        if let Some(theirs) = reference("controllers.pid_linear", &with) {
            hold(of, &ours, &theirs);
        }
    }
}

/// The loop is closed in the reference program. Here the node must only give the same output.
fn hold_limited(actuator: f64, tracking: &str, tracking_s: f64) {
    let setpoint: Vec<f64> =
        (0..6000).map(|at| if at == 0 { 0.0 } else { [3.0, -1.0][at / 3000] }).collect();
    let with = serde_json::json!({
        "kp": 6.0, "ki": 9.0, "kd": 1.5, "filter_s": 0.02, "tracking_s": tracking_s,
        "limits": [-2.0, 3.5], "rate": 50.0, "actuator": actuator, "period_s": PERIOD_S,
        "setpoint": setpoint,
    });
    let Some(theirs) = reference("controllers.pid_limited", &with) else { return };
    let mut thirds = theirs.chunks(setpoint.len());
    let [measured, got, out] = [(); 3].map(|()| thirds.next().expect("three"));
    let mut node = pid(&[
        ("kp", "6"),
        ("ki", "9"),
        ("kd", "1.5"),
        ("derivative_filter_s", "0.02"),
        ("out_min", "-2"),
        ("out_max", "3.5"),
        ("rate_max", "50"),
        ("tracking_time_s", tracking),
    ]);
    let mut saturated = 0.0;
    let mut cycle = |at: usize| {
        if actuator < 100.0 && at > 0 {
            put(&mut node, APPLIED, got[at - 1]);
        }
        let out = control(&mut node, setpoint[at], measured[at]);
        saturated += node.signal(SATURATED)[0];
        out
    };
    let ours: Vec<f64> = (0..setpoint.len()).map(&mut cycle).collect();
    hold("out", &ours, out);
    assert!((100.0..5000.0).contains(&saturated), "limits were met in {saturated} cycles");
}

#[test]
fn past_its_limits_it_is_led_back_as_in_another_simulation() {
    hold_limited(100.0, "0.3", 0.3);
    // 0 stands for the rule: sqrt(Ti Td).
    hold_limited(100.0, "0", (1.5f64 / 9.0).sqrt());
}

#[test]
fn limits_behind_it_lead_it_back_too() {
    hold_limited(2.5, "0.3", 0.3);
}

/// With a proportional part of 0 the integral is led back to the limit, so the result is known in
/// closed form.
#[test]
fn the_rule_without_kd_is_the_integral_time_and_at_least_a_period() {
    let mut slow = pid(&[("kp", "2"), ("ki", "4"), ("out_max", "1"), ("out_min", "-1")]);
    let mut quick = pid(&[("kp", "0"), ("ki", "4"), ("out_max", "1"), ("out_min", "-1")]);
    for node in [&mut slow, &mut quick] {
        control(node, 0.0, 0.0);
        for _ in 0..20_000 {
            control(node, 1.0, 0.0);
        }
    }
    // In balance, a period of tracking takes away what a period of error adds.
    let past = slow.signal(P)[0] + slow.signal(I)[0] - 1.0;
    assert!((past - 4.0 * 0.5).abs() < 1e-9, "ki Tt e with Tt = kp / ki = 0.5 s: {past}");
    assert!((quick.signal(I)[0] - 1.004).abs() < 1e-12, "{:?}", quick.signal(I));
}

#[test]
fn on_the_switch_it_goes_on_from_the_manual_output() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..100 {
        let kp = (random.f64() * 20.0 - 10.0).to_string();
        let mut node = pid(&[("kp", &kp), ("ki", "3"), ("kd", "0.1"), ("rate_max", "1e12")]);
        let mut number = || random.f64() * 8.0 - 4.0;
        let manual = number();
        enable(&mut node, true);
        put(&mut node, FEED_FORWARD, number());
        for _ in 0..5 {
            control(&mut node, number(), number());
        }
        enable(&mut node, false);
        put(&mut node, MANUAL, manual);
        assert_eq!(control(&mut node, number(), number()), manual, "at once");
        enable(&mut node, true);
        let (setpoint, measured) = (number(), number());
        put(&mut node, FEED_FORWARD, number());
        let first = control(&mut node, setpoint, measured);
        assert!((first - manual).abs() < 1e-12, "{first} after {manual} with kp {kp}");
        let goes = control(&mut node, setpoint, measured) - first;
        assert!((goes - 3.0 * PERIOD_S * (setpoint - measured)).abs() < 1e-12, "{goes}");
    }
}

#[test]
fn without_ki_it_has_no_integral() {
    let mut node = pid(&[("kp", "2"), ("disabled_output", "7")]);
    for cycle in 0..10 {
        enable(&mut node, cycle % 3 != 0);
        let out = control(&mut node, 5.0, 2.0);
        assert_eq!(out, if cycle % 3 == 0 { 7.0 } else { 6.0 });
        assert_eq!(node.signal(I), [0.0]);
    }
}

#[test]
fn it_says_the_disabled_output_until_it_knows_both_numbers() {
    let mut node = pid(&[("kp", "2"), ("ki", "1"), ("disabled_output", "-3")]);
    assert_eq!(next(&mut node), -3.0);
    put(&mut node, SETPOINT, 5.0);
    assert_eq!(next(&mut node), -3.0);
    put(&mut node, MEASURED, 1.0);
    assert_eq!(next(&mut node), 8.0, "an integral of zero");
    assert_eq!([ERROR, P, I, D, SATURATED].map(|it| node.signal(it)[0]), [4.0, 8.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_link_that_never_said_so_does_not_enable_it() {
    let node = alone(NODE.kind, &[("kp", "1"), ("disabled_output", "4")], "").expect("compiles");
    let parameters = Parameters {
        kind: node.kind,
        values: &node.values,
        base: Path::new("."),
        spans: &[],
        period_ns: 1_000_000,
        messages: vec![(ENABLED, Flag::TYPE)],
        home: None,
    };
    let entry = NodeEntry { kind: node.kind, ..NODE };
    let mut node = NodeFixture::new(&entry, &parameters).expect("makes");
    assert_eq!(control(&mut node, 1.0, 0.0), 4.0);
    put(&mut node, MANUAL, 2.0);
    assert_eq!(next(&mut node), 2.0);
    enable(&mut node, true);
    assert_eq!(next(&mut node), 1.0);
}

#[test]
fn its_output_never_leaves_its_limits() {
    let limits = [("out_min", "-1"), ("out_max", "2"), ("rate_max", "30")];
    let gains = [("kp", "9"), ("ki", "100"), ("kd", "0.1"), ("derivative_filter_s", "0.002")];
    let mut node = pid(&[limits.as_slice(), &gains].concat());
    let mut random = fastrand::Rng::with_seed(5);
    let (mut before, mut is_enabled) = (0.0, true);
    for _ in 0..20_000 {
        if random.u8(..50) == 0 {
            is_enabled = !is_enabled;
            enable(&mut node, is_enabled);
        }
        put(&mut node, MANUAL, random.f64() * 6.0 - 3.0);
        let out = control(&mut node, random.f64(), random.f64());
        assert!((-1.0..=2.0).contains(&out), "{out}");
        assert!(!is_enabled || (out - before).abs() <= 0.03 + 1e-12, "{out} after {before}");
        before = out;
    }
}

#[test]
fn while_the_graph_stops_it_commands_nothing() {
    let mut node = pid(&[("kp", "1"), ("ki", "10"), ("disabled_output", "0.25")]);
    for _ in 0..5 {
        control(&mut node, 1.0, 0.0);
    }
    node.cycle.stopping = true;
    assert_eq!(control(&mut node, 3.0, 1.0), 0.25);
}

#[test]
fn it_refuses_what_cannot_be_met() {
    let refused = |given: &[(&str, &str)]| {
        let given = [&[("kp", "1")], given].concat();
        fixture(&NODE, &given).err().expect("refuses").text().to_owned()
    };
    assert_eq!(
        refused(&[("out_min", "2"), ("out_max", "2")]),
        "out_min 2 is not below out_max 2; lower out_min"
    );
    assert_eq!(
        refused(&[("out_min", "2"), ("out_max", "4")]),
        "disabled_output 0 is outside of out_min 2 to out_max 4; give one between them"
    );
    assert_eq!(
        refused(&[("ki", "2"), ("tracking_time_s", "0.0005")]),
        "tracking_time_s 0.0005 is shorter than the period, 0.001 s; give a period or more, or 0 \
         for the rule"
    );
    for (name, value) in [
        ("derivative_filter_s", "-0.1"),
        ("kp", ".nan"),
        ("rate_max", "0"),
        ("setpoint_weight", "-1"),
    ] {
        let given = [("kp", "1"), (name, value)];
        let given = if name == "kp" { &given[1..] } else { &given };
        assert!(alone(&INFO, given, "").is_err(), "{name}: {value}");
    }
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut node = pid(&[("kp", "1"), ("ki", "1"), ("kd", "1"), ("out_max", "3")]);
    let counted = allocation_counter::measure(|| {
        for cycle in 0..100 {
            enable(&mut node, cycle % 10 != 0);
            control(&mut node, f64::from(cycle), 1.0);
        }
    });
    assert_eq!(counted.count_total, 0);
}
