//! What others publish, and which of it enters the graph.

use std::time::Duration;

use ros2_client::dds::rustdds::{DomainParticipantBuilder, QosPolicyBuilder, TopicKind};
use rustix::process::Signal;
use serde::Serialize;
use sinew_control::status::EventKind;

use crate::Test;
use crate::peer::{Peer, is_there};
use crate::stage::{Stage, domain};

pub(crate) const TESTS: &[Test] = &[
    ("a_twist_drives_the_cart_until_its_sender_is_gone", a_twist_drives_the_cart),
    ("no_other_type_and_no_nan_enters_the_graph", no_other_type_and_no_nan),
    ("a_flood_of_a_foreign_client_harms_nobody", a_flood_harms_nobody),
    (
        "a_service_that_was_stopped_obeys_nothing_old_and_comes_back",
        what_came_meanwhile_is_not_obeyed,
    ),
];

const SPEED: usize = 0;
const TURN: usize = 1;
const ORDERS: usize = 2;

const GRAPH: &str = "
name: cart
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - kind: cart
    name: cart
    domain: control
    ports: {state: [{name: place, port: in}]}
  - {kind: ros2_node, name: node, domain: ros, ros_domain: DOMAIN, network: 127.0.0.1}
  - {kind: ros2_publisher, name: place, domain: ros, topic: pose, type: geometry_msgs/msg/Pose}
  - kind: ros2_subscriber
    name: orders
    domain: ros
    topic: /cmd_vel
    type: geometry_msgs/msg/Twist
    fields: {linear.x: speed_m_per_s, angular.z: turn_rad_per_s}
    after: 200ms
    ports: {out: [{name: cart, port: drive}]}
";

/// The hash of a twist, as other implementations tell it.
const TWIST: &str = "RIHS01_9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a";

fn start() -> Stage {
    let mut stage = Stage::start(GRAPH);
    stage.until("it listens", |stage| stage.said("ros", "listens to /cmd_vel"));
    stage.until("the core runs", |stage| !stage.signals.is_empty());
    stage
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6
}

fn a_twist_drives_the_cart() {
    if !is_there() {
        return;
    }
    let mut stage = start();
    let peer = Peer::start(&["twist", "rt/cmd_vel", "0.5", "-0.25", "reliable", TWIST]);
    stage.until("it drives", |stage| is_near(stage.signals[SPEED], 0.5));
    assert_eq!(stage.signals[TURN], -0.25);
    peer.kill();
    stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
    stage.until("the silence is told", |stage| stage.said("ros", "no message for 2 s"));
    let peer = Peer::start(&["twist", "rt/cmd_vel", "50", "0", "best_effort"]);
    stage.until("it drives as fast as it may", |stage| stage.signals[SPEED] == 1.0);
    drop(peer);
    stage.stop();
}

#[derive(Debug, Serialize)]
struct Numbers {
    sec: i32,
    nanosec: u32,
    numbers: [f64; 6],
}

fn no_other_type_and_no_nan() {
    if !is_there() {
        return;
    }
    let mut stage = start();
    // Cyclone does not send to a reader of another type; rustdds does.
    let domain = domain().parse().expect("a number");
    let builder = DomainParticipantBuilder::new(domain);
    let participant = builder.with_only_networks([std::net::Ipv4Addr::LOCALHOST]).build();
    let participant = participant.expect("a participant");
    let qos = QosPolicyBuilder::new().best_effort().build();
    let topic = participant.create_topic(
        "rt/cmd_vel".into(),
        "geometry_msgs::msg::dds_::Other_".into(),
        &qos,
        TopicKind::NoKey,
    );
    let publisher = participant.create_publisher(&qos).expect("a publisher");
    let writer = publisher.create_datawriter_no_key_cdr::<Numbers>(&topic.expect("a topic"), None);
    let writer = writer.expect("a writer");
    stage.until("the other type is told", |stage| {
        // This type is as long as a twist, so that it could be read as one.
        writer.write(Numbers { sec: 1, nanosec: 2, numbers: [0.75; 6] }, None).expect("it writes");
        stage.said("ros", "a writer sends geometry_msgs::msg::dds_::Other_")
    });
    let peers = [
        Peer::start(&["twist", "rt/cmd_vel", "0.25", "0", "reliable", &format!("{TWIST}0")]),
        Peer::start(&["twist", "rt/cmd_vel", "nan", "0", "reliable"]),
    ];
    stage.until("the other hash is told", |stage| {
        stage.said("ros", &format!("a writer sends geometry_msgs::msg::dds_::Twist_ ({TWIST}0)"))
    });
    let drops = |stage: &mut Stage| {
        writer.write(Numbers { sec: 1, nanosec: 2, numbers: [0.75; 6] }, None).expect("it writes");
        stage.said("ros", "not finite") && stage.said("ros", "of another type")
    };
    stage.until("what is dropped is told", drops);
    assert_eq!(stage.signals[ORDERS], 0.0, "nothing of that was an order");
    let good = Peer::start(&["twist", "rt/cmd_vel", "0.5", "0", "reliable", TWIST]);
    stage.until("a good one is heard beside them", |stage| is_near(stage.signals[SPEED], 0.5));
    drop((peers, good));
    stage.stop();
}

fn a_flood_harms_nobody() {
    if !is_there() {
        return;
    }
    let mut stage = start();
    let flood = ["best_effort", "reliable"]
        .map(|how| Peer::start(&["twist", "rt/cmd_vel", "0.25", "0", how, "", "0"]));
    stage.until("it drives", |stage| is_near(stage.signals[SPEED], 0.25));
    let before = stage.signals[ORDERS];
    stage.pass(Duration::from_secs(3));
    assert!(stage.signals[ORDERS] > before, "orders go on");
    flood.into_iter().for_each(Peer::kill);
    stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
    let good = Peer::start(&["twist", "rt/cmd_vel", "0.5", "0"]);
    stage.until("a good one is heard", |stage| is_near(stage.signals[SPEED], 0.5));
    drop(good);
    stage.stop();
}

fn what_came_meanwhile_is_not_obeyed() {
    if !is_there() {
        return;
    }
    let mut stage = start();
    let peer = Peer::start(&["twist", "rt/cmd_vel", "0.5", "0"]);
    stage.until("it drives", |stage| is_near(stage.signals[SPEED], 0.5));
    stage.signal("ros", Signal::STOP);
    stage.pass(Duration::from_millis(500));
    // From here on nobody sends: all that the service finds is old.
    peer.kill();
    stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
    let before = stage.signals[ORDERS];
    stage.signal("ros", Signal::CONT);
    // The threads of rustdds do not survive the stop, and the service notices that.
    stage.until("it starts again", |stage| stage.texts(EventKind::Ready, "ros").len() > 1);
    let reason = stage.texts(EventKind::Faulted, "ros")[0].to_owned();
    assert!(reason.contains("DDS has ended in this process"), "{reason}");
    assert_eq!(stage.signals[ORDERS], before, "no order came of what was sent before");
    let peer = Peer::start(&["twist", "rt/cmd_vel", "0.25", "0"]);
    stage.until("it drives again", |stage| is_near(stage.signals[SPEED], 0.25));
    drop(peer);
    stage.stop();
}
