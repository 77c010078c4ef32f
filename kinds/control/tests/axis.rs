//! The axis of graphs/axis, unchanged: it reaches its places within its voltage.

use std::f64::consts::TAU;

mod support;

use support::{Row, edited, rests, run, text};

const LINKS: &[(&str, &str)] = &[
    ("{name: pid, port: setpoint}", "a"),
    ("{name: pid, port: measured, delivery: latest, delay: 1}", "b"),
    ("{name: motor, port: voltage, delivery: latest}", "c"),
];

/// Cycles at 1 kHz in which it settles, of a rest of 300 ms.
const SETTLES: usize = 200;
const VOLTAGE_V_MAX: f64 = 24.0;
const LINES_MAX: usize = 40;

fn error(row: &Row) -> f64 {
    (row[0] - row[1]).abs()
}

/// Greatest distance from each place once it has settled.
fn settled(seen: &[Row]) -> Vec<f64> {
    let rests = rests(seen, SETTLES);
    rests
        .into_iter()
        .map(|(cycles, _)| seen[cycles][SETTLES..].iter().map(error).fold(0.0, f64::max))
        .collect()
}

#[test]
fn it_comes_to_each_place_within_its_voltage() {
    let seen = run(&text("axis"), LINKS, 3_000);
    let turns = rests(&seen, SETTLES).into_iter().map(|(_, place)| (place / TAU).round());
    assert_eq!(turns.collect::<Vec<_>>(), [1.0, 0.0, -1.0, 0.0]);
    assert!(seen.iter().all(|row| row[2].abs() <= VOLTAGE_V_MAX), "within the voltage");
    assert!(seen.iter().all(|row| error(row) < 0.1), "it follows");
    let errors = settled(&seen);
    assert!(errors.iter().all(|error| *error < 0.004), "{errors:?} rad");

    // Without an integral part in the controller, dry friction holds it off its place for good.
    let errors = settled(&run(&edited(&text("axis"), &[("    ki: 60\n", "")]), LINKS, 3_000));
    assert!(errors.iter().all(|error| *error > 0.004), "{errors:?} rad");
}

#[test]
fn its_voltage_is_limited() {
    let weak = [("out_min: -24", "out_min: -0.5"), ("out_max: 24", "out_max: 0.5")];
    let seen = run(&edited(&text("axis"), &weak), LINKS, 1_500);
    assert!(seen.iter().all(|row| row[2].abs() <= 0.5));
    assert!(seen.iter().any(|row| row[2] == 0.5) && seen.iter().any(|row| row[2] == -0.5));
}

#[test]
fn it_stays_a_short_graph() {
    let lines = text("axis").lines().count();
    assert!(lines <= LINES_MAX, "{lines} lines; at most {LINES_MAX}");
}
