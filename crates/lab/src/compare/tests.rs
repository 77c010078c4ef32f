//! Comparisons of made-up reports.

use super::*;
use crate::report::{Figure, Row};

const FILES: [&str; 2] = ["old.json", "new.json"];

/// A report with these medians of round trips in nine rounds, a row each.
fn report(rows: &[(&str, f64)]) -> ScenarioReport {
    let row = |&(transport, ns): &(&str, f64)| {
        let mut row = Row::of(&[("transport", transport)]);
        row.measure_mut("round_trip").rounds = (0..9).map(|it| ns + f64::from(it) * 0.1).collect();
        row.figures = vec![Figure::of("requests", "1/s", 1e9 / ns)];
        row
    };
    let rows = rows.iter().map(row).collect();
    let machine = Machine { cpu: "Foo 9000".into(), ..Machine::default() };
    ScenarioReport { scenario: "link".into(), machine, rows, ..ScenarioReport::default() }
}

fn compared(old: &ScenarioReport, new: &ScenarioReport) -> Comparison {
    Comparison::of_reports(FILES, [old, new], 0.05).expect("they can be compared")
}

fn refusal(old: &ScenarioReport, new: &ScenarioReport) -> String {
    let refused = Comparison::of_reports(FILES, [old, new], 0.05);
    refused.expect_err("they must not be compared").0
}

/// What two programs gave in this many rounds.
fn found(old: &ScenarioReport, new: &ScenarioReport, rounds: usize) -> TurnReports {
    TurnReports {
        scenarios: vec![[vec![old.clone(); rounds], vec![new.clone(); rounds]]],
        partial: false,
    }
}

#[test]
fn what_is_slower_stands_first_and_is_counted() {
    let old = report(&[("pipe", 100.0), ("unix", 100.0), ("tcp", 100.0)]);
    let new = report(&[("pipe", 100.0), ("unix", 120.0), ("tcp", 80.0)]);
    let found = compared(&old, &new);
    let rows: Vec<_> =
        found.rows.iter().map(|row| (row.headline.row.as_str(), row.judged.change)).collect();
    let expected = [("unix", Shift::Slower), ("tcp", Shift::Faster), ("pipe", Shift::Same)];
    assert_eq!(rows, expected);
    assert!(!found.is_good());
    let text = to_text(&found);
    let last = "1 row slower, 1 faster, 1 the same, 0 not distinguishable\n";
    assert!(text.ends_with(last), "{text}");
    assert!(text.contains("note: 3 figures left out"), "{text}");
    assert!(compared(&old, &old).is_good());
}

#[test]
fn unstable_rows_are_told_and_fail_nothing() {
    let (mut old, mut new) = (report(&[("pipe", 100.0)]), report(&[("pipe", 100.0)]));
    let noisy = |at: usize| vec![100.0, 180.0, 130.0, 95.0, 170.0, 110.0, 160.0, 90.0, 140.0][at];
    old.rows[0].measures[0].rounds = (0..9).map(noisy).collect();
    new.rows[0].measures[0].rounds = (0..9).rev().map(noisy).collect();
    let found = compared(&old, &new);
    assert!(found.is_good());
    assert!(to_text(&found).ends_with("; 1 row unstable: not shown\n"), "{}", to_text(&found));
}

#[test]
fn too_few_rounds_and_rows_that_are_gone_count_as_failed() {
    let old = report(&[("pipe", 100.0), ("unix", 100.0)]);
    let mut new = report(&[("pipe", 100.0), ("tcp", 100.0)]);
    new.rows[0].measures[0].rounds.truncate(3);
    let found = compared(&old, &new);
    assert_eq!(found.count(Shift::NotShown), 2);
    assert!(!found.is_good());
    let text = to_text(&found);
    assert!(text.contains("3 rounds in both; expected 6 at least"), "{text}");
    assert!(text.contains("the new one has no such figure"), "{text}");
    assert!(text.contains("note: link tcp, round_trip: only the new one has it"), "{text}");
    assert!(text.contains("; 2 rows NOT SHOWN: counts as failed\n"), "{text}");
}

#[test]
fn reports_of_different_things_are_refused_with_both_names() {
    let old = report(&[("pipe", 100.0)]);
    let with = |change: &dyn Fn(&mut ScenarioReport)| {
        let mut new = old.clone();
        change(&mut new);
        refusal(&old, &new)
    };
    let why = with(&|new| new.scenario = "sync".into());
    assert!(why.contains("'old.json' and 'new.json' are of 'link' and of 'sync'"), "{why}");
    assert!(with(&|new| new.format = 1).contains("have format 0 and 1"));
    assert!(with(&|new| new.quick = true).contains("are a full and a quick form"));
    let why = with(&|new| new.machine.cpu = "Bar 7".into());
    assert!(why.contains("cpu is 'Foo 9000' there and 'Bar 7' here"), "{why}");
}

#[test]
fn reports_without_a_row_say_why() {
    let mut old = report(&[("pipe", 100.0)]);
    old.rows[0].skipped = Some("needs two CPUs, has 1".into());
    let why = refusal(&old, &old);
    assert!(
        why.ends_with("no row was measured; the first one says: needs two CPUs, has 1"),
        "{why}"
    );
}

#[test]
fn programs_are_compared_in_single_figures_too_and_more_requests_are_better() {
    let (old, new) = (report(&[("pipe", 100.0)]), report(&[("pipe", 200.0)]));
    let found = found(&old, &new, 6);
    let found = Comparison::of_programs(FILES, &found, 0.05).expect("they can be compared");
    let rows: Vec<_> =
        found.rows.iter().map(|row| (row.headline.measure.as_str(), row.judged.change)).collect();
    assert_eq!(rows, [("round_trip", Shift::Slower), ("requests", Shift::Slower)]);
    let page = to_page(&found);
    assert!(page.contains("2 rows slower, 0 faster") && page.ends_with("</html>\n"), "{page}");
}

#[test]
fn a_figure_that_one_run_lacks_is_not_shown() {
    let (old, new) = (report(&[("pipe", 100.0)]), report(&[("pipe", 100.0)]));
    let mut found = found(&old, &new, 6);
    found.scenarios[0][1][2].rows[0].measures.clear();
    let found = Comparison::of_programs(FILES, &found, 0.05).expect("they can be compared");
    assert_eq!(found.rows[0].judged.why.as_deref(), Some("not in every run: 6 and 5"));
}

#[test]
fn a_p99_that_some_runs_lack_is_left_out_and_said() {
    let mut old = report(&[("pipe", 100.0)]);
    let values = &mut old.rows[0].measures[0].distribution;
    (1..=1000).for_each(|ns| values.add(ns));
    let mut found = found(&old, &old, 6);
    let compared = |found: &TurnReports| {
        Comparison::of_programs(FILES, found, 0.05).expect("they can be compared")
    };
    assert_eq!(compared(&found).rows.len(), 3);
    found.scenarios[0][1][2].rows[0].measures[0].distribution = Default::default();
    let without = compared(&found);
    assert!(without.is_good() && without.rows.len() == 2, "{without:?}");
    assert!(without.notes[0].starts_with("P99 of 1 row left out"), "{:?}", without.notes);
    for new in &mut found.scenarios[0][1] {
        new.rows[0].measures[0].distribution = Default::default();
    }
    assert_eq!(compared(&found).count(Shift::NotShown), 1, "the new one never has it");
}
