//! The scenario `switch`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sinew_lab::rounds::{Progress, Silent};

use crate::far::kill_first_child;
use crate::{Test, quick, run};

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("turns_are_switches_by_the_kernels_count", turns_are_switches),
    ("a_row_whose_side_is_killed_says_so_and_the_next_one_goes_on", goes_on),
];

fn turns_are_switches() {
    let only = ["by=futex,eventfd,pipe", "array=0,32K"];
    let report = run("switch", &only, quick(), &Silent, &AtomicBool::new(false));
    let report = report.expect("there are such rows");
    // Three ways, each between threads and between processes, without an array, and two walks.
    assert_eq!(report.rows.len(), 8);
    for row in &report.rows {
        assert_eq!(row.skipped, None, "{}", row.id());
        assert!(row.figure("switches_per_turn_min") >= Some(1.0), "{}", row.id());
        let n = |name| row.measure(name).map_or(0, |of| of.distribution.n());
        assert!(n("turn") >= 24 && n("walk_alone") >= 24, "{}", row.id());
        let has_array = row.axis("array") != Some("0");
        assert_eq!(n("calls_alone") > 0, !has_array, "{}", row.id());
        assert_eq!(row.figure("turn_over_walk_alone").is_some(), has_array, "{}", row.id());
    }
    assert_eq!((report.tables.len(), report.partial), (4, false));
}

/// Kills the first side that exists, in the row between processes.
struct Killer;

impl Progress for Killer {
    fn at(&self, row: &str, _: Duration, _: Duration) {
        if row.starts_with("pipe/processes") {
            kill_first_child();
        }
    }
}

fn goes_on() {
    let only = ["by=pipe", "array=0"];
    let report = run("switch", &only, quick(), &Killer, &AtomicBool::new(false));
    let report = report.expect("there are such rows");
    for row in &report.rows {
        let is_dead = row.axis("between") == Some("processes");
        assert_eq!(row.skipped.is_some(), is_dead, "{}: {:?}", row.id(), row.skipped);
        if let Some(why) = &row.skipped {
            assert!(why.contains("was ended by signal 9"), "{why}");
        }
    }
}
