//! Services that fail, end and come back by their policies, beside a core that notices nothing.

use std::path::Path;
use std::process;

use rustix::process::Signal;
use sinew_control::client::{self, Connection};
use sinew_control::status::{DomainState, EventKind};
use sinew_control::{Answer, Request};
use sinew_runtime::run::Outcome;

use crate::stage::{QUICK, Service, Stage, beside, graph, marked};
use crate::{Test, signal};

pub(crate) const TESTS: &[Test] = tests![
    a_service_fails_alone_and_comes_back,
    a_service_that_hangs_is_killed_and_comes_back,
    a_service_comes_back_as_its_policy_says,
    pauses_double_until_a_service_is_given_up,
    a_request_restarts_a_service_at_once,
    services_start_one_after_the_other,
    a_killed_writer_tears_and_doubles_nothing,
    a_killed_reader_goes_on_with_what_is_newer,
    services_stop_after_the_core_in_reverse_order,
    a_service_that_ignores_the_stop_is_killed,
    a_stop_ends_a_service_in_every_phase,
    a_dead_core_takes_its_services_along,
    a_run_that_is_dropped_leaves_no_service,
    services_without_a_core_run_until_they_are_stopped,
    without_a_core_a_service_that_dies_for_good_is_a_fault,
    two_runs_of_one_graph_do_not_meet,
];

/// A servant with this mood and policy, without links.
fn with_mood<'a>(domain: &'a str, node: &'a str) -> Service<'a> {
    Service { domain, node, ..Service::ALONE }
}

fn a_service_fails_alone_and_comes_back() {
    let rows = [
        ("panic", EventKind::Faulted, "in node 'servant': panicked at"),
        ("error", EventKind::Faulted, "in node 'servant': told to fail"),
        ("abort", EventKind::Faulted, "its process was ended by signal 6"),
        ("kill", EventKind::Faulted, "its process was ended by signal 9"),
        ("exit", EventKind::Ended, "has ended in order"),
        ("finish", EventKind::Ended, "has ended in order"),
        ("fail_in_start", EventKind::Faulted, "in node 'servant': told to fail in start"),
    ];
    for (mood, what, reason) in rows {
        let node = format!("mood: {mood}, after: 5");
        let mut stage = Stage::beside(&[with_mood(QUICK, &node)]);
        stage.until_event("servant", EventKind::Started, 4);
        let texts = stage.texts("servant", what);
        assert!(texts.len() >= 3, "{mood}: {:#?}", stage.story());
        assert!(texts.iter().all(|text| text.starts_with(reason)), "{mood}: {texts:?}");
        let status = stage.status("servant");
        assert!(status.restarts >= 3, "{mood}: {status:?}");
        let last = status.last_reason.expect("it has ended");
        assert!(last.starts_with(reason), "{mood}: {last}");
        stage.run_on(20);
        stage.stop_unharmed();
    }
}

fn a_service_that_hangs_is_killed_and_comes_back() {
    let silent = "no heartbeat of node 'servant' for 500 ms: it hangs";
    let unready = "was not ready within 100 ms";
    let rows =
        [("hang", silent), ("stop", silent), ("hang_in_make", unready), ("hang_in_start", unready)];
    for (mood, reason) in rows {
        let (domain, node) = (format!("{QUICK}, start_deadline: 100ms"), format!("mood: {mood}"));
        let mut stage = Stage::beside(&[with_mood(&domain, &node)]);
        stage.until_event("servant", EventKind::Started, 3);
        let reasons = stage.texts("servant", EventKind::Faulted);
        assert_eq!(reasons[..2], [reason, reason], "{mood}");
        stage.run_on(20);
        stage.stop_unharmed();
    }
}

