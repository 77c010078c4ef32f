//! The figures by which a row is compared with the same row of another report: the median and P99
//! of each time, and those single figures for which it is clear which direction is better.

use serde::Serialize;
use sinew_figures::short::rate;
use sinew_figures::units::{FigureUnit, time};

use crate::report::{Figure, Measure, Row, ScenarioReport};

/// What one figure is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// The row.
    pub row: String,
    /// The measure and its statistic, or the name of the single figure.
    pub measure: String,
    /// `ns` for all times.
    pub unit: String,
    /// Whether higher is better.
    pub higher_is_better: bool,
}

/// The suffix of a measure's name.
const P99: &str = " P99";

impl Headline {
    /// Whether it is a P99, which a run with few values does not have.
    pub(crate) fn is_p99(&self) -> bool {
        self.measure.ends_with(P99)
    }
}

/// A figure with its unit.
pub(crate) fn written(unit: &str, figure: f64) -> String {
    /// From here on, all digits would be more than anybody reads.
    const SHORT_FROM: f64 = 10_000.0;
    match unit {
        "ns" => time(figure),
        unit if figure >= SHORT_FROM => format!("{} {unit}", rate(figure)),
        unit => format!("{} {unit}", FigureUnit::of_figures(&[figure]).figure(figure)),
    }
}

/// One value of each headline for the whole run.
pub(crate) fn of_run(report: &ScenarioReport) -> Vec<(Headline, f64)> {
    let row = |row: &Row| {
        let id = row.id();
        let time = |measure: &Measure| {
            let median = measure.spread().map(|of| (measure.name.clone(), of.median));
            let p99 = measure.distribution.quantile(0.99);
            let p99 = p99.map(|ns| (format!("{}{P99}", measure.name), ns as f64));
            median.into_iter().chain(p99).collect::<Vec<_>>()
        };
        let times = row.measures.iter().flat_map(time);
        let mut found: Vec<_> = times.map(|(name, ns)| (time_of(&id, name), ns)).collect();
        let single = |figure: &Figure| Some((single(&id, figure)?, figure.value));
        found.extend(row.figures.iter().filter_map(single));
        found
    };
    report.rows.iter().filter(|row| row.skipped.is_none()).flat_map(row).collect()
}

/// The values that a report holds for every round: the medians of its times.
pub(crate) fn of_rounds(report: &ScenarioReport) -> Vec<(Headline, Vec<f64>)> {
    let row = |row: &Row| {
        let id = row.id();
        let time = |of: &Measure| (time_of(&id, of.name.clone()), of.rounds.clone());
        row.measures.iter().map(time).collect::<Vec<_>>()
    };
    report.rows.iter().filter(|row| row.skipped.is_none()).flat_map(row).collect()
}

fn time_of(row: &str, measure: String) -> Headline {
    Headline { row: row.into(), measure, unit: "ns".into(), higher_is_better: false }
}

/// Leaves out counts and figures of the machine: more of them is neither good nor bad.
fn single(row: &str, Figure { name, unit, .. }: &Figure) -> Option<Headline> {
    let higher_is_better = match unit.as_str() {
        "1/s" | "Hz" => true,
        "ns" => name == "slack_mean",
        "us" | "B" | "KiB" | "MiB" => false,
        "%" if name.ends_with("cpu") => false,
        _ => return None,
    };
    let (row, measure, unit) = (row.into(), name.clone(), unit.clone());
    Some(Headline { row, measure, unit, higher_is_better })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_way_is_better_follows_from_the_figure() {
        let better = |name, unit| {
            single("row", &Figure::of(name, unit, 1.0)).map(|headline| headline.higher_is_better)
        };
        assert_eq!(better("requests", "1/s"), Some(true));
        assert_eq!(better("slack_mean", "ns"), Some(true));
        assert_eq!(better("compute", "ns"), Some(false));
        assert_eq!(better("supervisor_cpu", "%"), Some(false));
        assert_eq!(better("cycles", ""), None);
        assert_eq!(better("stolen_by_host", "ms"), None);
    }

    #[test]
    fn a_run_has_one_figure_of_each_and_a_percentile_only_of_enough() {
        let mut row = Row::of(&[("transport", "pipe")]);
        let few = (1..=100).fold(Default::default(), |mut all: sinew_figures::Distribution, ns| {
            all.add(ns);
            all
        });
        row.measure_mut("round_trip").add_round(&few, 50.0, None);
        row.measure_mut("round_trip").add_round(&few, 52.0, None);
        let skipped = Row { skipped: Some("no CPU".into()), ..row.clone() };
        let report = ScenarioReport { rows: vec![row, skipped], ..ScenarioReport::default() };
        let found: Vec<_> = of_run(&report).into_iter().map(|(of, it)| (of.measure, it)).collect();
        assert_eq!(found, [("round_trip".to_owned(), 51.0)]);
        assert_eq!(of_rounds(&report)[0].1, [50.0, 52.0]);
    }
}
