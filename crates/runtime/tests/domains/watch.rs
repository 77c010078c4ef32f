//! Services that observe, at their worst: the core notices nothing, and the supervisor waits for
//! nobody.

use std::{process, slice};

use sinew_control::client::{self, Connection};
use sinew_control::status::EventKind;
use sinew_control::{Answer, Request};

use crate::Test;
use crate::stage::{QUICK, Stage, beside, graph};

pub(crate) const TESTS: &[Test] = tests![
    who_writes_into_what_it_observes_dies_of_it,
    what_is_observed_cannot_be_mapped_for_writing,
    cycles_that_came_too_fast_are_counted,
    the_secret_of_a_run_outlives_its_services,
    a_service_says_where_it_serves_and_what_is_odd,
    only_a_service_may_announce_or_raise_an_alarm,
    who_orders_without_end_does_not_drive_out_what_others_say,
    who_never_reads_its_answers_keeps_nobody_waiting,
];

/// A core with a motor, and a service that observes it in this mood.
fn watched(mood: &str, policy: &str) -> Stage {
    let text = graph(true, &[]).replace("domains:\n", &format!("domains:\n  eye: {{{policy}}}\n"));
    let node = format!("  - {{kind: watcher, name: eye, domain: eye, mood: {mood}}}\n");
    Stage::start(&(text + &node))
}

fn who_writes_into_what_it_observes_dies_of_it() {
    let mut stage = watched("write", QUICK);
    stage.until_event("eye", EventKind::Faulted, 2);
    let ends = stage.texts("eye", EventKind::Faulted);
    assert!(ends.iter().all(|text| text.contains("signal 11")), "{ends:?}");
    assert!(!stage.texts("eye", EventKind::Output).contains(&"wrote"));
    stage.run_on(20);
    stage.stop_unharmed();
}

fn what_is_observed_cannot_be_mapped_for_writing() {
    let mut stage = watched("grow", QUICK);
    let refused = |line: &&str| line.starts_with("no writing: ");
    stage.until("an answer", |stage| stage.texts("eye", EventKind::Output).iter().any(refused));
    stage.stop_unharmed();
}

fn cycles_that_came_too_fast_are_counted() {
    let mut stage = watched("sleep", "heartbeat: 2s");
    let lost = |line: &&str| line.starts_with("lost ") && *line != "lost 0";
    stage.until("a count", |stage| stage.texts("eye", EventKind::Output).iter().any(lost));
    stage.stop_unharmed();
}

fn the_secret_of_a_run_outlives_its_services() {
    let secrets = || {
        let mut stage = watched("secret", QUICK);
        stage.until_event("eye", EventKind::Faulted, 3);
        let lines = stage.texts("eye", EventKind::Output);
        let secrets = lines.iter().filter_map(|line| line.strip_prefix("secret "));
        let secrets: Vec<String> = secrets.map(str::to_owned).collect();
        stage.stop_unharmed();
        secrets
    };
    let (one, other) = (secrets(), secrets());
    assert!(one.len() >= 3 && one.iter().all(|secret| *secret == one[0]), "{one:?}");
    assert!(one[0].len() == 32 && one[0].chars().all(|c| c.is_ascii_hexdigit()), "{one:?}");
    assert_ne!(one[0], other[0], "each run has its own");
}

fn a_service_says_where_it_serves_and_what_is_odd() {
    let mut stage = watched("say", QUICK);
    stage.until_event("eye", EventKind::Alarm, 1);
    assert_eq!(stage.texts("eye", EventKind::Alarm), ["something is odd"]);
    assert_eq!(stage.texts("eye", EventKind::Address), ["http://here/"]);
    assert_eq!(stage.status("eye").address.as_deref(), Some("http://here/"));
    stage.stop_unharmed();
}

/// Asks the run from outside, as the commands do.
fn asked(stage: &mut Stage, request: Request) -> Answer {
    let found = client::runs().into_iter().find(|run| run.pid == process::id());
    let mut connection = Connection::open(&found.expect("its socket").socket).expect("it answers");
    beside(slice::from_mut(stage), move || connection.ask(&request)).expect("an answer")
}

fn only_a_service_may_announce_or_raise_an_alarm() {
    let mut stage = watched("watch", QUICK);
    stage.run_on(10);
    for request in [
        Request::Announce { address: "http://elsewhere/".into() },
        Request::Alarm { text: "nothing at all".into() },
    ] {
        let answer = asked(&mut stage, request);
        let refused =
            Answer::Error("only a service of the run itself may send this request".into());
        assert_eq!(answer, refused);
    }
    assert_eq!(stage.status("eye").address, None);
    stage.stop_unharmed();
}

fn who_orders_without_end_does_not_drive_out_what_others_say() {
    let mut stage = watched("cry", QUICK);
    let end = |stage: &Stage| stage.texts("eye", EventKind::Output).contains(&"one alarm too many");
    stage.until("one too many", end);
    let note = |line: &&str| line.ends_with("more orders, which are not kept");
    stage.until("a count", |stage| stage.texts("eye", EventKind::Note).iter().any(note));
    stage.stop_unharmed();
}

fn who_never_reads_its_answers_keeps_nobody_waiting() {
    let mut stage = watched("deaf", QUICK);
    stage.run_on(100);
    let answer = asked(&mut stage, Request::Status {});
    assert!(matches!(answer, Answer::Status(_)), "{answer:?}");
    // In the end the supervisor closes its connection.
    stage.until_event("eye", EventKind::Faulted, 1);
    let reason = stage.texts("eye", EventKind::Faulted)[0].to_owned();
    assert!(reason.contains("the supervisor has had enough"), "{reason}");
    stage.run_on(20);
    stage.stop_unharmed();
}
