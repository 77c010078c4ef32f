//! The scenario from end to end, and its verdicts on made-up rows.

use std::sync::atomic::AtomicBool;

use sinew_core::privileges;

use super::*;
use crate::bar::Holds;
use crate::rounds::Silent;
use crate::scenario::Selection;

fn request(only: &[&str]) -> ScenarioRequest {
    let only: Vec<_> = only.iter().map(|&only| only.into()).collect();
    let only = Selection::parse(AXES, None, &only).expect("good axes");
    let cpus = privileges::cpus().expect("affinity");
    ScenarioRequest { quick: true, only, rounds: Some(2), cpus, ..ScenarioRequest::default() }
}

fn run_with(request: &ScenarioRequest, stopped: bool) -> Result<ScenarioReport, CannotRun> {
    let stop = AtomicBool::new(stopped);
    run(request, &Session { stop: &stop, progress: &Silent })
}

#[test]
fn a_few_rows_are_measured_from_end_to_end() {
    let only = ["transport=in_process,unix", "placement=threads", "bytes=8", "wait=park"];
    let report = run_with(&request(&only), false).expect("there are such rows");
    assert!(report.rows.len() >= 3 && !report.partial);
    for row in &report.rows {
        assert_eq!(row.skipped, None, "{}", row.id());
        for name in ["round_trip", "per_message"] {
            let measure = row.measure(name).expect("it is a queue");
            assert_eq!(measure.rounds.len(), 2, "{}", row.id());
            assert!(measure.distribution.n() >= 6 && measure.distribution.min() > Some(0));
        }
    }
}

#[test]
fn one_cpu_has_no_row_that_polls_and_no_ratio() {
    let mut one = request(&["wait=spin"]);
    one.cpus.truncate(1);
    let report = run_with(&one, false).expect("there are such rows");
    assert!(report.rows.len() > 20 && report.rows.iter().all(|row| row.skipped.is_some()));
    assert!(report.notes.iter().any(|note| note.starts_with("one CPU only")), "{:?}", report.notes);
    assert!(report.verdicts.iter().all(|verdict| verdict.holds == Holds::NotMeasured));
    let mut park = request(&["wait=park", "transport=in_process", "bytes=8"]);
    park.cpus.truncate(1);
    let report = run_with(&park, false).expect("there are such rows");
    for row in &report.rows {
        let measure = row.measure("round_trip").expect("it was measured");
        assert_eq!((measure.rounds.len(), measure.ratios.len()), (2, 0), "{}", row.id());
    }
}

#[test]
fn an_interrupted_run_is_partial() {
    let report = run_with(&request(&["transport=pipe"]), true).expect("there are such rows");
    assert!(report.partial && report.rows.iter().all(|row| row.measures.is_empty()));
}

#[test]
fn a_row_that_is_not_in_the_short_form_is_refused() {
    let CannotRun(why) = run_with(&request(&["delivery=broadcast"]), false).expect_err("none");
    assert!(why.contains("leave out --quick"), "{why}");
}

fn row(axes: &[(&str, &str)], measure: &str, ratios: &[f64]) -> Row {
    let mut row = Row::of(axes);
    let times: Vec<_> = ratios.iter().map(|ratio| ratio * 100.0).collect();
    (row.measure_mut(measure).rounds, row.measure_mut(measure).ratios) = (times, ratios.to_vec());
    row
}

fn queue(transport: &str, placement: &str, bytes: &str, ratios: &[f64]) -> Row {
    let axes = [
        ("transport", transport),
        ("sync", "lock_free"),
        ("delivery", "queue"),
        ("wait", "spin"),
        ("placement", placement),
        ("access", "copied"),
        ("bytes", bytes),
    ];
    row(&axes, "round_trip", ratios)
}

