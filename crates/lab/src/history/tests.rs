//! Histories of made-up reports.

use sinew_figures::Machine;

use super::*;
use crate::report::{Build, Row, ScenarioReport};

/// A report of one row at a commit.
fn report(at: u64, ns: f64) -> DatedReport {
    let mut row = Row::of(&[("transport", "pipe")]);
    row.measure_mut("round_trip").rounds = vec![ns; 3];
    let build = Build {
        version: "0.1.0".into(),
        commit: Some(format!("{at:010x}")),
        committed_s: Some(at),
        changed: false,
    };
    let report = ScenarioReport {
        scenario: "link".into(),
        build: Some(build),
        rows: vec![row],
        ..ScenarioReport::default()
    };
    DatedReport { file: format!("{at}.json"), report }
}

/// Ten reports, then ten that are slower by a tenth, in reverse order.
fn changed() -> Vec<DatedReport> {
    let ns = |at: u64| if at < 10 { 100.0 } else { 110.0 } + (at * 7 % 5) as f64 * 0.2;
    (0..20).rev().map(|at| report(at, ns(at))).collect()
}

fn history(reports: &[DatedReport]) -> Progression {
    let (seen, notes) = sightings(reports);
    Progression::of(seen, notes)
}

#[test]
fn a_change_is_told_at_its_commit_whatever_the_order_of_the_files() {
    let found = history(&changed());
    let [series] = found.series.as_slice() else { panic!("one row: {found:?}") };
    assert_eq!(series.changes.len(), 1, "{:?}", series.changes);
    assert_eq!(series.origins[series.changes[0].at].committed_s, Some(10));
    let text = to_text(&found);
    assert!(text.starts_with("lab history: 1 figure of 20 reports, 1 change point\n"), "{text}");
    let line = text.lines().find(|line| line.starts_with("000000000a")).expect("its commit");
    for word in ["link", "pipe", "round trip", "+10.0 %", "below 0.000001", "worse"] {
        assert!(line.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_is_no_one_series_is_drawn_apart() {
    let mut reports = changed();
    reports[0].report.machine = Machine { cpu: "Bar 7".into(), ..Machine::default() };
    reports[1].report.quick = true;
    reports[2].report.scenario = "sync".into();
    let found = history(&reports);
    let lengths: Vec<_> =
        found.series.iter().map(|series| (series.of.as_str(), series.figures.len())).collect();
    assert_eq!(lengths.len(), 4, "{lengths:?}");
    assert!(lengths.contains(&("link, quick: machine 2, ", 1)), "{lengths:?}");
    assert!(lengths.contains(&("link: machine 1, Bar 7", 1)), "{lengths:?}");
    let note = &found.notes[0];
    assert!(note.starts_with("figures of different machines are drawn apart"), "{note}");
    assert!(note.contains("cpu is not known and 'Bar 7' on machine 1"), "{note}");
}

#[test]
fn without_commits_the_order_is_the_given_one_and_says_so() {
    let mut reports = changed();
    reports[0].report.build = None;
    let found = history(&reports);
    assert_eq!(found.series[0].origins[0].file, "19.json");
    assert!(found.notes[0].contains("the order is the one in which the files were given"));
}

#[test]
fn the_page_draws_every_row_and_marks_its_changes() {
    let page = to_page(&history(&changed()));
    assert_eq!(page.matches("<svg").count(), 1);
    assert_eq!(page.matches("<circle").count(), 20);
    assert_eq!(page.matches("curve s1 dashed").count(), 1);
    assert!(page.contains("+10.0 %") && page.ends_with("</html>\n"), "{page}");
    // A single report, or figures that are all zero, still give a page.
    for few in [vec![report(1, 5.0)], vec![report(1, 0.0), report(2, 0.0)]] {
        let page = to_page(&history(&few));
        assert!(page.contains("<p>none</p>") && !page.contains("NaN"), "{page}");
    }
}
