//! Nodes over Zenoh, and beside them `zenoh_peer.py`, which follows rmw_zenoh's documents and
//! sources. There was no rmw_zenoh itself to test with.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use sinew_control::status::EventKind;

use crate::Test;
use crate::outward::hear;
use crate::peer::{Peer, is_zenoh_there};
use crate::stage::{Stage, domain};

pub(crate) const TESTS: &[Test] = &[
    ("over_zenoh_joint_states_are_heard_and_tokens_seen", joint_states_are_heard),
    ("over_zenoh_who_comes_late_gets_the_fixed_transforms", who_comes_late_gets_transforms),
    ("over_zenoh_a_twist_drives_and_nothing_else", a_twist_drives_and_nothing_else),
    ("over_zenoh_services_and_parameters_answer", services_and_parameters_answer),
    ("over_zenoh_a_router_may_come_go_and_come_back", a_router_may_come_and_go),
    ("over_zenoh_a_flood_harms_nobody", a_flood_harms_nobody),
    ("over_zenoh_what_came_during_a_stop_is_not_obeyed", what_came_meanwhile_is_not_obeyed),
];

const SPEED: usize = 0;
const ORDERS: usize = 2;
const GAIN: usize = 3;

const GRAPH: &str = "
name: cart
domains:
  control: {realtime: {period: 10ms, overrun: {policy: stop, consecutive_max: 100000}}}
  film: {heartbeat: 60s, start_deadline: 60s}
  ros: {heartbeat: 60s, start_deadline: 60s}
nodes:
  - kind: cart
    name: cart
    domain: control
    ports:
      state:
        - {name: wheels, port: in, delivery: broadcast, capacity: 65536}
  - kind: film
    name: film
    domain: film
    ports: {out: [{name: images, port: in, delivery: queue, capacity: 4}]}
  - kind: ros2_node
    name: node
    domain: ros
    ros_node: cart
    namespace: /yard
    ros_domain: DOMAIN
    middleware: zenoh
    router: 127.0.0.1:PORT
    parameters: {gain: {value: 1.5, min: 0, max: 2}, lamp: false}
    triggers: {~/film: restart film}
    static_transforms: [{frame_id: base, child_frame_id: lamp, translation: [0, 0, 1.5]}]
    ports: {parameters: [{name: cart, port: tuning}]}
  - kind: ros2_publisher
    name: wheels
    domain: ros
    topic: joint_states
    type: sensor_msgs/msg/JointState
    names: [left, right]
    every: 0s
  - {kind: ros2_publisher, name: images, domain: ros, topic: image_raw, type: sensor_msgs/msg/Image}
  - kind: ros2_subscriber
    name: orders
    domain: ros
    topic: /cmd_vel
    type: geometry_msgs/msg/Twist
    fields: {linear.x: speed_m_per_s, angular.z: turn_rad_per_s}
    after: 200ms
    ports: {out: [{name: cart, port: drive}]}
";

/// Hashes of types, as other implementations compute them.
const JOINTS: &str = "a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e";
const TWIST: &str = "9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a";
const TRIGGER: &str = "eeff2cd6fa5ad9d27cdf4dec64818317839b62f212a91e6b5304b634b2062c5f";
const TRANSFORMS: &str = "e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087";

/// A port for this run of the tests alone, below those that the system assigns.
fn port() -> String {
    (20_000 + std::process::id() % 10_000).to_string()
}

fn start() -> Stage {
    let mut stage = Stage::start(&GRAPH.replace("PORT", &port()));
    stage.until("it listens", |stage| stage.said("ros", "listens to /cmd_vel"));
    stage.until("the core runs", |stage| !stage.signals.is_empty());
    stage
}

/// A peer that runs this command in the domain of these tests.
fn peer(command: &str, arguments: &[&str]) -> Peer {
    let domain = domain();
    Peer::over_zenoh(&port(), &[&[command, &domain], arguments].concat())
}

/// A router that is ready.
fn router(stage: &mut Stage) -> Peer {
    let router = Peer::over_zenoh(&port(), &["router"]);
    assert_eq!(hear(stage, &router), json!({"ready": true}));
    router
}