#[test]
fn the_worst_row_decides_whether_a_bar_is_reached() {
    let holds = |worst: &[f64]| {
        let rows = [
            queue("in_process", "threads", "8", &[1.0, 1.01, 1.02]),
            queue("shared_memory", "processes", "48", worst),
        ];
        let verdict = verdicts::of(&rows).swap_remove(0);
        assert_eq!(verdict.theirs, "<= 1.10");
        verdict.holds
    };
    assert_eq!(holds(&[1.05, 1.06, 1.1]), Holds::Yes);
    assert_eq!(holds(&[1.05, 1.06, 1.2]), Holds::NotDistinguishable);
    assert_eq!(holds(&[1.11, 1.2, 1.3]), Holds::No);
}

#[test]
fn equal_is_within_five_percent_in_all_rounds() {
    let holds = |shared: &[f64]| {
        let rows = [
            queue("in_process", "threads", "8", &[2.0, 2.0, 2.0]),
            queue("shared_memory", "threads", "8", shared),
        ];
        verdicts::of(&rows).swap_remove(2)
    };
    assert_eq!(holds(&[2.0, 1.95, 2.05]).holds, Holds::Yes);
    assert_eq!(holds(&[2.0, 1.95, 2.2]).holds, Holds::NotDistinguishable);
    assert_eq!(holds(&[2.2, 2.3, 2.4]).holds, Holds::No);
    let text = holds(&[2.2, 2.3, 2.4]).ours;
    assert_eq!(text, "round trips 1.15 (1.10 to 1.20), mean over sizes (8 B 1.15)");
}

#[test]
fn a_rival_is_compared_by_its_ratio_to_the_token_of_its_own_run() {
    let rival = |name, ratios: &[f64]| {
        let axes =
            [("rival", name), ("placement", "threads"), ("access", "copied"), ("bytes", "8")];
        row(&axes, "round_trip", ratios)
    };
    let theirs =
        [rival("slow", &[4.0; 3]), rival("rtrb", &[2.5; 3]), rival("sinew_link", &[1.0; 3])];
    let bars = |ratios: &[f64]| {
        let ours = [queue("in_process", "threads", "8", ratios)];
        rivals::bars(&ours, &theirs).rows
    };
    let best = &bars(&[2.0; 3])[0];
    assert_eq!(best[0], "round trip, 8 B, threads: ours / rtrb, the best rival");
    assert_eq!(best[1..], ["<= 1.00", "0.80 (0.80 to 0.80)", "yes"]);
    assert_eq!(bars(&[2.0; 2])[0][3], "not distinguishable", "too few rounds");
    assert_eq!(bars(&[2.0; 3])[1][2..], ["-", "not measured"]);
}

#[test]
fn a_selection_holds_for_the_rows_of_rivals_too() {
    let rival = |name, bytes| {
        let axes =
            [("rival", name), ("placement", "threads"), ("access", "copied"), ("bytes", bytes)];
        row(&axes, "round_trip", &[2.5; 3])
    };
    let rows = vec![rival("rtrb", "8"), rival("rtrb", "48"), rival("gil", "8")];
    let report = ScenarioReport { rows, ..ScenarioReport::default() };
    let run = |only: &[&str]| {
        let only: Vec<_> = only.iter().map(|&only| only.into()).collect();
        let only = Selection::parse(AXES, Some(&report), &only)?;
        let request = ScenarioRequest { only, rivals: Some(report.clone()), ..request(&[]) };
        let rows = run_with(&request, true)?.rows;
        Ok::<_, CannotRun>(rows.iter().map(Row::id).collect::<Vec<_>>())
    };
    let rtrb = ["rtrb/threads/copied/8", "rtrb/threads/copied/48"];
    assert_eq!(run(&["rival=rtrb"]).expect("rows"), rtrb);
    let ids = run(&["rival=sinew,gil", "bytes=8"]).expect("rows");
    assert!(ids.len() > 3 && ids.iter().all(|id| id.ends_with("/8")), "{ids:?}");
    assert!(ids.contains(&"gil/threads/copied/8".into()), "{ids:?}");
    let CannotRun(why) = run(&["rival=rtbr"]).expect_err("no such rival");
    assert!(why.contains("rival is never 'rtbr'; it is sinew, rtrb, gil"), "{why}");
}
