//! The scenario `pool`, with PostgreSQL if it is installed, and with SQLite.

use std::sync::atomic::AtomicBool;

use sinew_flows::FLOWS;
use sinew_lab::ScenarioReport;
use sinew_lab::bar::Holds;
use sinew_lab::report::Row;
use sinew_lab::rounds::Silent;
use sinew_lab::scenario::{CannotRun, ScenarioRequest, table};
use sinew_runtime::Kinds;

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("a_pool_of_so_many_threads_does_all_the_work_of_its_requests", requests_are_counted),
    ("a_pool_that_finds_its_size_is_given_time_for_that", finds_its_size),
    ("a_pool_asks_postgres_over_its_socket", postgres),
    ("a_pool_whose_queries_never_return_keeps_neither_its_server_nor_the_lab", hung_queries),
    ("a_pool_needs_a_listener_and_the_program_is_told_so", missing_kinds),
];

fn run(only: &[&str], kinds: Kinds) -> Result<ScenarioReport, CannotRun> {
    let request = ScenarioRequest { kinds: table(&kinds), ..quick() };
    crate::run("pool", only, request, &Silent, &AtomicBool::new(false))
}

fn with_flows() -> Kinds {
    Kinds { flows: FLOWS.to_vec(), ..Kinds::default() }
}

fn requests_are_counted() {
    let report = run(&["load=control"], with_flows()).expect("it can run");
    assert_eq!(report.rows.len(), 2);
    for row in &report.rows {
        assert_eq!(row.skipped, None, "{}", row.id());
        let threads = row.axis("threads").and_then(|it| it.parse().ok());
        assert_eq!(row.figure("threads_at_end"), threads, "{}", row.id());
        assert!(row.measure("latency").is_some_and(|of| of.distribution.n() > 100));
        assert!(row.figure("requests").is_some_and(|rate| rate > 0.0));
        assert!(row.measure("cpu_user").is_some_and(|of| of.rounds.len() == 1));
    }
    assert!(report.notes[0].contains("units of CPU work"), "{:?}", report.notes);
    assert!(report.verdicts.iter().all(|verdict| verdict.holds == Holds::NotMeasured));
}

fn finds_its_size() {
    let request = ScenarioRequest { kinds: table(&with_flows()), quick: false, ..quick() };
    let only = ["load=sleep_3ms", "threads=2,auto"];
    let stop = AtomicBool::new(false);
    let report = crate::run("pool", &only, request, &Silent, &stop).expect("it can run");
    let [fixed, auto] = &report.rows[..] else { panic!("two rows") };
    assert_eq!((&fixed.skipped, &auto.skipped), (&None, &None));
    let threads = auto.figure("threads_at_end").expect("a size");
    assert!((2.0..=512.0).contains(&threads), "the bounds of a pool without any: {threads}");
    assert!(auto.measure("settling").is_some_and(|of| of.distribution.n() == 1), "{auto:?}");
    assert!(auto.figure("below_best").is_some(), "{auto:?}");
}

/// Even without PostgreSQL there is a report: its rows use SQLite, and say why.
fn postgres() {
    let only = ["load=query", "arrivals=closed,open_80", "threads=15", "database=postgres"];
    let report = run(&only, with_flows()).expect("it can run");
    assert_eq!(report.rows.len(), 2);
    for row in &report.rows {
        assert_eq!(row.skipped, None, "{}", row.id());
    }
    let [closed, open] = &report.rows[..] else { panic!("two rows") };
    let rate = |row: &Row| row.figure("requests").expect("a rate");
    assert!(rate(open) < rate(closed), "{} < {}", rate(open), rate(closed));
    if closed.axis("database") == Some("sqlite") {
        let why = closed.notes.join("; ");
        assert!(why.contains("SQLite instead of PostgreSQL: "), "{why}");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot run in CI: {why}");
        println!("skipped: {why}");
        return;
    }
    assert!(closed.figure("cpu_database").is_some_and(|us| us > 0.0), "{closed:?}");
    assert!(!std::env::temp_dir().join(format!("sinew-lab-{}", std::process::id())).exists());
}

fn hung_queries() {
    let request = ScenarioRequest { kinds: table(&with_flows()), quick: false, ..quick() };
    let stop = AtomicBool::new(false);
    let report = crate::run("pool", &["load=hang"], request, &Silent, &stop).expect("it can run");
    let [row] = &report.rows[..] else { panic!("one row") };
    if let Some(why) = &row.skipped {
        let lacks = why.contains("SQLite has no query that never returns");
        assert!(lacks && std::env::var("CI").as_deref() != Ok("true"), "cannot run: {why}");
        println!("skipped: {why}");
        return;
    }
    assert!(row.measure("end_after_hang").is_some_and(|of| of.distribution.n() == 1), "{row:?}");
}

fn missing_kinds() {
    let Err(CannotRun(why)) = run(&[], Kinds::default()) else { panic!("no listener") };
    assert!(why.contains("no kind 'listener'; give the lab the flow nodes"), "{why}");
}
