//! The crane of graphs/crane, unchanged: the load arrives, and its swing is damped.

mod support;

use support::{Row, edited, rests, run, text};

const LINKS: &[(&str, &str)] = &[
    ("{name: feedback, port: wanted}", "a"),
    ("{name: feedback, port: position, delivery: latest, delay: 1}", "b"),
    ("{name: feedback, port: angle, delivery: latest, delay: 1}", "c"),
    ("{name: crane, port: force, delivery: latest}", "d"),
];

/// Edits that remove the gains that damp the swing.
const UNDAMPED: &[(&str, &str)] = &[("+ 1228 *", "+ 0 *"), ("- 549 *", "- 0 *")];

const ROPE_M: f64 = 1.5;
/// Cycles at 1 kHz in which it settles, from the wanted arrival on.
const SETTLES: usize = 3_000;
const FORCE_N_MAX: f64 = 200.0;

/// For each rest, once it has settled: the greatest swing, and the greatest distance of the load
/// from its place.
fn settled(seen: &[Row]) -> Vec<(f64, f64)> {
    let most = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(0.0, f64::max);
    rests(seen, SETTLES)
        .into_iter()
        .map(|(cycles, place)| {
            let rows = &seen[cycles][SETTLES..];
            let swing = most(&mut rows.iter().map(|row| row[2].abs().to_degrees()));
            let load = |row: &Row| row[1] + ROPE_M * row[2].sin();
            (swing, most(&mut rows.iter().map(|row| (load(row) - place).abs())))
        })
        .collect()
}

#[test]
fn the_load_arrives_and_without_the_gains_of_the_swing_it_swings_on() {
    // Four moves of 3.1 s, each with a rest of 4 s.
    let seen = run(&text("crane"), LINKS, 28_500);
    let wanted: Vec<_> = rests(&seen, SETTLES).into_iter().map(|(_, place)| place).collect();
    assert_eq!(wanted, [2.0, 0.0, -2.0, 0.0]);
    assert!(seen.iter().all(|row| row[3].abs() <= FORCE_N_MAX), "within the limits of the drive");
    let damped = settled(&seen);
    assert!(damped.iter().all(|(deg, m)| *deg < 0.7 && *m < 0.02), "{damped:?}");

    let undamped = settled(&run(&edited(&text("crane"), UNDAMPED), LINKS, 28_500));
    assert_eq!(undamped.len(), damped.len());
    for ((damped, _), (undamped, _)) in damped.iter().zip(&undamped) {
        assert!(*undamped > 10.0 * damped, "{undamped} deg without the gains, {damped} with them");
    }
}

#[test]
fn a_weak_drive_pushes_no_more_than_it_may() {
    let weak = edited(&text("crane"), &[("min: -200", "min: -20"), ("max: 200", "max: 20")]);
    let seen = run(&weak, LINKS, 7_000);
    assert!(seen.iter().all(|row| row[3].abs() <= 20.0));
    assert!(seen.iter().any(|row| row[3] == 20.0) && seen.iter().any(|row| row[3] == -20.0));
}
