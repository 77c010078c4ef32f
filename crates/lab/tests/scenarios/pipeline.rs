//! The scenario `pipeline`.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sinew_lab::ScenarioReport;
use sinew_lab::rounds::Progress;
use sinew_lab::scenario::{CannotRun, ScenarioRequest};

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("rows_are_measured_and_judged", rows_are_measured_and_judged),
    ("the_nodes_of_the_arm_run_until_somebody_interrupts", the_arm_runs_until_interrupted),
    ("what_cannot_run_on_one_cpu_is_skipped_with_the_reason", one_cpu_skips_what_spins),
    ("a_selection_that_no_row_meets_is_refused", a_selection_that_no_row_meets_is_refused),
];

/// Interrupts before a row other than the first is measured, if that is asked for.
struct Interrupt<'a> {
    rows: Cell<u32>,
    rows_max: u32,
    stop: &'a AtomicBool,
}

impl Progress for Interrupt<'_> {
    fn at(&self, _: &str, _: Duration, _: Duration) {
        self.rows.set(self.rows.get() + 1);
        if self.rows.get() > self.rows_max {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

fn run(
    only: &[&str],
    request: ScenarioRequest,
    rows_max: u32,
) -> Result<ScenarioReport, CannotRun> {
    let stop = AtomicBool::new(false);
    let progress = Interrupt { rows: Cell::new(0), rows_max, stop: &stop };
    crate::run("pipeline", only, request, &progress, &stop)
}

fn rows_are_measured_and_judged() {
    let only = ["placement=fused,2_threads", "sync=-,mutex", "wait=-,park"];
    let report = run(&only, quick(), u32::MAX).expect("it can run");
    assert!(!report.partial);
    let ids: Vec<_> = report.rows.iter().map(|row| row.id()).collect();
    let expected = [
        "none/fused/-/-/-/free",
        "none/2_threads/in_process/mutex/park/free",
        "none/fused/-/-/-/1ms",
        "none/2_threads/in_process/mutex/park/1ms",
    ];
    assert_eq!(ids, expected);
    for row in &report.rows {
        assert_eq!(row.skipped, None, "{}", row.id());
        let latency = row.measure("cycle_latency").expect("it was measured");
        assert!(latency.distribution.n() >= 100 && latency.rounds.len() == 1, "{}", row.id());
        assert!(row.figure("compute") > Some(0.0), "{}", row.id());
        assert!(row.figure("feedback_missing").is_some(), "{}", row.id());
        assert_eq!(row.figure("overruns").is_some(), row.axis("period") != Some("free"));
    }
    assert_eq!(report.verdicts.len(), 10);
    assert_eq!(report.tables.len(), 2);
}

fn the_arm_runs_until_interrupted() {
    let request = ScenarioRequest { quick: false, rounds: Some(20), ..quick() };
    let report = run(&["work=real", "placement=fused", "period=1ms,2ms"], request, 1);
    let report = report.expect("it can run");
    assert!(report.partial);
    let [first, second] = &report.rows[..] else { panic!("two rows: {:?}", report.rows) };
    assert_eq!((first.skipped.as_ref(), second.skipped.as_ref()), (None, None));
    let n =
        |row: &sinew_lab::report::Row| row.measure("cycle_latency").map(|of| of.distribution.n());
    assert_eq!(n(first), Some(500), "10 s over 20 rounds");
    // It was stopped before a cycle counted, or shortly after.
    assert!(n(second) < Some(250), "{:?}", n(second));
}

fn one_cpu_skips_what_spins() {
    let mut one = quick();
    one.cpus.truncate(1);
    let report = run(&["placement=2_threads", "sync=lock_free", "period=free"], one, 9);
    let report = report.expect("it can run");
    let [spins, parks] = &report.rows[..] else { panic!("two rows: {:?}", report.rows) };
    let why = spins.skipped.as_ref().expect("it cannot run");
    assert!(why.starts_with("2 threads would spin on 1 CPU,"), "{why}");
    assert_eq!(parks.skipped, None);
    assert!(parks.measure("cycle_latency").expect("it was measured").distribution.n() > 100);
}

fn a_selection_that_no_row_meets_is_refused() {
    let Err(CannotRun(why)) = run(&["placement=fused", "sync=mutex"], quick(), 0) else {
        panic!("fused links have no mutex");
    };
    assert!(why.contains("none of the 38 rows matches"), "{why}");
}
