//! Tests of the monitor beside the arm.

mod readers;

use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use sinew_control::status::{EventKind, Phase};

use crate::Test;
use crate::stage::{Stage, arm};

pub(crate) const TESTS: &[Test] = &[
    ("prometheus_reads_what_the_cycles_did", readers::prometheus_reads_what_the_cycles_did),
    ("a_rule_stops_the_core_and_again_after_a_reset", a_rule_stops_the_core_and_again),
    ("a_rule_tells_a_webhook_and_raises_an_alarm", a_rule_tells_a_webhook),
    ("a_webhook_is_told_that_a_reset_or_a_restart_ends_all", a_webhook_is_told_of_new_beginnings),
    ("a_service_that_does_not_stay_up_breaks_a_rule", a_service_that_does_not_stay_up),
    ("a_port_in_use_is_said_with_who_has_it", a_port_in_use),
    ("a_rule_about_nothing_in_the_graph_is_the_monitors_fault", a_rule_about_nothing),
];

/// The arm with a monitor that has these lines in its block of the spec.
fn start(monitor: &str) -> Stage {
    let text = include_str!("arm.yaml").replace("listen: 127.0.0.1:9600", monitor);
    Stage::start(&text, arm(), &[])
}

/// How many texts about the monitor contain this.
fn count(arm: &Stage, what: EventKind, text: &str) -> usize {
    arm.count(what, "monitor", text)
}

/// The address at which it serves, as soon as it announces it.
fn address(arm: &mut Stage) -> String {
    let address =
        |arm: &Stage| arm.run.status().domains.into_iter().find_map(|domain| domain.address);
    arm.until("the monitor serves", |arm| address(arm).is_some());
    address(arm).expect("it serves")
}

/// The signals of the drives' last cycle.
fn drives(arm: &Stage) -> &[f64] {
    let domain = arm.run.plan().domains.iter().position(|it| it.name == "plant");
    &arm.core[domain.expect("the plant")].1
}

/// Whether all brakes are closed; they are the second signal of the drives, after six states.
fn is_braked(arm: &Stage) -> bool {
    drives(arm).get(6..12).is_some_and(|brakes| brakes.iter().all(|brake| *brake == 1.0))
}

