//! Rows as tables: which columns there are and in which unit, and which values need no column.

use sinew_figures::Distribution;
use sinew_figures::interval::{Interval, NEEDS_ROUNDS};
use sinew_figures::units::{FigureUnit, ratio, words};

use crate::report::{Figure, Measure, Row, Table};

/// A figure that is not known, or that means nothing: a percentile with too few values beyond it.
pub(crate) const UNKNOWN: &str = "-";

/// A table as it is shown.
pub(crate) struct Grid {
    /// What it shows.
    pub(crate) title: String,
    /// Axes on which all rows agree.
    pub(crate) fixed: Vec<(String, String)>,
    /// The number of columns, the first ones, that are axes on which rows differ.
    pub(crate) axes: usize,
    /// All columns, each with as many cells as there are rows.
    pub(crate) columns: Vec<Column>,
}

/// A column.
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// The unit of all its figures; empty for a count, a ratio or words.
    pub(crate) unit: String,
    /// Whether it holds figures: all its cells begin with a digit, or are not known.
    pub(crate) is_figure: bool,
    /// One cell for each row.
    pub(crate) cells: Vec<String>,
}

/// A statistic of a distribution that is printed.
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

/// A table for each measure, in the order in which the rows name them. A measure that has only a
/// value for each round is left out.
pub(crate) fn measures(rows: &[Row]) -> Vec<Grid> {
    let all = rows.iter().flat_map(|row| &row.measures).filter(|of| of.distribution.n() > 0);
    let names = distinct(all.map(|of| of.name.as_str()));
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

/// Both ends of a ratio's interval.
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

/// A table of words.
pub(crate) fn of_words(table: &Table) -> Grid {
    let column = |(at, name): (usize, &String)| {
        // Rows of a table that came from a file may be too short.
        let cell = |row: &Vec<String>| row.get(at).cloned().unwrap_or_default();
        let cells: Vec<_> = table.rows.iter().map(cell).collect();
        let is_figure = |cell: &String| {
            cell.is_empty() || cell == UNKNOWN || cell.starts_with(|c: char| c.is_ascii_digit())
        };
        let is_figure = cells.iter().all(is_figure);
        Column { name: name.clone(), unit: String::new(), is_figure, cells }
    };
    let columns = table.columns.iter().enumerate().map(column).collect();
    Grid { title: table.title.clone(), fixed: vec![], axes: 0, columns }
}

impl Grid {
    fn new(title: String, rows: &[&Row]) -> Grid {
        // The row with the most axes decides their order; others may lack some.
        let whole = rows.iter().max_by_key(|row| row.axes.len());
        let axes = whole.into_iter().chain(rows).flat_map(|row| &row.axes);
        let names = distinct(axes.map(|(axis, _)| axis.as_str()));
        let differ = |name: &&str| rows.iter().any(|row| row.axis(name) != rows[0].axis(name));
        let (axes, fixed): (Vec<_>, Vec<_>) = names.into_iter().partition(differ);
        let value = |row: &Row, name: &str| row.axis(name).unwrap_or(UNKNOWN).to_string();
        let column = |name: &&str| Column {
            name: words(name),
            unit: String::new(),
            is_figure: false,
            cells: rows.iter().map(|row| value(row, name)).collect(),
        };
        Grid {
            title,
            fixed: fixed.into_iter().map(|name| (words(name), value(rows[0], name))).collect(),
            axes: axes.len(),
            columns: axes.iter().map(column).collect(),
        }
    }

    fn push(&mut self, name: &str, unit: &str, cells: impl Iterator<Item = String>) {
        let (name, unit, cells) = (name.into(), unit.into(), cells.collect());
        self.columns.push(Column { name, unit, is_figure: true, cells });
    }

    /// The axes on which all rows agree, in words.
    pub(crate) fn fixed(&self) -> String {
        let fixed = self.fixed.iter().map(|(axis, value)| format!("{axis} {value}"));
        fixed.collect::<Vec<_>>().join(", ")
    }

    /// Times get a unit that suits them; other figures keep theirs.
    fn push_figures(&mut self, name: &str, unit: &str, values: &[Option<f64>]) {
        let known: Vec<_> = values.iter().flatten().copied().collect();
        let (figures, name_of_unit) = match unit {
            "ns" => (FigureUnit::of_times(&known), FigureUnit::of_times(&known).name),
            unit => (FigureUnit::of_figures(&known), unit),
        };
        let cell = |value: &Option<f64>| value.map_or(UNKNOWN.into(), |it| figures.figure(it));
        self.push(name, name_of_unit, values.iter().map(cell));
    }
}

/// Each remark, and the rows that share it.
pub(crate) type Remarks<'a> = Vec<(&'a str, Vec<String>)>;

/// What differed from what was requested, and what was not measured, each with a title.
pub(crate) fn remarks(rows: &[Row]) -> [(&'static str, Remarks<'_>); 2] {
    let shared = |of: fn(&Row) -> Vec<&str>| {
        let all = rows.iter().flat_map(of);
        let rows_of = |what| {
            let rows = rows.iter().filter(|row| of(row).contains(&what));
            (what, rows.map(Row::id).collect())
        };
        distinct(all).into_iter().map(rows_of).collect()
    };
    [
        ("notes on rows", shared(|row| row.notes.iter().map(String::as_str).collect())),
        (
            "not measured, or not to the end",
            shared(|row| row.skipped.as_deref().into_iter().collect()),
        ),
    ]
}

/// Each name once, in the order of first appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = vec![];
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}
