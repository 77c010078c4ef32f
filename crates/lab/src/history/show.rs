//! A history as text and as a page: change points first, then a line for each row.

mod line;

use std::collections::BTreeSet;

use sinew_figures::change_points::P_MAX;
use sinew_figures::units::{counted, words};
use sinew_figures::wrap::wrap_at;

use super::{LevelChange, Progression, SeenAt, Series};
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
    let add = |text: &mut String, table: &Table| {
        *text += &if table.rows.is_empty() { String::new() } else { text::table(table) };
    };
    add(&mut text, &changes(of));
    let mut gate = gate_changes(of);
    let reasons = taken_out(&mut gate);
    add(&mut text, &gate);
    for (commit, why) in reasons {
        wrap_at(&mut text, &format!("{commit}: "), &why, WIDTH);
    }
    for series in of.series.chunk_by(|one, other| one.of == other.of) {
        add(&mut text, &levels(series));
    }
    for exact in [false, true].into_iter().filter(|exact| has(of, *exact)) {
        text.push('\n');
        wrap_at(&mut text, "", &how_to_read(exact), WIDTH);
    }
    text
}

/// The history as one page that needs no other file.
pub fn to_page(of: &Progression) -> String {
    let mut text = page::head("Sinew lab: history");
    text += &format!("<p class=\"form\">{}</p>\n", Escaped(&headline(of)));
    let parts = [("Changes", false, changes(of)), ("Gate", true, gate_changes(of))];
    for (title, exact, table) in parts {
        let table = match table.rows.as_slice() {
            _ if !has(of, exact) => continue,
            [] => "<p>none</p>\n".into(),
            _ => page::words_table(&table),
        };
        let read = format!("<p class=\"form\">{}</p>\n", Escaped(&how_to_read(exact)));
        text += &page::section(title, &(table + &read));
    }
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
    let (mut from, mut changes) = (vec![], vec![]);
    for exact in [false, true].into_iter().filter(|exact| has(of, *exact)) {
        let series = || of.series.iter().filter(|it| it.exact == exact);
        let origins = series().flat_map(|it| &it.origins);
        let seen_at: BTreeSet<_> =
            origins.map(|it| if exact { name(it) } else { it.file.clone() }).collect();
        let number = series().map(|it| it.changes.len()).sum::<usize>();
        let (what, change, gate) = match exact {
            true => ("version", "change", " of the gate"),
            false => ("report", "change point", ""),
        };
        from.push(counted(seen_at.len(), what) + gate);
        changes.push(counted(number, change) + gate);
    }
    let series = counted(of.series.len(), "figure");
    format!("{series} of {}, {}", from.join(" and "), changes.join(", "))
}

/// Whether there are figures of the gate, or of reports.
fn has(of: &Progression, exact: bool) -> bool {
    of.series.iter().any(|series| series.exact == exact)
}

fn how_to_read(exact: bool) -> String {
    if exact {
        return "The gate's figures are counts that stand in a file, so each step of one is a \
                change, without a test. It stands at the commit that changed the file; a plus \
                means that the file is changed and not committed"
            .into();
    }
    format!(
        "A change point is the first commit of a new level: E-divisive means with a t-test, as \
         Apache Otava has it, p below {P_MAX}. Before and after are means, up to the change points \
         beside it. A level needs some reports: a single one is not a change"
    )
}

/// All change points, in the order of the series.
fn changes(of: &Progression) -> Table {
    let columns = ["commit", "of", "row", "figure", "before", "after", "change", "p", "verdict"];
    let row = |series: &Series, change: &LevelChange| {
        vec![
            name(&series.origins[change.at]),
            series.of.clone(),
            series.headline.row.clone(),
            words(&series.headline.measure),
            shown(series, change.before),
            shown(series, change.after),
            percent(change).unwrap_or("-".into()),
            change.p.map_or("-".into(), p_value),
            verdict(series, change).into(),
        ]
    };
    let of_series = |series: &Series| {
        series.changes.iter().map(|change| row(series, change)).collect::<Vec<_>>()
    };
    let measured = of.series.iter().filter(|series| !series.exact);
    Table::of("change points", columns, measured.flat_map(of_series).collect())
}

