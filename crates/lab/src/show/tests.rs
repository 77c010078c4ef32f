//! A made-up report, and how it is shown.

use sinew_figures::Machine;

use super::*;
use crate::bar::Holds;
use crate::report::{Figure, Row, ScenarioReport, Table, Timer, Verdict};

/// Text that would end a script, break a tag or start a comment if it were not escaped.
const HOSTILE: &str = "</script><!-- <script> & \" \u{1}";

/// Rows over transport and bytes; larger messages are slower.
fn report() -> ScenarioReport {
    let mut rows = vec![];
    for (transport, base) in [("in_process", 300), ("shared_memory", 310), ("pipe", 20_000)] {
        for (bytes, more) in [("8", 0), ("1024", 400)] {
            let mut row = Row::of(&[("work", "none"), ("transport", transport), ("bytes", bytes)]);
            let measure = row.measure_mut("round_trip");
            (0..1000).for_each(|i| measure.distribution.add(base + more + i % 100));
            measure.distribution.add(7_654_321);
            measure.rounds = [0.98, 1.0, 1.01].map(|of| of * (base + more + 50) as f64).to_vec();
            measure.ratios = measure.rounds.iter().map(|median| median / 352.0).collect();
            row.figures.push(Figure::of("cpu", "%", 199.5));
            rows.push(row);
        }
    }
    for bytes in ["8", "1024"] {
        let row = Row::of(&[("work", "none"), ("transport", "tcp"), ("bytes", bytes)]);
        rows.push(Row { skipped: Some("there is no loopback".into()), ..row });
    }
    ScenarioReport {
        scenario: "link".into(),
        machine: Machine { cpu: "Foo 9000".into(), ..Machine::default() },
        timer: Timer { overhead_ns: 22.0, resolution_ns: 0.4 },
        rounds: 3,
        rows,
        tables: vec![Table {
            title: "theirs".into(),
            columns: vec!["method".into(), "mean (us)".into()],
            // As it may come from a file: not all rows are complete.
            rows: vec![vec!["pipe".into(), "68.92".into()], vec!["short".into()]],
        }],
        verdicts: vec![Verdict {
            claim: "pipe is slower".into(),
            theirs: "90 times".into(),
            ours: "66 times".into(),
            holds: Holds::Partly,
        }],
        notes: vec![HOSTILE.into()],
        ..ScenarioReport::default()
    }
}

