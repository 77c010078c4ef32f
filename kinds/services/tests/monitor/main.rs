//! The monitor beside the arm, run for real. The domains are this program, started again.

#![expect(clippy::print_stdout, reason = "a test binary with a main of its own reports its tests")]

#[path = "../program/mod.rs"]
mod program;
mod readers;

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use sinew_control::status::{EventKind, Phase};
use sinew_core::privileges;
use sinew_core::trace::Record;
use sinew_core::{pace::Pace, trace::ThreadId};
use sinew_robot::NODES;
use sinew_runtime::Kinds;
use sinew_runtime::run::{Outcome, Request, Run};
use sinew_services::{axis_log, monitor};
use sinew_spec::plan::Machine;
use sinew_spec::{Source, compile, render};

/// A wait that is longer than this is a hang. Never a statement about speed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const LOOK: Duration = Duration::from_millis(20);

/// All tests; `cargo test` filters them by name as usual.
const TESTS: &[(&str, fn())] = &[
    ("prometheus_reads_what_the_cycles_did", readers::prometheus_reads_what_the_cycles_did),
    ("a_rule_stops_the_core_and_again_after_a_reset", a_rule_stops_the_core_and_again),
    ("a_rule_tells_a_webhook_and_raises_an_alarm", a_rule_tells_a_webhook),
    ("a_webhook_is_told_that_a_reset_or_a_restart_ends_all", a_webhook_is_told_of_new_beginnings),
    ("a_service_that_does_not_stay_up_breaks_a_rule", a_service_that_does_not_stay_up),
    ("a_port_in_use_is_said_with_who_has_it", a_port_in_use),
    ("a_rule_about_nothing_in_the_graph_is_the_monitors_fault", a_rule_about_nothing),
];

fn kinds() -> Kinds {
    Kinds {
        nodes: NODES.to_vec(),
        services: vec![axis_log::NODE, monitor::NODE],
        ..Kinds::default()
    }
}

fn main() -> ExitCode {
    program::carry_out(TESTS, &kinds())
}

/// The arm with a monitor that has these lines in its block of the spec.
pub(crate) struct Arm {
    pub(crate) run: Run,
    /// The signals of the drives' last cycle.
    drives: Vec<f64>,
}

impl Arm {
    fn start(monitor: &str) -> Arm {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/arm");
        let text = include_str!("arm.yaml").replace("listen: 127.0.0.1:9600", monitor);
        let cpus = privileges::cpus().expect("affinity");
        let source = Source { file: "arm.yaml", text: &text, overrides: &[] };
        let kinds = kinds().catalogue();
        let plan = compile(&source, &kinds, &Machine { cpus: cpus.clone() })
            .unwrap_or_else(|bad| panic!("{}", render(&bad, &text, false)));
        let request = Request {
            file: "arm.yaml".into(),
            text: text.clone(),
            base,
            overrides: Vec::new(),
            cpus,
            plan,
            strict: false,
            pace: Pace::AsPlanned,
            injections: Vec::new(),
        };
        Arm { run: Run::start(request).expect("it starts"), drives: Vec::new() }
    }

    fn poll(&mut self) -> bool {
        let plan = self.run.plan();
        let domain = plan.domains.iter().position(|it| it.name == "plant").expect("the plant");
        let drives = &mut self.drives;
        self.run.poll(LOOK, &mut |id: ThreadId, record: &Record| {
            if id.domain == domain {
                drives.clear();
                drives.extend(record.signals());
            }
        })
    }

    /// Lets it run until `condition`, which is described by `what`.
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&Arm) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {}", self.story());
            assert!(self.poll(), "ended before {what}: {}", self.story());
        }
    }

    pub(crate) fn stop(mut self) -> Outcome {
        self.run.stop();
        let begun = Instant::now();
        while self.poll() {
            assert!(begun.elapsed() < PATIENCE, "does not stop: {}", self.story());
        }
        self.run.outcome()
    }

    /// What has happened to the monitor.
    fn said(&self, what: EventKind) -> Vec<String> {
        let events = self.run.events().after(0).filter(|event| event.what == what);
        let of_monitor = events.filter(|event| event.domain.as_deref() == Some("monitor"));
        of_monitor.map(|event| event.text.clone()).collect()
    }

    /// How many texts about the monitor contain this.
    fn count(&self, what: EventKind, text: &str) -> usize {
        self.said(what).iter().filter(|said| said.contains(text)).count()
    }

    fn story(&self) -> String {
        let events = self.run.events().after(0);
        events.map(|it| format!("\n{:?} {}: {}", it.domain, it.what, it.text)).collect()
    }

    /// Where it serves, as soon as it says so.
    pub(crate) fn address(&mut self) -> String {
        let address =
            |arm: &Arm| arm.run.status().domains.into_iter().find_map(|domain| domain.address);
        self.until("the monitor serves", |arm| address(arm).is_some());
        address(self).expect("it serves")
    }

    /// Whether all brakes are closed; the second signal of the drives, after six states.
    fn is_braked(&self) -> bool {
        self.drives.get(6..12).is_some_and(|brakes| brakes.iter().all(|brake| *brake == 1.0))
    }
}

