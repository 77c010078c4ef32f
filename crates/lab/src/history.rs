//! The same rows over many commits: one figure from each report, in the order of the commits, and
//! the places where the level of a row changes ([`change_points`]).
//!
//! The source of the figures does not matter: a [`Sighting`] is a commit, a row and a figure. One
//! source is reports of the lab, another is the file of the gate of instruction counts.

mod gate;
mod input;
mod show;

#[cfg(test)]
mod tests;

pub use self::gate::gate_sightings;
pub use self::input::{DatedReport, read, sightings};
pub use self::show::{to_page, to_text};

use serde::Serialize;
use sinew_figures::change_points::{ChangePoint, change_points};

use crate::headlines::Headline;

/// Where a figure was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SeenAt {
    /// The short form of the commit; `None` if the report does not know it.
    pub commit: Option<String>,
    /// When that was committed, seconds since 1970. The figures are sorted by it.
    pub committed_s: Option<u64>,
    /// The file.
    pub file: String,
    /// Why the figure is what it is, if the file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Index of its version among those of the gate's file, oldest first; 0 for a report.
    #[serde(skip)]
    place: usize,
}

/// A figure of a row at a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// What a figure must share with others to be in one series: scenario, form and machine.
    pub series: String,
    /// What the figure is of.
    pub headline: Headline,
    /// Where it was seen.
    pub origin: SeenAt,
    /// The figure.
    pub figure: f64,
    /// Whether it is a count without noise, so that each step of it is a change. Such figures come
    /// in the order of their commits, whatever the clocks of these said.
    pub exact: bool,
}

/// Where the level of a series changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelChange {
    /// Index of the first figure after it.
    pub at: usize,
    /// Mean from the previous change, or from the beginning.
    pub before: f64,
    /// Mean until the next change, or the end.
    pub after: f64,
    /// How often chance alone would show such a difference; `None` for exact figures.
    pub p: Option<f64>,
}

impl LevelChange {
    /// The changes of figures that are measured.
    fn tested(figures: &[f64]) -> Vec<LevelChange> {
        let change =
            |ChangePoint { at, before, after, p }| LevelChange { at, before, after, p: Some(p) };
        change_points(figures).into_iter().map(change).collect()
    }

    /// The changes of exact figures: each step.
    fn steps(figures: &[f64]) -> Vec<LevelChange> {
        let step = |(at, pair): (usize, &[f64])| match *pair {
            [before, after] if before != after => {
                Some(LevelChange { at: at + 1, before, after, p: None })
            }
            _ => None,
        };
        figures.windows(2).enumerate().filter_map(step).collect()
    }

    /// The level after it over the level before it, less one; `None` if the level before is zero.
    pub fn share(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before - 1.0)
    }
}

/// One figure of a row over the commits.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What all its figures share: scenario, form and machine, or the tools of the gate.
    pub of: String,
    /// What the figures are of.
    #[serde(flatten)]
    pub headline: Headline,
    /// Where they were seen.
    pub origins: Vec<SeenAt>,
    /// The figures.
    pub figures: Vec<f64>,
    /// Whether they are counts without noise.
    pub exact: bool,
    /// Where their level changes.
    pub changes: Vec<LevelChange>,
}

/// Figures over commits.
#[derive(Clone, Debug, Serialize)]
pub struct Progression {
    /// The series, those of the same scenario and machine together, and among them those with
    /// changes first.
    pub series: Vec<Series>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl Progression {
    /// Makes a history from figures that were seen in this order. Where commit times are known,
    /// they decide the order.
    pub fn of(mut seen: Vec<Sighting>, mut notes: Vec<String>) -> Progression {
        if seen.iter().all(|sighting| sighting.exact || sighting.origin.committed_s.is_some()) {
            // Figures of one commit keep their order.
            seen.sort_by_key(|it| it.origin.committed_s.filter(|_| !it.exact));
        } else {
            notes.push(
                "the order is the one in which the files were given: not all reports know when \
                 their commit was made"
                    .into(),
            );
        }
        let mut series: Vec<Series> = vec![];
        let mut left_out = 0;
        for Sighting { series: of, headline, origin, figure, exact } in seen {
            if !figure.is_finite() {
                left_out += 1;
                continue;
            }
            let is_it = |series: &&mut Series| series.of == of && series.headline == headline;
            match series.iter_mut().find(is_it) {
                Some(series) => {
                    series.origins.push(origin);
                    series.figures.push(figure);
                }
                None => series.push(Series {
                    of,
                    headline,
                    origins: vec![origin],
                    figures: vec![figure],
                    exact,
                    changes: vec![],
                }),
            }
        }
        if left_out > 0 {
            notes.push(format!("left out, because they are not numbers: {left_out} figures"));
        }
        for Series { exact, figures, changes, .. } in &mut series {
            *changes =
                if *exact { LevelChange::steps(figures) } else { LevelChange::tested(figures) };
        }
        // The sort is stable: otherwise the order of the reports remains.
        series.sort_by_key(|series| (series.of.clone(), series.changes.is_empty()));
        Progression { series, notes }
    }
}
