//! Tests of every kind with tunable parameters: tuning to the same values changes nothing, tuning
//! to each other value shows in the outputs, and neither allocates.

use std::collections::BTreeSet;

use sinew_core::catalogue::{Bool, Direction, Port};
use sinew_core::{Flag, Message, NodeEntry, NodeFixture, Real};
use sinew_spec::alone;

use crate::NODES;
use crate::testing::{fixture, tune};

type Given = &'static [(&'static str, &'static str)];

/// A kind, what its node is made with, and other values of its parameters, one at a time.
const CASES: &[(&str, Given, Given)] = &[
    (
        "biquad",
        &[("shape", "peak"), ("frequency_hz", "20"), ("gain_db", "6")],
        &[("frequency_hz", "40"), ("q", "3"), ("gain_db", "9")],
    ),
    (
        "cart_pendulum",
        &[("initial_angle_deg", "20"), ("brake_n", "5")],
        &[
            ("cart_kg", "12"),
            ("load_kg", "10"),
            ("rope_m", "2"),
            ("cart_damping_n_s_per_m", "30"),
            ("swing_damping_n_m_s_per_rad", "1"),
        ],
    ),
    ("constant", &[("value", "1")], &[("value", "2")]),
    ("dc_motor", &[("supply_v", "0.2")], &[("coulomb_n_m", "0.001"), ("supply_v", "0.1")]),
    ("deadband", &[("width", "1")], &[("width", "2"), ("center", "0.5")]),
    ("derivative", &[("time_constant_s", "0.01")], &[("time_constant_s", "0.02")]),
    ("first_order", &[], &[("gain", "2"), ("time_constant_s", "0.5")]),
    (
        "hysteresis",
        &[("rises_above", "1"), ("falls_below", "-1")],
        &[("rises_above", "3"), ("falls_below", "-3")],
    ),
    (
        "integrator",
        &[("min", "-0.01"), ("max", "0.01")],
        &[("gain", "2"), ("initial", "0.005"), ("min", "-0.001"), ("max", "0.001")],
    ),
    (
        "limiter",
        &[("min", "-1"), ("max", "1"), ("rate_max", "100"), ("acceleration_max", "1e5")],
        &[("min", "-0.5"), ("max", "0.5"), ("rate_max", "50"), ("acceleration_max", "1e4")],
    ),
    ("lowpass", &[("cutoff_hz", "20"), ("order", "4")], &[("cutoff_hz", "5")]),
    ("lowpass", &[("cutoff_hz", "20"), ("order", "1")], &[("cutoff_hz", "40")]),
    ("notch", &[("frequency_hz", "20")], &[("frequency_hz", "40"), ("q", "1"), ("depth_db", "10")]),
    (
        "pid",
        &[
            ("kp", "1"),
            ("ki", "2"),
            ("kd", "0.01"),
            ("out_min", "-2"),
            ("out_max", "2"),
            ("rate_max", "500"),
        ],
        &[
            ("kp", "2"),
            ("ki", "3"),
            ("kd", "0.02"),
            ("derivative_filter_s", "0.01"),
            ("setpoint_weight", "0.5"),
            ("out_min", "-1"),
            ("out_max", "1"),
            ("rate_max", "100"),
            ("tracking_time_s", "0.1"),
        ],
    ),
    ("scale", &[], &[("gain", "2"), ("offset", "1")]),
    ("scale", &[("from", "[0, 1]"), ("to", "[0, 2]")], &[("clamp", "true")]),
    (
        "signal",
        &[("shape", "square"), ("frequency_hz", "20")],
        &[
            ("amplitude", "2"),
            ("offset", "1"),
            ("frequency_hz", "30"),
            ("phase_deg", "90"),
            ("duty_percent", "20"),
        ],
    ),
    ("signal", &[("shape", "chirp")], &[("frequency_hz", "2"), ("frequency_end_hz", "50")]),
    ("sum", &[("inputs", "[a, b]")], &[("offset", "1")]),
    (
        "trajectory",
        &[("velocity_max", "1"), ("acceleration_max", "10"), ("jerk_max", "1000")],
        &[("velocity_max", "0.2"), ("acceleration_max", "2"), ("jerk_max", "100")],
    ),
];

/// Parameters that no case shows: the brake acts with the safe value alone, which no case gives;
/// and where 'manual' is written, as in the cases, 'disabled_output' is not used.
const NOT_SHOWN: &[(&str, &str)] = &[("cart_pendulum", "brake_n"), ("pid", "disabled_output")];

fn row(kind: &str) -> &'static NodeEntry {
    NODES.iter().find(|row| row.kind.name == kind).expect("a kind")
}

