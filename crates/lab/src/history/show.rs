//! A history as text and as a page: change points first, then a line for each row.

mod line;

use sinew_figures::change_points::{ChangePoint, P_MAX};
use sinew_figures::units::{counted, words};
use sinew_figures::wrap::wrap_at;

use super::{Progression, SeenAt, Series};
use crate::headlines::written;
use crate::report::Table;
use crate::show::svg::Escaped;
use crate::show::{page, text};

/// Columns of a line.
const WIDTH: usize = 120;

/// The history for a terminal.
pub fn to_text(of: &Progression) -> String {
    let mut text = format!("lab history: {}\n", headline(of));
    of.notes.iter().for_each(|note| wrap_at(&mut text, "note: ", note, WIDTH));
    for table in [changes(of), levels(of)].iter().filter(|table| !table.rows.is_empty()) {
        text += &text::table(table);
    }
    text.push('\n');
    wrap_at(&mut text, "", &read(), WIDTH);
    text
}

/// The history as one page that needs no other file.
pub fn to_page(of: &Progression) -> String {
    let mut text = page::head("Sinew lab: history");
    text += &format!("<p class=\"form\">{}</p>\n", Escaped(&headline(of)));
    let changes = changes(of);
    let table =
        if changes.rows.is_empty() { "<p>none</p>\n".into() } else { page::words_table(&changes) };
    let read = format!("<p class=\"form\">{}</p>\n", Escaped(&read()));
    text += &page::section("Changes", &(table + &read));
    let mut groups: Vec<(&str, String)> = vec![];
    for (at, series) in of.series.iter().enumerate() {
        let plot = line::plot(series, at).to_element();
        let figure = format!("<figure tabindex=\"0\">\n{plot}</figure>\n");
        match groups.last_mut().filter(|(of, _)| *of == series.of) {
            Some((_, figures)) => *figures += &figure,
            None => groups.push((&series.of, figure)),
        }
    }
    let group = |(of, figures): &(&str, String)| format!("<h3>{}</h3>\n{figures}", Escaped(of));
    text += &page::section("Rows", &groups.iter().map(group).collect::<String>());
    let note = |note: &String| format!("<li>{}</li>\n", Escaped(note));
    let notes: String = of.notes.iter().map(note).collect();
    let list = if notes.is_empty() { notes } else { format!("<ul>\n{notes}</ul>\n") };
    text += &page::section("Notes", &list);
    text + &page::foot(&serde_json::json!(of))
}

fn headline(of: &Progression) -> String {
    let mut files: Vec<&str> =
        of.series.iter().flat_map(|it| &it.origins).map(|it| it.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    let reports = counted(files.len(), "report");
    let series = counted(of.series.len(), "figure");
    format!("{series} of {reports}, {}", counted(of.changes(), "change point"))
}

fn read() -> String {
    format!(
        "A change point is the first commit of a new level: E-divisive means with a t-test, as \
         Apache Otava has it, p below {P_MAX}. Before and after are means, up to the change points \
         beside it. A level needs some reports: one that stands alone is no change"
    )
}

/// All change points, in the order of the series.
fn changes(of: &Progression) -> Table {
    let columns = ["commit", "of", "row", "figure", "before", "after", "change", "p", "verdict"];
    let row = |series: &Series, change: &ChangePoint| {
        let worse = (change.after < change.before) == series.headline.higher_is_better;
        vec![
            name(&series.origins[change.at]),
            series.of.clone(),
            series.headline.row.clone(),
            words(&series.headline.measure),
            shown(series, change.before),
            shown(series, change.after),
            change.share().map_or("-".into(), |share| format!("{:+.1} %", share * 100.0)),
            p_value(change.p),
            if worse { "worse" } else { "better" }.into(),
        ]
    };
    let of_series = |series: &Series| {
        series.changes.iter().map(|change| row(series, change)).collect::<Vec<_>>()
    };
    Table::of("change points", columns, of.series.iter().flat_map(of_series).collect())
}

/// The first and the last figure of each series.
fn levels(of: &Progression) -> Table {
    let columns = ["of", "row", "figure", "reports", "first", "last", "changes"];
    let row = |series: &Series| {
        let shown_or = |figure: Option<&f64>| figure.map_or("-".into(), |it| shown(series, *it));
        vec![
            series.of.clone(),
            series.headline.row.clone(),
            words(&series.headline.measure),
            series.figures.len().to_string(),
            shown_or(series.figures.first()),
            shown_or(series.figures.last()),
            series.changes.len().to_string(),
        ]
    };
    Table::of("rows", columns, of.series.iter().map(row).collect())
}

/// The commit, or else the file.
fn name(of: &SeenAt) -> String {
    of.commit.clone().unwrap_or_else(|| of.file.clone())
}

/// A figure of the series with its unit.
fn shown(series: &Series, figure: f64) -> String {
    written(&series.headline.unit, figure)
}

/// Less than this is less than the sum behind it can tell.
fn p_value(p: f64) -> String {
    const P_LEAST: f64 = 1e-6;
    if p < P_LEAST { "below 0.000001".into() } else { format!("{p:.6}") }
}
