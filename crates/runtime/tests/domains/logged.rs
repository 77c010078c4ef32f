//! What a cyclic node logs.

use std::time::Duration;

use sinew_control::status::{Event, EventKind, Logged};
use sinew_core::Level;
use sinew_runtime::run::Outcome;

use crate::{Seen, fused, request, run, two_domains, watch};

/// Lines of a run: who said them, and the whole texts.
fn lines(seen: &Seen) -> Vec<(Logged, &str)> {
    let lines = seen.run.events().after(0).filter(|event| event.what == EventKind::Log);
    lines.map(|line| (line.logged.clone().expect("of a node"), &*line.text)).collect()
}

fn notes(seen: &Seen) -> Vec<&str> {
    let notes = seen.run.events().after(0).filter(|event| event.what == EventKind::Note);
    notes.map(|event| &*event.text).collect()
}

fn line<'a>(node: &str, level: Level, cycle: u64, text: &'a str) -> (Logged, &'a str) {
    (Logged { node: node.into(), level, cycle }, text)
}

pub(crate) fn what_a_cyclic_node_logs_is_an_event() {
    let source = "finish_at: 100, fail_at: 50, failure: log,";
    let text = two_domains(source, "delivery: latest")
        .replace("coast_cycles", "log_at: 60\n    coast_cycles");
    let seen = watch(request(&text), Duration::from_secs(5), |_, _| ());
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    let expected = [
        line("source", Level::Warning, 50, "warning: cycle 50: in node 'source': told to log 50.0"),
        line("motor", Level::Info, 60, "info: cycle 60: in node 'motor': moves with 1"),
    ];
    let lines = lines(&seen);
    assert!(expected.iter().all(|line| lines.contains(line)) && lines.len() == 2, "{lines:?}");
    let domains = seen.run.events().after(0).filter(|event| event.what == EventKind::Log);
    let domains: Vec<_> = domains.map(|event| event.domain.as_deref()).collect();
    assert!(domains.contains(&Some("control")) && domains.contains(&Some("plant")), "{domains:?}");
}

pub(crate) fn a_line_names_its_node_among_those_of_its_thread() {
    let fused = fused("count", "finish_at: 100, fail_at: 50, failure: log,")
        .replace("coast_cycles", "log_at: 50, coast_cycles");
    let threads = "name: test
domains:
  control:
    realtime: {period: 2ms, overrun: {policy: count}}
    threads: [{nodes: [source]}, {nodes: [relay, motor]}]
nodes:
  - kind: source
    finish_at: 100
    fail_at: 50
    failure: log
    ports: {out: [{name: relay, port: in, wait: park, capacity: 256}]}
  - {kind: relay, ports: {out: [{name: motor, port: in}]}}
  - {kind: motor, log_at: 50, safe: {in: {value: halt, after: 10}}}
";
    for text in [fused.as_str(), threads] {
        let seen = run(text);
        assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
        let mut said: Vec<_> =
            lines(&seen).into_iter().map(|(it, _)| (it.node, it.cycle)).collect();
        said.sort();
        assert_eq!(said, [("motor".to_owned(), 50), ("source".to_owned(), 50)], "{text}");
    }
}

/// A line of the same update is kept whatever happens to the process then, and comes before the
/// report of its end.
pub(crate) fn what_was_logged_before_a_fault_stands_before_it() {
    for failure in ["log_and_fail", "log_and_panic", "log_and_abort", "log_and_kill"] {
        for pause in [5, 5000] {
            let source = format!("fail_at: 50, failure: {failure},");
            let text = two_domains(&source, "delivery: latest");
            let seen = watch(request(&text), Duration::from_millis(pause), |_, _| ());
            assert_eq!(seen.outcome, Outcome::Faulted, "{failure}");
            let events: Vec<&Event> = seen.run.events().after(0).collect();
            let of_control = |what| {
                let is_it = |event: &&Event| {
                    event.what == what && event.domain.as_deref() == Some("control")
                };
                events.iter().position(is_it)
            };
            let (said, faulted) = (of_control(EventKind::Log), of_control(EventKind::Faulted));
            assert!(said.is_some() && said < faulted, "{failure}: {events:#?}");
            let text = "warning: cycle 50: in node 'source': told to log 50.0";
            assert_eq!(lines(&seen), [line("source", Level::Warning, 50, text)], "{failure}");
        }
    }
}

/// The run neither waits nor fails because of the flood, and other lines are kept when it is over.
pub(crate) fn a_flood_of_lines_is_cut_and_counted() {
    let source = "finish_at: 200, fail_at: 1, failure: log_flood,";
    let text = fused("count", source).replace("coast_cycles", "log_at: 199, coast_cycles");
    let seen = run(&text);
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
    let lines = lines(&seen);
    let of = |node: &str| lines.iter().filter(|(it, _)| it.node == node).count();
    assert!((1..=20).contains(&of("source")), "{lines:?}");
    assert_eq!(of("motor"), 1, "{lines:?}");
    let notes = notes(&seen);
    let told = |end: &str| notes.iter().any(|note| note.ends_with(end));
    assert!(told("more lines of node 'source', which are not kept"), "{notes:?}");
    assert!(told("lost because they came too fast, which are not kept"), "{notes:?}");
}

/// A domain that overwrites the region spoils its own lines and nothing else.
pub(crate) fn a_region_of_lines_that_is_overwritten_harms_nobody() {
    let source = "finish_at: 100, fail_at: 50, failure: spoil_lines,";
    let seen = run(&two_domains(source, "delivery: latest"));
    assert_eq!(seen.outcome, Outcome::Finished, "{:?}", seen.faults);
}
