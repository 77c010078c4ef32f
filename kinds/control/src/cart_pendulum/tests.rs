//! `cart_pendulum` against two bodies in the plane, integrated by scipy, and the laws of physics.

use std::f64::consts::PI;

use serde_json::json;
use sinew_core::NodeFixture;

use super::*;
use crate::testing::{fixture, hold, reference};

fn shown(node: &NodeFixture) -> State {
    let port = |port| node.get::<Real>(port).expect("says it every cycle").value;
    let ports = [2, 3, 4, 5].map(port);
    assert_eq!(ports, [0, 1, 2, 3].map(|signal| node.signal(signal)[0]));
    ports
}

fn at_end(node: &NodeFixture) -> &'static str {
    INFO.signals[AT_END].labels[node.signal(AT_END)[0] as usize]
}

fn cycle(node: &mut NodeFixture, input: [f64; 2]) {
    cycle_with(node, input, false);
}

fn cycle_with(node: &mut NodeFixture, [force, disturbance]: [f64; 2], is_safe: bool) {
    let force = Real { value: force };
    if is_safe {
        node.put_safe(FORCE, &force)
    } else {
        node.put(FORCE, &force)
    }
    node.put(DISTURBANCE, &Real { value: disturbance });
    node.update().expect("goes on");
}

/// Positions, velocities, angles and angular velocities.
fn run(node: &mut NodeFixture, inputs: &[[f64; 2]]) -> [Vec<f64>; 4] {
    run_with(node, &inputs.iter().map(|input| (*input, false)).collect::<Vec<_>>())
}

/// Like `run`; each input says also whether it is the safe value.
fn run_with(node: &mut NodeFixture, inputs: &[([f64; 2], bool)]) -> [Vec<f64>; 4] {
    let mut columns = [vec![], vec![], vec![], vec![]];
    for (input, is_safe) in inputs {
        cycle_with(node, *input, *is_safe);
        columns.iter_mut().zip(shown(node)).for_each(|(column, number)| column.push(number));
    }
    columns
}

/// Compares a crane of the defaults, except for its track and angle, with the reference.
fn compare(track_m: f64, angle_deg: f64, inputs: &[[f64; 2]]) -> [Vec<f64>; 4] {
    let inputs: Vec<_> = inputs.iter().map(|input| (*input, false)).collect();
    compare_with(track_m, angle_deg, 0.0, &inputs)
}

/// Like `compare`, with a brake.
fn compare_with(
    track_m: f64,
    angle_deg: f64,
    brake_n: f64,
    inputs: &[([f64; 2], bool)],
) -> [Vec<f64>; 4] {
    let [track, angle, brake] = [track_m, angle_deg, brake_n].map(|number| format!("{number}"));
    let given = [
        ("track_m", track.as_str()),
        ("initial_angle_deg", angle.as_str()),
        ("brake_n", brake.as_str()),
    ];
    let ours = run_with(&mut fixture(&NODE, &given).expect("makes"), inputs);
    let asked: Vec<_> = inputs
        .iter()
        .map(|([force, wind], is_safe)| [*force, *wind, f64::from(u8::from(*is_safe))])
        .collect();
    let question = json!({
        "cart": 10.0, "load": 20.0, "rope": 1.5, "rub": 20.0, "swing": 0.5, "g": 9.81,
        "end": track_m / 2.0, "angle": angle_deg.to_radians(), "brake": brake_n, "period": 1e-3,
        "inputs": asked,
    });
    if let Some(theirs) = reference("plants.cart_pendulum", &question) {
        let columns = ["position", "velocity", "angle", "angular velocity"];
        for ((what, ours), theirs) in columns.iter().zip(&ours).zip(theirs.chunks(inputs.len())) {
            hold(&format!("{what}, track {track_m}, angle {angle_deg}"), ours, theirs);
        }
    }
    ours
}

/// `count` random forces, each held for `cycles` cycles.
fn pushes(count: usize, cycles: usize, most: f64) -> Vec<[f64; 2]> {
    let mut rng = fastrand::Rng::with_seed(17);
    let mut push = || [(rng.f64() * 2.0 - 1.0) * most, (rng.f64() * 2.0 - 1.0) * most / 4.0];
    (0..count).flat_map(|_| vec![push(); cycles]).collect()
}

