//! Services that do what no service should: to their links, to the machine, to the supervisor. Only
//! they come to harm.

use std::fs;

use rustix::process::Signal;
use sinew_control::status::{DomainState, EventKind, LinkStatus};

use crate::service_kinds::FILLED;
use crate::stage::{QUICK, Service, Stage, marked};
use crate::{Test, signal};

pub(crate) const TESTS: &[Test] = tests![
    garbage_in_its_links_harms_only_a_service,
    garbage_on_its_board_harms_only_a_service,
    no_service_can_take_a_region_away,
    what_is_not_finite_never_reaches_the_core,
    what_a_service_has_started_ends_with_it,
    a_service_cannot_fill_the_memory,
    a_service_may_close_its_descriptors,
    a_service_that_talks_without_end_is_cut_short,
    what_a_service_says_cannot_harm_a_terminal,
    no_service_can_keep_the_supervisor_busy,
    no_service_can_make_the_supervisor_wait,
];

/// The usual servant, with other parameters.
fn with(node: &str) -> Service<'_> {
    Service { node, ..Service::ALONE }
}

fn links(stage: &Stage, node: &str) -> Vec<LinkStatus> {
    let ends = |link: &LinkStatus| [&link.from, &link.to].map(|end| end.starts_with(node));
    stage.run.status().links.into_iter().filter(|link| ends(link) != [false; 2]).collect()
}

fn garbage_in_its_links_harms_only_a_service() {
    for (to, from) in [
        ("first", "delivery: latest"),
        ("first", "delivery: broadcast, capacity: 16"),
        ("first, delivery: latest", "delivery: latest"),
    ] {
        let hostile = Service { to, from, ..with("mood: garble_links") };
        let honest = |name, to, from| Service {
            name,
            node: "passes_on: true, pause_us: 500",
            to,
            from,
            ..Service::ALONE
        };
        // These read the same output.
        let newest = honest("newest", "second", "delivery: latest");
        let all = honest("all", "third", "delivery: broadcast, capacity: 16");
        let mut stage = Stage::beside(&[hostile, newest, all]);
        stage.until("a link is broken", |stage| {
            links(stage, "servant").iter().any(|link| link.broken)
        });
        stage.until("it is told", |stage| !stage.run.broken_links().is_empty());
        let told = stage.run.broken_links().remove(0);
        assert!(told.contains("'servant' has overwritten its memory"), "{told}");
        let before = [1, 2].map(|at: usize| stage.arrived[at].len());
        stage.until("the others read on", |stage| {
            (1..3).all(|at| stage.arrived[at].len() > before[at - 1] + 50)
        });
        for name in ["newest", "all"] {
            assert!(links(&stage, name).iter().all(|link| !link.broken), "{to}, {from}: {name}");
            assert_eq!(stage.status(name).restarts, 0, "{to}, {from}: {name}");
        }
        // What came from the hostile service may be anything except a number that is not finite.
        stage.torn = 0.0;
        stage.run.stop();
        stage.end();
        assert!(stage.run.faults().is_empty(), "{to}, {from}: {:?}", stage.run.faults());
        assert!(stage.cycles.windows(2).all(|pair| pair[1] == pair[0] + 1));
        (1..3).for_each(|input| stage.assert_in_order(input));
    }
}

fn garbage_on_its_board_harms_only_a_service() {
    for mood in ["garble_board", "garble_counters"] {
        let node = format!("mood: {mood}");
        let other = Service { name: "other", to: "first", ..Service::ALONE };
        let mut stage = Stage::beside(&[with(&node), other]);
        // Either the supervisor finds it out, or nobody is disturbed.
        stage.until("the garbage is there", |stage| {
            stage.status("servant").nodes[0].beats == 0 || stage.status("servant").restarts > 0
        });
        stage.run_on(200);
        let texts = stage.texts("servant", EventKind::Faulted).join("");
        assert!(!texts.contains(|c: char| c.is_control()), "{texts:?}");
        assert_eq!(stage.status("other").restarts, 0);
        stage.stop_unharmed();
    }
}

fn no_service_can_take_a_region_away() {
    let mut stage = Stage::beside(&[Service { to: "first", ..with("mood: shrink") }]);
    stage.until_event("servant", EventKind::Faulted, 1);
    let tried = "in node 'servant': no region can be shrunk";
    assert_eq!(stage.texts("servant", EventKind::Faulted)[0], tried);
    stage.stop_unharmed();
}

fn what_is_not_finite_never_reaches_the_core() {
    for to in ["first", "first, delivery: latest"] {
        let mut stage = Stage::beside(&[Service { to, ..with("mood: not_finite") }]);
        stage.until("many are dropped", |stage| links(stage, "servant")[0].lost > Some(20));
        let before = stage.arrived[0].len();
        stage.until("others come", |stage| stage.arrived[0].len() > before + 20);
        assert!(!links(&stage, "servant")[0].broken, "{to}");
        // The hub calls a message torn whose value is not 1: none got there.
        stage.stop_unharmed();
        stage.assert_in_order(0);
    }
}