fn a_service_comes_back_as_its_policy_says() {
    let rows = [
        ("never", "finish", Some(DomainState::Finished)),
        ("never", "error", Some(DomainState::Ended)),
        ("on_failure", "finish", Some(DomainState::Finished)),
        ("on_failure", "error", None),
        ("always", "finish", None),
        ("always", "error", None),
    ];
    let texts = rows.map(|(policy, mood, _)| {
        let pauses = match policy {
            "never" => "",
            _ => ", backoff: 1ms, backoff_max: 5ms, restarts_max: 1000",
        };
        let restart = format!("restart: {{policy: {policy}{pauses}}}");
        (format!("{policy}_{mood}"), restart, format!("mood: {mood}, after: 1"))
    });
    let services = texts.each_ref().map(|(name, domain, node)| Service {
        name,
        domain,
        node,
        ..Service::ALONE
    });
    let mut stage = Stage::beside(&services);
    for ((_, _, state), (name, ..)) in rows.iter().zip(&texts) {
        let starts = if state.is_some() { 1 } else { 3 };
        stage.until_event(name, EventKind::Started, starts);
        if let Some(state) = state {
            stage.until("its last state", |stage| stage.is(name, *state));
        }
    }
    for ((_, _, state), (name, ..)) in rows.iter().zip(&texts) {
        if state.is_some() {
            assert_eq!(stage.texts(name, EventKind::Started).len(), 1, "{name}");
            assert_eq!(stage.texts(name, EventKind::Restarting).len(), 0, "{name}");
            assert_eq!(stage.status(name).restarts, 0, "{name}");
        }
    }
    stage.stop_unharmed();
}

fn pauses_double_until_a_service_is_given_up() {
    let policy = "restart: {backoff: 10ms, backoff_max: 40ms, restarts_max: 4, window: 60s}";
    let mut stage = Stage::beside(&[with_mood(policy, "mood: error, after: 1")]);
    for round in 1..=2 {
        stage.until_event("servant", EventKind::GivenUp, round);
        let pauses = stage.texts("servant", EventKind::Restarting);
        assert_eq!(pauses[4 * (round - 1)..], ["in 10 ms", "in 20 ms", "in 40 ms", "in 40 ms"]);
        assert_eq!(stage.texts("servant", EventKind::Started).len(), 5 * round);
        let status = stage.status("servant");
        assert_eq!((status.state, status.pid), (DomainState::GivenUp, None));
        assert_eq!(status.restarts as usize, 5 * round - 1);
        let text = *stage.texts("servant", EventKind::GivenUp).last().expect("given up");
        assert!(text.starts_with("4 restarts within 60 s were not enough"), "{text}");
        stage.run_on(20);
        // Once its fault is mended, a user brings it back.
        stage.run.restart("servant").expect("it is a service");
    }
    stage.until_event("servant", EventKind::Started, 11);
    stage.stop_unharmed();
}

fn a_request_restarts_a_service_at_once() {
    let policy = "restart: {policy: never}, stop_deadline: 300ms";
    for mood in ["serve", "deaf"] {
        let node = format!("mood: {mood}");
        let mut stage = Stage::beside(&[with_mood(policy, &node)]);
        for round in 1..=3 {
            stage.until("it runs", |stage| stage.is("servant", DomainState::Running));
            let before = stage.process("servant");
            stage.run.restart("servant").expect("it is a service");
            // A second order while it stops means the same restart.
            stage.run.restart("servant").expect("it is a service");
            stage.until_event("servant", EventKind::Started, 1 + round);
            assert_ne!(stage.process("servant"), before, "it is another process");
            assert_eq!(stage.status("servant").restarts as usize, round);
        }
        assert_eq!(stage.texts("servant", EventKind::Stopping).len(), 3);
        assert_eq!(stage.texts("servant", EventKind::Restarting).len(), 0, "no pause, no policy");
        stage.run.restart("core").expect_err("the core starts as a whole");
        stage.run.restart("nobody").expect_err("there is no such domain");
        stage.stop_unharmed();
        stage.run.restart("servant").expect_err("the graph has stopped");
    }
}