fn joint_states_are_heard() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let _router = router(&mut stage);
    let ears = peer("hear", &["/yard/joint_states", "sensor_msgs", "JointState"]);
    let first = hear(&mut stage, &ears);
    assert_eq!(first["head"], "00010000", "CDR, the least byte first");
    assert_eq!(first["message"]["name"], json!(["left", "right"]));
    assert_eq!(first["message"]["velocity"], json!([0.25, 0.5]));
    assert_eq!(first["message"]["effort"], json!([]));
    assert!(first["off_s"].as_f64() < Some(600.0), "it is sent by the time of day: {first}");
    let count = |it: &Value| {
        let place = it["message"]["position"][0].as_f64().expect("a number");
        (it["number"].as_i64().expect("a number"), place)
    };
    let mut last = count(&first);
    for _ in 0..100 {
        let next = hear(&mut stage, &ears);
        let (number, place) = count(&next);
        assert_eq!((number, place), (last.0 + 1, last.1 + 1.0), "none is lost: {}", stage.told());
        assert_eq!(next["gid"], first["gid"], "one sender");
        last = (number, place);
    }

    let eyes = peer("tokens", &[]);
    let domain = domain();
    let mut seen = Vec::new();
    let end = |sort: &str, about: &str, hash: &str, qos: &str| {
        format!("/{sort}/%/%yard/cart/{about}_/RIHS01_{hash}/{qos}")
    };
    let ends = [
        "/NN/%/%yard/cart".to_owned(),
        end("MP", "%yard%joint_states/sensor_msgs::msg::dds_::JointState", JOINTS, "::,10:,:,:,,"),
        end("MS", "%cmd_vel/geometry_msgs::msg::dds_::Twist", TWIST, "2::,10:,:,:,,"),
        end("SS", "%yard%cart%film/std_srvs::srv::dds_::Trigger", TRIGGER, "::,10:,:,:,,"),
        end("MP", "%tf_static/tf2_msgs::msg::dds_::TFMessage", TRANSFORMS, ":1:,1:,:,:,,"),
    ];
    stage.until("all tokens are seen", |_| {
        seen.extend(eyes.heard().map(|it| it["token"].as_str().expect("a text").to_owned()));
        ends.iter().all(|end| seen.iter().any(|it| it.ends_with(end.as_str())))
    });
    assert!(seen.iter().all(|it| it.starts_with(&format!("@ros2_lv/{domain}/"))), "{seen:?}");
    let number = |it: &String| it.split('/').nth(4).map(str::to_owned);
    let mut numbers: Vec<_> = seen.iter().map(number).collect();
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), seen.len(), "each end has a number of its own: {seen:?}");
    stage.stop();
    let mut gone = Vec::new();
    while let Some(it) = eyes.says(Duration::from_secs(30)) {
        gone.extend((it["is_there"] == false).then(|| it["token"].to_string()));
        if gone.len() == seen.len() {
            return;
        }
    }
    panic!("all tokens go with the node: {gone:?} of {seen:?}");
}

fn who_comes_late_gets_transforms() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let _router = router(&mut stage);
    stage.until("the router is seen", |stage| stage.said("ros", "the router at 127.0.0.1:"));
    // The transforms were sent before there was a router.
    let late = peer("late", &["/tf_static", "tf2_msgs", "TFMessage"]);
    let heard = hear(&mut stage, &late);
    let transform = &heard["message"]["transforms"][0];
    assert_eq!(transform["child_frame_id"], "lamp");
    assert_eq!(transform["transform"]["translation"]["z"], 1.5);
    assert_eq!(heard["number"], 1);
    let ears = peer("hear", &["/diagnostics", "diagnostic_msgs", "DiagnosticArray"]);
    let status = hear(&mut stage, &ears)["message"]["status"].take();
    let status = status.as_array().expect("a list");
    let topic = status.iter().find(|it| it["name"] == "cart: topic of wheels");
    let sent = topic.map(|it| &it["values"][0]);
    assert_eq!(sent.map(|it| &it["key"]), Some(&"sent".into()), "{status:?}");
    stage.stop();
}

fn a_twist_drives_and_nothing_else() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let _router = router(&mut stage);
    let bad = ["hash", "attachment", "none", "bytes"];
    let bad = bad.map(|how| peer("twist", &["/cmd_vel", "0.25", "0", how]));
    let zeros = format!("a writer sends geometry_msgs::msg::dds_::Twist_ (RIHS01_{:064})", 0);
    stage.until("the other hash is told", |stage| stage.said("ros", &zeros));
    stage.until("what is dropped is told", |stage| {
        stage.said("ros", "of another type") && stage.said("ros", "not readable")
    });
    assert_eq!(stage.signals[ORDERS], 0.0, "nothing of that was an order");
    bad.into_iter().for_each(Peer::kill);
    let nan = peer("twist", &["/cmd_vel", "nan", "0"]);
    stage.until("what is not a number is told", |stage| stage.said("ros", "not finite"));
    assert_eq!(stage.signals[ORDERS], 0.0, "nothing of that was an order");
    nan.kill();
    let good = peer("twist", &["/cmd_vel", "0.5", "-0.25", "gaps"]);
    stage.until("it drives", |stage| stage.signals[SPEED] == 0.5);
    let ears = peer("hear", &["/diagnostics", "diagnostic_msgs", "DiagnosticArray"]);
    let mut lost = 0;
    stage.until("gaps are counted", |_| {
        let status = ears.heard().map(|mut it| it["message"]["status"].take());
        let status = status.as_ref().and_then(Value::as_array).into_iter().flatten();
        let topic = status.into_iter().find(|it| it["name"] == "cart: topic of orders");
        let figures = topic.and_then(|it| it["values"].as_array()).into_iter().flatten();
        let found = figures.into_iter().find(|it| it["key"] == "lost");
        lost = found.and_then(|it| it["value"].as_str()?.parse().ok()).unwrap_or(lost);
        lost >= 10
    });
    good.kill();
    stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
    stage.until("the silence is told", |stage| stage.said("ros", "no message for 2 s"));
    stage.stop();
}