fn what_a_service_has_started_ends_with_it() {
    let mut stage = Stage::beside(&[with("mood: fork")]);
    let mark = format!("{}-1", stage.marker());
    for kill in 1..=3 {
        // The service, a shell, and what the shell has started: one of them in a session of its
        // own.
        stage.until("its children are there", |_| marked(&mark).len() == 4);
        let children = marked(&mark);
        signal(Signal::KILL, stage.process("servant"));
        stage.until_event("servant", EventKind::Faulted, kill);
        let left = marked(&mark).into_iter().filter(|pid| children.contains(pid)).count();
        assert_eq!(left, 0, "children outlive their service");
    }
    stage.stop_unharmed();
    assert_eq!(marked(&mark), [0; 0]);
}

fn a_service_cannot_fill_the_memory() {
    for limits in ["limits: {memory: 64MiB}", "heartbeat: 3s"] {
        let is_bounded = limits.starts_with("limits");
        let policy = format!("restart: {{policy: never}}, {limits}");
        let mut stage = Stage::beside(&[Service { domain: &policy, ..with("mood: fill_memory") }]);
        stage.until("its end", |stage| stage.is("servant", DomainState::Ended));
        let filled = stage.texts("servant", EventKind::Output);
        assert_eq!(filled.contains(&FILLED), !is_bounded, "{limits}: {filled:?}");
        let reason = stage.status("servant").last_reason.expect("it has ended");
        let words = if is_bounded { "signal" } else { "no heartbeat" };
        assert!(reason.contains(words), "{limits}: {reason}");
        stage.run_on(20);
        stage.stop_unharmed();
    }
}

fn a_service_may_close_its_descriptors() {
    let hostile = Service { to: "first", ..with("mood: close_descriptors") };
    let mut stage = Stage::beside(&[hostile]);
    stage.until("it has closed them", |stage| {
        let open = |pid| fs::read_dir(format!("/proc/{pid}/fd")).map_or(1, Iterator::count);
        stage.status("servant").pid.is_some_and(|pid| open(pid) == 0)
    });
    // Its regions are mapped: it serves on, and hears the order to stop.
    let before = stage.arrived[0].len();
    stage.until("it serves on", |stage| stage.arrived[0].len() > before + 20);
    stage.stop_unharmed();
    // In a debug build the standard library aborts over a descriptor that is closed twice.
    assert!(stage.is("servant", DomainState::Ended));
}

fn a_service_that_talks_without_end_is_cut_short() {
    let quiet = Service { name: "quiet", to: "first", ..Service::ALONE };
    let mut stage = Stage::beside(&[with("mood: talk"), quiet]);
    stage.until_event("servant", EventKind::Note, 1);
    let over = stage.texts("servant", EventKind::Note)[0];
    assert!(over.ends_with("more lines, which are not kept"), "{over}");
    assert!(stage.texts("servant", EventKind::Output).len() <= 100, "fifty a second are kept");
    // It was not made to wait, so it lives.
    assert_eq!(stage.status("servant").restarts, 0);
    stage.stop_unharmed();
}

fn what_a_service_says_cannot_harm_a_terminal() {
    for mood in ["babble", "panic"] {
        let mut stage = Stage::beside(&[with(&format!("mood: {mood}"))]);
        let what = if mood == "babble" { EventKind::Output } else { EventKind::Faulted };
        stage.until_event("servant", what, 2);
        let texts = stage.texts("servant", what).join("");
        assert!(!texts.contains(|c: char| c.is_control()), "{texts:?}");
        stage.stop_unharmed();
    }
}

fn no_service_can_keep_the_supervisor_busy() {
    for mood in ["ring", "burn"] {
        let node = format!("mood: {mood}");
        let other = Service { name: "other", to: "first", ..Service::ALONE };
        let mut stage = Stage::beside(&[other, with(&node)]);
        stage.run_on(200);
        signal(Signal::KILL, stage.process("other"));
        stage.until_event("other", EventKind::Started, 2);
        stage.until("it runs", |stage| stage.is("other", DomainState::Running));
        assert_eq!(stage.status("servant").restarts, 0, "{mood}");
        stage.stop_unharmed();
    }
}

fn no_service_can_make_the_supervisor_wait() {
    let domain = format!("{QUICK}, start_deadline: 100ms");
    let hostile = Service { domain: &domain, ..with("mood: jam_bell") };
    let mut stage = Stage::beside(&[hostile]);
    stage.until_event("servant", EventKind::Started, 3);
    assert_eq!(stage.texts("servant", EventKind::Faulted)[0], "was not ready within 100 ms");
    stage.run_on(20);
    stage.stop_unharmed();
}