fn services_start_one_after_the_other() {
    let never = "restart: {policy: never}, start_deadline: 100ms, stop_deadline: 300ms";
    let patient = "restart: {policy: never}";
    let row = |name, domain, node| Service { name, domain, node, ..Service::ALONE };
    let services = [
        row("slow", patient, "mood: slow_start"),
        row("bad", never, "mood: fail_in_start"),
        row("mute", never, "mood: hang_in_start"),
        row("last", patient, "mood: serve"),
    ];
    let mut stage = Stage::beside(&services);
    stage.run.restart("last").expect("it is a service, whose turn comes all the same");
    stage.run_on(20);
    assert_eq!(stage.order(EventKind::Started), ["core", "slow", "bad", "mute", "last"]);
    let story = stage.story();
    let place = |words: &str| {
        let found = story.iter().position(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("no '{words}' in {story:#?}"))
    };
    assert!(place("slow ready") < place("bad started"), "{story:#?}");
    assert!(place("last ready") < place("core ready: runs"), "{story:#?}");
    // It was tried once, then the core ran without it.
    assert!(stage.texts("mute", EventKind::Ready).is_empty(), "{story:#?}");
    stage.stop_unharmed();
}

fn a_killed_writer_tears_and_doubles_nothing() {
    for to in ["first", "first, delivery: latest"] {
        // It sends without a pause, so a kill falls in the middle of something.
        let writer = Service { node: "pause_us: 0", to, ..Service::ALONE };
        let mut stage = Stage::beside(&[writer]);
        for kill in 1..=20 {
            let before = stage.arrived[0].len();
            stage.until("newer numbers", |stage| stage.arrived[0].len() >= before + 10);
            signal(Signal::KILL, stage.process("servant"));
            stage.until_event("servant", EventKind::Faulted, kill);
            stage.until_event("servant", EventKind::Started, 1 + kill);
        }
        let killed = stage.texts("servant", EventKind::Faulted);
        assert!(killed.iter().all(|text| *text == "its process was ended by signal 9"));
        stage.stop_unharmed();
        stage.assert_in_order(0);
        assert!(!stage.run.status().links[0].broken, "{to}");
    }
}

fn a_killed_reader_goes_on_with_what_is_newer() {
    let passes_on = "passes_on: true, pause_us: 500";
    let services = [
        Service {
            name: "newest",
            node: passes_on,
            to: "first",
            from: "delivery: latest",
            ..Service::ALONE
        },
        Service {
            name: "all",
            node: passes_on,
            to: "second",
            from: "delivery: broadcast, capacity: 16",
            ..Service::ALONE
        },
    ];
    let mut stage = Stage::beside(&services);
    for kill in 1..=10 {
        for (at, name) in ["newest", "all"].into_iter().enumerate() {
            let newest = *stage.cycles.last().unwrap_or(&0);
            let is_newer = |stage: &Stage| stage.arrived[at].last() > Some(&(newest + 1));
            stage.until("newer numbers", is_newer);
            signal(Signal::KILL, stage.process(name));
            stage.until_event(name, EventKind::Faulted, kill);
            stage.until_event(name, EventKind::Started, 1 + kill);
        }
    }
    for name in ["newest", "all"] {
        // Had it got half a message, or an older one, it would have said so.
        let ends = stage.texts(name, EventKind::Faulted);
        assert!(ends.iter().all(|text| *text == "its process was ended by signal 9"), "{ends:?}");
    }
    stage.stop_unharmed();
}

fn services_stop_after_the_core_in_reverse_order() {
    let names = ["one", "two", "three"];
    let services = names.map(|name| Service { name, ..Service::ALONE });
    let mut stage = Stage::start(&graph(true, &services));
    stage.run_on(20);
    let lines = stage.story().len();
    stage.run.stop();
    stage.run.stop();
    assert_eq!(stage.end(), Outcome::Stopped);
    let told: Vec<String> = stage.story()[lines..]
        .iter()
        .map(|line| line.split_once(' ').expect("a number stands first").1.to_owned())
        .collect();
    let service = |name| {
        [format!("{name} stopping: told to stop"), format!("{name} ended: has ended in order")]
    };
    let mut wanted = vec!["- stopping: the graph was told to stop".to_owned()];
    wanted.extend(["core", "plant"].map(|name| format!("{name} note: has stopped in order")));
    wanted.push("- stopped: told to stop".to_owned());
    wanted.extend(["three", "two", "one"].into_iter().flat_map(service));
    // How long that took depends on the machine.
    let told: Vec<&str> =
        told.iter().map(|line| line.split("; safe outputs").next().unwrap_or(line)).collect();
    assert_eq!(told, wanted);
    assert_eq!(stage.motor, Some((0.0, true)));
    stage.assert_unharmed();
}