/// The rule waits until the arm moves, so that there is something to stop.
fn a_rule_stops_the_core_and_again() {
    let rules =
        "rules: ['|drives.velocity_rad_per_s| > 0.05: stop \"it moves\"']\n    listen: 127.0.0.1:0";
    let mut arm = start(rules);
    for life in 1..=2 {
        arm.until("the core is held", |arm| arm.run.phase() == Phase::Held);
        assert!(is_braked(&arm), "at rest: {:?}", drives(&arm));
        let stop = arm.run.stop_status().expect("it has stopped");
        assert!(stop.reason.contains("it moves: rule 1"), "{}", stop.reason);
        let alarm = "it moves: rule 1 '|drives.velocity_rad_per_s| > 0.05: stop \"it moves\"': ";
        // One alarm when it fires, and one when the reset ends that.
        arm.until("the alarm is raised", |arm| count(arm, EventKind::Alarm, alarm) == 2 * life - 1);
        let measured = "safe outputs ";
        arm.until("it is measured", |arm| count(arm, EventKind::Output, measured) == life);
        if life == 1 {
            arm.run.reset().unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    for line in
        arm.texts(EventKind::Output, "monitor").iter().filter(|line| line.contains("safe outputs"))
    {
        println!("{line}");
    }
    arm.stop();
}

fn a_rule_tells_a_webhook() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let receiver = thread::spawn(move || [receive(&listener), receive(&listener)]);
    let rules = "rules: ['execution_time_us{node=ik} >= 0 for 100ms: webhook', \
                 'release_to_end_us_max > 0: event']";
    let mut arm =
        start(&format!("{rules}\n    webhook: http://{address}/hook\n    listen: 127.0.0.1:0"));
    // The plant is released by its input, so it has no planned start.
    arm.until("both have fired", |arm| {
        count(arm, EventKind::Alarm, "rule 1 '") == 1
            && count(arm, EventKind::Alarm, "rule 2 '") == 1
    });
    arm.until("the webhook is told", |_| receiver.is_finished());
    let [begins, letter] = receiver.join().expect("two requests");
    assert!(letter.starts_with("POST /hook HTTP/1.1\r\n"), "{letter}");
    let begins = told(&begins);
    assert_eq!((&begins["state"], &begins["monitor"]), (&"begins".into(), &"monitor".into()));
    let told = told(&letter);
    assert_eq!((&told["state"], &told["source"]), (&"firing".into(), &"node 'ik'".into()));
    assert_eq!((&told["rule"], &told["graph"]), (&1.into(), &"monitored".into()));
    arm.stop();
}

/// Receives a message of the webhook.
fn receive(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().expect("a connection");
    let letter = readers::request(&mut stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    letter
}

/// The contents of such a message.
fn told(letter: &str) -> serde_json::Value {
    let body = letter.split_once("\r\n\r\n").expect("a body").1;
    serde_json::from_str(body).expect("JSON")
}

fn a_webhook_is_told_of_new_beginnings() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let letters = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&letters);
    thread::spawn(move || {
        loop {
            let state = told(&receive(&listener))["state"].as_str().map(str::to_owned);
            letters.lock().expect("nobody panics").push(state.expect("a state"));
        }
    });
    let rule = "rules: ['execution_time_us{node=ik} >= 0: webhook']";
    let mut arm =
        start(&format!("{rule}\n    webhook: http://{address}/\n    listen: 127.0.0.1:0"));
    let await_states = |arm: &mut Stage, what: &str, expected: &[&str]| {
        let states = || received.lock().expect("nobody panics");
        arm.until(what, |_| states().len() >= expected.len());
        let told: Vec<String> = states().drain(..).collect();
        assert_eq!(told, expected, "{what}");
    };
    await_states(&mut arm, "it fires", &["begins", "firing"]);
    arm.run.halt("a test");
    arm.until("the core is held", |arm| arm.run.phase() == Phase::Held);
    arm.run.reset().unwrap_or_else(|wrong| panic!("{wrong}"));
    await_states(&mut arm, "the reset ends it, and it fires again", &["resolved", "firing"]);
    assert_eq!(
        count(&arm, EventKind::Alarm, ": over in node 'ik', the core started again, after "),
        1
    );
    arm.run.restart("monitor").expect("a service");
    await_states(&mut arm, "the monitor begins anew", &["begins", "firing"]);
    arm.stop();
}

fn a_service_that_does_not_stay_up() {
    let mut arm = start("rules: ['down{domain=log} > 0 for 1s: event']\n    listen: 127.0.0.1:0");
    arm.until("the log is missed", |arm| count(arm, EventKind::Alarm, "1 in domain 'log'") == 1);
    assert_eq!(count(&arm, EventKind::Alarm, "rule 1 'down{domain=log} > 0 for 1s: event': "), 1);
    arm.stop();
}

fn a_port_in_use() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut arm = start(&format!("listen: {address}"));
    let pid = std::process::id();
    let text = format!("{address} is in use by process {pid} '");
    arm.until("it is said", |arm| count(arm, EventKind::Faulted, &text) > 0);
    arm.until("the core runs", |arm| !drives(arm).is_empty());
    drop(listener);
    assert_eq!(self::address(&mut arm), format!("http://{address}/metrics"), "it serves after all");
    arm.stop();
}

fn a_rule_about_nothing() {
    let mut arm = start("rules: ['drives.torqe_n_m > 8: event']\n    listen: 127.0.0.1:0");
    let text = "'drives' has no signal 'torqe_n_m'; did you mean 'torque_n_m'?";
    arm.until("it is said", |arm| count(arm, EventKind::Faulted, text) > 0);
    arm.until("the core runs", |arm| !drives(arm).is_empty());
    arm.stop();
}
