//! What a scenario found: rows of figures, and what follows from them. It can be written as JSON
//! and read again.

use serde::{Deserialize, Serialize};
use sinew_core::clock::Clock;
use sinew_figures::Distribution;
use sinew_figures::Interval;
use sinew_figures::Machine;
use sinew_figures::units::{ratio, time};

use crate::bar::{Bar, Holds};

/// How often the clock is read to measure what a reading costs.
const READINGS: usize = 10_000;
/// The version of the form of a report. It grows when rows or measures change their meaning.
/// Reports from before this field existed have none, which counts as 0.
pub const FORMAT: u32 = 1;

/// The outcome of one run of a scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ScenarioReport {
    /// Name of the scenario.
    pub scenario: String,
    /// Its form: [`FORMAT`].
    #[serde(default)]
    pub format: u32,
    /// The program that measured, as far as it knows itself. Older reports do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The machine it ran on.
    pub machine: Machine,
    /// What reading the clock costs.
    pub timer: Timer,
    /// Whether it was the short form.
    pub quick: bool,
    /// Whether it was interrupted: some rounds are missing, perhaps some rows, too.
    pub partial: bool,
    /// Rounds that were asked for.
    pub rounds: u32,
    /// What must be known before any figure is looked at. If there is such a warning, the tables
    /// come before the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Other tables, printed as they are, such as the literature beside our figures.
    pub tables: Vec<Table>,
    /// What follows from the figures.
    pub verdicts: Vec<Verdict>,
    /// What the reader must know: privileges that were refused, rows that cannot run here.
    pub notes: Vec<String>,
}

impl ScenarioReport {
    /// The report in a file's `text`, if it is complete and this program knows its format.
    ///
    /// # Errors
    /// What is wrong with it, and how to get a good one.
    pub fn read(text: &str) -> Result<ScenarioReport, String> {
        let report: ScenarioReport = serde_json::from_str(text).map_err(|error| {
            format!(
                "is not a report of the lab: {error}; make one with 'sinew lab SCENARIO --json'"
            )
        })?;
        match &report {
            ScenarioReport { partial: true, .. } => {
                Err("is partial: it was interrupted; let the scenario run to its end".into())
            }
            ScenarioReport { format, .. } if *format > FORMAT => Err(format!(
                "is a report of format {format}, and this program knows {FORMAT} at most; use the \
                 program that made it, or a newer one"
            )),
            _ => Ok(report),
        }
    }
}

/// The program that measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Its version.
    pub version: String,
    /// The commit that it was built from; none outside a repository.
    pub commit: Option<String>,
    /// When that was committed, seconds since 1970: commits are sorted by it.
    pub committed_s: Option<u64>,
    /// Whether its sources differed from that commit.
    #[serde(default)]
    pub changed: bool,
}

impl Build {
    /// Letters of a commit that suffice to identify it.
    const SHORT: usize = 10;

    /// The commit in short, with a plus if the sources differed from it.
    pub fn short(&self) -> Option<String> {
        let commit = self.commit.as_ref()?;
        let short: String = commit.chars().take(Build::SHORT).collect();
        Some(if self.changed { short + "+" } else { short })
    }
}

/// What a reading of the clock costs and how fine it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timer {
    /// Time between two readings in a row, median, ns. It is part of every value; nothing is
    /// subtracted.
    pub overhead_ns: f64,
    /// Smallest step, ns.
    pub resolution_ns: f64,
}

impl Timer {
    /// Reads the clock again and again; takes about a millisecond.
    pub fn measure(clock: Clock) -> Timer {
        let mut steps: Vec<u64> = Vec::with_capacity(READINGS);
        let mut before = clock.ticks();
        for _ in 0..READINGS {
            let now = clock.ticks();
            steps.push(now.wrapping_sub(before));
            before = now;
        }
        steps.sort_unstable();
        let overhead_ns = clock.exact_ns(steps[READINGS / 2]);
        Timer { overhead_ns, resolution_ns: clock.step_ns() }
    }

    /// In words, for the report.
    pub(crate) fn to_line(self) -> String {
        format!(
            "{} between two readings in a row, in every time and not subtracted; smallest step {}",
            time(self.overhead_ns),
            time(self.resolution_ns)
        )
    }
}

/// An axis: something in which rows differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its name: `transport`.
    pub name: &'static str,
    /// All its values, in the order of the table's rows.
    pub values: &'static [&'static str],
}

/// A contender and what was measured of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// What it is: axis and value, in the order of the table's columns.
    pub axes: Vec<(String, String)>,
    /// Times.
    pub measures: Vec<Measure>,
    /// Single figures.
    pub figures: Vec<Figure>,
    /// What differed from what was requested.
    pub notes: Vec<String>,
    /// Why it was not measured, or not to the end.
    pub skipped: Option<String>,
}

impl Row {
    /// A row with these values on these axes; nothing is measured yet.
    pub fn of(axes: &[(&str, &str)]) -> Row {
        let axes = axes.iter().map(|&(axis, value)| (axis.into(), value.into())).collect();
        Row { axes, ..Row::default() }
    }

    /// The value on an axis.
    pub fn axis(&self, name: &str) -> Option<&str> {
        self.axes.iter().find(|(axis, _)| axis == name).map(|(_, value)| value.as_str())
    }

    /// Whether it has these values on these axes.
    pub(crate) fn is(&self, axes: &[(&str, &str)]) -> bool {
        axes.iter().all(|&(axis, value)| self.axis(axis) == Some(value))
    }

    /// All values in one word: `shared_memory/lock_free/spin`.
    pub fn id(&self) -> String {
        let values: Vec<_> = self.axes.iter().map(|(_, value)| value.as_str()).collect();
        values.join("/")
    }