/// All outputs and signals, as bytes, in each of `count` cycles with varied inputs.
fn run(node: &mut NodeFixture, ports: &[Port], signals: usize, from: u64, count: u64) -> Vec<u8> {
    let mut said = vec![];
    for cycle in from..from + count {
        let mut random = fastrand::Rng::with_seed(cycle / 16);
        for (at, port) in ports.iter().enumerate() {
            let value = 8.0 * random.f64() - 4.0 + 0.01 * (cycle % 16) as f64;
            match (port.direction, port.message.hash) {
                (Direction::Out, _) => {}
                (_, hash) if hash == Flag::TYPE.hash => {
                    node.put(at, &Flag { value: Bool::from(value > 2.0) });
                }
                _ => node.put(at, &Real { value }),
            }
        }
        node.update().expect("goes on");
        for (at, port) in ports.iter().enumerate() {
            if port.direction == Direction::Out {
                said.extend_from_slice(node.get_bytes(at).unwrap_or_default());
            }
        }
        for signal in 0..signals {
            said.extend(node.signal(signal).iter().flat_map(|it| it.to_ne_bytes()));
        }
    }
    said
}

/// The outputs after this change of a parameter, if any, which came after 100 cycles.
fn said_after(kind: &str, given: Given, change: Option<(&'static str, &'static str)>) -> Vec<u8> {
    let row = row(kind);
    let made = alone(row.kind, given, "").expect("compiles");
    let (ports, signals) = (made.kind.ports, made.kind.signals.len());
    let mut node = fixture(row, given).expect("makes");
    run(&mut node, ports, signals, 0, 100);
    if let Some(change) = change {
        let mut tuned: Vec<_> = given.iter().copied().filter(|it| it.0 != change.0).collect();
        tuned.push(change);
        tune(&mut node, row, &tuned).unwrap_or_else(|fault| panic!("{kind}: {fault:?}"));
    }
    run(&mut node, ports, signals, 100, 900)
}

#[test]
fn the_same_values_change_nothing_and_nothing_allocates() {
    for &(kind, given, _) in CASES {
        let row = row(kind);
        let made = alone(row.kind, given, "").expect("compiles");
        let (ports, signals) = (made.kind.ports, made.kind.signals.len());
        let [mut one, mut twin] = [(); 2].map(|()| fixture(row, given).expect("makes"));
        for from in [0, 50, 100, 150] {
            assert_eq!(tune(&mut one, row, given).expect("tunes"), 0, "{kind} allocates");
            let [ours, theirs] =
                [&mut one, &mut twin].map(|node| run(node, ports, signals, from, 50));
            assert!(ours == theirs, "{kind} says something else after {from} cycles");
        }
    }
}

#[test]
fn each_tunable_parameter_shows() {
    let mut left: BTreeSet<_> = NODES
        .iter()
        .flat_map(|row| row.kind.parameters.iter().map(|it| (row.kind.name, it)))
        .filter(|(_, parameter)| parameter.tunable)
        .map(|(kind, parameter)| (kind, parameter.name))
        .collect();
    for case in NOT_SHOWN {
        assert!(left.remove(case), "{case:?} is not tunable");
    }
    for &(kind, given, others) in CASES {
        let before = said_after(kind, given, None);
        for &other in others {
            let after = said_after(kind, given, Some(other));
            assert!(after != before, "{kind} does not tune {}", other.0);
            left.remove(&(kind, other.0));
        }
    }
    assert!(left.is_empty(), "without a case: {left:?}");
}

/// The answer of a filter to a constant number, and by how much it moves after a change of a
/// parameter.
fn steady(kind: &str, given: Given, change: (&'static str, &'static str)) -> [f64; 2] {
    let mut node = fixture(row(kind), given).expect("makes");
    let say = |node: &mut NodeFixture| {
        node.put(0, &Real { value: 5.0 });
        node.update().expect("goes on");
        node.get::<Real>(1).expect("says").value
    };
    let before = say(&mut node);
    let mut tuned: Vec<_> = given.iter().copied().filter(|it| it.0 != change.0).collect();
    tuned.push(change);
    tune(&mut node, row(kind), &tuned).expect("tunes");
    let most = (0..500).map(|_| (say(&mut node) - before).abs()).fold(0.0, f64::max);
    [before, most]
}

#[test]
fn a_steady_answer_stays_steady() {
    for (kind, given, change) in [
        ("lowpass", &[("cutoff_hz", "100"), ("order", "4")][..], ("cutoff_hz", "0.5")),
        ("lowpass", &[("cutoff_hz", "1"), ("order", "3")], ("cutoff_hz", "400")),
        ("biquad", &[("shape", "peak"), ("frequency_hz", "9")], ("frequency_hz", "90")),
        ("notch", &[("frequency_hz", "9")], ("frequency_hz", "90")),
    ] {
        let [before, most] = steady(kind, given, change);
        assert!((before - 5.0).abs() < 1e-9 && most < 1e-9, "{kind}: {before}, {most}");
    }
}

