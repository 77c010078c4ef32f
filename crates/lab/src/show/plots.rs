//! Which plots a report gets. That follows from the axes and measures of its rows.

mod bars;
mod beside_best;
mod distributions;
pub(crate) mod frame;
mod reference;
mod seen;
mod sizes;
mod trade_off;

use sinew_figures::units::{self, words};

use self::seen::Curves;
use super::grid::{UNKNOWN, distinct};
use super::svg::Plot;
use crate::report::{Measure, Row, ScenarioReport};

/// With more curves than this, they could not be told apart.
const CURVES_MAX: usize = 12;
/// This many bars fit on a sheet of paper.
const BARS_MAX: usize = 36;
/// A measure is drawn over this axis if a report has it.
const SIZE_AXIS: &str = "bytes";

/// All plots of a report.
pub fn plots(report: &ScenarioReport) -> Vec<Plot> {
    let mut plots: Vec<_> = trade_off::plot(&report.rows).into_iter().collect();
    let measures = report.rows.iter().flat_map(|row| &row.measures);
    for measure in distinct(measures.map(|measure| measure.name.as_str())) {
        let items: Vec<_> = items(&report.rows, measure, &|_| true);
        let lines = lines(&report.rows, measure);
        let whole = |items| Part { items, of: vec![] };
        add(&mut plots, "by-size", measure, &split(whole(lines), CURVES_MAX), sizes::plot);
        add(&mut plots, "medians", measure, &split(whole(items.clone()), BARS_MAX), bars::plot);
        let times = split(whole(items), CURVES_MAX);
        add(&mut plots, "distribution", measure, &times, distributions::plot);
    }
    plots.extend(reference::plot(&report.rows));
    plots.extend(beside_best::plot(&report.rows));
    plots
}

fn add(
    plots: &mut Vec<Plot>,
    what: &str,
    measure: &str,
    parts: &[Part<'_>],
    draw: fn(&str, &str, &Part<'_>) -> Plot,
) {
    for part in parts {
        let words = [&[measure.to_string(), what.into()], &part.of[..]].concat();
        let name = words.join("-").replace(|c| !is_plain(c), "_");
        plots.push(draw(&name, measure, part));
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '-' || letter == '_'
}

/// The data of one curve or bar: one row, or several rows along an axis.
#[derive(Clone)]
struct Item<'a> {
    /// Axes whose value is the same for all its rows.
    axes: Vec<(&'a str, &'a str)>,
    rows: Vec<(&'a Row, &'a Measure)>,
}

impl<'a> Item<'a> {
    fn axis(&self, name: &str) -> Option<&'a str> {
        self.axes.iter().find(|(axis, _)| *axis == name).map(|(_, value)| *value)
    }
}

/// An item for each row.
fn items<'a>(rows: &'a [Row], measure: &str, wanted: &dyn Fn(&Row) -> bool) -> Vec<Item<'a>> {
    let item = |row: &'a Row| {
        let measure = row.measure(measure).filter(|measure| measure.distribution.n() > 0)?;
        let axes = row.axes.iter().map(|(axis, value)| (axis.as_str(), value.as_str()));
        Some(Item { axes: axes.collect(), rows: vec![(row, measure)] })
    };
    rows.iter().filter(|row| wanted(row)).filter_map(item).collect()
}

/// Items of rows that differ only in their size, least first; each has at least two rows.
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
    /// What distinguishes it from other parts of the same plot: `processes`, `64 B`.
    of: Vec<String>,
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

    /// The axes on which all items agree, with their values; empty if there is only one item.
    fn subtitle(&self) -> String {
        let varying = self.varying();
        if varying.is_empty() {
            return String::new();
        }
        let axes = self.items[0].axes.iter().filter(|(axis, _)| !varying.contains(axis));
        let fixed: Vec<_> = axes.map(|(axis, value)| format!("{} {value}", words(axis))).collect();
        fixed.join(", ")
    }

    /// The name of an item next to the others.
    fn label(&self, item: &Item<'_>) -> String {
        let varying = self.varying();
        let is_shown = |axis: &str| varying.is_empty() || varying.contains(&axis);
        let axes = item.axes.iter().filter(|(axis, value)| is_shown(axis) && *value != UNKNOWN);
        axes.map(|(axis, value)| shown(axis, value)).collect::<Vec<_>>().join(" ")
    }
}

/// A value on an axis, as it is shown next to others.
fn shown(axis: &str, value: &str) -> String {
    match (axis, value.parse()) {
        (SIZE_AXIS, Ok(bytes)) => units::size(bytes),
        _ => value.to_string(),
    }
}

/// Splits into parts of at most `most` items, by the values on an axis if possible.
fn split(whole: Part<'_>, most: usize) -> Vec<Part<'_>> {
    if whole.items.is_empty() {
        return vec![];
    }
    if whole.items.len() <= most {
        return vec![whole];
    }
    // Rows that cross are compared at one size; otherwise the split with the fewest plots is best.
    let plots = |axis: &str, groups: &Vec<Part<'_>>| -> (bool, usize, usize) {
        let parts = groups.iter().map(|group| group.items.len().div_ceil(most)).sum();
        (axis != SIZE_AXIS, parts, groups.len())
    };
    let groups = whole.varying().into_iter().map(|axis| (axis, by_value(&whole, axis)));
    let best = groups.min_by_key(|(axis, groups)| plots(axis, groups));
    match best.map(|(_, groups)| groups) {
        Some(groups) => groups.into_iter().flat_map(|group| split(group, most)).collect(),
        None => {
            let mut parts = vec![];
            for (at, items) in whole.items.chunks(most).enumerate() {
                let of = [&whole.of[..], &[(at + 1).to_string()]].concat();
                parts.push(Part { items: items.to_vec(), of });
            }
            parts
        }
    }
}

fn by_value<'a>(whole: &Part<'a>, axis: &str) -> Vec<Part<'a>> {
    let mut groups: Vec<Part<'a>> = vec![];
    for item in &whole.items {
        match groups.iter_mut().find(|group| group.items[0].axis(axis) == item.axis(axis)) {
            Some(group) => group.items.push(item.clone()),
            None => {
                let value = item.axis(axis).filter(|value| *value != UNKNOWN);
                let value = value.map_or(format!("no {axis}"), |value| shown(axis, value));
                let of = [&whole.of[..], &[value]].concat();
                groups.push(Part { items: vec![item.clone()], of });
            }
        }
    }
    groups
}

/// The style of the curve of the item at this index: a hue, and a dash if the hue was used before
/// or if an earlier curve would be hidden.
fn class(at: usize, hides: bool) -> String {
    const HUES: usize = 6;
    let dash = match at % (2 * HUES) {
        _ if hides => " over",
        less if less < HUES => "",
        _ => " dashed",
    };
    format!("s{}{dash}", at % HUES)
}
