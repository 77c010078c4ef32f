//! `two_mass` against scipy and the laws of physics.

use serde_json::json;
use sinew_core::NodeFixture;

use super::*;
use crate::testing::{fixture, hold, reference};

fn shown(node: &NodeFixture) -> [f64; 4] {
    let port = |port| node.get::<Real>(port).expect("says it every cycle").value;
    let ports = [2, 3, 4, 5].map(port);
    assert_eq!(ports, [0, 1, 2, 3].map(|signal| node.signal(signal)[0]));
    ports
}

fn cycle(node: &mut NodeFixture, torque: f64, load: f64) {
    node.put(TORQUE, &Real { value: torque });
    node.put(LOAD, &Real { value: load });
    node.update().expect("goes on");
}

#[test]
fn it_turns_and_rings_as_scipy_says() {
    let mut rng = fastrand::Rng::with_seed(13);
    let inputs: Vec<_> = (0..2000).map(|_| [rng.f64() * 4.0 - 2.0, rng.f64() - 0.3]).collect();
    let given = [("load_friction_n_m_s_per_rad", "0.02"), ("stiffness_n_m_per_rad", "37")];
    let mut node = fixture(&NODE, &given).expect("makes");
    let mut columns = [vec![], vec![], vec![], vec![]];
    for [torque, load] in &inputs {
        cycle(&mut node, *torque, *load);
        columns.iter_mut().zip(shown(&node)).for_each(|(column, number)| column.push(number));
    }
    let question = json!({
        "jm": 2e-4, "jl": 8e-4, "k": 37.0, "d": 0.004, "bm": 1e-3, "bl": 0.02, "period": 1e-3,
        "inputs": inputs,
    });
    let Some(theirs) = reference("plants.two_mass", &question) else { return };
    for (ours, theirs) in columns.iter().zip(theirs.chunks(inputs.len())) {
        hold("two masses", ours, theirs);
    }
}

#[test]
fn it_rings_at_its_frequency_and_keeps_its_momentum_without_friction() {
    let given = [
        ("damping_n_m_s_per_rad", "0"),
        ("motor_friction_n_m_s_per_rad", "0"),
        ("load_friction_n_m_s_per_rad", "0"),
    ];
    let mut node = fixture(&NODE, &given).expect("makes");
    cycle(&mut node, 3.0, 0.0);
    let mut crossings = 0;
    let mut before = f64::NAN;
    for _ in 0..10_000 {
        cycle(&mut node, 0.0, 0.0);
        let [motor, motor_velocity, load, load_velocity] = shown(&node);
        let momentum = 2e-4 * motor_velocity + 8e-4 * load_velocity;
        assert!((momentum - 3e-3).abs() < 1e-12, "{momentum} N m s of 3 N m for 1 ms");
        crossings += i32::from((motor - load).signum() != before.signum());
        before = motor - load;
    }
    // The frequency is sqrt(10 (1 / 2e-4 + 1 / 8e-4)) = 250 rad/s.
    let expected = 10.0 * 250.0 / std::f64::consts::PI;
    assert!((f64::from(crossings) - expected).abs() < 2.0, "{crossings} of {expected:.1}");
}

#[test]
fn off_brings_it_to_rest_and_a_twisted_shaft_is_not_at_rest() {
    let mut node = fixture(&NODE, &[]).expect("makes");
    assert!(node.at_rest());
    cycle(&mut node, 1.0, 0.0);
    for _ in 0..8000 {
        node.put_safe(TORQUE, &Real { value: 0.0 });
        node.update().expect("goes on");
        let [motor, motor_velocity, load, load_velocity] = shown(&node);
        let is_still = motor_velocity.abs().max(load_velocity.abs()) < 0.01;
        assert!(!node.at_rest() || is_still && (motor - load).abs() < 0.01 / 250.0);
    }
    assert!(node.at_rest(), "{:?}", shown(&node));
    // With both torques against each other it stands still, but would oscillate if they were
    // removed.
    for _ in 0..8000 {
        cycle(&mut node, 1.0, 1.0);
    }
    let [motor, motor_velocity, load, load_velocity] = shown(&node);
    assert!((motor - load - 0.1).abs() < 1e-6, "1 N m at 10 N m/rad");
    assert!(motor_velocity.abs().max(load_velocity.abs()) < 0.01 && !node.at_rest());
}

#[test]
fn lost_periods_pass() {
    let [mut lost, mut all] = [(); 2].map(|()| fixture(&NODE, &[]).expect("makes"));
    lost.cycle.skipped = 4;
    cycle(&mut lost, 3.0, 1.0);
    (0..5).for_each(|_| cycle(&mut all, 3.0, 1.0));
    assert_eq!(shown(&lost), shown(&all));
}

#[test]
fn what_is_too_fast_for_the_period_is_refused() {
    let given = [("motor_inertia_kg_m2", "1e-9"), ("stiffness_n_m_per_rad", "1e6")];
    let text = fixture(&NODE, &given).err().expect("3e7 rad/s").text().to_owned();
    assert!(text.starts_with("the system is too fast for the period"), "{text}");
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut node = fixture(&NODE, &[]).expect("makes");
    let counted = allocation_counter::measure(|| {
        (0..100).for_each(|_| cycle(&mut node, 1.0, 0.0));
    });
    assert_eq!(counted.count_total, 0);
}
