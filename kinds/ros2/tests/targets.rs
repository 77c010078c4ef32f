//! Poses, joint states and trajectories of Cyclone DDS: what enters the graph, and what does not.

use serde_json::{Value, json};

use crate::Test;
use crate::peer::{Peer, is_there};
use crate::stage::Stage;

pub(crate) const TESTS: &[Test] =
    &[("poses_joints_and_trajectories_of_cyclone_are_taken", all_are_taken)];

const GRAPH: &str = "
name: gauge
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - {kind: gauge, name: gauge, domain: control}
  - {kind: ros2_node, name: node, domain: ros, ros_domain: DOMAIN, network: 127.0.0.1}
  - kind: ros2_subscriber
    name: pose
    domain: ros
    topic: pose
    type: geometry_msgs/msg/Pose
    ports: {out: [{name: gauge, port: pose}]}
  - kind: ros2_subscriber
    name: place
    domain: ros
    topic: place
    type: geometry_msgs/msg/PoseStamped
    frame_id: yard
    ports: {out: [{name: gauge, port: place}]}
  - kind: ros2_subscriber
    name: joints
    domain: ros
    topic: joints
    type: sensor_msgs/msg/JointState
    names: [left, right]
    ports: {out: [{name: gauge, port: joints}]}
  - kind: ros2_subscriber
    name: way
    domain: ros
    topic: way
    type: trajectory_msgs/msg/JointTrajectory
    names: [left, right]
    reliable: true
    ports: {out: [{name: gauge, port: way}]}
";

/// A message, and where its numbers are expected among the signals of the gauge.
struct Row {
    topic: &'static str,
    ty: &'static str,
    /// A message that is taken.
    good: Value,
    at: usize,
    numbers: &'static [f64],
    /// A message that is not taken, and what is said of it.
    bad: Value,
    said: &'static str,
}

fn rows() -> [Row; 4] {
    let header = |frame: &str| json!({"stamp": {"sec": 1, "nanosec": 2}, "frame_id": frame});
    let pose = |z: f64| {
        json!({
            "position": {"x": 1.0, "y": -2.0, "z": 3.5},
            "orientation": {"x": 0.0, "y": 0.0, "z": z, "w": 0.8},
        })
    };
    let stamped = |frame: &str| json!({"header": header(frame), "pose": pose(-0.6)});
    // In another order than the graph's, and with a joint that the graph does not want.
    let joints = |last: &str| {
        json!({
            "header": header(""), "name": ["odd", "right", last], "position": [9.0, 0.5, -0.25],
            "velocity": [9.0, 1.5, -1.25], "effort": [],
        })
    };
    let point = |sec: i32, right: f64, left: f64| {
        json!({
            "positions": [right, left], "velocities": [], "accelerations": [], "effort": [],
            "time_from_start": {"sec": sec, "nanosec": 500_000_000},
        })
    };
    let way = |count: i32| {
        let points: Vec<_> = (0..count).map(|i| point(i, 0.5, f64::from(i))).collect();
        json!({"header": header("yard"), "joint_names": ["right", "left"], "points": points})
    };
    [
        Row {
            topic: "rt/pose",
            ty: "Pose",
            good: pose(0.6),
            at: 0,
            numbers: &[1.0, -2.0, 3.5, 0.0, 0.0, 0.6, 0.8],
            bad: pose(0.7),
            said: "no rotation",
        },
        Row {
            topic: "rt/place",
            ty: "PoseStamped",
            good: stamped("yard"),
            at: 7,
            numbers: &[1.0, -2.0, 3.5, 0.0, 0.0, -0.6, 0.8],
            bad: stamped("street"),
            said: "of another frame",
        },
        Row {
            topic: "rt/joints",
            ty: "JointState",
            good: joints("left"),
            at: 14,
            numbers: &[-0.25, 0.5, -1.25, 1.5],
            bad: joints("middle"),
            said: "of other joints",
        },
        Row {
            topic: "rt/way",
            ty: "JointTrajectory",
            good: way(2),
            at: 18,
            // Behind the last point, the last point again.
            numbers: &[0.0, 0.5, 1.0, 0.5, 1.0, 0.5, 0.5, 1.5, 1.5, 2.0],
            bad: way(4),
            said: "with too many points or none",
        },
    ]
}

fn all_are_taken() {
    if !is_there() {
        return;
    }
    let mut stage = Stage::start(GRAPH);
    stage.until("the core runs", |stage| !stage.signals.is_empty());
    let send = |row: &Row, message: &Value| {
        Peer::start(&["send", row.topic, row.ty, &message.to_string()])
    };
    for row in rows() {
        let bad = send(&row, &row.bad);
        stage.until(row.said, |stage| stage.said("ros", row.said));
        let found = &stage.signals[row.at..][..row.numbers.len()];
        assert!(found.iter().all(|number| *number == 0.0), "{}: {found:?}", row.ty);
        bad.kill();
        let _good = send(&row, &row.good);
        stage.until(row.ty, |stage| {
            let found = stage.signals[row.at..][..row.numbers.len()].iter();
            found.zip(row.numbers).all(|(found, expected)| (found - expected).abs() < 1e-12)
        });
    }
    stage.stop();
}
