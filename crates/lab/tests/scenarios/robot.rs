//! The scenario `robot`.

use std::sync::atomic::AtomicBool;

use sinew_lab::ScenarioReport;
use sinew_lab::report::Row;
use sinew_lab::rounds::Silent;
use sinew_lab::scenario::{CannotRun, ScenarioRequest, table};
use sinew_runtime::{Kinds, ServiceEntry};
use sinew_services::SERVICES;

use crate::{Test, quick};

const ATTEMPTS: usize = 4;

/// All tests of this file.
pub(crate) const TESTS: &[Test] = &[
    ("viewers_see_the_robot_and_the_recorder_has_all_of_it", viewers_and_recorder),
    ("a_program_without_the_services_is_told_which_one_is_missing", missing_services),
];

fn run(services: &[ServiceEntry]) -> Result<ScenarioReport, CannotRun> {
    let kinds = Kinds { services: services.to_vec(), ..Kinds::default() };
    let request = ScenarioRequest { kinds: table(&kinds), ..quick() };
    crate::run("robot", &[], request, &Silent, &AtomicBool::new(false))
}

/// A report in which all rows were measured. A machine that stands still for long enough interrupts
/// a row, which then says why: the rows are then measured again, a few times.
fn measured() -> ScenarioReport {
    for _ in 0..ATTEMPTS {
        let report = run(SERVICES).expect("it can run");
        let skipped = report.rows.iter().find_map(|row| row.skipped.as_ref());
        let Some(why) = skipped else { return report };
        println!("measured again: {why}");
    }
    panic!("no whole report in {ATTEMPTS} attempts");
}

fn viewers_and_recorder() {
    let report = measured();
    for row in &report.rows {
        let latency = row.measure("cycle_latency").expect("cycles");
        assert!(latency.distribution.n() > 100, "{}", row.id());
    }
    let [alone, one, crowd] = &report.rows[..] else { panic!("three rows: {:?}", report.rows) };
    assert_eq!(alone.figure("cycles"), None, "nobody records");
    let figure = |row: &Row, name: &str| row.figure(name).expect("a figure");
    for row in [one, crowd] {
        assert_eq!(figure(row, "cycles_recorded"), figure(row, "cycles"), "{}", row.id());
        assert!(figure(row, "frames_least") > 0.0, "{}", row.id());
        for service in ["camera", "dashboard", "recorder", "monitor"] {
            assert!(figure(row, &format!("{service}_cpu")) > 0.0, "{service}");
        }
    }
    assert_eq!(report.verdicts.len(), 10);
}

fn missing_services() {
    let Err(CannotRun(why)) = run(&[]) else { panic!("there are no services") };
    assert!(why.contains("no kind 'camera'"), "{why}");
}
