//! Two programs, or two reports, row by row: which rows cost more in the new one than in the old.
//!
//! Programs run the same scenarios in turns and give one figure of each row in every round, so that
//! whatever the machine does meanwhile affects both. For two reports, the rounds that they hold are
//! compared. `judge` says what follows for a row.

mod input;
mod judge;
mod show;
mod turns;

#[cfg(test)]
mod tests;

pub use self::input::{Input, read};
pub use self::judge::{Outlook, ROUNDS_MIN, Shift};
pub use self::show::{to_page, to_text};
pub use self::turns::{TurnReports, Turns};

use serde::Serialize;
use sinew_figures::Machine;
use sinew_figures::units::counted;

use crate::headlines::{Headline, of_rounds, of_run};
use crate::report::{Build, ScenarioReport};

/// One of the two programs or reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Contestant {
    /// Its file.
    pub file: String,
    /// What was built, as far as its reports know.
    pub build: Option<Build>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The old one.
    pub old: Contestant,
    /// The new one, which is judged.
    pub new: Contestant,
    /// Where both were measured.
    pub machine: Machine,
    /// The change, as a share, up to which a figure counts as the same.
    pub threshold: f64,
    /// Whether it was interrupted.
    pub partial: bool,
    /// Row by row; what needs a look comes first.
    pub rows: Vec<ComparedRow>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

/// A figure of a row in both.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedRow {
    /// The scenario.
    pub scenario: String,
    /// What the figure is of.
    #[serde(flatten)]
    pub headline: Headline,
    /// Figures of the old one, round by round.
    pub old: Vec<f64>,
    /// Figures of the new one, round by round.
    pub new: Vec<f64>,
    /// What follows from them.
    #[serde(flatten)]
    pub judged: Outlook,
}

/// Why nothing can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotCompare(pub String);

/// All figures of one side: the rounds of each.
type Rounds = Vec<(Headline, Vec<f64>)>;

impl Comparison {
    /// Compares reports that two programs gave in turns.
    ///
    /// # Errors
    /// If no row was measured by both; the error says why.
    pub fn of_programs(
        files: [&str; 2],
        found: &TurnReports,
        threshold: f64,
    ) -> Result<Self, CannotCompare> {
        let reports = || found.scenarios.iter().flat_map(|[old, new]| old.iter().zip(new));
        let Some((old, new)) = reports().next() else {
            return Err(CannotCompare(
                "it was interrupted before both had measured a round".into(),
            ));
        };
        let mut this = Comparison::new(files, [old, new], threshold);
        this.partial = found.partial;
        let mut rare = 0;
        for [old, new] in &found.scenarios {
            let Some(first) = old.first() else { continue };
            let (mut old_rounds, mut new_rounds) = (of_runs(old), of_runs(new));
            rare += leave_out_rare(&mut old_rounds, &mut new_rounds, old.len());
            this.add(&first.scenario, old_rounds, new_rounds, true);
        }
        if rare > 0 {
            this.notes.push(format!(
                "P99 of {} left out: not every run has ten values beyond it",
                counted(rare, "row")
            ));
        }
        this.finish(reports())
    }

    /// Compares two reports.
    ///
    /// # Errors
    /// If they differ in something that makes their figures incomparable; the error names it.
    pub fn of_reports(
        files: [&str; 2],
        reports: [&ScenarioReport; 2],
        threshold: f64,
    ) -> Result<Self, CannotCompare> {
        let [old, new] = reports;
        let differ = |what: &str, advice: &str| {
            let [a, b] = files;
            Err(CannotCompare(format!("'{a}' and '{b}' {what}; {advice}")))
        };
        if old.scenario != new.scenario {
            let what = format!("are of '{}' and of '{}'", old.scenario, new.scenario);
            return differ(&what, "compare reports of one scenario");
        }
        if old.format != new.format {
            let what = format!("have format {} and {}", old.format, new.format);
            return differ(&what, "measure both with programs of one format");
        }
        if old.quick != new.quick {
            let short = |report: &ScenarioReport| if report.quick { "quick" } else { "full" };
            let what = format!("are a {} and a {} form", short(old), short(new));
            return differ(&what, "compare two of one form");
        }
        let machines = new.machine.differences(&old.machine);
        if !machines.is_empty() {
            let what = format!("were taken on different machines: {}", machines.join("; "));
            let advice =
                format!("there is '{}', here '{}'; measure both on one", files[0], files[1]);
            return differ(&what, &advice);
        }
        let mut this = Comparison::new(files, reports, threshold);
        let rounds = of_rounds(new);
        let is_single = |of: &Headline| rounds.iter().all(|(other, _)| other != of);
        let single = of_run(new).iter().filter(|(of, _)| is_single(of)).count();
        if single > 0 {
            this.notes.push(format!(
                "{} left out: a report holds one of the whole run, as of every P99; programs in \
                 turns give one in each round",
                counted(single, "figure")
            ));
        }
        this.notes.push(
            "reports: what the machine did between both is part of each ratio; programs in turns \
             take it out"
                .into(),
        );
        this.add(&old.scenario, of_rounds(old), rounds, false);
        this.finish([(old, new)].into_iter())
    }