fn services_and_parameters_answer() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let _router = router(&mut stage);
    let caller = peer("trigger", &["/yard/cart/film"]);
    let done = hear(&mut stage, &caller);
    assert_eq!((&done["success"], &done["head"]), (&true.into(), &"00010000".into()), "{done}");
    assert_eq!(done["unread"], 0, "who asks in a way that nobody can read gets no answer");
    stage.until("the film is started again", |stage| {
        stage.texts(EventKind::Ready, "film").len() > 1
    });
    drop(caller);
    assert_eq!(stage.signals[GAIN], 1.5);
    let caller = peer("parameters", &["/yard/cart"]);
    let found = hear(&mut stage, &caller);
    assert_eq!(found["before"], json!([3, 1.5]), "a number, and which");
    assert_eq!(found["set"], json!([[true, ""], [false, "'gain' is from 0 to 2"]]));
    assert_eq!(found["names"], json!(["gain", "lamp"]));
    assert_eq!(found["told"], json!(["/yard/cart", "gain", 0.5]));
    stage.until("the core has it", |stage| stage.signals[GAIN] == 0.5);
    stage.stop();
}

fn a_router_may_come_and_go() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let seen = |stage: &Stage, text: &str| {
        stage.texts(EventKind::Output, "ros").iter().filter(|it| it.contains(text)).count()
    };
    stage.until("it says that there is none", |stage| seen(stage, "no router at") == 1);
    for round in 1..=2 {
        let router = router(&mut stage);
        stage.until("it is seen", |stage| seen(stage, "the router at") == round);
        let driver = peer("twist", &["/cmd_vel", "0.5", "0"]);
        stage.until("it drives", |stage| stage.signals[SPEED] == 0.5);
        driver.kill();
        stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
        router.kill();
        stage.until("it is missed", |stage| seen(stage, "no router at") == round + 1);
    }
    assert_eq!(stage.texts(EventKind::Ready, "ros").len(), 1, "the service ran on");
    stage.stop();
}

fn a_flood_harms_nobody() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let _router = router(&mut stage);
    let flood = peer("twist", &["/cmd_vel", "0.25", "0", "flood"]);
    stage.until("it drives", |stage| stage.signals[SPEED] == 0.25);
    stage.pass(Duration::from_secs(3));
    flood.kill();
    stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
    let good = peer("twist", &["/cmd_vel", "0.5", "0", "late"]);
    stage.until("a good one is heard", |stage| stage.signals[SPEED] == 0.5);
    assert_eq!(stage.texts(EventKind::Ready, "ros").len(), 1, "the service ran on");
    drop(good);
    stage.stop();
}

fn what_came_meanwhile_is_not_obeyed() {
    if !is_zenoh_there() {
        return;
    }
    let mut stage = start();
    let _router = router(&mut stage);
    let driver = peer("twist", &["/cmd_vel", "0.25", "0"]);
    stage.until("it drives", |stage| stage.signals[SPEED] == 0.25);
    stage.signal("ros", Signal::STOP);
    stage.pass(Duration::from_millis(500));
    // From here on nobody sends: all that the service finds is old.
    driver.kill();
    stage.until("it stands", |stage| stage.signals[SPEED] == 0.0);
    let before = stage.signals[ORDERS];
    stage.signal("ros", Signal::CONT);
    stage.until("what waited is told", |stage| stage.said("ros", "too late"));
    let good = peer("twist", &["/cmd_vel", "0.5", "0", "late"]);
    stage.until("it drives again", |stage| {
        let [speed, orders] = [SPEED, ORDERS].map(|it| stage.signals[it]);
        assert!(orders == before || speed == 0.5, "no order came of what was sent before");
        speed == 0.5
    });
    assert_eq!(stage.texts(EventKind::Ready, "ros").len(), 1, "the service ran on");
    drop(good);
    stage.stop();
}