/// The rule waits until the arm moves, so that there is something to be stopped.
fn a_rule_stops_the_core_and_again() {
    let rules =
        "rules: ['|drives.velocity_rad_per_s| > 0.05: stop \"it moves\"']\n    listen: 127.0.0.1:0";
    let mut arm = Arm::start(rules);
    for life in 1..=2 {
        arm.until("the core is held", |arm| arm.run.phase() == Phase::Held);
        assert!(arm.is_braked(), "at rest: {:?}", arm.drives);
        let stop = arm.run.stop_status().expect("it has stopped");
        assert!(stop.reason.contains("it moves: rule 1"), "{}", stop.reason);
        let alarm = "it moves: rule 1 '|drives.velocity_rad_per_s| > 0.05: stop \"it moves\"': ";
        // One when it fires, and one when the reset ends that.
        arm.until("the alarm is raised", |arm| arm.count(EventKind::Alarm, alarm) == 2 * life - 1);
        let measured = "safe outputs ";
        arm.until("it is measured", |arm| arm.count(EventKind::Output, measured) == life);
        if life == 1 {
            arm.run.reset().unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    for line in arm.said(EventKind::Output).iter().filter(|line| line.contains("safe outputs")) {
        println!("{line}");
    }
    assert_eq!(arm.stop(), Outcome::Stopped);
}

fn a_rule_tells_a_webhook() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let receiver = thread::spawn(move || [receive(&listener), receive(&listener)]);
    let rules = "rules: ['execution_time_us{node=ik} >= 0 for 100ms: webhook', \
                 'release_to_end_us_max > 0: event']";
    let mut arm = Arm::start(&format!(
        "{rules}\n    webhook: http://{address}/hook\n    listen: 127.0.0.1:0"
    ));
    // The plant is released by its input: there is no planned start that it could end after.
    arm.until("both have fired", |arm| {
        arm.count(EventKind::Alarm, "rule 1 '") == 1 && arm.count(EventKind::Alarm, "rule 2 '") == 1
    });
    arm.until("the webhook is told", |_| receiver.is_finished());
    let [begins, letter] = receiver.join().expect("two requests");
    assert!(letter.starts_with("POST /hook HTTP/1.1\r\n"), "{letter}");
    let begins = told(&begins);
    assert_eq!((&begins["state"], &begins["monitor"]), (&"begins".into(), &"monitor".into()));
    let told = told(&letter);
    assert_eq!((&told["state"], &told["source"]), (&"firing".into(), &"node 'ik'".into()));
    assert_eq!((&told["rule"], &told["graph"]), (&1.into(), &"monitored".into()));
    assert_eq!(arm.stop(), Outcome::Stopped);
}

/// Takes a letter.
fn receive(listener: &TcpListener) -> String {
    let (mut stream, _) = listener.accept().expect("a connection");
    let letter = readers::request(&mut stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    letter
}

/// What a letter says.
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
        Arm::start(&format!("{rule}\n    webhook: http://{address}/\n    listen: 127.0.0.1:0"));
    let await_states = |arm: &mut Arm, what: &str, expected: &[&str]| {
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
    assert_eq!(arm.count(EventKind::Alarm, ": over in node 'ik', the core began anew, after "), 1);
    arm.run.restart("monitor").expect("a service");
    await_states(&mut arm, "the monitor begins anew", &["begins", "firing"]);
    assert_eq!(arm.stop(), Outcome::Stopped);
}

fn a_service_that_does_not_stay_up() {
    let mut arm =
        Arm::start("rules: ['down{domain=log} > 0 for 1s: event']\n    listen: 127.0.0.1:0");
    arm.until("the log is missed", |arm| arm.count(EventKind::Alarm, "1 in domain 'log'") == 1);
    assert_eq!(arm.count(EventKind::Alarm, "rule 1 'down{domain=log} > 0 for 1s: event': "), 1);
    assert_eq!(arm.stop(), Outcome::Stopped, "the core is not harmed");
}

fn a_port_in_use() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut arm = Arm::start(&format!("listen: {address}"));
    let pid = std::process::id();
    let text = format!("{address} is in use by process {pid} '");
    arm.until("it is said", |arm| arm.count(EventKind::Faulted, &text) > 0);
    arm.until("the core runs", |arm| !arm.drives.is_empty());
    drop(listener);
    assert_eq!(arm.address(), format!("http://{address}/metrics"), "it serves after all");
    assert_eq!(arm.stop(), Outcome::Stopped);
}

fn a_rule_about_nothing() {
    let mut arm = Arm::start("rules: ['drives.torqe_n_m > 8: event']\n    listen: 127.0.0.1:0");
    let text = "'drives' has no signal 'torqe_n_m'; did you mean 'torque_n_m'?";
    arm.until("it is said", |arm| arm.count(EventKind::Faulted, text) > 0);
    arm.until("the core runs", |arm| !arm.drives.is_empty());
    assert_eq!(arm.stop(), Outcome::Stopped);
}