    fn new(files: [&str; 2], reports: [&ScenarioReport; 2], threshold: f64) -> Comparison {
        let side =
            |at: usize| Contestant { file: files[at].into(), build: reports[at].build.clone() };
        let machine = reports[1].machine.clone();
        let (old, new) = (side(0), side(1));
        Comparison { old, new, machine, threshold, partial: false, rows: vec![], notes: vec![] }
    }

    /// Adds the rows of a scenario: those that both have, and those that one of them lacks.
    fn add(&mut self, scenario: &str, old: Rounds, mut new: Rounds, is_paired: bool) {
        let scenario = || scenario.to_owned();
        for (headline, old) in old {
            let at = new.iter().position(|(of, _)| *of == headline);
            let (new, judged) = match at.map(|at| new.remove(at).1) {
                None => (vec![], Outlook::not_shown("the new one has no such figure")),
                // If the numbers of rounds differ, the rounds are not pairs and show nothing.
                Some(new) if is_paired && new.len() != old.len() => {
                    let why = format!("not in every run: {} and {}", old.len(), new.len());
                    (new, Outlook::not_shown(why))
                }
                Some(new) => {
                    let judged =
                        judge::judge(&old, &new, headline.higher_is_better, self.threshold);
                    (new, judged)
                }
            };
            self.rows.push(ComparedRow { scenario: scenario(), headline, old, new, judged });
        }
        for (Headline { row, measure, .. }, _) in new {
            self.notes.push(format!("{} {row}, {measure}: only the new one has it", scenario()));
        }
    }

    /// Sorts the rows of each scenario: what needs a look comes first. A comparison without rows is
    /// an error.
    fn finish<'a>(
        mut self,
        mut reports: impl Iterator<Item = (&'a ScenarioReport, &'a ScenarioReport)>,
    ) -> Result<Comparison, CannotCompare> {
        if self.rows.is_empty() {
            let skipped = reports.find_map(|(old, new)| {
                old.rows.iter().chain(&new.rows).find_map(|row| row.skipped.clone())
            });
            let why = skipped.map_or(String::new(), |why| format!("; the first one says: {why}"));
            return Err(CannotCompare(format!("no row was measured{why}")));
        }
        self.rows.sort_by_key(|row| (row.scenario.clone(), row.judged.change));
        Ok(self)
    }

    /// How many rows have this result.
    pub fn count(&self, change: Shift) -> usize {
        self.rows.iter().filter(|row| row.judged.change == change).count()
    }

    /// Whether no row is slower, and all are there.
    pub fn is_good(&self) -> bool {
        !self.partial && self.count(Shift::Slower) + self.count(Shift::NotShown) == 0
    }
}

/// Takes out each P99 that only some runs have: whether there were enough values for it was chance.
/// One that all runs of one side and no run of the other have stays, and counts as not shown.
/// Returns how many were taken out.
fn leave_out_rare(old: &mut Rounds, new: &mut Rounds, runs: usize) -> usize {
    let runs_with = |of: &Headline, rounds: &Rounds| {
        rounds.iter().find(|(other, _)| other == of).map_or(0, |(_, figures)| figures.len())
    };
    let is_rare = |of: &Headline| {
        let both = [runs_with(of, old), runs_with(of, new)];
        both.iter().any(|&some| some != 0 && some != runs)
    };
    let all = old.iter().chain(new.iter()).map(|(of, _)| of).filter(|of| of.is_p99());
    let mut rare: Vec<Headline> = vec![];
    for of in all.filter(|of| is_rare(of)) {
        if !rare.contains(of) {
            rare.push(of.clone());
        }
    }
    [old, new].into_iter().for_each(|rounds| rounds.retain(|(of, _)| !rare.contains(of)));
    rare.len()
}

/// The figures of each headline, run by run. A headline that a run lacks has fewer figures than the
/// others.
fn of_runs(reports: &[ScenarioReport]) -> Rounds {
    let mut all: Rounds = vec![];
    for (headline, figure) in reports.iter().flat_map(of_run) {
        match all.iter_mut().find(|(of, _)| *of == headline) {
            Some((_, figures)) => figures.push(figure),
            None => all.push((headline, vec![figure])),
        }
    }
    all
}