#[test]
fn the_text_shows_every_maximum_and_no_percentile_of_an_anecdote() {
    let text = to_text(&report());
    assert_eq!(text.matches(" 7654 ").count(), 6, "{text}");
    let line = text.lines().find(|line| line.starts_with("  8 ")).expect("a row");
    // 1001 values: ten are beyond P99, one beyond P99.9.
    let cells: Vec<_> = line.split_whitespace().collect();
    assert_eq!(cells[..7], ["8", "1001", "8.00", "0.350", "0.395", "0.399", "-"], "{line}");
    assert_eq!(cells[7], "7654", "{line}");
    assert!(text.contains("ratio to"), "{text}");
    assert!(line.ends_with("0.97 to 1.00, not distinguishable"), "{line}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120), "{widest:?} columns in:\n{text}");
}

#[test]
fn what_all_rows_share_stands_above_them_once() {
    let text = to_text(&report());
    assert!(text.contains("round trip (work none)\n"), "{text}");
    assert!(text.contains("[holds in part] pipe is slower\n    claimed: 90 times\n"), "{text}");
    assert!(text.contains("- there is no loopback\n  2 rows: none/tcp/8, none/tcp/1024\n"));
    assert!(!text.contains("PARTIAL"), "{text}");
    assert!(
        to_text(&ScenarioReport { partial: true, ..report() })
            .contains("PARTIAL: it was interrupted")
    );
}

#[test]
fn a_warning_stands_in_the_first_line_and_brings_the_tables_before_the_rows() {
    let (plain, warned) = (report(), ScenarioReport { warning: Some("beware".into()), ..report() });
    let at = |text: &str, word: &str| text.find(word).unwrap_or_else(|| panic!("{word}:\n{text}"));
    let [title, row] = [&report().tables[0].title, "\nround trip"];
    let [plain, warned] = [plain, warned].map(|report| to_text(&report));
    assert!(at(&plain, row) < at(&plain, title) && at(&warned, title) < at(&warned, row));
    assert!(warned.lines().next().is_some_and(|line| line.ends_with("; beware")), "{warned}");
    let page = to_page(&ScenarioReport { warning: Some("be<ware".into()), ..report() });
    assert!(page.contains("<strong>be&lt;ware</strong>"), "{page}");
}

#[test]
fn a_table_that_is_too_wide_gets_lines_above_its_rows() {
    let mut report = report();
    for (at, row) in report.rows.iter_mut().enumerate() {
        row.axes.insert(1, ("a_name_that_is_long".into(), format!("{}{}", "x".repeat(60), at / 2)));
    }
    let text = to_text(&report);
    let above = format!("  -- a name that is long {}0, transport in_process\n  8 ", "x".repeat(60));
    assert!(text.contains(&above), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(120), "{widest:?} columns in:\n{text}");
}

#[test]
fn the_page_holds_the_whole_report_whatever_its_words() {
    let report = ScenarioReport { partial: true, ..report() };
    let page = to_page(&report);
    let start = "<script type=\"application/json\" id=\"report\">";
    let (_, data) = page.split_once(start).expect("raw data");
    let (data, rest) = data.split_once("</script>").expect("its end");
    assert_eq!(rest, "\n</body>\n</html>\n");
    let read: ScenarioReport = serde_json::from_str(data).expect("a report");
    assert_eq!((read.rows.len(), &read.notes), (report.rows.len(), &report.notes));
    assert_eq!(data.replace("\\u003c", "<"), serde_json::json!(report).to_string());
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(page.contains("<strong>Partial.</strong>"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs the network");
    let places = ["<h1>", "Verdicts</h2>", "Machine</h2>", "Plots</h2>", "Tables</h2>"];
    let places = places.into_iter().chain(["Rows</h2>", "Notes</h2>", start]);
    let places: Vec<_> = places.map(|title| page.find(title).expect(title)).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn the_plots_follow_from_axes_and_measures() {
    let names = |report: &ScenarioReport| -> Vec<_> {
        plots(report).into_iter().map(|plot| plot.name).collect()
    };
    let all = ["round_trip-by-size", "round_trip-medians", "round_trip-distribution", "reference"];
    assert_eq!(names(&report()), all);
    let mut bare = report();
    for row in &mut bare.rows {
        row.axes.retain(|(axis, _)| axis != "bytes");
        row.measures.iter_mut().for_each(|measure| measure.ratios.clear());
    }
    assert_eq!(names(&bare), ["round_trip-medians", "round_trip-distribution"]);
    bare.rows.clear();
    assert!(names(&bare).is_empty());
}

#[test]
fn every_maximum_has_a_dot_and_is_named() {
    let plots = plots(&report());
    let plot = plots.iter().find(|plot| plot.name.contains("distribution")).expect("one");
    let svg = plot.to_document();
    assert_eq!(svg.matches("<circle").count(), 6, "{svg}");
    assert!(svg.contains("in_process 8 B: max 7.65 ms, n 1001</text>"), "{svg}");
    assert!(svg.contains("pipe 1 KiB: max 7.65 ms of 1001</title>"), "{svg}");
}

#[test]
fn many_rows_are_split_so_that_curves_can_be_told_apart() {
    let mut report = report();
    report.rows = (0..100)
        .map(|at: u32| {
            let (wait, bytes) = (format!("w{}", at / 10), (8 << (at % 10)).to_string());
            let mut row = Row::of(&[("wait", &wait), ("bytes", &bytes)]);
            row.measure_mut("round_trip").distribution.add(u64::from(at) + 100);
            row.measure_mut("round_trip").rounds.push(f64::from(at) + 100.0);
            row
        })
        .collect();
    let plots = plots(&report);
    let curves = plots.iter().filter(|plot| plot.name.contains("distribution"));
    let dots: Vec<_> = curves.map(|plot| plot.to_document().matches("<circle").count()).collect();
    assert_eq!(dots, [10; 10], "one for each size");
    let name = "round_trip-distribution-64_B";
    assert_eq!(plots.iter().filter(|plot| plot.name == name).count(), 1, "it says what it holds");
}

#[test]
fn words_cannot_break_a_picture() {
    let mut report = report();
    for row in &mut report.rows {
        row.axes.push((HOSTILE.into(), HOSTILE.into()));
        row.axes.push(("other".into(), format!("{HOSTILE}{}", row.id())));
    }
    for plot in plots(&report) {
        let svg = plot.to_document();
        assert!(!svg.contains("<script") && !svg.contains('\u{1}'), "{svg}");
        assert!(svg.matches("<svg").count() == 1 && svg.ends_with("</svg>\n"), "{svg}");
    }
}
