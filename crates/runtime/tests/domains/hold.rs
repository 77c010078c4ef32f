//! Graphs that hold: the core stops and starts again, the services stay.

use std::fs;
use std::process;

use rustix::process::Signal;
use sinew_control::status::{DomainState, EventKind, LinkStatus, Phase};
use sinew_core::clock::now_ns;
use sinew_runtime::run::Outcome;

use crate::stage::{QUICK, Service, Stage, graph, marked};
use crate::{Test, signal};

pub(crate) const TESTS: &[Test] = tests![
    a_halted_core_starts_again_beside_its_services,
    a_fault_is_shown_until_the_reset,
    the_last_life_of_the_core_decides_how_a_run_ends,
    a_core_whose_job_is_done_is_held,
    a_core_that_cannot_start_is_held,
    a_reset_is_refused_while_there_is_nothing_to_reset,
    a_service_that_dies_beside_a_held_core_comes_back,
    whoever_observes_sees_the_next_life_too,
    what_was_sent_before_a_reset_reaches_no_core_after_it,
    every_transport_inside_the_core_is_made_anew,
    a_link_that_a_service_has_spoiled_keeps_no_core_from_starting_again,
    fifty_resets_leave_nothing_behind,
    a_stop_ends_a_held_graph,
    every_stop_is_measured,
];

/// A servant that sends back what the core tells it.
const ECHO: Service<'static> = Service {
    node: "passes_on: true",
    to: "first",
    from: "delivery: broadcast, capacity: 64",
    ..Service::ALONE
};