fn a_service_that_ignores_the_stop_is_killed() {
    for mood in ["deaf", "stop", "hang"] {
        let node = format!("mood: {mood}");
        // Its stop deadline passes before its heartbeat is missed.
        let domain = "stop_deadline: 100ms, heartbeat: 10s";
        let ignores = with_mood(domain, &node);
        let other = Service { name: "other", ..Service::ALONE };
        let mut stage = Stage::beside(&[other, ignores]);
        stage.run_on(50);
        stage.stop_unharmed();
        let ends = stage.texts("servant", EventKind::Faulted);
        assert_eq!(ends, ["did not stop within 100 ms and was killed"], "{mood}");
        // It keeps nobody else from stopping in order.
        assert_eq!(stage.texts("other", EventKind::Ended), ["has ended in order"], "{mood}");
    }
}

fn a_stop_ends_a_service_in_every_phase() {
    let backoff =
        "restart: {backoff: 60s, backoff_max: 60s, restarts_max: 1}, stop_deadline: 300ms";
    let rows = [
        ("a service that starts", QUICK, "mood: hang_in_start", DomainState::Starting),
        ("a service that waits to come back", backoff, "mood: error", DomainState::Backoff),
        ("a service that runs", QUICK, "mood: serve", DomainState::Running),
    ];
    for (what, domain, node, state) in rows {
        let first = with_mood(domain, node);
        let waiting = Service { name: "waiting", ..Service::ALONE };
        let mut stage = Stage::beside(&[first, waiting]);
        stage.until(what, |stage| stage.is("servant", state));
        if state == DomainState::Starting {
            assert!(stage.is("waiting", DomainState::Waiting), "{what}");
        }
        stage.stop_unharmed();
        assert_eq!(stage.texts("servant", EventKind::Started).len(), 1, "{what}");
        let last = [DomainState::Ended; 2];
        assert_eq!([stage.status("servant").state, stage.status("waiting").state], last, "{what}");
    }
    // While it is restarted: it does not come back.
    let mut stage = Stage::beside(&[with_mood(QUICK, "mood: deaf")]);
    stage.run_on(20);
    stage.run.restart("servant").expect("it is a service");
    stage.until("it stops", |stage| stage.is("servant", DomainState::Stopping));
    stage.stop_unharmed();
    assert_eq!(stage.texts("servant", EventKind::Started).len(), 1);
}

fn services_without_a_core_run_until_they_are_stopped() {
    let text = |after| {
        let node = format!("{{kind: servant, domain: servant, mood: finish, after: {after}}}");
        format!("name: test\ndomains: {{servant: {{}}}}\nnodes: [{node}]\n")
    };
    assert_eq!(Stage::start(&text(5)).end(), Outcome::Finished);
    let mut stage = Stage::start(&text(1_000_000));
    stage.until_event("servant", EventKind::Ready, 1);
    stage.run.stop();
    assert_eq!(stage.end(), Outcome::Stopped);
}

fn without_a_core_a_service_that_dies_for_good_is_a_fault() {
    let text = "
name: test
domains: {first: {restart: {policy: never}}, second: {}}
nodes:
  - {kind: servant, name: first, domain: first}
  - {kind: servant, name: second, domain: second}
";
    let mut stage = Stage::start(text);
    stage.until_event("first", EventKind::Ready, 1);
    signal(Signal::KILL, stage.process("first"));
    stage.until("its last state", |stage| stage.is("first", DomainState::Ended));
    stage.run.stop();
    assert_eq!(stage.end(), Outcome::Faulted);
    let faults = stage.run.faults();
    assert_eq!(faults.len(), 1, "the other one has ended in order: {faults:?}");
    let reason = "not restarted, by its policy: its process was ended by signal 9";
    assert_eq!(faults[0].1.fault.text(), reason);
}

