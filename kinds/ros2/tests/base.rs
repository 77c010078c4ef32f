//! The base of `graphs/ros2/base.yaml`, driven and watched by Cyclone DDS.

use std::time::Instant;

use crate::Test;
use crate::outward::hear;
use crate::peer::{Peer, is_there};
use crate::stage::{PATIENCE, Stage};

pub(crate) const TESTS: &[Test] =
    &[("a_base_obeys_cmd_vel_within_its_limits", a_base_obeys_within_its_limits)];

/// Signal of the limiter: 1 while nobody tells it anything.
const BRAKES: usize = 2;

/// The graph, on this machine only and with generous limits.
fn graph() -> String {
    let text = include_str!("../../../graphs/ros2/base.yaml");
    [
        ("ros_node: base", "ros_node: base, ros_domain: DOMAIN, network: 127.0.0.1"),
        ("consecutive_max: 50", "consecutive_max: 100000"),
        ("ros: {", "ros: {heartbeat: 60s, start_deadline: 60s, "),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "'{from}' is in the graph");
        text.replacen(from, to, 1)
    })
}

/// Hears the base's speed until it goes straight ahead and turns this fast. Returns all speeds on
/// the way.
fn until(stage: &mut Stage, watcher: &Peer, goal: [f64; 2]) -> Vec<f64> {
    let (begun, mut speeds) = (Instant::now(), Vec::new());
    loop {
        let twist = hear(stage, watcher)["twist"].take();
        let now = [&twist["linear"]["x"], &twist["angular"]["z"]];
        let now = now.map(|number| number.as_f64().expect("a number"));
        speeds.push(now[0]);
        if now.iter().zip(goal).all(|(now, goal)| (now - goal).abs() < 1e-6) {
            return speeds;
        }
        assert!(begun.elapsed() < PATIENCE, "it never goes {goal:?}: {speeds:?}");
    }
}

fn a_base_obeys_within_its_limits() {
    if !is_there() {
        return;
    }
    let mut stage = Stage::start(&graph());
    stage.until("it listens", |stage| stage.said("ros", "listens to /cmd_vel"));
    let watcher = Peer::start(&["hear", "rt/base/twist", "TwistStamped"]);
    assert_eq!(until(&mut stage, &watcher, [0.0, 0.0])[0], 0.0, "nobody has told it anything");
    let driver = Peer::start(&["twist", "rt/cmd_vel", "5", "0.25"]);
    let up = until(&mut stage, &watcher, [0.6, 0.25]);
    driver.kill();
    let down = until(&mut stage, &watcher, [0.0, 0.0]);
    assert_eq!(stage.signals[BRAKES], 1.0, "nobody tells it anything any more");
    for speeds in [up, down] {
        assert!(speeds.iter().all(|speed| (-1e-6..=0.6 + 1e-6).contains(speed)), "{speeds:?}");
        assert!(speeds.iter().any(|speed| (0.01..0.59).contains(speed)), "by and by: {speeds:?}");
    }
    let wheels = Peer::start(&["hear", "rt/joint_states", "JointState"]);
    let wheels = hear(&mut stage, &wheels);
    let [left, right] = [0, 1].map(|at| wheels["position"][at].as_f64().expect("a number"));
    assert!(right > left && left > 0.0, "it went ahead and to the left: {wheels}");
    stage.stop();
}
