//! The scenario `sync`: every sort of row, on two CPUs and on one.

use std::sync::atomic::AtomicBool;

use sinew_lab::bar::Holds;
use sinew_lab::report::Row;
use sinew_lab::rounds::Silent;
use sinew_lab::scenario::ScenarioRequest;

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("every_sort_of_primitive_is_measured_and_judged", every_sort),
    ("on_one_cpu_what_needs_two_is_skipped_with_the_reason", one_cpu),
    ("an_interrupted_run_of_primitives_is_partial", interrupted),
];

const ONLY: [&str; 2] =
    ["operation=load_acquire,mutex_lock,sched_yield,futex,semaphore,message", "threads=1,2"];

fn run(request: ScenarioRequest, stopped: bool) -> sinew_lab::ScenarioReport {
    crate::run("sync", &ONLY, request, &Silent, &AtomicBool::new(stopped)).expect("a report")
}

fn every_sort() {
    let (request, has_two) = (quick(), quick().cpus.len() > 1);
    let report = run(request, false);
    assert_eq!((report.rows.len(), report.partial), (1 + 1 + 4 + 4 + 3 * 6, false));
    for row in &report.rows {
        let needs_two = row.axis("cpus") == Some("two") && !has_two;
        let refused = row.skipped.as_ref().is_some_and(|why| why.contains("SCHED_FIFO 10 refused"));
        assert_eq!(!is_measured(row), needs_two || refused, "{}: {:?}", row.id(), row.skipped);
    }
    assert_eq!((report.verdicts.len(), report.tables.len()), (13, 1));
    let holds = report.verdicts[0].holds;
    assert_eq!(holds, Holds::NotDistinguishable, "one round decides nothing");
}

fn is_measured(row: &Row) -> bool {
    row.measures.iter().any(|of| of.distribution.n() > 0)
}

fn one_cpu() {
    let mut request = quick();
    request.cpus.truncate(1);
    for row in run(request, false).rows {
        match row.axis("cpus") {
            Some("two") => {
                let why = row.skipped.expect("it cannot run");
                assert!(why.contains("needs two CPUs, and there is one"), "{why}");
            }
            _ if row.axis("scheduling") == Some("normal") => assert!(is_measured(&row)),
            _ => assert_ne!(is_measured(&row), row.skipped.is_some(), "{}", row.id()),
        }
    }
}

fn interrupted() {
    let report = run(quick(), true);
    assert!(report.partial && !report.rows.iter().any(is_measured));
    assert!(report.verdicts.iter().all(|verdict| verdict.holds == Holds::NotMeasured));
}
