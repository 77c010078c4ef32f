//! The scenario `shared_size`.

use std::sync::atomic::AtomicBool;

use sinew_lab::rounds::Silent;
use sinew_lab::scenario::ScenarioRequest;

use crate::{Test, quick, run};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("shared_memory_is_measured_in_place_and_copied_on_one_cpu_and_two", measured),
    ("on_one_cpu_only_the_rows_of_two_are_left_out", one_cpu),
];

fn measured() {
    let request = quick();
    let are_two = request.cpus.len() > 1;
    let only = ["bytes=8,65536"];
    let report = run("shared_size", &only, request, &Silent, &AtomicBool::new(false));
    let report = report.expect("there are such rows");
    assert_eq!(report.rows.len(), 2 * 6);
    for row in &report.rows {
        let is_measured = are_two || row.axis("cpus") == Some("one");
        let trips = row.measure("round_trip").map_or(0, |of| of.distribution.n());
        assert_eq!(trips > 0, is_measured, "{}: {:?}", row.id(), row.skipped);
    }
    assert_eq!((report.tables.len(), report.verdicts.len()), (3, 5));
}

fn one_cpu() {
    let mut cpus = quick().cpus;
    cpus.truncate(1);
    let request = ScenarioRequest { cpus, ..quick() };
    let report = run("shared_size", &["bytes=64"], request, &Silent, &AtomicBool::new(false));
    for row in report.expect("there are such rows").rows {
        let why = row.skipped.as_deref();
        let expected = "it needs two CPUs, and there is one";
        let is_two = row.axis("cpus") == Some("two");
        assert_eq!(why, is_two.then_some(expected), "{}", row.id());
        assert_eq!(row.measure("round_trip").is_some(), !is_two, "{}", row.id());
    }
}
