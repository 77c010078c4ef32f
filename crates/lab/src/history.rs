//! The same rows over many commits: one figure of each report, in the order of the commits, and
//! where the level of a row changes ([`change_points`]).
//!
//! Where the figures come from does not matter: a [`Sighting`] is a commit, a row and a figure.
//! Reports of the lab are one source of them.

mod input;
mod show;

#[cfg(test)]
mod tests;

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
}

/// A figure of a row over the commits.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// What all its figures share: scenario, form and machine.
    pub of: String,
    /// What the figures are of.
    #[serde(flatten)]
    pub headline: Headline,
    /// Where they were seen.
    pub origins: Vec<SeenAt>,
    /// The figures.
    pub figures: Vec<f64>,
    /// Where their level changes.
    pub changes: Vec<ChangePoint>,
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
        if seen.iter().all(|sighting| sighting.origin.committed_s.is_some()) {
            // Those of one commit keep their order.
            seen.sort_by_key(|sighting| sighting.origin.committed_s);
        } else {
            notes.push(
                "the order is the one in which the files were given: not all reports know when \
                 their commit was made"
                    .into(),
            );
        }
        let mut series: Vec<Series> = vec![];
        let mut left_out = 0;
        for Sighting { series: of, headline, origin, figure } in seen {
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
                    changes: vec![],
                }),
            }
        }
        if left_out > 0 {
            notes.push(format!("left out, because they are no numbers: {left_out} figures"));
        }
        series.iter_mut().for_each(|series| series.changes = change_points(&series.figures));
        // Stable: else in the order of the reports.
        series.sort_by_key(|series| (series.of.clone(), series.changes.is_empty()));
        Progression { series, notes }
    }

    /// Change points of all series.
    pub fn changes(&self) -> usize {
        self.series.iter().map(|series| series.changes.len()).sum()
    }
}