    /// A measure by its name.
    pub fn measure(&self, name: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.name == name)
    }

    /// A measure by its name; it is made if it is not there.
    pub fn measure_mut(&mut self, name: &str) -> &mut Measure {
        let at = self.measures.iter().position(|measure| measure.name == name);
        let at = at.unwrap_or_else(|| {
            self.measures.push(Measure { name: name.into(), ..Measure::default() });
            self.measures.len() - 1
        });
        &mut self.measures[at]
    }

    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// A time that was measured again and again, ns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measure {
    /// Its name: `cycle_latency`, `round_trip`, `per_message`.
    pub name: String,
    /// All values of all rounds.
    pub distribution: Distribution,
    /// The median of each round.
    pub rounds: Vec<f64>,
    /// Each round's median over the reference's in the same round; empty without a reference.
    pub ratios: Vec<f64>,
}

impl Measure {
    /// Adds a round: its values, their median, and the median of the reference, if there was one.
    pub fn add_round(&mut self, values: &Distribution, median: f64, reference: Option<f64>) {
        self.distribution.merge(values);
        self.rounds.push(median);
        self.ratios.extend(reference.map(|reference| median / reference));
    }

    /// The medians of the rounds, as an interval.
    pub fn spread(&self) -> Option<Interval> {
        Interval::of(&self.rounds)
    }

    /// The ratio to the reference.
    pub fn ratio(&self) -> Option<Interval> {
        Interval::of(&self.ratios)
    }

    /// The ratio of this measure to `other`, round by round, for the rounds that both have.
    pub fn over(&self, other: &Measure) -> Option<Interval> {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let ratios: Vec<_> = pairs.map(|(this, other)| this / other).collect();
        Interval::of(&ratios)
    }
}

/// A single figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its unit; empty for a count or a ratio.
    pub unit: String,
    /// Its value.
    pub value: f64,
}

impl Figure {
    /// With this name, unit and value.
    pub fn of(name: &str, unit: &str, value: f64) -> Figure {
        Figure { name: name.into(), unit: unit.into(), value }
    }
}

/// A table of words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn of<const N: usize>(
        title: &str,
        columns: [&str; N],
        rows: Vec<Vec<String>>,
    ) -> Table {
        Table { title: title.into(), columns: columns.map(Into::into).to_vec(), rows }
    }

    /// A ratio or a time as a cell, with both ends of its interval, to three digits.
    pub(crate) fn cell(of: Option<Interval>) -> String {
        let shown = |of: Interval| {
            let [middle, low, high] = [of.median, of.low, of.high].map(ratio);
            let few = if of.is_firm() { "" } else { ", too few rounds" };
            format!("{middle} ({low} to {high}{few})")
        };
        of.map_or("-".into(), shown)
    }

    /// For each bar: what must be reached, what was measured, if anything, and whether that is
    /// enough.
    pub fn of_bars(
        title: &str,
        bars: impl IntoIterator<Item = (String, Bar, Option<Interval>)>,
    ) -> Table {
        let row = |(what, bar, here): (String, Bar, Option<Interval>)| {
            let reached = match here.map(|here| bar.holds(here)) {
                Some(Holds::Yes) => "yes",
                Some(Holds::No) => "no",
                other => other.unwrap_or(Holds::NotMeasured).words(),
            };
            let here = here.map_or("-".into(), |here| here.to_string());
            vec![what, bar.to_string(), here, reached.into()]
        };
        let rows = bars.into_iter().map(row).collect();
        Table::of(title, ["ratio", "bar", "here", "reached"], rows)
    }
}

/// What was measured about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim.
    pub claim: String,
    /// The figures of the claim.
    pub theirs: String,
    /// The figures here.
    pub ours: String,
    /// Whether it holds here.
    pub holds: Holds,
}

impl Verdict {
    /// The verdict from the figures here in words and what follows from them, if there are any.
    pub fn of(
        claim: impl Into<String>,
        theirs: impl Into<String>,
        found: Option<(String, Holds)>,
    ) -> Verdict {
        let (ours, holds) = found.unwrap_or(("-".into(), Holds::NotMeasured));
        Verdict { claim: claim.into(), theirs: theirs.into(), ours, holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Medians of rounds around `ns`, with a noise of two hundredths.
    fn measured(ns: f64, seed: u64) -> Measure {
        let mut random = fastrand::Rng::with_seed(seed);
        let noise = |_| ns * (0.98 + 0.04 * random.f64());
        Measure { rounds: (0..20).map(noise).collect(), ..Measure::default() }
    }

    #[test]
    fn the_same_twice_is_not_distinguishable() {
        let differs = |seed: &u64| {
            let ratio = measured(300.0, seed * 7919).over(&measured(300.0, !seed));
            ratio.expect("rounds").differs_from_one()
        };
        // An interval of 95 % may miss in five of a hundred cases.
        let missed = (0..1000).filter(differs).count();
        assert!(missed < 80, "{missed} of 1000 differ from themselves");
    }

    #[test]
    fn a_tenth_is_seen_through_a_noise_of_two_in_a_hundred() {
        for seed in [1, 100, 1000] {
            let ratio = measured(330.0, seed).over(&measured(300.0, !seed)).expect("rounds");
            assert!(ratio.differs_from_one(), "{ratio:?}");
            assert!((1.08..1.12).contains(&ratio.median), "{ratio:?}");
            assert!(ratio.low <= ratio.median && ratio.median <= ratio.high, "{ratio:?}");
        }
    }

    #[test]
    fn reading_the_clock_takes_a_time_and_has_a_step() {
        let timer = Timer::measure(Clock::calibrate());
        assert!(timer.overhead_ns > 0.0 && timer.resolution_ns > 0.0, "{timer:?}");
        assert!(timer.resolution_ns <= timer.overhead_ns, "{timer:?}");
    }
}
