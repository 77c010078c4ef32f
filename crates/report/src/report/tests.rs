//! The report of a made-up run.

use std::sync::LazyLock;

use sinew_core::{Cause, Fault};

use super::*;
use crate::stats::fixture;

fn report<'a>(plan: &'a Plan, stats: &'a Stats, machine: &'a Machine) -> Report<'a> {
    static IN_TIME: LazyLock<Late> = LazyLock::new(|| Late::new(&fixture::plan()));
    static LINKS: LazyLock<Links> = LazyLock::new(Links::default);
    Report {
        plan,
        stats,
        links: &LINKS,
        judged: vec![],
        strict: false,
        late: &IN_TIME,
        ending: Ending::Ended(Outcome::Finished),
        faults: vec![],
        earlier_faults: vec![],
        stop: None,
        resets: 0,
        privileges: vec![(
            fixture::CONTROL,
            Asked { priority: 80, cpu: Some(1) },
            Obtained { policy: 0, priority: 0, cpu: Some(1), locked_kib: 5120 },
        )],
        processes: vec![ProcessUsage::of(7, 4096), ProcessUsage::default()],
        services: vec![],
        broken_links: vec![],
        start_to_first_cycle_ms: Some(21.5),
        duration_s: 2.0,
        csv: None,
        lacks: Vec::new(),
        machine,
    }
}

#[test]
fn the_object_holds_every_promised_key() {
    let (plan, stats, machine) = (fixture::plan(), fixture::stats(2000), Machine::default());
    let json = report(&plan, &stats, &machine).to_json();
    let keys = [
        "graph",
        "outcome",
        "cycles",
        "overruns",
        "skipped",
        "cycle_latency_ns",
        "activation_jitter_ns",
        "slack_ns",
        "nodes",
        "tracking_error_m_max",
        "machine",
        "of",
        "faults",
        "notes",
        "privileges",
        "threads",
        "signals",
        "overruns_by",
        "late",
        "records_lost",
        "start_to_first_cycle_ms",
        "domains",
        "duration_s",
        "csv",
    ];
    for key in keys {
        assert!(json.get(key).is_some(), "{key}: {json:#}");
    }
    for key in ["cycle_latency_ns", "activation_jitter_ns", "slack_ns"] {
        for figure in ["n", "mean", "p50", "p95", "p99", "p99_9", "max", "stddev"] {
            assert!(json[key].get(figure).is_some(), "{key}.{figure}: {json:#}");
        }
    }
    assert_eq!(json["cycles"], 2000);
    assert_eq!(json["cycle_latency_ns"]["max"], 9000);
    assert_eq!(json["activation_jitter_ns"]["max"], 2000);
    assert_eq!(json["slack_ns"]["min"], 991_000);
    assert_eq!(json["nodes"][0]["execution_ns"]["max"], 8000);
    assert_eq!(json["tracking_error_m_max"], 0.001);
    assert_eq!(json["signals"][2]["last_words"][5], "fault");
    assert!(json["cycle_latency_ns"]["p99_9"].is_null(), "only two samples lie beyond it");
    assert!(json["cycle_latency_ns"]["p99"].is_number());
    for key in ["activation_jitter_ns", "response_ns"] {
        assert!(json["threads"][1][key].is_null(), "an input has no planned start: {json:#}");
        assert!(json["threads"][0][key].is_object(), "{json:#}");
    }
}

#[test]
fn a_fault_names_domain_node_and_cycle() {
    let (plan, stats, machine) = (fixture::plan(), fixture::stats(10), Machine::default());
    let mut report = report(&plan, &stats, &machine);
    report.ending = Ending::Ended(Outcome::Faulted);
    let fault = Fault::new(Cause::NotFinite, format_args!("a number is not finite"));
    report.faults = vec![
        (0, FaultAt { fault: fault.clone(), node: Some(0), cycle: Some(9) }),
        (1, FaultAt { fault, node: Some(99), cycle: None }),
    ];
    let json = report.to_json();
    assert_eq!(json["faults"][0]["node"], "planner");
    assert_eq!(json["faults"][0]["cause"], "not_finite");
    assert!(json["faults"][1]["node"].is_null(), "no plan has a hundred nodes here");
    let text = report.faults_text();
    assert!(text.contains("error: control: cycle 9: in node 'planner': a number is"), "{text}");
    assert!(text.contains("error: plant: a number is not finite"), "{text}");
}

#[test]
fn a_service_that_was_given_up_and_a_link_that_was_broken_are_named() {
    let (plan, stats, machine) = (fixture::plan(), fixture::stats(10), Machine::default());
    let mut report = report(&plan, &stats, &machine);
    report.services = vec![ServiceState {
        domain: 1,
        state: DomainState::GivenUp,
        pid: None,
        restarts: 10,
        last_reason: Some("its process was ended by signal 9".into()),
        address: None,
        flows: vec![],
    }];
    report.broken_links = vec!["link a.out > b.in is broken".into()];
    let (text, json) = (report.to_text(), report.to_json());
    assert!(text.contains("given up, the graph went on without: plant\n"), "{text}");
    assert!(text.contains("  - link a.out > b.in is broken\n"), "{text}");
    assert_eq!(json["given_up"], json!(["plant"]));
    assert_eq!(json["broken_links"], json!(["link a.out > b.in is broken"]));
    assert!(report.ending.is_good(), "a service is not a reason for a graph to fail");
    report.lacks = vec!["the CSV is incomplete".into()];
    let text = report.to_text();
    let verdict = "\nfinished, without plant, given up, but the CSV is incomplete; exit status 1\n";
    assert!(text.ends_with(verdict), "{text}");
}

