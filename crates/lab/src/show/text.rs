//! The report for a terminal: a table of figures fits 120 columns if it can.

use std::fmt::Write;

use sinew_figures::units::{counted, time};
use sinew_figures::wrap::wrap_at;

use super::grid::{self, Grid, distinct};
use crate::report::{Report, Row, Table};

/// Columns of a line.
const WIDTH: usize = 120;
/// Between two columns of a table.
const GAP: &str = "  ";
/// So many rows are named where many share a note; the JSON has them all.
const NAMED_MAX: usize = 6;

/// The report as text.
pub fn to_text(report: &Report) -> String {
    let mut text = head(report);
    for grid in grid::measures(&report.rows).iter().chain(&grid::figures(&report.rows)) {
        text += &grid_text(grid);
    }
    if report.rows.iter().flat_map(|row| &row.measures).any(grid::has_ratio) {
        text.push('\n');
        let what = "ratio: the median over the rounds, each against the reference in the same \
                    round; the interval covers the true median with 95 %, or with fewer than six \
                    rounds holds all of them; not distinguishable: it covers 1";
        wrap(&mut text, "", what);
    }
    report.tables.iter().for_each(|table| text += &table_text(table));
    text += &verdicts(report);
    text += &remarks(&report.rows);
    text
}

fn head(report: &Report) -> String {
    let (scenario, rounds) = (&report.scenario, report.rounds as usize);
    let mut text = format!("lab {scenario}: {}", counted(rounds, "round"));
    text += if report.quick { ", quick\n" } else { "\n" };
    if report.partial {
        text += "PARTIAL: it was interrupted; not all rounds, perhaps not all rows\n";
    }
    wrap(&mut text, "machine: ", &report.machine.to_line());
    let timer = report.timer;
    let clock = format!(
        "{} between two readings in a row, in every time and not subtracted; smallest step {}",
        time(timer.overhead_ns),
        time(timer.resolution_ns)
    );
    wrap(&mut text, "clock: ", &clock);
    report.notes.iter().for_each(|note| wrap(&mut text, "note: ", note));
    text
}

/// A table of figures. If it is too wide, the first axes become lines above their rows.
fn grid_text(grid: &Grid) -> String {
    let mut text = format!("\n{}", grid.title);
    let fixed: Vec<_> = grid.fixed.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    text += &if fixed.is_empty() { String::new() } else { format!(" ({})", fixed.join(", ")) };
    text.push('\n');
    let mut heading = 0;
    while heading + 1 < grid.axes.len() && width(&columns(grid, heading)) > WIDTH {
        heading += 1;
    }
    let columns = columns(grid, heading);
    let indent = if heading > 0 { GAP } else { "" };
    let mut line = |cells: Vec<String>| {
        let line = format!("{indent}{}", cells.join(GAP));
        let _ = writeln!(text, "{}", line.trim_end());
    };
    headers(&columns).into_iter().for_each(&mut line);
    let mut above: &[String] = &[];
    for (number, row) in grid.rows.iter().enumerate() {
        if row.axes[..heading] != *above {
            above = &row.axes[..heading];
            let names = grid.axes.iter().zip(above);
            let names: Vec<_> = names.map(|(axis, value)| format!("{axis} {value}")).collect();
            line(vec![format!("-- {}", names.join(", "))]);
        }
        line(columns.iter().map(|column| column.cell(column.cells[number])).collect());
    }
    text
}

/// A column as it is printed.
struct Printed<'a> {
    header: Vec<String>,
    cells: Vec<&'a str>,
    width: usize,
    is_figure: bool,
}

impl Printed<'_> {
    fn cell(&self, cell: &str) -> String {
        let width = self.width;
        if self.is_figure { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }
}

/// The columns of a table but for those of the first `heading` axes.
fn columns(grid: &Grid, heading: usize) -> Vec<Printed<'_>> {
    let axes = grid.axes.iter().enumerate().skip(heading).map(|(at, name)| {
        let cells = grid.rows.iter().map(|row| row.axes[at].as_str()).collect();
        printed(name, "", cells, false)
    });
    let figures = grid.columns.iter().enumerate().map(|(at, column)| {
        let cells = grid.rows.iter().map(|row| row.figures[at].as_str()).collect();
        printed(&column.name, &column.unit, cells, true)
    });
    axes.chain(figures).collect()
}

