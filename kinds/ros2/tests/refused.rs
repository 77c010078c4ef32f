//! Graphs that `sinew check` refuses: what it says, and where.

use crate::Test;
use crate::stage::refusals;

pub(crate) const TESTS: &[Test] = &[
    ("a_good_graph_is_not_refused", a_good_graph_is_not_refused),
    ("what_is_wrong_is_said_at_its_place", what_is_wrong_is_said_at_its_place),
];

const GOOD: &str = "
name: cart
domains:
  control: {realtime: {period: 10ms}}
  ros: {}
nodes:
  - kind: cart
    name: cart
    domain: control
    ports: {state: [{name: wheels, port: in}]}
  - {kind: ros2_node, name: node, domain: ros, triggers: {stop: halt}, static_transforms: []}
  - kind: ros2_publisher
    name: wheels
    domain: ros
    topic: joint_states
    type: sensor_msgs/msg/JointState
    names: [left, right]
    fields: {position: position_rad, velocity: [velocity_rad_per_s]}
  - kind: ros2_subscriber
    name: orders
    domain: ros
    topic: /cmd_vel
    type: geometry_msgs/msg/Twist
    fields: {linear.x: speed_m_per_s}
    ports: {out: [{name: cart, port: drive}]}
";

/// Text that is replaced, its replacement, and what the refusal says.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "position_rad,",
        "angle_rad,",
        "at 'angle_rad, v': message CartState has no field 'angle_rad'; it has: \
         position_rad, velocity_rad_per_s, place_mm, orientation_xyzw",
    ),
    (
        "names: [left, right]",
        "names: [left, right]\n    child_frame_id: base",
        "at 'base\n    fie': only a transform leads to a frame",
    ),
    (
        "names: [left, right]",
        "names: [left, right]\n    frame_id: /base",
        "a frame begins with a slash",
    ),
    (
        "type: geometry_msgs/msg/Twist",
        "type: geometry_msgs/msg/Twist\n    frame_id: base",
        "at 'base\n    fie': a Twist names no frame",
    ),
    (
        "type: sensor_msgs/msg/JointState\n    names: [left, right]\n    fields: {position: \
         position_rad, velocity: [velocity_rad_per_s]}",
        "type: geometry_msgs/msg/Pose\n    frame_id: base\n    fields: {orientation: \
         orientation_xyzw}",
        "at 'base\n    fie': a Pose names no frame",
    ),
    (
        "type: sensor_msgs/msg/JointState\n    names: [left, right]\n    fields: {position: \
         position_rad,",
        "type: sensor_msgs/msg/Image\n    fields: {data: position_rad,",
        "this type of ROS has no part 'data' made of numbers",
    ),
    ("position_rad,", "'position_rad[2]',", "'position_rad' has no number '2'; it has 0 to 1"),
    (
        "position_rad,",
        "place_mm,",
        "at 'place_mm, ve': 'position' is 2, one for each of 'names'; found 3 numbers",
    ),
    (
        "position:",
        "angle:",
        "at 'angle: posit': this type of ROS has no part 'angle' made of numbers; it has: \
         position, velocity, effort",
    ),
    ("linear.x:", "linear:", "at 'speed_m_per_': 'linear' is 3 (x, y, z); found 1 numbers"),
    ("linear.x:", "linear.w:", "'linear' has no part 'w'"),
    (
        "    fields: {linear.x: speed_m_per_s}\n",
        "",
        "no field of message Drive has a usual name; write 'fields' with one or more of: \
         linear, angular",
    ),
    ("names: [left, right]", "names: [left, left]", "two joints are named 'left'"),
    ("    names: [left, right]\n", "", "it does not know the names of the joints"),
    ("topic: /cmd_vel", "topic: /cmd-vel", "at '/cmd-vel\n   ': '/cmd-vel' is not a name of ROS"),
    (
        "name: node, domain: ros",
        "name: node, domain: ros, ros_node: 7up",
        "'7up' in '/' is not a name of a node of ROS",
    ),
    (
        "name: node, domain: ros",
        "name: node, domain: ros, network: here",
        "at 'here, trigge': 'here' is not an address",
    ),
    (
        "name: node, domain: ros",
        "name: node, domain: ros, router: 'localhost:7447'",
        "at ''localhost:7': DDS has no router",
    ),
    (
        "name: node, domain: ros",
        "name: node, domain: ros, middleware: zenoh, router: localhost",
        "'localhost' is not an address with a port",
    ),
    (
        "name: node, domain: ros",
        "name: node, domain: ros, middleware: zenoh, network: 127.0.0.1",
        "'network' is of DDS",
    ),
    ("name: node, domain: ros", "name: node, domain: ros, middleware: rtps", "known: dds, zenoh"),
    (
        "{kind: ros2_node, name: node,",
        "{kind: ros2_node, name: other, domain: ros}\n  - {kind: ros2_node, name: node,",
        "its domain has two nodes of kind 'ros2_node'",
    ),
    (
        "  - {kind: ros2_node, name: node, domain: ros, triggers: {stop: halt}, static_transforms: \
         []}\n",
        "",
        "its domain is not a node of ROS; add a node of kind 'ros2_node' to the domain",
    ),
    (
        "stop: halt",
        "stop: restart film",
        "at 'restart film': no service is named 'film'; services are: ros",
    ),
    ("stop: halt", "stop: explode", "'explode' is not an order"),
    (
        "static_transforms: []",
        "static_transforms: [{frame_id: a, child_frame_id: b, rotation: [0, 0, 0, 0]}]",
        "the rotation is not as long as 1",
    ),
    (
        "static_transforms: []",
        "parameters: {gain: {value: 3, max: 2}}",
        "'gain' begins outside its limits: 'gain' is from -inf to 2",
    ),
    (
        "static_transforms: []",
        "ports: {parameters: [{name: cart, port: tuning}]}",
        "no parameter stands for field 'gain' of message Tuning",
    ),
    ("type: geometry_msgs/msg/Twist", "type: geometry_msgs/msg/Twits", "geometry_msgs/msg/Twist"),
];

fn a_good_graph_is_not_refused() {
    assert_eq!(refusals(GOOD), Vec::<String>::new());
}

fn what_is_wrong_is_said_at_its_place() {
    for (good, bad, said) in WRONG {
        assert!(GOOD.contains(good), "'{good}' is in the graph");
        let refusals = refusals(&GOOD.replacen(good, bad, 1));
        assert!(refusals.iter().any(|it| it.contains(said)), "with '{bad}': {refusals:#?}");
    }
}
