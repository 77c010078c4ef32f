//! The report for a terminal: a table of figures fits 120 columns if possible.

use std::fmt::Write;

use sinew_figures::units::counted;
use sinew_figures::wrap::wrap_at;

use super::grid::{self, Column, Grid};
use crate::report::{Row, ScenarioReport, Table};

/// Columns of a line.
const WIDTH: usize = 120;
/// The gap between two columns of a table.
const GAP: &str = "  ";
/// At most this many rows are named if many share a note; the JSON has them all.
const NAMED_MAX: usize = 6;

/// The report as text.
pub fn to_text(report: &ScenarioReport) -> String {
    let mut text = head(report);
    let tables = || report.tables.iter().map(table);
    if report.warning.is_some() {
        text.extend(tables());
    }
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
    if report.warning.is_none() {
        text.extend(tables());
    }
    text += &verdicts(report);
    text += &remarks(&report.rows);
    text
}

/// The tables of a report alone.
pub fn tables(report: &ScenarioReport) -> String {
    report.tables.iter().map(|table| grid_text(&grid::of_words(table))).collect()
}

fn head(report: &ScenarioReport) -> String {
    let (scenario, rounds) = (&report.scenario, report.rounds as usize);
    let mut text = format!("lab {scenario}: {}", counted(rounds, "round"));
    text += if report.quick { ", quick" } else { "" };
    text += &report.warning.iter().map(|what| format!("; {what}\n")).collect::<String>();
    text += if report.warning.is_none() { "\n" } else { "" };
    if report.partial {
        text += "PARTIAL: it was interrupted; not all rounds, perhaps not all rows\n";
    }
    wrap(&mut text, "machine: ", &report.machine.to_line());
    wrap(&mut text, "clock: ", &report.timer.to_line());
    report.notes.iter().for_each(|note| wrap(&mut text, "note: ", note));
    text
}

/// A table of words.
pub(crate) fn table(of: &Table) -> String {
    grid_text(&grid::of_words(of))
}

/// A table. If it is too wide, the first axes become lines above their rows.
fn grid_text(grid: &Grid) -> String {
    let fixed = grid.fixed();
    let fixed = if fixed.is_empty() { fixed } else { format!(" ({fixed})") };
    let mut text = format!("\n{}{fixed}\n", grid.title);
    let columns: Vec<_> = grid.columns.iter().map(Printed::of).collect();
    let mut heading = 0;
    while heading + 1 < grid.axes && width(&columns[heading..]) > WIDTH {
        heading += 1;
    }
    let (above, columns) = columns.split_at(heading);
    let indent = if heading > 0 { GAP } else { "" };
    let mut line = |cells: Vec<String>| {
        let line = format!("{indent}{}", cells.join(GAP));
        let _ = writeln!(text, "{}", line.trim_end());
    };
    headers(columns).into_iter().for_each(&mut line);
    let rows = columns.first().map_or(0, |column| column.of.cells.len());
    for row in 0..rows {
        let differs = |it: &Printed<'_>| row == 0 || it.of.cells[row] != it.of.cells[row - 1];
        if above.iter().any(differs) {
            let named = |it: &Printed<'_>| format!("{} {}", it.of.name, it.of.cells[row]);
            line(vec![format!("-- {}", above.iter().map(named).collect::<Vec<_>>().join(", "))]);
        }
        line(columns.iter().map(|column| column.cell(&column.of.cells[row])).collect());
    }
    text
}

/// A column as it is printed.
struct Printed<'a> {
    of: &'a Column,
    header: Vec<String>,
    width: usize,
}

impl<'a> Printed<'a> {
    /// The header is broken at its words, so that it is hardly wider than the cells below.
    fn of(of: &'a Column) -> Printed<'a> {
        let wide = |words: &mut dyn Iterator<Item = &str>| {
            words.map(|word| word.chars().count()).max().unwrap_or_default()
        };
        let width = wide(&mut of.cells.iter().map(String::as_str));
        let width = width.max(wide(&mut of.name.split(' '))).max(of.unit.len());
        let mut header: Vec<String> = vec![];
        for word in of.name.split(' ') {
            match header.last_mut() {
                Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                    *line = format!("{line} {word}");
                }
                _ => header.push(word.into()),
            }
        }
        header.extend((!of.unit.is_empty()).then(|| of.unit.clone()));
        Printed { of, header, width }
    }

    fn cell(&self, cell: &str) -> String {
        let width = self.width;
        if self.of.is_figure { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    }
}

fn width(columns: &[Printed<'_>]) -> usize {
    // The gaps include the indent of rows below a heading.
    columns.iter().map(|column| column.width + GAP.len()).sum()
}

fn headers(columns: &[Printed<'_>]) -> Vec<Vec<String>> {
    let height = columns.iter().map(|column| column.header.len()).max().unwrap_or_default();
    // The last line of each header is right above its figures.
    let word = |column: &Printed<'_>, line: usize| {
        let at = (line + column.header.len()).checked_sub(height);
        column.cell(at.map_or("", |at| &column.header[at]))
    };
    let line = |line| columns.iter().map(|column| word(column, line)).collect();
    (0..height).map(line).collect()
}

fn verdicts(report: &ScenarioReport) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        text += if text.is_empty() { "\nverdicts\n" } else { "" };
        wrap(&mut text, &format!("[{}] ", verdict.holds.words()), &verdict.claim);
        wrap(&mut text, "    claimed: ", &verdict.theirs);
        wrap(&mut text, "    here:    ", &verdict.ours);
    }
    text
}

fn remarks(rows: &[Row]) -> String {
    let mut text = String::new();
    for (title, remarks) in grid::remarks(rows) {
        text += &if remarks.is_empty() { String::new() } else { format!("\n{title}\n") };
        for (what, ids) in remarks {
            let more = ids.len().saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            wrap(&mut text, "- ", what);
            let named = ids[..ids.len().min(NAMED_MAX)].join(", ");
            wrap(&mut text, "  ", &format!("{}: {named}{more}", counted(ids.len(), "row")));
        }
    }
    text
}

/// As [`wrap_at`], in lines that fit a wide terminal.
pub(crate) fn wrap(text: &mut String, before: &str, words: &str) {
    wrap_at(text, before, words, WIDTH);
}