/// The header is broken at its words, so that it is hardly wider than what stands below.
fn printed<'a>(name: &str, unit: &str, cells: Vec<&'a str>, is_figure: bool) -> Printed<'a> {
    let wide = |words: &mut dyn Iterator<Item = &str>| {
        words.map(|word| word.chars().count()).max().unwrap_or_default()
    };
    let width = wide(&mut cells.iter().copied());
    let width = width.max(wide(&mut name.split(' '))).max(unit.len());
    let mut header: Vec<String> = vec![];
    for word in name.split(' ') {
        match header.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                *line = format!("{line} {word}");
            }
            _ => header.push(word.into()),
        }
    }
    header.extend((!unit.is_empty()).then(|| unit.to_string()));
    Printed { header, cells, width, is_figure }
}

fn width(columns: &[Printed<'_>]) -> usize {
    // With the indent of rows below a heading.
    columns.iter().map(|column| column.width + GAP.len()).sum()
}

fn headers(columns: &[Printed<'_>]) -> Vec<Vec<String>> {
    let height = columns.iter().map(|column| column.header.len()).max().unwrap_or_default();
    // The last line of each stands right above its figures.
    let word = |column: &Printed<'_>, line: usize| {
        let at = (line + column.header.len()).checked_sub(height);
        column.cell(at.map_or("", |at| &column.header[at]))
    };
    let line = |line| columns.iter().map(|column| word(column, line)).collect();
    (0..height).map(line).collect()
}

/// A table of words.
pub(crate) fn table_text(table: &Table) -> String {
    let mut text = format!("\n{}\n", table.title);
    let cells = |at: usize| table.rows.iter().map(|row| grid::word(row, at)).collect();
    let column =
        |(at, name): (usize, &String)| printed(name, "", cells(at), grid::is_figures(table, at));
    let columns: Vec<_> = table.columns.iter().enumerate().map(column).collect();
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "{}", cells.join(GAP).trim_end());
    };
    headers(&columns).into_iter().for_each(&mut line);
    for number in 0..table.rows.len() {
        line(columns.iter().map(|column| column.cell(column.cells[number])).collect());
    }
    text
}

fn verdicts(report: &Report) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        text += if text.is_empty() { "\nverdicts\n" } else { "" };
        wrap(&mut text, &format!("[{}] ", verdict.holds.words()), &verdict.claim);
        wrap(&mut text, "    claimed: ", &verdict.theirs);
        wrap(&mut text, "    here:    ", &verdict.ours);
    }
    text
}

/// What differed from what was asked, and what was not measured: the rows that share it.
fn remarks(rows: &[Row]) -> String {
    let notes = || rows.iter().flat_map(|row| row.notes.iter().map(move |note| (note, row)));
    let skipped = || rows.iter().filter_map(|row| Some((row.skipped.as_ref()?, row)));
    let mut text = shared("notes on rows", &notes().collect::<Vec<_>>());
    text += &shared("not measured, or not to the end", &skipped().collect::<Vec<_>>());
    text
}

fn shared(title: &str, remarks: &[(&String, &Row)]) -> String {
    let mut text = String::new();
    for what in distinct(remarks.iter().map(|(what, _)| what.as_str())) {
        text += &if text.is_empty() { format!("\n{title}\n") } else { String::new() };
        let rows = remarks.iter().filter(|(other, _)| *other == what);
        let ids: Vec<_> = rows.map(|(_, row)| row.id()).collect();
        let more = ids.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        wrap(&mut text, "- ", what);
        let named = ids[..ids.len().min(NAMED_MAX)].join(", ");
        wrap(&mut text, "  ", &format!("{}: {named}{more}", counted(ids.len(), "row")));
    }
    text
}

/// As [`wrap_at`], in lines that fit a wide terminal.
pub(crate) fn wrap(text: &mut String, before: &str, words: &str) {
    wrap_at(text, before, words, WIDTH);
}
