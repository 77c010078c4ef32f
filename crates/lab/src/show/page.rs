//! The report as one page that needs no other file: first the verdicts, then how it was measured,
//! pictures, figures, and the raw data at the end.

use sinew_figures::machine::Cache;
use sinew_figures::units::counted;

use super::grid::{self, Column, Grid};
use super::plots::plots;
use super::svg::{self, Escaped};
use crate::bar::Holds;
use crate::report::{ScenarioReport, Table};

/// Fonts, spacing, and what is different on a telephone, in dark mode and on paper.
const STYLE: &str = include_str!("page.css");

/// The page.
pub fn to_page(report: &ScenarioReport) -> String {
    let mut page = head(&format!("Sinew lab: {}", report.scenario));
    page += &form(report);
    page += &verdicts(report);
    page += &machine(report);
    let plots = plots(report);
    let figures = plots
        .iter()
        .map(|plot| format!("<figure tabindex=\"0\">\n{}</figure>\n", plot.to_element()));
    page += &section("Plots", &figures.collect::<String>());
    page += &section("Tables", &report.tables.iter().map(words_table).collect::<String>());
    let grids = grid::measures(&report.rows).into_iter().chain(grid::figures(&report.rows));
    page += &section("Rows", &grids.map(|grid| table(&grid)).collect::<String>());
    page += &section("Notes", &notes(report));
    page + &foot(&serde_json::json!(report))
}

/// Everything before the content of a report.
pub(crate) fn head(title: &str) -> String {
    let title = Escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        svg::STYLE
    )
}

/// Everything after the content: the raw data.
pub(crate) fn foot(report: &serde_json::Value) -> String {
    // Inside a JSON string this letter may be written as an escape, and then no tag can end the
    // script.
    let data = report.to_string().replace('<', "\\u003c");
    format!(
        "</main>\n<script type=\"application/json\" id=\"report\">{data}</script>\n\
         </body>\n</html>\n"
    )
}

/// A part of the page; an empty text without content.
pub(crate) fn section(title: &str, content: &str) -> String {
    match content {
        "" => String::new(),
        content => format!(
            "<section class=\"{}\">\n<h2>{title}</h2>\n{content}</section>\n",
            title.to_lowercase()
        ),
    }
}

fn form(report: &ScenarioReport) -> String {
    let rounds = counted(report.rounds as usize, "round");
    let quick = if report.quick { ", quick form" } else { "" };
    let rows = report.rows.iter().filter(|row| row.skipped.is_none()).count();
    let skipped = report.rows.len() - rows;
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    let warning =
        |what: &String| format!("<p class=\"partial\"><strong>{}</strong></p>\n", Escaped(what));
    let mut text: String = report.warning.iter().map(warning).collect();
    let rows = counted(rows, "row");
    text += &format!("<p class=\"form\">{rows}{skipped}, {rounds}{quick}</p>\n");
    if report.partial {
        text += "<p class=\"partial\"><strong>Partial.</strong> It was interrupted: not all \
                 rounds, perhaps not all rows.</p>\n";
    }
    text
}

fn verdicts(report: &ScenarioReport) -> String {
    let verdict = |verdict: &crate::report::Verdict| {
        let class = match verdict.holds {
            Holds::Yes => "yes",
            Holds::No => "no",
            Holds::Partly => "partly",
            Holds::NotDistinguishable | Holds::NotMeasured => "open",
        };
        format!(
            "<div class=\"verdict\">\n<h3>{} <span class=\"holds {class}\">{}</span></h3>\n\
             <dl><dt>claimed</dt><dd>{}</dd><dt>here</dt><dd>{}</dd></dl>\n</div>\n",
            Escaped(&verdict.claim),
            verdict.holds.words(),
            Escaped(&verdict.theirs),
            Escaped(&verdict.ours)
        )
    };
    section("Verdicts", &report.verdicts.iter().map(verdict).collect::<String>())
}

fn machine(report: &ScenarioReport) -> String {
    let machine = &report.machine;
    let cache = |cache: &Cache| {
        format!("L{} {} {} KiB", cache.level, cache.ty.to_lowercase(), cache.size_kib)
    };
    let caches: Vec<_> = machine.caches.iter().map(cache).collect();
    let clock = report.timer.to_line();
    let facts = [("machine", machine.to_line()), ("caches", caches.join(", ")), ("clock", clock)];
    let fact = |(name, fact): &(&str, String)| match fact.as_str() {
        "" => String::new(),
        fact => format!("<dt>{name}</dt><dd>{}</dd>", Escaped(fact)),
    };
    section("Machine", &format!("<dl>{}</dl>\n", facts.iter().map(fact).collect::<String>()))
}

/// A table of words.
pub(crate) fn words_table(of: &Table) -> String {
    table(&grid::of_words(of))
}

/// A table that scrolls by itself if it is too wide.
fn table(grid: &Grid) -> String {
    let below = match grid.fixed() {
        fixed if fixed.is_empty() => fixed,
        fixed => format!("<p class=\"fixed\">{}</p>\n", Escaped(&fixed)),
    };
    let class = |column: &Column| if column.is_figure { " class=\"figure\"" } else { "" };
    let head = grid.columns.iter().map(|column| {
        let unit = match column.unit.as_str() {
            "" => String::new(),
            unit => format!(" <span>{}</span>", Escaped(unit)),
        };
        format!("<th{}>{}{unit}</th>", class(column), Escaped(&column.name))
    });
    let row = |row: usize| {
        let cell = |of: &Column| format!("<td{}>{}</td>", class(of), Escaped(&of.cells[row]));
        format!("<tr>{}</tr>\n", grid.columns.iter().map(cell).collect::<String>())
    };
    let rows = grid.columns.first().map_or(0, |column| column.cells.len());
    format!(
        "<h3>{}</h3>\n{below}<div class=\"scroll\" tabindex=\"0\">\n<table>\n\
         <thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
        Escaped(&grid.title),
        head.collect::<String>(),
        (0..rows).map(row).collect::<String>()
    )
}

fn notes(report: &ScenarioReport) -> String {
    let items = |notes: String| match notes.as_str() {
        "" => notes,
        notes => format!("<ul>\n{notes}</ul>\n"),
    };
    let note = |note: &String| format!("<li>{}</li>\n", Escaped(note));
    let mut text = items(report.notes.iter().map(note).collect());
    let titles = ["On rows", "Not measured, or not to the end"];
    for (title, (_, remarks)) in titles.into_iter().zip(grid::remarks(&report.rows)) {
        let remark = |(what, ids): &(&str, Vec<String>)| {
            format!(
                "<li>{}<br><span class=\"ids\">{}: {}</span></li>\n",
                Escaped(what),
                counted(ids.len(), "row"),
                Escaped(&ids.join(", "))
            )
        };
        let remarks: String = remarks.iter().map(remark).collect();
        text += &if remarks.is_empty() {
            remarks
        } else {
            format!("<h3>{title}</h3>\n{}", items(remarks))
        };
    }
    text
}
