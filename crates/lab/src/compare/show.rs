//! A comparison as text and as a page.

use sinew_figures::Interval;
use sinew_figures::units::{counted, ratio, words};
use sinew_figures::wrap::wrap_at;

use super::{ComparedRow, Comparison, Contestant, Shift};
use crate::headlines::written;
use crate::report::Table;
use crate::show::svg::Escaped;
use crate::show::{page, text};

/// Columns of a line.
const WIDTH: usize = 120;

/// The comparison for a terminal.
pub fn to_text(of: &Comparison) -> String {
    let mut text = format!("lab compare: what changed by more than {}\n", percent(of.threshold));
    for (name, side) in sides(of) {
        wrap_at(&mut text, &format!("{name}: "), &contestant(side), WIDTH);
    }
    wrap_at(&mut text, "machine: ", &of.machine.to_line(), WIDTH);
    of.notes.iter().for_each(|note| wrap_at(&mut text, "note: ", note, WIDTH));
    tables(of).iter().for_each(|table| text += &text::table(table));
    text.push('\n');
    wrap_at(&mut text, "", READ, WIDTH);
    text + &format!("\n{}\n", verdict(of))
}

/// The comparison as one page that needs no other file.
pub fn to_page(of: &Comparison) -> String {
    let mut text = page::head("Sinew lab: comparison");
    let class = match of.is_good() {
        true if of.count(Shift::Unstable) == 0 => "yes",
        true => "open",
        false => "no",
    };
    text += &format!("<p><span class=\"holds {class}\">{}</span></p>\n<dl>", Escaped(&verdict(of)));
    let machine = ("machine", of.machine.to_line());
    let facts = sides(of).map(|(name, side)| (name, contestant(side))).into_iter().chain([machine]);
    for (name, fact) in facts {
        text += &format!("<dt>{name}</dt><dd>{}</dd>", Escaped(&fact));
    }
    text += "</dl>\n";
    let tables: String = tables(of).iter().map(page::words_table).collect();
    text += &page::section("Rows", &format!("{tables}<p class=\"form\">{}</p>\n", Escaped(READ)));
    let notes: String =
        of.notes.iter().map(|note| format!("<li>{}</li>\n", Escaped(note))).collect();
    let list = if notes.is_empty() { notes } else { format!("<ul>\n{notes}</ul>\n") };
    text += &page::section("Notes", &list);
    text + &page::foot(&serde_json::json!(of))
}

const READ: &str = "ratio: new over old in the same round, the median; its interval covers the \
    true median with 95 %. Noise: how far one program alone would differ from itself in one of a \
    hundred comparisons. Slower, faster: the whole interval is beyond the threshold, and the \
    change is larger than the noise. Unstable: else, and the noise is larger than the threshold, \
    so a change of that size would not be seen. Not distinguishable: the interval covers the \
    threshold";

fn sides(of: &Comparison) -> [(&'static str, &Contestant); 2] {
    [("old", &of.old), ("new", &of.new)]
}

fn contestant(of: &Contestant) -> String {
    let Contestant { file, build } = of;
    match build {
        None => format!("{file}, of an unknown commit"),
        Some(build) => {
            let commit = build.short().unwrap_or("an unknown commit".into());
            format!("{file}, sinew {} of {commit}", build.version)
        }
    }
}

fn percent(share: f64) -> String {
    let percent = format!("{:.1}", share * 100.0);
    format!("{} %", percent.trim_end_matches(".0"))
}

/// A table for each scenario.
fn tables(of: &Comparison) -> Vec<Table> {
    let columns = ["row", "figure", "verdict", "old", "new", "ratio", "interval", "noise"];
    let mut tables: Vec<Table> = vec![];
    for row in &of.rows {
        if tables.last().is_none_or(|table| !table.title.starts_with(&title(row))) {
            let of_scenario = of.rows.iter().filter(|it| it.scenario == row.scenario);
            let rounds = of_scenario.map(|it| it.old.len().min(it.new.len())).max().unwrap_or(0);
            let title = format!("{}{}", title(row), counted(rounds, "round"));
            tables.push(Table::of(&title, columns, vec![]));
        }
        let table = tables.last_mut().expect("just pushed");
        table.rows.push(cells(row));
    }
    tables
}

fn title(row: &ComparedRow) -> String {
    format!("{}: ", row.scenario)
}

fn cells(row: &ComparedRow) -> Vec<String> {
    let dash = || "-".to_owned();
    let headline = &row.headline;
    let figure = |rounds: &[f64]| {
        Interval::of(rounds).map_or(dash(), |of| written(&headline.unit, of.median))
    };
    let ratio_of = row.judged.ratio;
    vec![
        headline.row.clone(),
        words(&headline.measure),
        row.judged.change.words().into(),
        figure(&row.old),
        figure(&row.new),
        ratio_of.map_or(dash(), |of| ratio(of.median)),
        match (&row.judged.why, ratio_of) {
            (Some(why), _) => why.clone(),
            (None, Some(of)) => format!("{} to {}", ratio(of.low), ratio(of.high)),
            (None, None) => dash(),
        },
        row.judged.noise.map_or(dash(), percent),
    ]
}

/// The result in a line. What was not shown is always mentioned.
pub(super) fn verdict(of: &Comparison) -> String {
    let rows = |change| counted(of.count(change), "row");
    let mut text = format!(
        "{} slower, {} faster, {} the same, {} not distinguishable",
        rows(Shift::Slower),
        of.count(Shift::Faster),
        of.count(Shift::Same),
        of.count(Shift::NotDistinguishable)
    );
    if of.count(Shift::Unstable) > 0 {
        text += &format!("; {} unstable: not shown", rows(Shift::Unstable));
    }
    if of.count(Shift::NotShown) > 0 {
        text += &format!("; {} NOT SHOWN: counts as failed", rows(Shift::NotShown));
    }
    if of.partial {
        text = format!("PARTIAL, it was interrupted: {text}");
    }
    text
}
