//! Rows in columns, and figures as text, for the commands that reach a run.

use std::fmt::Display;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use sinew_figures::short::micros;

use crate::fit::{fit, fit_words, rows_of};
use crate::theme::Theme;

/// Columns between two columns.
const GAP: usize = 2;
/// Least width of the first cell of a row, if it must be cut because the screen is too narrow.
const FIRST_MIN: usize = 12;

/// The content of a column: words are aligned to the left, figures to the right.
#[derive(Debug)]
pub struct Cell {
    text: String,
    style: Style,
    is_figure: bool,
}

impl Cell {
    /// Words.
    pub fn new(text: impl Into<String>) -> Cell {
        Cell::styled(text, Style::new())
    }

    /// Emphasized words.
    pub fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: printable(&text.into()), style, is_figure: false }
    }

    /// A figure; `-` if it is not known.
    pub fn figure(figure: impl Display) -> Cell {
        Cell { is_figure: true, ..Cell::new(figure.to_string()) }
    }

    /// The same cell with a style.
    pub(crate) fn with(self, style: Style) -> Cell {
        Cell { style, ..self }
    }

    /// A time in microseconds.
    pub(crate) fn micros(ns: Option<u64>) -> Cell {
        Cell::figure(micros(ns))
    }

    /// A count that should be zero.
    pub fn count(n: u64, theme: Theme) -> Cell {
        Cell::figure(n).with(theme.count(n))
    }
}

#[derive(Debug)]
enum Row {
    Cells(Vec<Cell>),
    Note(Cell),
}

/// Rows below the names of their columns.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<&'static str>,
    /// Least width of each column, where one is given.
    least: Vec<usize>,
    rows: Vec<Row>,
}

impl Rows {
    /// No rows yet. The first column is the one that may be cut.
    pub fn new(columns: &[&'static str]) -> Rows {
        Rows { columns: columns.to_vec(), least: Vec::new(), rows: Vec::new() }
    }

    /// Sets the least widths of columns, so that figures that change often stay in their places.
    pub(crate) fn at_least(self, widths: &[usize]) -> Rows {
        Rows { least: widths.to_vec(), ..self }
    }

    /// Whether there are no rows below the names.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row, with a cell for each column.
    pub fn add(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// Words below the last row.
    pub fn note(&mut self, text: String, style: Style) {
        self.rows.push(Row::Note(Cell::styled(text, style)));
    }

    /// The lines, at most `columns` wide. Text that is cut off has a mark.
    pub fn lines(&self, theme: Theme, columns: usize) -> Vec<Line<'static>> {
        let widths = self.widths(columns);
        let cells = self.rows.iter().find_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Note(_) => None,
        });
        // A name is aligned like the cells below it.
        let is_figure =
            |at: usize| cells.and_then(|cells| cells.get(at)).is_some_and(|cell| cell.is_figure);
        let head = |(at, name): (usize, &&'static str)| Cell {
            is_figure: is_figure(at),
            ..Cell::styled(*name, theme.dim())
        };
        let head: Vec<_> = self.columns.iter().enumerate().map(head).collect();
        let has_head = self.columns.iter().any(|name| !name.is_empty());
        let mut lines: Vec<_> = has_head.then(|| line(&head, &widths)).into_iter().collect();
        for row in &self.rows {
            match row {
                Row::Cells(cells) => lines.push(line(cells, &widths)),
                Row::Note(note) => lines.extend(wrapped(note, columns)),
            }
        }
        lines.into_iter().map(|line| fit(line, columns)).collect()
    }

    fn widths(&self, columns: usize) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|name| name.len()).collect();
        widths.iter_mut().zip(&self.least).for_each(|(width, least)| *width = *least.max(width));
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.text.chars().count());
                }
            }
        }
        let all = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if let Some(first) = widths.first_mut() {
            let least = FIRST_MIN.min(*first);
            *first = first.saturating_sub(all.saturating_sub(columns)).max(least);
        }
        widths
    }
}

fn line(cells: &[Cell], widths: &[usize]) -> Line<'static> {
    let last = widths.len().saturating_sub(1);
    let span = |(at, (cell, &width)): (usize, (&Cell, &usize))| {
        let text = fit_words(&cell.text, width);
        let text = match cell.is_figure {
            true => format!("{text:>width$}"),
            // The space after the last words need not be filled.
            false if at == last => text,
            false => format!("{text:<width$}"),
        };
        [Span::raw(" ".repeat(GAP)), Span::styled(text, cell.style)]
    };
    // No gap before the first cell.
    Line::from(cells.iter().zip(widths).enumerate().flat_map(span).skip(1).collect::<Vec<_>>())
}

/// The lines of a note, indented.
fn wrapped(note: &Cell, columns: usize) -> Vec<Line<'static>> {
    let rows = rows_of("    ", &note.text, columns);
    rows.into_iter().map(|row| Line::styled(row, note.style)).collect()
}

/// Lines without styles, for a pipe.
pub fn plain(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
}

/// A text from others, without characters that could affect a terminal.
pub fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control(), "\u{fffd}")
}

/// An elapsed time, with the digits that are useful.
pub fn elapsed(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..60 => format!("{s}.{} s", ms % 1000 / 100),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {} min", s / 3600, s / 60 % 60),
        _ => format!("{} d {} h", s / 86_400, s / 3600 % 24),
    }
}

/// Memory; `-` if it is not known.
pub(crate) fn memory(kib: Option<u64>) -> String {
    kib.map_or("-".into(), |kib| format!("{:.1} MiB", kib as f64 / 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let mut rows = Rows::new(&["link", "lost"]);
        rows.add([Cell::new("ethercat.out > drives.in"), Cell::figure("1234567")]);
        rows.note("is broken".into(), Style::new());
        rows.add([Cell::new("a\x1b[2J"), Cell::figure(0)]);
        rows
    }

    #[test]
    fn columns_are_as_wide_as_what_stands_in_them() {
        let text = plain(&rows().lines(Theme { color: false }, 80));
        let expected = "\
link                         lost
ethercat.out > drives.in  1234567
    is broken
a\u{fffd}[2J                           0
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_narrow_screen_cuts_the_first_column() {
        let text = plain(&rows().lines(Theme { color: false }, 24));
        assert!(text.contains("\nethercat.out >…  1234567\n"), "{text}");
        let text = plain(&rows().lines(Theme { color: false }, 3));
        let words = text.lines().filter(|line| *line != "  …");
        assert_eq!(words.collect::<Vec<_>>(), ["li…", "et…", "a\u{fffd}…"]);
    }

    #[test]
    fn a_time_has_two_units_at_most() {
        let ms = [0, 59_999, 60_000, 3_661_000, 90_061_000];
        let expected = ["0.0 s", "59.9 s", "1 min 0 s", "1 h 1 min", "1 d 1 h"];
        assert_eq!(ms.map(elapsed), expected);
        assert_eq!((memory(Some(1536)), memory(None)), ("1.5 MiB".into(), "-".into()));
    }
}
