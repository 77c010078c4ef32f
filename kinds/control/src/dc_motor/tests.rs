//! `dc_motor` against scipy, with and without dry friction, and at its limits.

use serde_json::json;
use sinew_core::NodeFixture;

use super::*;
use crate::testing::{fixture, hold, reference};

fn motor(coulomb: &str) -> NodeFixture {
    fixture(&NODE, &[("coulomb_n_m", coulomb)]).expect("makes")
}

fn shown(node: &NodeFixture) -> [f64; 3] {
    let ports = [2, 3, 4].map(|port| node.get::<Real>(port).expect("says it every cycle").value);
    assert_eq!(ports, [0, 1, 2].map(|signal| node.signal(signal)[0]));
    ports
}

fn cycle(node: &mut NodeFixture, [voltage, load]: [f64; 2]) {
    node.put(VOLTAGE, &Real { value: voltage });
    node.put(LOAD, &Real { value: load });
    node.update().expect("goes on");
}

/// The outputs after each of these cycles: first all positions, then velocities, then currents.
fn run(node: &mut NodeFixture, inputs: &[[f64; 2]]) -> [Vec<f64>; 3] {
    let mut columns = [vec![], vec![], vec![]];
    for input in inputs {
        cycle(node, *input);
        columns.iter_mut().zip(shown(node)).for_each(|(column, number)| column.push(number));
    }
    columns
}

fn compare(columns: &[Vec<f64>], theirs: &[f64]) {
    let theirs = theirs.chunks(columns[0].len());
    for ((what, ours), theirs) in
        ["position", "velocity", "current"].iter().zip(columns).zip(theirs)
    {
        hold(what, ours, theirs);
    }
}

#[test]
fn it_turns_as_scipy_says() {
    let mut rng = fastrand::Rng::with_seed(11);
    let inputs: Vec<_> =
        (0..1000).map(|_| [rng.f64() * 48.0 - 24.0, rng.f64() * 0.1 - 0.05]).collect();
    let ours = run(&mut motor("0"), &inputs);
    let question = json!({
        "r": 0.6, "l": 1.2e-4, "kt": 0.026, "ke": 0.026, "j": 3.5e-6, "b": 4e-6, "period": 1e-3,
        "inputs": inputs,
    });
    let Some(theirs) = reference("plants.dc_motor", &question) else { return };
    compare(&ours, &theirs);
}

/// Voltages that let the motor start, stop, turn back and stick, each for some cycles.
fn stop_and_go() -> Vec<[f64; 2]> {
    let steps = [
        (0.1, 0.0, 5),
        (1.0, 0.0, 20),
        (0.2, 0.0, 40),
        (0.0, 0.02, 10),
        (-3.0, 0.02, 15),
        (0.05, -0.002, 30),
        (2.0, 0.0, 1),
        (-2.0, 0.0, 1),
        (2.0, 0.0, 1),
        (0.0, 0.0, 20),
    ];
    steps.iter().flat_map(|&(voltage, load, cycles)| vec![[voltage, load]; cycles]).collect()
}

#[test]
fn with_dry_friction_it_stops_sticks_and_breaks_loose_as_scipy_says() {
    let inputs = stop_and_go();
    let given = [("coulomb_n_m", "0.006"), ("back_emf_v_s_per_rad", "0.03")];
    let ours = run(&mut fixture(&NODE, &given).expect("makes"), &inputs);
    let stuck = ours[1].iter().filter(|velocity| **velocity == 0.0).count();
    assert!((20..100).contains(&stuck), "{stuck} cycles stuck");
    let question = json!({
        "r": 0.6, "l": 1.2e-4, "kt": 0.026, "ke": 0.03, "j": 3.5e-6, "b": 4e-6, "dry": 0.006,
        "period": 1e-3, "inputs": inputs,
    });
    let Some(theirs) = reference("plants.dry_motor", &question) else { return };
    compare(&ours, &theirs);
}

#[test]
fn stuck_it_does_not_creep() {
    let mut node = motor("0.01");
    // 0.026 N m / A * 0.2 V / 0.6 ohm = 8.7 mN m are less than 10.
    run(&mut node, &[[0.2, 0.0]; 500]);
    assert_eq!(shown(&node)[..2], [0.0, 0.0]);
    assert!((shown(&node)[2] - 0.2 / 0.6).abs() < 1e-12, "the current flows");
    assert!(node.at_rest());
    run(&mut node, &[[0.2, -0.002]; 50]);
    assert!(shown(&node)[1] > 0.5, "the load adds what is missing");
}

#[test]
fn the_voltage_is_limited_to_the_supply() {
    let [mut more, mut all] = [motor("0"), motor("0")];
    assert_eq!(
        run(&mut more, &[[1e300, 0.0], [-1e300, 0.0]]),
        run(&mut all, &[[24.0, 0.0], [-24.0, 0.0]])
    );
}

#[test]
fn it_runs_up_and_off_brings_it_to_rest() {
    let mut node = motor("0.001");
    assert!(node.at_rest());
    run(&mut node, &[[24.0, 0.0]; 500]);
    let [_, velocity, current] = shown(&node);
    // v = R i + k_e w and k_t i = b w + dry friction
    let expected = (24.0 - 0.6 * 0.001 / 0.026) / (0.026 + 0.6 * 4e-6 / 0.026);
    assert!((velocity - expected).abs() < 1e-6, "{velocity} of {expected} rad/s");
    assert!((current - (0.001 + 4e-6 * velocity) / 0.026).abs() < 1e-9, "{current} A");
    assert!(!node.at_rest());
    let mut message = [0; 8];
    safe(VOLTAGE, 0, &mut message);
    node.put_safe(VOLTAGE, &Real { value: f64::from_le_bytes(message) });
    (0..200).for_each(|_| node.update().expect("goes on"));
    assert!(node.at_rest());
    assert_eq!(shown(&node)[1], 0.0, "dry friction stops it");
}

#[test]
fn lost_periods_pass() {
    for dry in ["0", "0.003"] {
        let [mut lost, mut all] = [motor(dry), motor(dry)];
        lost.cycle.skipped = 6;
        cycle(&mut lost, [3.0, 0.01]);
        run(&mut all, &[[3.0, 0.01]; 7]);
        assert_eq!(shown(&lost), shown(&all));
        assert!(shown(&lost)[1] > 10.0);
    }
}

#[test]
fn what_is_too_fast_for_the_period_is_refused() {
    let given = [("inductance_h", "1e-7"), ("resistance_ohm", "1e5")];
    let fault = fixture(&NODE, &given).err().expect("L / R is 1e-12 s");
    let text = fault.text();
    assert!(
        text.starts_with("inductance_h or inertia_kg_m2 is small: the system is too"),
        "{text}"
    );
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut node = motor("0.006");
    let inputs = stop_and_go();
    let counted = allocation_counter::measure(|| {
        inputs.iter().for_each(|input| cycle(&mut node, *input));
    });
    assert_eq!(counted.count_total, 0);
}