#[test]
fn a_moving_answer_goes_on_without_a_bump() {
    for (from, to) in [("100", "1"), ("1", "100")] {
        let mut node = fixture(row("lowpass"), &[("cutoff_hz", from)]).expect("makes");
        let mut random = fastrand::Rng::with_seed(3);
        let mut last = 0.0;
        let mut most: f64 = 0.0;
        for cycle in 0..2000 {
            if cycle == 1000 {
                tune(&mut node, row("lowpass"), &[("cutoff_hz", to)]).expect("tunes");
            }
            node.put(0, &Real { value: random.f64() });
            node.update().expect("goes on");
            last = node.get::<Real>(1).expect("says").value;
            most = most.max((last - 0.5).abs());
        }
        assert!(most < 0.6, "noise of 0 to 1 stays there: {most}, {last}");
    }
}

#[test]
fn limits_past_the_output_bring_it_back_at_the_rate() {
    let given = [("rate_max", "10")];
    let mut node = fixture(row("limiter"), &given).expect("makes");
    let say = |node: &mut NodeFixture| {
        node.put(0, &Real { value: 1.0 });
        node.update().expect("goes on");
        node.get::<Real>(1).expect("says").value
    };
    let mut before = (0..200).map(|_| say(&mut node)).last().expect("some");
    assert_eq!(before, 1.0);
    tune(&mut node, row("limiter"), &[("rate_max", "10"), ("max", "0.5")]).expect("tunes");
    for _ in 0..100 {
        let out = say(&mut node);
        assert!((before - out).abs() <= 0.01 + 1e-12, "{before} to {out}");
        before = out;
    }
    assert_eq!(before, 0.5);
}

#[test]
fn a_sine_keeps_its_turn_when_its_frequency_changes() {
    let given = [("shape", "sine"), ("frequency_hz", "3")];
    let mut node = fixture(row("signal"), &given).expect("makes");
    let mut before: f64 = 0.0;
    for cycle in 0..3000 {
        if cycle == 1234 {
            let tuned = [("shape", "sine"), ("frequency_hz", "5")];
            tune(&mut node, row("signal"), &tuned).expect("tunes");
        }
        node.update().expect("goes on");
        let out = node.get::<Real>(0).expect("says").value;
        assert!((out - before).abs() < 0.032, "cycle {cycle}: {before} to {out}");
        before = out;
    }
}

#[test]
fn a_trajectory_brakes_to_a_lower_velocity_without_a_jump() {
    let limits = [("acceleration_max", "10"), ("jerk_max", "1000")];
    let of = |velocity: &'static str| [&[("velocity_max", velocity)], &limits[..]].concat();
    let mut node = fixture(row("trajectory"), &of("1")).expect("makes");
    let mut speed_before: f64 = 0.0;
    for cycle in 0..4000 {
        if cycle == 500 {
            tune(&mut node, row("trajectory"), &of("0.5")).expect("tunes");
        }
        node.put(0, &Real { value: 2.0 });
        node.update().expect("goes on");
        let speed = node.get::<Real>(2).expect("says").value;
        assert!((speed - speed_before).abs() < 0.01 + 1e-9, "{speed_before} to {speed}");
        assert!(cycle < 700 || speed <= 0.5 + 1e-9, "{speed}");
        speed_before = speed;
    }
    assert_eq!(node.get::<Real>(1).expect("says").value, 2.0);
}

#[test]
fn nothing_allocates_when_limits_change_in_motion() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut draw = |decades: f64| 10f64.powf(decades * (random.f64() - 0.5));
    let limits = [("velocity_max", "1"), ("acceleration_max", "10"), ("jerk_max", "100")];
    let [mut axis, mut sum] = [
        fixture(row("trajectory"), &limits).expect("makes"),
        fixture(row("integrator"), &[]).expect("makes"),
    ];
    let (mut clamped, mut moving) = (0, 0);
    for round in 0..1000 {
        let numbers = [(); 3].map(|()| (10.0 * draw(4.0)).to_string());
        let names = ["velocity_max", "acceleration_max", "jerk_max"];
        let limits: Vec<_> = names.into_iter().zip(numbers.iter().map(String::as_str)).collect();
        let most = draw(2.0);
        let text = most.to_string();
        let cut = [("min", "-1"), ("max", &*text)];
        let tuned = [
            tune(&mut axis, row("trajectory"), &limits).expect("tunes"),
            tune(&mut sum, row("integrator"), &cut).expect("tunes"),
        ];
        let side = if round % 2 == 0 { 1.0 } else { -1.0 };
        let (target, value) = (side * draw(2.0), 1000.0 * draw(2.0));
        let counted = allocation_counter::measure(|| {
            for _ in 0..100 {
                axis.put(0, &Real { value: target });
                sum.put(0, &Real { value });
                axis.update().expect("goes on");
                sum.update().expect("goes on");
            }
        });
        assert_eq!((tuned, counted.count_total), ([0, 0], 0), "{limits:?}, {cut:?}");
        clamped += u32::from(sum.get::<Real>(1).expect("says").value == most);
        moving += u32::from(axis.get::<Real>(2).expect("says").value != 0.0);
    }
    assert!(clamped > 100 && moving > 100, "{clamped} sums at a limit, {moving} axes in motion");
}
