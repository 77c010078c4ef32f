//! The scenario `mistakes`: all of its rows, on two CPUs and on one.

use std::sync::atomic::AtomicBool;

use sinew_lab::bar::Holds;
use sinew_lab::report::Row;
use sinew_lab::rounds::Silent;
use sinew_lab::scenario::ScenarioRequest;

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("every_mistake_is_made_and_judged", every_mistake),
    ("one_cpu_makes_the_mistakes_that_one_thread_shows", one_cpu),
];

fn run(request: ScenarioRequest) -> sinew_lab::ScenarioReport {
    crate::run("mistakes", &[], request, &Silent, &AtomicBool::new(false)).expect("a report")
}

fn is_measured(row: &Row) -> bool {
    row.measures.iter().any(|of| of.distribution.n() > 0)
}

fn every_mistake() {
    let has_two = quick().cpus.len() > 1;
    let report = run(quick());
    assert_eq!((report.rows.len(), report.verdicts.len(), report.tables.len()), (24, 7, 1));
    for row in &report.rows {
        let form = row.axis("form").expect("each has one");
        let on_x86 = cfg!(target_arch = "x86_64");
        let is_skipped = on_x86 && ["relaxed", "release_acquire"].contains(&form)
            || row.axis("cpus") == Some("two") && !has_two;
        assert_eq!(is_measured(row), !is_skipped, "{}: {:?}", row.id(), row.skipped);
    }
    // The right forms never go wrong, however busy the machine is.
    for (form, wrong) in [("fetch_add", "lost"), ("seqlock", "torn")] {
        let row = report.rows.iter().find(|row| row.axis("form") == Some(form)).expect("a row");
        assert!(!is_measured(row) || row.figure(wrong) == Some(0.0), "{:?}", row.figures);
    }
    let holds = report.verdicts[3].holds;
    let expected = if has_two { Holds::NotDistinguishable } else { Holds::NotMeasured };
    assert_eq!(holds, expected, "one round decides nothing");
}

fn one_cpu() {
    let mut request = quick();
    request.cpus.truncate(1);
    let report = run(request);
    let measured = report.rows.iter().filter(|row| is_measured(row));
    assert!(measured.clone().all(|row| row.axis("cpus") == Some("one")));
    assert_eq!(measured.count(), 5);
    assert!(report.rows.iter().all(|row| is_measured(row) == row.skipped.is_none()));
}