#[test]
fn the_load_swings_as_scipy_says() {
    let ours = compare(1e4, 30.0, &pushes(12, 200, 400.0));
    assert!(ours[2].iter().any(|angle| angle.abs() > 0.6), "it swings");
}

#[test]
fn upright_it_falls_as_scipy_says() {
    let ours = compare(1e4, 175.0, &pushes(25, 100, 100.0));
    assert!(ours[2].iter().any(|angle| (angle - PI).abs() > 3.0), "it turns over");
}

#[test]
fn the_ends_of_the_track_stop_the_cart_as_scipy_says() {
    let ours = compare(0.6, -20.0, &pushes(5, 500, 250.0));
    let held = ours[0].iter().filter(|position| position.abs() == 0.3).count();
    assert!((300..2200).contains(&held), "{held} cycles at an end");
}

#[test]
fn a_brake_stops_the_cart_and_slips_as_scipy_says() {
    // 40 N hold the cart only near the turning points of the swing.
    let mut inputs = vec![([200.0, 0.0], false); 300];
    inputs.extend(vec![([0.0, 0.0], true); 4000]);
    let ours = compare_with(1e4, 20.0, 40.0, &inputs);
    let stands = |from: usize| ours[1][from..].iter().filter(|speed| **speed == 0.0).count();
    assert!((50..3900).contains(&stands(400)), "{} cycles held", stands(400));
    let moves_again = ours[1][400..].windows(2).filter(|two| two[0] == 0.0 && two[1] != 0.0);
    let slips = moves_again.count();
    assert!(slips >= 2, "it slips {slips} times");
    // On a short track it comes to the end with the brake closed.
    let ours = compare_with(0.6, 0.0, 60.0, &inputs[..1500]);
    assert!(ours[0].contains(&0.3), "comes to the end");
}

#[test]
fn in_its_brake_it_is_at_rest_though_the_load_swings() {
    let given = [("initial_angle_deg", "20"), ("brake_n", "150")];
    let mut node = fixture(&NODE, &given).expect("makes");
    run(&mut node, &[[100.0, 0.0]; 500]);
    assert!(shown(&node)[VELOCITY] > 0.5 && !node.at_rest(), "{:?}", shown(&node));
    let ways = run_with(&mut node, &[([0.0; 2], true); 1000]);
    assert!(node.at_rest() && ways[1][999] == 0.0, "{:?}", shown(&node));
    assert!(ways[2][500..].iter().any(|angle| angle.abs() > 0.1), "the load swings on");
    // A command opens the brake, even a command of no force.
    run(&mut node, &[[0.0; 2]; 10]);
    assert!(!node.at_rest() && shown(&node)[VELOCITY] != 0.0, "{:?}", shown(&node));
}

#[test]
fn without_friction_and_force_energy_stays() {
    let given = [
        ("cart_damping_n_s_per_m", "0"),
        ("swing_damping_n_m_s_per_rad", "0"),
        ("initial_angle_deg", "120"),
    ];
    let mut node = fixture(&NODE, &given).expect("makes");
    let energy = |[_, v, angle, rate]: State| {
        let (sin, cos) = angle.sin_cos();
        let speeds = [v + 1.5 * rate * cos, 1.5 * rate * sin];
        let load = speeds.iter().map(|speed| speed * speed).sum::<f64>();
        5.0 * v * v + 10.0 * load - 20.0 * 9.81 * 1.5 * cos
    };
    for _ in 0..10_000 {
        cycle(&mut node, [0.0; 2]);
        let energy = energy(shown(&node));
        assert!((energy - 147.15).abs() < 1e-7, "{energy} J of 147.15");
    }
}

