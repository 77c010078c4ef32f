//! Rows as tables: which columns there are, in which unit, and what is not worth a column.

use sinew_figures::Distribution;
use sinew_figures::interval::{Interval, NEEDS_ROUNDS};
use sinew_figures::units::{Unit, ratio, words};

use crate::report::{Figure, Measure, Row, Table};

/// A figure that is not known, or not worth the name: a percentile with too little beyond it.
pub(crate) const UNKNOWN: &str = "-";

/// A table of figures.
pub(crate) struct Grid {
    /// What it shows.
    pub(crate) title: String,
    /// Axes on which all rows agree.
    pub(crate) fixed: Vec<(String, String)>,
    /// Names of the axes on which they do not.
    pub(crate) axes: Vec<String>,
    /// The columns after those of the axes.
    pub(crate) columns: Vec<Column>,
    /// The rows: a value on each axis, then a cell in each column.
    pub(crate) rows: Vec<Cells>,
}

/// A column of figures.
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// The unit of all its figures; empty for a count or a ratio.
    pub(crate) unit: String,
}

/// A row of a table.
pub(crate) struct Cells {
    /// One of each axis of the grid.
    pub(crate) axes: Vec<String>,
    /// One of each column.
    pub(crate) figures: Vec<String>,
}

/// What is printed of a distribution.
type Statistic = (&'static str, fn(&Distribution) -> Option<f64>);
const STATISTICS: [Statistic; 7] = [
    ("mean", Distribution::mean),
    ("P50", |times| times.quantile(0.5).map(|ns| ns as f64)),
    ("P95", |times| times.quantile(0.95).map(|ns| ns as f64)),
    ("P99", |times| times.quantile(0.99).map(|ns| ns as f64)),
    ("P99.9", |times| times.quantile(0.999).map(|ns| ns as f64)),
    ("max", |times| times.max().map(|ns| ns as f64)),
    ("standard deviation", Distribution::stddev),
];

/// A table for each measure, in the order in which the rows name them.
pub(crate) fn measures(rows: &[Row]) -> Vec<Grid> {
    let names = distinct(rows.iter().flat_map(|row| &row.measures).map(|of| of.name.as_str()));
    names.into_iter().map(|name| of_measure(rows, name)).collect()
}

fn of_measure(rows: &[Row], name: &str) -> Grid {
    let with = |row| Row::measure(row, name).map(|measure| (row, measure));
    let (rows, measures): (Vec<_>, Vec<_>) = rows.iter().filter_map(with).unzip();
    let mut grid = Grid::new(words(name), &rows);
    grid.push("n", "", measures.iter().map(|of| of.distribution.n().to_string()));
    for (statistic, of) in STATISTICS {
        let values = measures.iter().map(|measure| of(&measure.distribution));
        grid.push_figures(statistic, "ns", &values.collect::<Vec<_>>());
    }
    let ratios: Vec<_> = measures.iter().map(|measure| measure.ratio()).collect();
    if ratios.iter().any(Option::is_some) {
        let dash = || UNKNOWN.into();
        let median = |of: &Option<Interval>| of.map_or_else(dash, |of| ratio(of.median));
        grid.push("ratio to reference", "", ratios.iter().map(median));
        grid.push("interval", "", ratios.iter().map(|of| of.map_or_else(dash, interval)));
    }
    grid
}

/// The single figures of all rows; `None` if there are none.
pub(crate) fn figures(rows: &[Row]) -> Option<Grid> {
    let rows: Vec<_> = rows.iter().filter(|row| !row.figures.is_empty()).collect();
    let all = || rows.iter().flat_map(|row| &row.figures);
    let mut columns: Vec<&Figure> = vec![];
    for figure in all() {
        if columns.iter().all(|column| column.name != figure.name) {
            columns.push(figure);
        }
    }
    let mut grid = Grid::new("further figures".into(), &rows);
    for column in &columns {
        let values: Vec<_> = rows.iter().map(|row| row.figure(&column.name)).collect();
        grid.push_figures(&words(&column.name), &column.unit, &values);
    }
    (!columns.is_empty()).then_some(grid)
}

/// Both ends of an interval around a ratio.
pub(crate) fn interval(of: Interval) -> String {
    let ends = format!("{} to {}", ratio(of.low), ratio(of.high));
    match of {
        of if !of.is_firm() => format!("{ends}, {NEEDS_ROUNDS}"),
        of if of.differs_from_one() => ends,
        _ => format!("{ends}, not distinguishable"),
    }
}

/// Whether a measure was taken against a reference.
pub(crate) fn has_ratio(measure: &Measure) -> bool {
    !measure.ratios.is_empty()
}

/// Whether a column of a table of words holds figures: all its cells begin with a digit, or are not
/// known.
pub(crate) fn is_figures(table: &Table, column: usize) -> bool {
    let is_figure = |cell: &str| {
        cell.is_empty() || cell == UNKNOWN || cell.starts_with(|c: char| c.is_ascii_digit())
    };
    table.rows.iter().all(|row| is_figure(word(row, column)))
}

/// A cell of a table of words; what came from a file may have rows that are too short.
pub(crate) fn word(row: &[String], column: usize) -> &str {
    row.get(column).map_or("", String::as_str)
}

impl Grid {
    fn new(title: String, rows: &[&Row]) -> Grid {
        // The row that has most axes tells their order; others may lack some.
        let whole = rows.iter().max_by_key(|row| row.axes.len());
        let axes = whole.into_iter().chain(rows).flat_map(|row| &row.axes);
        let names = distinct(axes.map(|(axis, _)| axis.as_str()));
        let differ = |name: &&str| rows.iter().any(|row| row.axis(name) != rows[0].axis(name));
        let (axes, fixed): (Vec<_>, Vec<_>) = names.into_iter().partition(differ);
        let value = |row: &Row, name: &str| row.axis(name).unwrap_or(UNKNOWN).to_string();
        let cells = |row: &&Row| Cells {
            axes: axes.iter().map(|name| value(row, name)).collect(),
            figures: vec![],
        };
        Grid {
            title,
            fixed: fixed.into_iter().map(|name| (words(name), value(rows[0], name))).collect(),
            rows: rows.iter().map(cells).collect(),
            axes: axes.into_iter().map(words).collect(),
            columns: vec![],
        }
    }

    fn push(&mut self, name: &str, unit: &str, cells: impl Iterator<Item = String>) {
        self.columns.push(Column { name: name.into(), unit: unit.into() });
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.figures.push(cell));
    }

    /// Times get the unit that suits them; other figures keep theirs.
    fn push_figures(&mut self, name: &str, unit: &str, values: &[Option<f64>]) {
        let known: Vec<_> = values.iter().flatten().copied().collect();
        let (figures, name_of_unit) = match unit {
            "ns" => (Unit::of_times(&known), Unit::of_times(&known).name),
            unit => (Unit::of_figures(&known), unit),
        };
        let cell = |value: &Option<f64>| value.map_or(UNKNOWN.into(), |it| figures.figure(it));
        self.push(name, name_of_unit, values.iter().map(cell));
    }
}

/// Each once, in the order of their first appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = vec![];
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}
