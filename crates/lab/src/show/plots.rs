//! Which plots a report gets: that follows from the axes and measures of its rows.

mod bars;
mod distributions;
mod frame;
mod reference;
mod sizes;

use super::grid::{UNKNOWN, distinct};
use super::svg::Plot;
use super::units::{self, words};
use crate::report::{Measure, Report, Row};

/// More curves than these cannot be told from each other.
const CURVES_MAX: usize = 12;
/// So many bars fit a sheet of paper.
const BARS_MAX: usize = 36;
/// The axis that a measure is drawn over where a report has it.
const SIZE_AXIS: &str = "bytes";

/// All plots of a report.
pub fn plots(report: &Report) -> Vec<Plot> {
    let mut plots = vec![];
    let measures = report.rows.iter().flat_map(|row| &row.measures);
    for measure in distinct(measures.map(|measure| measure.name.as_str())) {
        let items: Vec<_> = items(&report.rows, measure, &|_| true);
        let lines = lines(&report.rows, measure);
        add(&mut plots, "size", measure, &split(lines, CURVES_MAX), sizes::plot);
        add(&mut plots, "median", measure, &split(items.clone(), BARS_MAX), bars::plot);
        let times = split(items, CURVES_MAX);
        add(&mut plots, "distribution", measure, &times, distributions::plot);
    }
    plots.extend(reference::plot(&report.rows));
    plots
}

fn add(
    plots: &mut Vec<Plot>,
    what: &str,
    measure: &str,
    parts: &[Part<'_>],
    draw: fn(&str, &str, &Part<'_>) -> Plot,
) {
    for (number, part) in parts.iter().enumerate() {
        let number = if parts.len() > 1 { format!("-{}", number + 1) } else { String::new() };
        let name = format!("{what}-{measure}{number}").replace(|c| !is_plain(c), "_");
        plots.push(draw(&name, measure, part));
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

/// What becomes a curve or a bar: one row, or several along an axis.
#[derive(Clone)]
struct Item<'a> {
    /// Those on which it stands still.
    axes: Vec<(&'a str, &'a str)>,
    rows: Vec<(&'a Row, &'a Measure)>,
}

impl<'a> Item<'a> {
    fn axis(&self, name: &str) -> Option<&'a str> {
        self.axes.iter().find(|(axis, _)| *axis == name).map(|(_, value)| *value)
    }
}

/// A row each.
fn items<'a>(rows: &'a [Row], measure: &str, wanted: &dyn Fn(&Row) -> bool) -> Vec<Item<'a>> {
    let item = |row: &'a Row| {
        let measure = row.measure(measure).filter(|measure| measure.distribution.n() > 0)?;
        let axes = row.axes.iter().map(|(axis, value)| (axis.as_str(), value.as_str()));
        Some(Item { axes: axes.collect(), rows: vec![(row, measure)] })
    };
    rows.iter().filter(|row| wanted(row)).filter_map(item).collect()
}

/// Rows that differ in nothing but their size, least first; at least two of them.
fn lines<'a>(rows: &'a [Row], measure: &str) -> Vec<Item<'a>> {
    let mut lines: Vec<Item<'a>> = vec![];
    for mut item in items(rows, measure, &|row| size(row).is_some()) {
        item.axes.retain(|(axis, _)| *axis != SIZE_AXIS);
        match lines.iter_mut().find(|line| line.axes == item.axes) {
            Some(line) => line.rows.append(&mut item.rows),
            None => lines.push(item),
        }
    }
    let by_size = |a: &Row, b: &Row| size(a).unwrap_or(0.0).total_cmp(&size(b).unwrap_or(0.0));
    lines.iter_mut().for_each(|line| line.rows.sort_by(|(a, _), (b, _)| by_size(a, b)));
    lines.retain(|line| line.rows.len() > 1);
    lines
}

fn size(row: &Row) -> Option<f64> {
    row.axis(SIZE_AXIS)?.parse().ok().filter(|bytes| *bytes > 0.0)
}

/// What one plot shows.
struct Part<'a> {
    items: Vec<Item<'a>>,
}

impl<'a> Part<'a> {
    /// Axes on which its items differ.
    fn varying(&self) -> Vec<&'a str> {
        let axes = self.items.iter().flat_map(|item| &item.axes);
        let names = distinct(axes.map(|(axis, _)| *axis));
        let differ =
            |name: &&str| self.items.iter().any(|item| item.axis(name) != self.items[0].axis(name));
        names.into_iter().filter(differ).collect()
    }

    /// Those on which they agree, and how; nothing where there is only one.
    fn subtitle(&self) -> String {
        let varying = self.varying();
        if varying.is_empty() {
            return String::new();
        }
        let axes = self.items[0].axes.iter().filter(|(axis, _)| !varying.contains(axis));
        let fixed: Vec<_> = axes.map(|(axis, value)| format!("{} {value}", words(axis))).collect();
        fixed.join(", ")
    }

    /// What an item is called beside the others.
    fn label(&self, item: &Item<'_>) -> String {
        let varying = self.varying();
        let is_shown = |axis: &str| varying.is_empty() || varying.contains(&axis);
        let axes = item.axes.iter().filter(|(axis, value)| is_shown(axis) && *value != UNKNOWN);
        let value = |(axis, value): &(&str, &str)| match (*axis, value.parse()) {
            (SIZE_AXIS, Ok(bytes)) => units::size(bytes),
            _ => value.to_string(),
        };
        axes.map(value).collect::<Vec<_>>().join(" ")
    }
}

/// Parts of `most` items at most, by the values on an axis if possible.
fn split(items: Vec<Item<'_>>, most: usize) -> Vec<Part<'_>> {
    if items.is_empty() {
        return vec![];
    }
    let part = Part { items };
    if part.items.len() <= most {
        return vec![part];
    }
    // What crosses is compared at one size; else the fewest plots are best.
    let plots = |axis: &str, groups: &Vec<Vec<Item<'_>>>| -> (bool, usize, usize) {
        let parts = groups.iter().map(|group| group.len().div_ceil(most)).sum();
        (axis != SIZE_AXIS, parts, groups.len())
    };
    let groups = part.varying().into_iter().map(|axis| (axis, by_value(&part.items, axis)));
    let best = groups.min_by_key(|(axis, groups)| plots(axis, groups));
    match best.map(|(_, groups)| groups) {
        Some(groups) => groups.into_iter().flat_map(|group| split(group, most)).collect(),
        None => part.items.chunks(most).map(|items| Part { items: items.to_vec() }).collect(),
    }
}

fn by_value<'a>(items: &[Item<'a>], axis: &str) -> Vec<Vec<Item<'a>>> {
    let mut groups: Vec<Vec<Item<'a>>> = vec![];
    for item in items {
        match groups.iter_mut().find(|group| group[0].axis(axis) == item.axis(axis)) {
            Some(group) => group.push(item.clone()),
            None => groups.push(vec![item.clone()]),
        }
    }
    groups
}

/// How the curve of the item at this place looks: a hue, and a dash where hues come again.
fn class(at: usize) -> String {
    const HUES: usize = 6;
    format!("s{}{}", at % HUES, if at % (2 * HUES) < HUES { "" } else { " dashed" })
}
