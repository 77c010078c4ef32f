//! The same rows over many commits: one figure of each report, in the order of the commits, and
//! where the level of a row changes ([`change_points`]).
//!
//! Where the figures come from does not matter: a [`Sighting`] is a commit, a row and a figure.
//! Reports of the lab are one source of them, the file of the gate of instruction counts another.

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
    /// The commit in short; none if the report does not know it.
    pub commit: Option<String>,
    /// When that was committed, seconds since 1970: it orders the figures.
    pub committed_s: Option<u64>,
    /// The file.
    pub file: String,
    /// Why the figure is what it is, if the file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Where its version stands among those of the gate's file, oldest first; 0 for a report.
    #[serde(skip)]
    place: usize,
}

/// A figure of a row at a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// What may stand in one series: the same scenario in the same form, on the same machine.
    pub series: String,
    /// What the figure is of.
    pub headline: Headline,
    /// Where it was seen.
    pub origin: SeenAt,
    /// The figure.
    pub figure: f64,
    /// Whether it is a count that chance does not move, so that each step of it is a change; and
    /// whether it comes in the order of its commits, whatever their clocks said.
    pub exact: bool,
}

/// Where the level of a series changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelChange {
    /// Index of the first figure after it.
    pub at: usize,
    /// Mean from the change before, or the beginning.
    pub before: f64,
    /// Mean until the next change, or the end.
    pub after: f64,
    /// How often chance alone would show such a difference; none of exact figures.
    pub p: Option<f64>,
}

impl LevelChange {
    /// Where figures that are measured change.
    fn tested(figures: &[f64]) -> Vec<LevelChange> {
        let change =
            |ChangePoint { at, before, after, p }| LevelChange { at, before, after, p: Some(p) };
        change_points(figures).into_iter().map(change).collect()
    }

    /// Each step of exact figures.
    fn steps(figures: &[f64]) -> Vec<LevelChange> {
        let step = |(at, pair): (usize, &[f64])| match *pair {
            [before, after] if before != after => {
                Some(LevelChange { at: at + 1, before, after, p: None })
            }
            _ => None,
        };
        figures.windows(2).enumerate().filter_map(step).collect()
    }

    /// What is after, over what was before, less one; nothing where zero was before.
    pub fn share(&self) -> Option<f64> {
        (self.before != 0.0).then(|| self.after / self.before - 1.0)
    }
}

/// A figure of a row over the commits.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What all its figures share: scenario, form and machine, or the gate's tools.
    pub of: String,
    /// What the figures are of.
    #[serde(flatten)]
    pub headline: Headline,
    /// Where they were seen.
    pub origins: Vec<SeenAt>,
    /// The figures.
    pub figures: Vec<f64>,
    /// Whether they are counts that chance does not move.
    pub exact: bool,
    /// Where their level changes.
    pub changes: Vec<LevelChange>,
}

/// Figures over commits.
#[derive(Clone, Debug, Serialize)]
pub struct Progression {
    /// Row by row; those that change come first.
    pub series: Vec<Series>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl Progression {
    /// Of figures that were seen in this order; where commits are known, theirs counts.
    pub fn of(mut seen: Vec<Sighting>, mut notes: Vec<String>) -> Progression {
        if seen.iter().all(|sighting| sighting.exact || sighting.origin.committed_s.is_some()) {
            // Those of one commit keep their order.
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
        // Stable: else in the order of the reports.
        series.sort_by_key(|series| (series.of.clone(), series.changes.is_empty()));
        Progression { series, notes }
    }
}