#[test]
fn the_text_fits_a_narrow_terminal_and_says_what_is_missing() {
    let (plan, stats, machine) = (fixture::plan(), fixture::stats(2000), Machine::default());
    let text = report(&plan, &stats, &machine).to_text();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    for part in [
        "arm: finished",
        "cycle latency",
        "activation jitter",
        "planner",
        "missing: SCHED_FIFO 80",
        "tracking error",
        "shares CPU 1",
        "1-5 enabled, 6 fault",
        "2000",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(" - "), "a percentile without samples is a dash: {text}");
}

#[test]
fn a_run_without_a_cycle_says_so() {
    let (plan, stats, machine) = (fixture::plan(), fixture::stats(0), Machine::default());
    let mut report = report(&plan, &stats, &machine);
    (report.start_to_first_cycle_ms, report.processes) = (None, vec![]);
    let text = report.to_text();
    assert!(text.contains("no cycle ran") && !text.contains("states"), "{text}");
    assert!(report.to_json()["tracking_error_m_max"].is_null());
}

#[test]
fn what_went_wrong_is_told_with_its_share() {
    let (plan, mut stats, machine) = (fixture::plan(), fixture::stats(10), Machine::default());
    let mut late = fixture::observed(10);
    (late.start_ns, late.is_overrun, late.skipped) = (late.release_ns + 2_000_000, true, 1);
    (late.totals.overruns, late.totals.skipped) = (1, 1);
    stats.add(fixture::CONTROL, &late);
    let text = report(&plan, &stats, &machine).to_text();
    assert!(
        text.contains("1 overrun: 1 late start (kernel or host); 1 period skipped\n"),
        "{text}"
    );
}

#[test]
fn a_node_that_allocates_in_its_cycles_is_named() {
    let (plan, mut stats, machine) = (fixture::plan(), fixture::stats(10), Machine::default());
    assert!(!report(&plan, &stats, &machine).to_text().contains("allocations"));
    let json = report(&plan, &stats, &machine).to_json();
    assert!(json["nodes"][0]["allocations"].is_null(), "nobody counts: {json}");
    for (life, count) in [(0, 3), (0, 5), (1, 2)] {
        let mut observed = fixture::observed(10);
        (observed.life, observed.allocations) = (life, vec![count]);
        stats.add(fixture::CONTROL, &observed);
    }
    let report = report(&plan, &stats, &machine);
    let text = report.to_text();
    assert!(text.contains("\n  allocations in cycles: planner 7; a cycle must not"), "{text}");
    assert_eq!(report.to_json()["nodes"][0]["allocations"], 7);
}

#[test]
fn the_last_line_says_whether_it_was_good() {
    let (plan, mut stats, machine) = (fixture::plan(), fixture::stats(10), Machine::default());
    let mut good = report(&plan, &stats, &machine);
    let last = |report: &Report<'_>| {
        let text = report.to_text();
        text.lines().next_back().expect("lines").to_owned()
    };
    assert_eq!(last(&good), "finished, good; exit status 0");
    good.lacks = vec!["the CSV is incomplete".into()];
    assert_eq!(last(&good), "finished, but the CSV is incomplete; exit status 1");
    good.lacks.push("so is the profile".into());
    assert_eq!(
        last(&good),
        "finished, but the CSV is incomplete; so is the profile; exit status 1"
    );
    let mut bad = report(&plan, &stats, &machine);
    bad.ending = Ending::Ended(Outcome::Faulted);
    let fault = Fault::new(Cause::NotFinite, format_args!("a number is not finite"));
    bad.faults = vec![(0, FaultAt { fault, node: Some(0), cycle: Some(9) })];
    let text = bad.to_text();
    let cause = "\nfaulted: control: cycle 9: in node 'planner': a number is not finite; exit";
    assert!(text.contains(cause) && text.ends_with("status 1\n"), "{text}");
    bad.ending = Ending::Killed;
    assert_eq!(last(&bad), "killed before the graph had stopped; exit status 1");
    stats.threads[1].records_lost = 7;
    let text = report(&plan, &stats, &machine).to_text();
    assert!(text.lines().next().is_some_and(|head| head.ends_with(", 7 records lost")), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_late_cycle_stands_in_the_report() {
    let (plan, stats, machine) = (fixture::plan(), fixture::stats(2000), Machine::default());
    let (mut late, mut observed) = (Late::new(&plan), fixture::observed(10));
    (observed.start_ns, observed.skipped) = (observed.release_ns + 2_000_000, 2);
    late.take(fixture::CONTROL, &observed);
    late.look(Vec::new);
    let mut report = report(&plan, &stats, &machine);
    assert!(!report.to_text().contains("late cycle"));
    report.late = &late;
    let text = report.to_text();
    let expected = "\n1 late cycle, the worst first\n  by cause: 1 counters unreadable\n";
    assert!(text.contains(expected), "{text}");
    let expected =
        "  - control: cycle 10 late by 3.01 ms, before the first node (4.00 ms): what the\n";
    assert!(text.contains(expected), "{text}");
    assert_eq!(report.to_json()["late"]["worst"][0]["late_ns"], 3_009_000);
}
