//! What messages of ROS hold, and what may not enter.

use super::*;
use crate::fields::places;
use crate::messages::{JointTrajectoryPoint, Point, Quaternion};
use sinew_core::catalogue::{Field, Scalar};

fn wanted(points: usize) -> Wanted {
    Wanted { names: ["b", "a"].map(str::to_owned).to_vec(), points }
}

fn trajectory(points: usize) -> JointTrajectory {
    let point = |at: usize| JointTrajectoryPoint {
        positions: vec![at as f64, at as f64 + 0.5, 9.0],
        time_from_start: Duration { sec: at as i32, nanosec: 500_000_000 },
        ..JointTrajectoryPoint::default()
    };
    let joint_names = ["a", "b", "c"].map(str::to_owned).to_vec();
    JointTrajectory {
        joint_names,
        points: (1..=points).map(point).collect(),
        ..JointTrajectory::default()
    }
}

#[test]
fn joints_come_in_the_order_of_the_graph() {
    let name = ["a", "b"].map(str::to_owned).to_vec();
    let state = JointState { name, position: vec![1.0, 2.0], ..JointState::default() };
    let heard = state.clone().heard(&wanted(0)).expect("it fits");
    assert_eq!(heard.numbers, [vec![2.0, 1.0], vec![], vec![]]);
    let short = JointState { position: vec![1.0], ..state.clone() };
    assert_eq!(short.heard(&wanted(0)).err(), Some(Refused::Joints));
    let long = JointState { velocity: vec![1.0, 2.0, 3.0], ..state.clone() };
    assert_eq!(long.heard(&wanted(0)).err(), Some(Refused::Joints));
    let name = (0..=JOINTS_MAX).map(|at| ["a", "b"][at % 2].to_owned()).collect();
    let many = JointState { name, position: Vec::new(), ..state.clone() };
    assert_eq!(many.heard(&wanted(0)).err(), Some(Refused::Joints));
    let others = JointState { name: vec!["a".into()], ..state };
    assert_eq!(others.heard(&wanted(0)).err(), Some(Refused::Joints));
}

#[test]
fn a_trajectory_fills_its_room_or_gives_its_goal() {
    let heard = trajectory(2).heard(&wanted(3)).expect("it fits");
    assert_eq!(heard.numbers[0], [1.5, 1.0, 2.5, 2.0, 2.5, 2.0]);
    assert_eq!(heard.numbers[1], Vec::<f64>::new());
    assert_eq!(heard.numbers[4..], [vec![1.5, 2.5, 2.5], vec![2.0]]);
    let goal = trajectory(5).heard(&wanted(1)).expect("it fits");
    assert_eq!((&goal.numbers[0], &goal.numbers[5]), (&vec![5.5, 5.0], &vec![1.0]));
    assert_eq!(trajectory(4).heard(&wanted(3)).err(), Some(Refused::Points));
    assert_eq!(trajectory(0).heard(&wanted(3)).err(), Some(Refused::Points));
}

/// A message of eight numbers, of which this slot has the first.
fn written(heard: Heard, slot: &'static [Slot], count: u32) -> Result<Vec<u8>, Refused> {
    let field = Field { name: "a", scalar: Scalar::F64, count, offset: 0, labels: &[] };
    let mapping = Mapping { slots: vec![places(&field).map(Some).collect()], points: 0 };
    let mut message = vec![0; 64];
    write(heard, &mapping, slot, &mut message).map(|()| message)
}

fn heard(numbers: &[f64]) -> Heard {
    Heard { frame_id: String::new(), numbers: vec![numbers.to_vec()] }
}

#[test]
fn what_no_controller_should_see_is_refused() {
    const ROTATION: &[Slot] = &[Slot { name: "r", width: Width::Xyzw, usual: &[] }];
    const JOINTS: &[Slot] = &[Slot { name: "j", width: Width::Joints, usual: &[] }];
    for number in [f64::NAN, f64::INFINITY] {
        assert_eq!(written(heard(&[0.0, number]), JOINTS, 2), Err(Refused::NotFinite));
    }
    assert_eq!(written(heard(&[0.0; 4]), ROTATION, 4), Err(Refused::NoRotation));
    assert_eq!(written(heard(&[0.0, 0.0, 0.0, 1.02]), ROTATION, 4), Err(Refused::NoRotation));
    assert_eq!(
        written(heard(&[]), JOINTS, 2),
        Err(Refused::Joints),
        "it leaves out what is wanted"
    );
    let message = written(heard(&[0.0, 0.0, 0.0, 1.001]), ROTATION, 4).expect("nearly one");
    assert_eq!(message[24..32], 1.0_f64.to_ne_bytes());
}

#[test]
fn every_type_has_as_many_lists_as_slots() {
    let position = Point { x: 1.0, ..Point::default() };
    let pose = Pose { position, orientation: Quaternion { w: 1.0, ..Quaternion::default() } };
    let header = Header { frame_id: "map".into(), ..Header::default() };
    let stamped = PoseStamped { header, pose }.heard(&wanted(0)).expect("it fits");
    assert_eq!(stamped.frame_id, "map");
    assert_eq!(stamped.numbers, [vec![1.0, 0.0, 0.0], vec![0.0, 0.0, 0.0, 1.0]]);
    let twist = Twist::default().heard(&wanted(0)).expect("it fits");
    assert_eq!((twist.numbers.len(), TWIST.len()), (2, 2));
    let trajectory = trajectory(1).heard(&wanted(1)).expect("it fits");
    assert_eq!(trajectory.numbers.len(), TRAJECTORY.len());
}
