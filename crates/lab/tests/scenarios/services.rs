//! The scenario `services`.

use std::sync::atomic::AtomicBool;

use sinew_lab::ScenarioReport;
use sinew_lab::bar::Holds;
use sinew_lab::report::Row;
use sinew_lab::rounds::Silent;

use crate::{Test, quick};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("services_do_what_their_rows_say_beside_a_core_that_runs_on", services_do_what_rows_say),
    ("the_supervisor_of_services_alone_is_measured", the_supervisor_is_measured),
];

fn run(only: &str) -> ScenarioReport {
    let stop = AtomicBool::new(false);
    crate::run("services", &[only], quick(), &Silent, &stop).expect("it can run")
}

/// The row with these services, which was measured.
fn row<'a>(report: &'a ScenarioReport, beside: &str) -> &'a Row {
    let row = report.rows.iter().find(|row| row.axis("beside") == Some(beside));
    let row = row.unwrap_or_else(|| panic!("no row '{beside}'"));
    assert_eq!(row.skipped, None, "{beside}");
    row
}

fn services_do_what_rows_say() {
    let report = run("beside=nothing,crash_loop,flood,killed");
    let figure = |beside, name| row(&report, beside).figure(name).expect("a figure");
    for beside in ["nothing", "crash_loop", "flood", "killed"] {
        let latency = row(&report, beside).measure("cycle_latency").expect("cycles");
        assert!(latency.distribution.n() > 100, "{beside}");
    }
    assert_eq!(figure("nothing", "restarts"), 0.0);
    assert!(figure("crash_loop", "restarts") >= 3.0, "each comes back at least once");
    assert_eq!(figure("crash_loop", "messages_to_core"), 0.0);
    assert!(figure("flood", "messages_to_core") > 0.0);
    let back = row(&report, "killed").measure("ready_again").expect("kills");
    // The last restarted service may not be ready yet at the end.
    let missing = figure("killed", "restarts") - back.distribution.n() as f64;
    assert!((0.0..=1.0).contains(&missing), "{missing} did not come back");
    // One round says nothing about the noise.
    let firm = |verdict: &&sinew_lab::report::Verdict| verdict.claim.contains("P50");
    let of_median = report.verdicts.iter().find(firm).expect("a verdict");
    assert_eq!(of_median.holds, Holds::NotDistinguishable);
}

fn the_supervisor_is_measured() {
    let report = run("beside=services_alone");
    let row = row(&report, "services_alone");
    assert!(row.figure("supervisor_cpu").is_some_and(|percent| (0.0..100.0).contains(&percent)));
    let unmeasured = |verdict: &&sinew_lab::report::Verdict| verdict.holds == Holds::NotMeasured;
    assert!(report.verdicts.iter().filter(unmeasured).count() >= 7, "{:?}", report.verdicts);
}