fn a_dead_core_takes_its_services_along() {
    for name in ["core", "plant"] {
        let services = ["one", "two"].map(|name| Service { name, ..Service::ALONE });
        let mut stage = Stage::start(&graph(true, &services));
        stage.until("the motor runs", |stage| stage.motor == Some((1.0, false)));
        signal(Signal::KILL, stage.process(name));
        assert_eq!(stage.end(), Outcome::Faulted, "{name}");
        let reason = "its process was ended by signal 9";
        assert_eq!(stage.run.faults()[0].1.fault.text(), reason, "{name}");
        assert_eq!(stage.texts(name, EventKind::Faulted), [reason]);
        for name in ["two", "one"] {
            assert_eq!(stage.texts(name, EventKind::Ended), ["has ended in order"]);
        }
        assert_eq!(stage.order(EventKind::Stopping), ["two", "one"]);
        assert!(stage.is(name, DomainState::Faulted), "the status says so too");
        if name == "core" {
            assert_eq!(stage.motor, Some((0.0, true)), "the motor ends with a safe value");
        }
    }
}

fn a_run_that_is_dropped_leaves_no_service() {
    let forks = with_mood(QUICK, "mood: fork");
    let deaf = Service { name: "deaf", node: "mood: deaf", ..Service::ALONE };
    let mut stage = Stage::beside(&[forks, deaf]);
    let mark = stage.marker();
    // The core, two services, a shell and two that it started.
    stage.until("all are there", |_| marked(&mark).len() == 6);
    drop(stage);
    assert_eq!(marked(&mark), [0; 0]);
}

fn two_runs_of_one_graph_do_not_meet() {
    let writer = Service { to: "first", ..Service::ALONE };
    let text = graph(false, &[writer]);
    let mut stages = [Stage::start(&text), Stage::start(&text)];
    let marks = stages.each_ref().map(Stage::marker);
    assert_ne!(marks[0], marks[1]);
    for kill in 1..=5 {
        signal(Signal::KILL, stages[0].process("servant"));
        stages[0].until_event("servant", EventKind::Started, 1 + kill);
        stages[1].run_on(20);
    }
    assert_eq!(stages.each_ref().map(|stage| stage.status("servant").restarts), [5, 0]);
    stages[0].until("it runs", |stage| stage.is("servant", DomainState::Running));
    let sockets = client::runs().into_iter().filter(|found| found.pid == process::id());
    let sockets: Vec<_> = sockets.map(|found| found.socket).collect();
    assert_eq!(sockets.len(), 2, "each run has a socket");
    for socket in sockets {
        let before = stages.each_mut().map(|stage| stage.process("servant"));
        let servant = asked(&socket, &mut stages);
        let reached = before.iter().position(|&it| it == servant).expect("one of the two");
        stages[reached].until("it restarts", |stage| {
            stage.status("servant").pid.is_some_and(|it| it != servant)
        });
        let other = 1 - reached;
        stages[other].run_on(20);
        assert_eq!(stages[other].process("servant"), before[other], "the wrong run restarts");
    }
    let [mut first, mut second] = stages;
    first.stop_unharmed();
    second.run_on(20);
    second.stop_unharmed();
    first.assert_in_order(0);
    second.assert_in_order(0);
}

/// Asks the run behind a socket which process its servant has, and to restart it.
fn asked(socket: &Path, stages: &mut [Stage; 2]) -> u32 {
    let mut run = Connection::open(socket).expect("it is reachable");
    beside(stages, move || {
        let Ok(Answer::Status(status)) = run.ask(&Request::Status {}) else { panic!("no status") };
        let restart = Request::Restart { domain: "servant".into() };
        assert!(matches!(run.ask(&restart), Ok(Answer::Done { .. })));
        let servant = status.domains.iter().find(|domain| domain.name == "servant");
        servant.and_then(|servant| servant.pid).expect("it has a process")
    })
}