#[test]
fn an_end_says_so_and_lets_the_load_swing_on() {
    let mut node = fixture(&NODE, &[("track_m", "1")]).expect("makes");
    assert_eq!(at_end(&node), "no");
    run(&mut node, &[[300.0, 0.0]; 150]);
    let [_, velocity, angle, _] = shown(&node);
    assert!(at_end(&node) == "no" && velocity > 1.0 && angle < -0.1, "{:?}", shown(&node));
    run(&mut node, &[[300.0, 0.0]; 1600]);
    assert_eq!((at_end(&node), shown(&node)[POSITION]), ("at the upper end", 0.5));
    let swings = run(&mut node, &[[300.0, 0.0]; 3000]);
    assert!(swings[0].iter().all(|position| *position == 0.5), "pressed against it");
    assert!(swings[2].iter().any(|angle| *angle > 0.1), "the load swings on");
    run(&mut node, &[[-300.0, 0.0]; 2000]);
    assert_eq!((at_end(&node), shown(&node)[POSITION]), ("at the lower end", -0.5));
}

#[test]
fn it_is_at_rest_when_cart_and_load_hang_still() {
    let rests = |angle| fixture(&NODE, &[("initial_angle_deg", angle)]).expect("makes").at_rest();
    // 2.6 mrad at 1.5 m and 9.81 m/s2 become 10 mm/s.
    assert_eq!(
        ["0", "0.14", "0.16", "90", "180", "360"].map(rests),
        [true, true, false, false, false, true]
    );
    let mut node = fixture(&NODE, &[("swing_damping_n_m_s_per_rad", "50")]).expect("makes");
    run(&mut node, &[[100.0, 0.0]; 1000]);
    assert!(!node.at_rest());
    let mut message = [0; 8];
    safe(FORCE, 0, &mut message);
    node.put_safe(FORCE, &Real { value: f64::from_le_bytes(message) });
    (0..20_000).for_each(|_| node.update().expect("goes on"));
    assert!(node.at_rest(), "{:?}", shown(&node));
}

#[test]
fn a_wind_pushes_the_load_and_upright_it_may_stand() {
    let mut node = fixture(&NODE, &[("swing_damping_n_m_s_per_rad", "50")]).expect("makes");
    // 20 kg in a wind of 10 N hang at atan(10 / 196.2) once the drive balances the wind.
    run(&mut node, &vec![[-10.0, 10.0]; 60_000]);
    assert!((shown(&node)[2] - (10.0_f64 / 196.2).atan()).abs() < 1e-6, "{:?}", shown(&node));
    let mut node = fixture(&NODE, &[("initial_angle_deg", "180")]).expect("makes");
    run(&mut node, &[[0.0; 2]; 1000]);
    assert!((shown(&node)[2] - PI).abs() < 1e-9, "nothing pushes it: {:?}", shown(&node));
}

#[test]
fn lost_periods_pass() {
    let [mut lost, mut all] = [(); 2].map(|()| fixture(&NODE, &[]).expect("makes"));
    lost.cycle.skipped = 4;
    cycle(&mut lost, [100.0, 5.0]);
    (0..5).for_each(|_| cycle(&mut all, [100.0, 5.0]));
    assert_eq!(shown(&lost), shown(&all));
    // A cycle stays short after a gap of any length.
    lost.cycle.skipped = u64::MAX;
    cycle(&mut lost, [0.0, 0.0]);
}

#[test]
fn what_is_too_fast_for_the_period_is_refused() {
    let given = [("cart_kg", "0.001"), ("load_kg", "1000")];
    let fault = fixture(&NODE, &given).err().expect("20 N s/m on 1 g");
    assert_eq!(
        fault.text(),
        "cart and load are too fast for the period: they change within 4.4e-5 s, so it must be at \
         most 2.2e-5 s and is 1.0e-3 s; shorten it, lengthen rope_m, make cart and load heavier, \
         or lower the damping"
    );
}

#[test]
fn a_cycle_does_not_allocate() {
    let mut node = fixture(&NODE, &[("track_m", "0.6")]).expect("makes");
    let counted = allocation_counter::measure(|| {
        (0..1000).for_each(|_| cycle(&mut node, [200.0, 0.0]));
    });
    assert_eq!(counted.count_total, 0);
}