/// Each step of the gate's figures with its reason, in the order of the commits.
fn gate_changes(of: &Progression) -> Table {
    let columns = ["commit", "verb", "before", "after", "change", "verdict", "why"];
    let row = |series: &Series, change: &LevelChange| {
        let origin = &series.origins[change.at];
        let row = vec![
            name(origin),
            series.headline.row.clone(),
            shown(series, change.before),
            shown(series, change.after),
            percent(change).unwrap_or("-".into()),
            verdict(series, change).into(),
            origin.why.clone().unwrap_or_default(),
        ];
        (origin.place, row)
    };
    let of_series = |series: &Series| {
        series.changes.iter().map(|change| row(series, change)).collect::<Vec<_>>()
    };
    let exact = of.series.iter().filter(|series| series.exact);
    let mut rows: Vec<_> = exact.flat_map(of_series).collect();
    // The sort is stable: changes of one commit stay in the order of their verbs.
    rows.sort_by_key(|(place, _)| *place);
    Table::of("changes of the gate", columns, rows.into_iter().map(|(_, row)| row).collect())
}

/// Takes the reasons out of the table of the gate's changes, where they would be too wide. Each
/// reason is given once, with its commit and the verbs that it concerns.
fn taken_out(table: &mut Table) -> Vec<(String, String)> {
    table.columns.pop();
    let reason = |row: &mut Vec<String>| {
        let why = row.pop().unwrap_or_default();
        (row[0].clone(), why, row[1].clone())
    };
    let rows: Vec<_> = table.rows.iter_mut().map(reason).collect();
    let same = rows.chunk_by(|one, other| (&one.0, &one.1) == (&other.0, &other.1));
    let joined = |same: &[(String, String, String)]| {
        let verbs: Vec<_> = same.iter().map(|(_, _, verb)| verb.as_str()).collect();
        (same[0].0.clone(), format!("{} ({})", same[0].1, verbs.join(", ")))
    };
    same.map(joined).collect()
}

/// The first and the last figure of each of these series, which have the same scenario, form and
/// machine.
fn levels(of: &[Series]) -> Table {
    let columns = ["row", "figure", "seen", "first", "last", "changes"];
    let row = |series: &Series| {
        let shown_or = |figure: Option<&f64>| figure.map_or("-".into(), |it| shown(series, *it));
        vec![
            series.headline.row.clone(),
            words(&series.headline.measure),
            series.figures.len().to_string(),
            shown_or(series.figures.first()),
            shown_or(series.figures.last()),
            series.changes.len().to_string(),
        ]
    };
    let title = of.first().map(|series| series.of.as_str()).unwrap_or_default();
    Table::of(title, columns, of.iter().map(row).collect())
}

/// The commit, or the file if there is none.
fn name(of: &SeenAt) -> String {
    of.commit.clone().unwrap_or_else(|| of.file.clone())
}

/// A figure of the series with its unit; a count with every digit, as in the file.
fn shown(series: &Series, figure: f64) -> String {
    if series.exact { format!("{figure:.0}") } else { written(&series.headline.unit, figure) }
}

/// By how much it changed, if that can be said.
fn percent(change: &LevelChange) -> Option<String> {
    // For a count, as many digits as the gate shows.
    let digits = if change.p.is_some() { 1 } else { 2 };
    change.share().map(|share| format!("{:+.digits$} %", share * 100.0))
}

fn verdict(series: &Series, change: &LevelChange) -> &'static str {
    let fell = change.after < change.before;
    if fell == series.headline.higher_is_better { "worse" } else { "better" }
}

/// A p below this limit is smaller than the precision of the sum behind it.
fn p_value(p: f64) -> String {
    const P_LEAST: f64 = 1e-6;
    if p < P_LEAST { "below 0.000001".into() } else { format!("{p:.6}") }
}