/// A core with a motor that holds, and services.
fn holding(services: &[Service<'_>]) -> String {
    format!("hold: true\n{}", graph(true, services))
}

/// The same, with a source that fails or finishes.
fn with_source(source: &str) -> String {
    holding(&[ECHO]).replace("kind: source,", &format!("kind: source, {source},"))
}

fn until_phase(stage: &mut Stage, phase: Phase) {
    stage.until(&format!("phase {phase}"), |stage| stage.run.phase() == phase);
}

fn halt(stage: &mut Stage) {
    stage.run.halt("told to");
    until_phase(stage, Phase::Held);
}

/// Stops the core, by `halt` or by a kill: it is held either way.
fn stop_core(stage: &mut Stage, way: &str) {
    match way {
        "halt" => stage.run.halt("told to"),
        _ => signal(Signal::KILL, stage.process("core")),
    }
    until_phase(stage, Phase::Held);
}

/// Resets a held core, and waits until it has run some cycles, the first of which has number 0.
fn reset_and_run(stage: &mut Stage) {
    stage.cycles.clear();
    stage.run.reset().expect("it is held");
    until_phase(stage, Phase::Running);
    stage.run_on(20);
    assert_eq!(stage.cycles[0], 0);
}

fn a_halted_core_starts_again_beside_its_services() {
    let mut stage = Stage::start(&holding(&[ECHO]));
    stage.run_on(50);
    let service = stage.process("servant");
    let core = stage.run.processes();
    for life in 1..4 {
        halt(&mut stage);
        assert_eq!(stage.motor, Some((0.0, true)), "the motor stands with its safe value");
        stage.assert_unharmed();
        assert_eq!(stage.status("core").state, DomainState::Ended);
        let echoes = stage.arrived[0].len();
        reset_and_run(&mut stage);
        stage.until("an echo from the next life", |stage| stage.arrived[0].len() > echoes + 10);
        assert_eq!(stage.arrived[0][echoes + 10..].iter().max(), stage.arrived[0].last());
        assert_eq!(stage.status("core").restarts, life);
        assert_eq!((stage.process("servant"), stage.status("servant").restarts), (service, 0));
    }
    assert!(stage.run.processes().iter().all(|pid| !core.contains(pid)), "new processes");
    stage.stop_unharmed();
    assert!(stage.run.earlier_faults().is_empty());
}

fn a_fault_is_shown_until_the_reset() {
    let mut stage = Stage::start(&with_source("fail_at: 30"));
    until_phase(&mut stage, Phase::Held);
    let reason = |stage: &Stage| stage.status("core").last_reason;
    assert_eq!(reason(&stage).as_deref(), Some("told to fail in cycle 30"));
    let stop = stage.run.stop_status().expect("it has stopped");
    assert_eq!(stop.reason, "core: told to fail in cycle 30");
    assert_eq!(stage.motor, Some((0.0, true)));
    stage.run.reset().expect("it is held");
    assert_eq!((reason(&stage), stage.run.faults().len()), (None, 0));
    assert_eq!(stage.status("core").threads[0].cycles, 0, "counted anew");
    until_phase(&mut stage, Phase::Running);
    until_phase(&mut stage, Phase::Held);
    assert_eq!(stage.texts("core", EventKind::Faulted).len(), 2);
    let earlier = stage.run.earlier_faults();
    assert_eq!((earlier.len(), earlier[0].0, earlier[0].1), (1, 1, 0));
    stage.run.stop();
    assert_eq!(stage.end(), Outcome::Faulted);
}

fn the_last_life_of_the_core_decides_how_a_run_ends() {
    let mut stage = Stage::start(&holding(&[ECHO]));
    stage.run_on(30);
    signal(Signal::KILL, stage.process("core"));
    until_phase(&mut stage, Phase::Held);
    assert_eq!(stage.run.outcome(), Outcome::Faulted);
    reset_and_run(&mut stage);
    stage.stop_unharmed();
    let earlier = stage.run.earlier_faults();
    assert_eq!(earlier.len(), 1, "{earlier:?}");
    assert!(earlier[0].2.fault.text().contains("signal 9"), "{earlier:?}");
}

fn a_core_whose_job_is_done_is_held() {
    let mut stage = Stage::start(&with_source("finish_at: 30"));
    for _ in 0..2 {
        until_phase(&mut stage, Phase::Held);
        assert_eq!(stage.run.outcome(), Outcome::Finished);
        assert_eq!(stage.run.stop_status().expect("a stop").reason, "the job is done");
        stage.run.reset().expect("it is held");
        until_phase(&mut stage, Phase::Running);
        assert_eq!(stage.run.outcome(), Outcome::Stopped, "the job is not done again");
    }
    until_phase(&mut stage, Phase::Held);
    stage.run.stop();
    assert_eq!(stage.end(), Outcome::Finished);
}

fn a_core_that_cannot_start_is_held() {
    let mut stage = Stage::start(&with_source("failure: error_in_start"));
    for _ in 0..2 {
        until_phase(&mut stage, Phase::Held);
        stage.until("the service", |stage| stage.is("servant", DomainState::Running));
        let reason = stage.status("core").last_reason.expect("it has faulted");
        assert!(reason.contains("told to fail in start"), "{reason}");
        stage.run.reset().expect("it is held");
    }
    stage.run.stop();
    stage.end();
}

fn a_reset_is_refused_while_there_is_nothing_to_reset() {
    let mut stage = Stage::start(&holding(&[ECHO]));
    let refused = |stage: &mut Stage, words: &str| {
        let text = stage.run.reset().expect_err("refused");
        assert!(text.contains(words), "{text}");
    };
    refused(&mut stage, "the graph is starting, expected held");
    stage.run_on(10);
    refused(&mut stage, "the graph is running, expected held");
    stage.run.halt("told to");
    until_phase(&mut stage, Phase::Stopping);
    refused(&mut stage, "the graph is stopping, expected held");
    until_phase(&mut stage, Phase::Held);
    stage.run.halt("told to, once more");
    stage.look();
    assert_eq!(stage.run.phase(), Phase::Held, "a second halt is none");
    stage.run.stop();
    refused(&mut stage, "the graph is stopping, expected held");
    assert_eq!(stage.end(), Outcome::Stopped);
    let mut stage = Stage::start(&graph(true, &[ECHO]));
    stage.run_on(10);
    refused(&mut stage, "write 'hold: true' at its top");
    stage.run.halt("told to");
    assert_eq!(stage.end(), Outcome::Stopped, "without hold a halt is the end");
}

fn a_service_that_dies_beside_a_held_core_comes_back() {
    let mut stage = Stage::start(&holding(&[ECHO]));
    stage.run_on(30);
    halt(&mut stage);
    signal(Signal::KILL, stage.process("servant"));
    stage.until("a restart", |stage| {
        stage.status("servant").restarts == 1 && stage.is("servant", DomainState::Running)
    });
    assert_eq!(stage.run.phase(), Phase::Held);
    let echoes = stage.arrived[0].len();
    reset_and_run(&mut stage);
    stage.until("an echo", |stage| stage.arrived[0].len() > echoes + 10);
    stage.stop_unharmed();
}

fn whoever_observes_sees_the_next_life_too() {
    let text = holding(&[ECHO]).replace("domains:\n", &format!("domains:\n  eye: {{{QUICK}}}\n"));
    let text = text + "  - {kind: watcher, name: eye, domain: eye}\n";
    let mut stage = Stage::start(&text);
    let seen = |stage: &Stage, domain: &str| {
        let lines = stage.texts("eye", EventKind::Output);
        lines.iter().filter(|line| **line == format!("domain {domain} begins")).count()
    };
    for life in 1..4 {
        stage.until("its first cycles", |stage| {
            seen(stage, "0") == life && seen(stage, "1") == life
        });
        halt(&mut stage);
        reset_and_run(&mut stage);
    }
    let lines = stage.texts("eye", EventKind::Output);
    assert!(lines.iter().all(|line| !line.starts_with("lost")), "{lines:?}");
    assert_eq!(stage.status("eye").restarts, 0);
    stage.stop_unharmed();
}

/// The link from the servant to the core.
fn mail(stage: &Stage) -> LinkStatus {
    let mut links = stage.run.status().links.into_iter();
    links.find(|link| link.from == "servant.out").expect("it is linked")
}

fn what_was_sent_before_a_reset_reaches_no_core_after_it() {
    // What it sends is the time; and it sends more than the core takes.
    let floods = Service { node: "pause_us: 200", to: "first, capacity: 64", ..Service::ALONE };
    let sends_latest = Service { to: "first, delivery: latest", ..floods };
    for (service, is_mailbox) in [(floods, true), (sends_latest, false)] {
        let mut stage = Stage::start(&holding(&[service]));
        for way in ["halt", "kill"] {
            let arrived = stage.arrived[0].len();
            stage.until("messages", |stage| stage.arrived[0].len() > arrived + 20);
            stop_core(&mut stage, way);
            let beats = |stage: &Stage| stage.status("servant").nodes[0].beats;
            let written = |stage: &Stage| mail(stage).written;
            let (begun, closed) = (beats(&stage), written(&stage));
            stage.until("more turns", |stage| beats(stage) > begun + 100);
            assert_eq!(written(&stage), closed, "{way}: a core that is held takes nothing");
            let (arrived, reset_ns) = (stage.arrived[0].len(), now_ns());
            reset_and_run(&mut stage);
            stage.until("messages", |stage| stage.arrived[0].len() > arrived + 20);
            let old = stage.arrived[0][arrived..].iter().find(|&&sent_ns| sent_ns < reset_ns);
            assert_eq!(old, None, "{way}: sent before {reset_ns}");
            let is_counted = |stage: &Stage| mail(stage).lost.is_some_and(|lost| lost > 20);
            stage.until("a count of what was dropped", |stage| !is_mailbox || is_counted(stage));
        }
        stage.stop_unharmed();
    }
}

fn every_transport_inside_the_core_is_made_anew() {
    for link in [
        "transport: pipe, wait: park",
        "transport: unix, wait: park",
        "transport: tcp, wait: park",
        "transport: shared_memory, delivery: queue, wait: park, full: drop",
        "transport: shared_memory, sync: mutex, wait: park, full: drop",
    ] {
        let text = holding(&[ECHO]).replace("delivery: latest", link);
        let mut stage = Stage::start(&text);
        stage.run_on(20);
        for way in ["halt", "kill"] {
            stop_core(&mut stage, way);
            stage.motor = None;
            reset_and_run(&mut stage);
            stage.until("a motor that runs", |stage| stage.motor == Some((1.0, false)));
        }
        stage.run.stop();
        assert_eq!(stage.end(), Outcome::Stopped, "{link}: {:?}", stage.run.faults());
    }
}

fn a_link_that_a_service_has_spoiled_keeps_no_core_from_starting_again() {
    for (to, from) in [
        ("first", "delivery: latest"),
        ("first, delivery: latest", "delivery: broadcast, capacity: 16"),
    ] {
        let spoils = Service { node: "mood: garble_links", to, from, ..Service::ALONE };
        let mut stage = Stage::start(&holding(&[spoils]));
        let is_broken = |stage: &Stage| stage.run.status().links.iter().any(|link| link.broken);
        for _ in 0..2 {
            stage.until("a broken link", is_broken);
            halt(&mut stage);
            reset_and_run(&mut stage);
        }
        stage.run.stop();
        assert_eq!(stage.end(), Outcome::Stopped, "{to}, {from}: {:?}", stage.run.faults());
        assert!(stage.run.earlier_faults().is_empty(), "{:?}", stage.run.earlier_faults());
    }
}

fn fifty_resets_leave_nothing_behind() {
    let mut stage = Stage::start(&holding(&[ECHO]));
    stage.run_on(20);
    let mark = stage.marker();
    let count = |stage: &Stage| {
        let open = |process: u32| {
            let entries = fs::read_dir(format!("/proc/{process}/fd"));
            entries.expect("it lives").count()
        };
        let pid = |domain: &str| stage.status(domain).pid.expect("it runs");
        let maps = fs::read_to_string("/proc/self/maps").expect("ours");
        let maps = maps.lines().filter(|line| line.contains("memfd:sinew-")).count();
        (open(process::id()), open(pid("servant")), open(pid("core")), maps, marked(&mark).len())
    };
    let before = count(&stage);
    for _ in 0..50 {
        halt(&mut stage);
        reset_and_run(&mut stage);
    }
    // A service releases what belongs to the core's last life when it looks at the next one.
    stage.until("no more is open than before", |stage| count(stage) == before);
    stage.stop_unharmed();
}

fn a_stop_ends_a_held_graph() {
    for when in [Phase::Stopping, Phase::Held] {
        let mut stage = Stage::start(&holding(&[ECHO]));
        stage.run_on(20);
        stage.run.halt("told to");
        until_phase(&mut stage, when);
        stage.run.stop();
        assert_eq!(stage.end(), Outcome::Stopped);
        let stop = stage.run.stop_status().expect("it has stopped");
        assert_eq!(stop.reason, "told to", "who was first is the cause");
    }
}

fn every_stop_is_measured() {
    let mut stage = Stage::start(&holding(&[ECHO]));
    stage.run_on(30);
    assert_eq!(stage.run.stop_status(), None);
    stage.run.halt("told\u{1b}[2J to");
    until_phase(&mut stage, Phase::Held);
    let stop = stage.run.stop_status().expect("it has stopped");
    let (safe_us, rest_us) = (stop.safe_output_us.expect("seen"), stop.at_rest_us.expect("seen"));
    assert_eq!(stop.reason, "told\u{fffd}[2J to", "no terminal is played with");
    assert!(safe_us < rest_us, "the motor coasts: {stop:?}");
    assert!(stage.story().iter().any(|line| line.contains("; safe outputs after ")));
    reset_and_run(&mut stage);
    assert_eq!(stage.run.stop_status(), Some(stop), "the last stop stays known");
    signal(Signal::KILL, stage.process("plant"));
    until_phase(&mut stage, Phase::Held);
    let stop = stage.run.stop_status().expect("it has stopped");
    assert_eq!(stop.at_rest_us, None, "nobody saw the motor come to rest: {stop:?}");
    stage.run.stop();
    stage.end();
}
