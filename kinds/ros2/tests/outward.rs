//! What a graph publishes, read by Cyclone DDS.

use std::time::Duration;

use crate::Test;
use crate::peer::{Peer, is_there};
use crate::stage::Stage;

pub(crate) const TESTS: &[Test] = &[
    ("no_joint_state_is_lost_on_the_way_to_cyclone", no_joint_state_is_lost),
    ("cyclone_reads_transforms_the_node_and_diagnostics", cyclone_reads_the_rest),
    ("cyclone_reads_poses_and_twists", cyclone_reads_poses_and_twists),
    ("cyclone_reads_a_picture", cyclone_reads_a_picture),
];

/// Seconds for which joint states are heard; `SINEW_TEST_ROS2_SECONDS` sets more.
const SECONDS: &str = "5";

/// Its limits are generous, for a machine that is busy with something else: only what crosses
/// matters.
const GRAPH: &str = "
name: cart
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - kind: cart
    name: cart
    domain: control
    ports:
      state:
        - {name: wheels, port: in, delivery: broadcast, capacity: 65536}
        - {name: place, port: in}
  - kind: ros2_node
    name: node
    domain: ros
    ros_node: cart
    namespace: /yard
    ros_domain: DOMAIN
    network: 127.0.0.1
    hardware_id: cart-7
    static_transforms: [{frame_id: base, child_frame_id: lamp, translation: [0, 0, 1.5]}]
  - kind: ros2_publisher
    name: wheels
    domain: ros
    topic: joint_states
    type: sensor_msgs/msg/JointState
    names: [left, right]
    every: 0s
  - kind: ros2_publisher
    name: place
    domain: ros
    topic: /tf
    type: tf2_msgs/msg/TFMessage
    frame_id: odom
    child_frame_id: base
    fields: {translation: {field: place_mm, scale: 0.001}, rotation: orientation_xyzw}
    every: 100ms
";

fn no_joint_state_is_lost() {
    if !is_there() {
        return;
    }
    let seconds = std::env::var("SINEW_TEST_ROS2_SECONDS").unwrap_or_else(|_| SECONDS.into());
    let patience = Duration::from_secs(60 + seconds.parse::<u64>().expect("seconds"));
    let mut stage = Stage::start(GRAPH);
    let peer = Peer::start(&["joint_states", "rt/yard/joint_states", &seconds]);
    let mut heard = None;
    stage.until("it hears joint states", |_| {
        heard = peer.heard();
        heard.is_some()
    });
    let heard = heard.expect("just heard");
    assert_eq!(heard["names"], serde_json::json!(["left", "right"]));
    assert_eq!(heard["velocity"], serde_json::json!([0.25, 0.5]));
    assert_eq!(heard["effort"], serde_json::json!([]));
    let begun = std::time::Instant::now();
    let mut counted = None;
    while counted.is_none() && begun.elapsed() < patience {
        stage.pass(Duration::from_millis(100));
        counted = peer.heard();
    }
    let counted = counted.expect("the peer has counted");
    println!("joint states: {counted}");
    assert_eq!(counted["gaps"], serde_json::json!([]), "none is lost: {}", stage.told());
    assert!(counted["count"].as_u64() > Some(10), "{counted}");
    assert_eq!(counted["rising"], true, "stamps do not go back");
    assert!(counted["off_s"].as_f64() < Some(600.0), "stamps are the time of day: {counted}");
    stage.stop();
}

fn cyclone_reads_the_rest() {
    if !is_there() {
        return;
    }
    let mut stage = Stage::start(GRAPH);
    stage.until("it publishes", |stage| stage.said("ros", "publishes at /tf"));
    let [moving, fixed] = [["rt/tf", "volatile"], ["rt/tf_static", "kept"]]
        .map(|[topic, kept]| Peer::start(&["transforms", topic, kept]));
    let moving = hear(&mut stage, &moving);
    assert_eq!((&moving["frame"], &moving["child"]), (&"odom".into(), &"base".into()));
    assert_eq!(moving["place"], serde_json::json!([1.0, 0.0, 0.25]), "m, not mm");
    assert_eq!(moving["turned"], serde_json::json!([0.0, 0.0, 1.0, 0.0]), "normalised");
    let fixed = hear(&mut stage, &fixed);
    assert_eq!((&fixed["child"], &fixed["place"][2]), (&"lamp".into(), &1.5.into()));

    let diagnostics = Peer::start(&["diagnostics"]);
    let status = hear(&mut stage, &diagnostics)["status"].clone();
    assert_eq!(status["cart: run"][1], "running");
    assert_eq!(status["cart: domain control"][2]["role"], "realtime");
    assert!(status["cart: domain ros"][0] == 0, "{status}");
    let sent = status["cart: topic of place"][2]["sent"].as_str().map(str::parse::<u64>);
    assert!(sent.is_some_and(|sent| sent.expect("a number") > 0), "{status}");

    let nodes = Peer::start(&["nodes"]);
    let mut node = serde_json::Value::Null;
    // The peer first tells the node's state at its start, then each later one.
    stage.until("the node is seen with its topics", |_| {
        node = nodes.heard().unwrap_or_else(|| std::mem::take(&mut node));
        let ty = &node["topics"]["rt/yard/joint_states"];
        node["writers"].as_u64() >= Some(10) && ty == "sensor_msgs::msg::dds_::JointState_"
    });
    assert_eq!((&node["node"], &node["namespace"]), (&"cart".into(), &"/yard".into()));
    assert!(node["readers"].as_u64() >= Some(6), "those of the services too: {node}");
    stage.stop();
}

