//! Tests of every kind with tunable parameters: tuning to the same values changes nothing, tuning
//! to each other value shows in the outputs, and neither allocates. The tests of each kind check
//! that a change makes no jump in motion.

use std::collections::BTreeSet;
use std::path::Path;

use rs_opw_kinematics::glam::{DQuat, DVec3};
use sinew_core::catalogue::Direction;
use sinew_core::{NodeEntry, NodeFixture};

use crate::NODES;
use crate::messages::{BaseState, CartesianTarget, Ranges, TwistTarget};
use crate::testing::{fixture, graph, with};

type Given = &'static [(&'static str, &'static str)];

/// A kind, what its node is made with, and other values of its parameters, one at a time.
const CASES: &[(&str, Given, Given)] = &[
    ("odometry", &[], &[("wheel_radius_m", "0.06"), ("track_m", "0.5")]),
    (
        "path_follower",
        &[("points", "[[0, 0], [2, 0]]")],
        &[
            ("speed_m_per_s", "0.3"),
            ("lookahead_m", "0.3"),
            ("deceleration_m_per_s2", "0.2"),
            ("turn_speed_rad_per_s", "0.5"),
            ("tolerance_m", "0.1"),
            ("slow_m", "0.6"),
            ("stop_m", "0.3"),
        ],
    ),
    (
        "pose_limiter",
        &[
            ("arm", "irb120.urdf"),
            ("speed_mm_per_s", "100"),
            ("turn_speed_deg_per_s", "20"),
            ("near_mm", "100"),
        ],
        &[
            ("speed_mm_per_s", "50"),
            ("turn_speed_deg_per_s", "10"),
            ("near_mm", "30"),
            ("near_deg", "180"),
        ],
    ),
    (
        "rover",
        &[("wheel_speed_rad_per_s", "10")],
        &[
            ("track_m", "0.5"),
            ("wheel_speed_rad_per_s", "5"),
            ("wheel_acceleration_rad_per_s2", "50"),
            ("range_max_m", "1"),
        ],
    ),
    (
        "twist_limiter",
        &[
            ("acceleration_m_per_s2", "5"),
            ("jerk_m_per_s3", "100"),
            ("turn_acceleration_rad_per_s2", "10"),
            ("turn_jerk_rad_per_s3", "200"),
        ],
        &[
            ("speed_m_per_s", "0.2"),
            ("acceleration_m_per_s2", "2"),
            ("jerk_m_per_s3", "50"),
            ("turn_speed_rad_per_s", "0.4"),
            ("turn_acceleration_rad_per_s2", "4"),
            ("turn_jerk_rad_per_s3", "100"),
        ],
    ),
    (
        "wheeled_base",
        &[("wheel_speed_rad_per_s", "10")],
        &[
            ("wheel_radius_m", "0.06"),
            ("track_m", "0.5"),
            ("wheel_speed_rad_per_s", "5"),
            ("wheel_acceleration_rad_per_s2", "50"),
        ],
    ),
];

fn row(kind: &str) -> &'static NodeEntry {
    NODES.iter().find(|row| row.kind.name == kind).expect("a kind")
}

fn made(kind: &str, given: Given) -> NodeFixture {
    fixture(row(kind), &graph(), given).expect("makes")
}

/// Tunes a node to the values that it would be made with now. Returns how often that allocates.
pub(crate) fn tune(
    node: &mut NodeFixture,
    entry: &NodeEntry,
    base: &Path,
    given: &[(&str, &str)],
) -> u64 {
    with(entry, base, given, |parameters| {
        let tune = || node.tune(parameters).expect("takes what 'make' takes");
        allocation_counter::measure(tune).count_total
    })
}

/// Inputs: a drive along x that wavers and arrives, and wanted values that leap.
fn put(node: &mut NodeFixture, port: usize, message: &str, cycle: u64) {
    let time_s = cycle as f64 * 1e-3;
    let mut random = fastrand::Rng::with_seed(cycle / 128);
    let mut by = |most: f64| most * (2.0 * random.f64() - 1.0);
    match message {
        "TwistTarget" => node.put(
            port,
            &TwistTarget {
                linear_m_per_s: [by(2.0), by(2.0), 0.0],
                angular_rad_per_s: [0.0, 0.0, by(4.0)],
            },
        ),
        "Ranges" => node.put(port, &Ranges { range_m: [1.0 + 0.9 * (50.0 * time_s).sin(); 3] }),
        "BaseState" => {
            let turn = DQuat::from_rotation_z(1.3 * (9.0 * time_s).sin());
            node.put(
                port,
                &BaseState {
                    position_m: [
                        2.0 - 2.0 * (1.0 - time_s).powi(2),
                        0.02 * (7.0 * time_s).sin(),
                        0.0,
                    ],
                    orientation_xyzw: turn.to_array(),
                    wheel_position_rad: [3.0 * time_s, 4.0 * time_s],
                    wheel_velocity_rad_per_s: [3.0, 4.0],
                    ..BaseState::default()
                },
            );
        }
        "CartesianTarget" => {
            let home = DVec3::new(0.302, 0.0, 0.558);
            let down = DQuat::from_rotation_y(std::f64::consts::PI);
            node.put(
                port,
                &CartesianTarget {
                    position_m: (home + DVec3::new(by(0.1), by(0.1), by(0.1))).to_array(),
                    orientation_xyzw: (DQuat::from_rotation_z(by(0.5)) * down).to_array(),
                    sequence: cycle + 1,
                    ..CartesianTarget::default()
                },
            );
        }
        other => panic!("nothing to put for {other}"),
    }
}

/// All outputs and signals, as bytes, in each of `count` cycles.
fn run(node: &mut NodeFixture, kind: &str, from: u64, count: u64) -> Vec<u8> {
    let kind = row(kind).kind;
    let mut said = vec![];
    for cycle in from..from + count {
        for (at, port) in kind.ports.iter().enumerate() {
            if port.direction == Direction::In {
                put(node, at, port.message.name, cycle);
            }
        }
        node.update().expect("goes on");
        for (at, port) in kind.ports.iter().enumerate() {
            if port.direction == Direction::Out {
                said.extend_from_slice(node.get_bytes(at).unwrap_or_default());
            }
        }
        for signal in 0..kind.signals.len() {
            said.extend(node.signal(signal).iter().flat_map(|it| it.to_ne_bytes()));
        }
    }
    said
}

#[test]
fn the_same_values_change_nothing_and_nothing_allocates() {
    for &(kind, given, _) in CASES {
        let [mut one, mut twin] = [(); 2].map(|()| made(kind, given));
        for from in [0, 250, 500, 750] {
            assert_eq!(tune(&mut one, row(kind), &graph(), given), 0, "{kind} allocates");
            let [ours, theirs] = [&mut one, &mut twin].map(|node| run(node, kind, from, 250));
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
    for &(kind, given, others) in CASES {
        let said_after = |change: Option<(&'static str, &'static str)>| {
            let mut node = made(kind, given);
            run(&mut node, kind, 0, 100);
            if let Some(change) = change {
                let mut tuned: Vec<_> =
                    given.iter().copied().filter(|it| it.0 != change.0).collect();
                tuned.push(change);
                assert_eq!(tune(&mut node, row(kind), &graph(), &tuned), 0, "{kind} allocates");
            }
            run(&mut node, kind, 100, 900)
        };
        let before = said_after(None);
        for &other in others {
            assert!(said_after(Some(other)) != before, "{kind} does not tune {}", other.0);
            left.remove(&(kind, other.0));
        }
    }
    assert!(left.is_empty(), "without a case: {left:?}");
}