fn cyclone_reads_poses_and_twists() {
    if !is_there() {
        return;
    }
    let mut stage = Stage::start(
        "
name: cart
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - kind: cart
    name: cart
    domain: control
    ports:
      state:
        - {name: a, port: in}
        - {name: b, port: in}
        - {name: c, port: in}
        - {name: d, port: in}
  - {kind: ros2_node, name: node, domain: ros, ros_domain: DOMAIN, network: 127.0.0.1}
  - kind: ros2_publisher
    name: a
    domain: ros
    topic: pose
    type: geometry_msgs/msg/Pose
    fields: &pose {position: {field: place_mm, scale: 0.001}, orientation: orientation_xyzw}
  - kind: ros2_publisher
    name: b
    domain: ros
    topic: pose_stamped
    type: geometry_msgs/msg/PoseStamped
    frame_id: yard
    fields: *pose
  - kind: ros2_publisher
    name: c
    domain: ros
    topic: twist
    type: geometry_msgs/msg/Twist
    fields: &twist {linear.x: 'velocity_rad_per_s[0]', angular.z: 'velocity_rad_per_s[1]'}
  - kind: ros2_publisher
    name: d
    domain: ros
    topic: twist_stamped
    type: geometry_msgs/msg/TwistStamped
    frame_id: cart
    fields: *twist
",
    );
    let pose = serde_json::json!({
        "position": {"x": 1.0, "y": 0.0, "z": 0.25},
        "orientation": {"x": 0.0, "y": 0.0, "z": 1.0, "w": 0.0},
    });
    let twist = serde_json::json!({
        "linear": {"x": 0.25, "y": 0.0, "z": 0.0}, "angular": {"x": 0.0, "y": 0.0, "z": 0.5},
    });
    for (topic, ty, expected) in [("rt/pose", "Pose", &pose), ("rt/twist", "Twist", &twist)] {
        assert_eq!(hear(&mut stage, &Peer::start(&["hear", topic, ty])), *expected);
        let (topic, ty) = (format!("{topic}_stamped"), format!("{ty}Stamped"));
        let heard = hear(&mut stage, &Peer::start(&["hear", &topic, &ty]));
        assert_eq!(heard[topic.trim_start_matches("rt/").trim_end_matches("_stamped")], *expected);
        let frame = if ty == "PoseStamped" { "yard" } else { "cart" };
        assert_eq!(heard["header"]["frame_id"], frame);
        assert!(heard["header"]["stamp"]["sec"].as_u64() > Some(1_700_000_000), "{heard}");
    }
    stage.stop();
}

/// The next line of a peer, while the graph runs.
pub(crate) fn hear(stage: &mut Stage, peer: &Peer) -> serde_json::Value {
    let mut heard = None;
    stage.until("the peer hears something", |_| {
        heard = peer.heard();
        heard.is_some()
    });
    heard.expect("just heard")
}

fn cyclone_reads_a_picture() {
    if !is_there() {
        return;
    }
    let mut stage = Stage::start(
        "
name: film
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  film: {}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - {kind: cart, name: cart, domain: control, ports: {state: [{name: wheels, port: in}]}}
  - kind: film
    name: film
    domain: film
    ports: {out: [{name: images, port: in, delivery: queue, capacity: 4}]}
  - {kind: ros2_node, name: node, domain: ros, ros_domain: DOMAIN, network: 127.0.0.1}
  - kind: ros2_publisher
    name: images
    domain: ros
    topic: image_raw
    type: sensor_msgs/msg/Image
    frame_id: eye
  - {kind: ros2_publisher, name: wheels, domain: ros, topic: place, type: geometry_msgs/msg/Pose}
",
    );
    let peer = Peer::start(&["images", "rt/image_raw"]);
    let image = hear(&mut stage, &peer);
    let expected = serde_json::json!({
        "width": 2, "height": 2, "encoding": "rgb8", "step": 6, "bytes": 12,
        "first": [255, 0, 0, 0, 255, 0],
    });
    assert_eq!(image, expected);
    stage.stop();
}
