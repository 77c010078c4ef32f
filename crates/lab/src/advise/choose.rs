//! Which alternative is taken, and why not the others: from figures alone.

use sinew_figures::Interval;
use sinew_report::{Kept, judge_cpu, judge_latency};
use sinew_spec::plan::{Bound, Plan, RequiredOf, Requirement};

use super::trial::{CPU, CYCLE, cpu_of, cycles_of};
use crate::report::{Measure, Row};

/// What is not better by this much is not worth a change of the spec.
const WORTH: f64 = 0.05;
/// A cycle that is longer by no more than this share of the period is no reason to take CPU time
/// where no latency is required: whoever needs it requires it.
const SLACK: f64 = 0.01;
/// CPU times that differ by less, in hundredths of one CPU or of each other, are alike.
const CPU_ALIKE: (f64, f64) = (2.0, 0.1);

/// What is to be made small among all that meet the requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// Nothing bounds a latency: the shortest cycle.
    Latency,
    /// The latency is bounded: the least CPU time that keeps it.
    CpuTime,
}

/// An alternative that was measured.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// Its figures.
    pub row: &'a Row,
    /// Its plan.
    pub plan: &'a Plan,
    /// Whether other messages may arrive than now: it is measured and never chosen.
    pub changes_meaning: bool,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Place of the alternative; `None` if none is shown to keep all requirements.
    pub chosen: Option<usize>,
    /// What is said of each alternative.
    pub words: Vec<String>,
    /// What cannot be had: requirements that none keeps, or no two together.
    pub contradictions: Vec<String>,
    /// Those that could not be told from the one that was chosen.
    pub alike: Vec<usize>,
}

/// What the requirements make small.
pub fn objective(plan: &Plan) -> Objective {
    let bounds_latency =
        |it: &Requirement| matches!(it.bound, Bound::Latency(_) | Bound::LatencyMax(_));
    match plan.requirements.iter().any(bounds_latency) {
        true => Objective::CpuTime,
        false => Objective::Latency,
    }
}

/// Chooses. The first alternative is what stands there; the others follow in the order in which one
/// of equals is preferred. The period is that of the cycles.
pub fn choose(all: &[Measured<'_>], objective: Objective, period_ns: u64) -> Choice {
    let judged: Vec<Vec<(Kept, String)>> = all.iter().map(judge).collect();
    let keeps = |at: &usize| {
        all[*at].row.skipped.is_none()
            && all[*at].row.measure(CYCLE).is_some_and(|it| !it.rounds.is_empty())
            && judged[*at].iter().all(|(kept, _)| *kept == Kept::Yes)
    };
    let good: Vec<usize> =
        (0..all.len()).filter(|at| keeps(at) && !all[*at].changes_meaning).collect();
    let near = match objective {
        Objective::Latency => best_of(all, &good, Objective::Latency, SLACK * period_ns as f64),
        Objective::CpuTime => good,
    };
    let cheap = best_of(all, &near, Objective::CpuTime, 0.0);
    let alike = best_of(all, &cheap, Objective::Latency, 0.0);
    // What stands there stays if nothing is shown to be better; else the first of equals.
    let chosen = alike.first().copied();
    let words = (0..all.len()).map(|at| words(all, at, chosen, &alike, &judged[at])).collect();
    let contradictions = if chosen.is_none() { contradictions(all, &judged) } else { vec![] };
    let alike = alike.into_iter().filter(|&at| Some(at) != chosen).collect();
    Choice { chosen, words, contradictions, alike }
}

/// Those of `some` that cannot be told from the best, or are worse by no more than `within`.
fn best_of(all: &[Measured<'_>], some: &[usize], objective: Objective, within: f64) -> Vec<usize> {
    let value = |at: usize| value(all[at].row, objective);
    let best = some.iter().copied().min_by(|&a, &b| value(a).total_cmp(&value(b)));
    let Some(best) = best else { return vec![] };
    let alike = |at: &usize| {
        value(*at) - value(best) <= within || is_alike(all[*at].row, all[best].row, objective)
    };
    some.iter().copied().filter(alike).collect()
}

/// Every requirement of the alternative's plan, as its figures show it.
fn judge(of: &Measured<'_>) -> Vec<(Kept, String)> {
    let Measured { row, plan, .. } = of;
    let unseen = || (Kept::NotShown, "nothing was observed".to_owned());
    let latency = |name: &str, most_ns, of_all| {
        row.measure(name).map_or_else(unseen, |it| judge_latency(most_ns, of_all, &it.distribution))
    };
    let of_requirement = |requirement: &Requirement| {
        let name = |of: RequiredOf| match of {
            RequiredOf::Link(link) => plan.link_name(link),
            RequiredOf::Domain(at) => cycles_of(&plan.domains[at].name),
            RequiredOf::Graph => CYCLE.into(),
        };
        match requirement.bound {
            Bound::Latency(ns) => latency(&name(requirement.of), ns, false),
            Bound::LatencyMax(ns) => latency(&name(requirement.of), ns, true),
            Bound::Cpu(percent) => {
                let figure = match requirement.of {
                    RequiredOf::Domain(at) => cpu_of(&plan.domains[at].name),
                    _ => CPU.into(),
                };
                judge_cpu(percent, row.figure(&figure))
            }
            Bound::Isolation(asked) => match plan.less_isolated(requirement.of, asked).first() {
                None => (Kept::Yes, "so it is planned".into()),
                Some(&link) => (Kept::No, plan.isolation(&plan.links[link]).word().into()),
            },
        }
    };
    plan.requirements.iter().map(of_requirement).collect()
}

fn cycle(row: &Row) -> Option<&Measure> {
    row.measure(CYCLE)
}

fn value(row: &Row, objective: Objective) -> f64 {
    let value = match objective {
        Objective::CpuTime => row.figure(CPU),
        Objective::Latency => cycle(row).and_then(Measure::spread).map(|it| it.median),
    };
    value.unwrap_or(f64::INFINITY)
}

/// Whether a row cannot be told from the best, or is so little worse that it is not worth a change.
fn is_alike(row: &Row, best: &Row, objective: Objective) -> bool {
    if objective == Objective::CpuTime {
        let (this, best) = (value(row, objective), value(best, objective));
        // Where nobody has read it, it is no reason for anything.
        let is_more = this - best > CPU_ALIKE.0.max(best * CPU_ALIKE.1);
        return !is_more;
    }
    let over = cycle(row).zip(cycle(best)).and_then(|(row, best)| row.over(best));
    over.is_some_and(|over: Interval| !over.is_firm() || over.low <= 1.0 + WORTH)
}

fn words(
    all: &[Measured<'_>],
    at: usize,
    chosen: Option<usize>,
    alike: &[usize],
    judged: &[(Kept, String)],
) -> String {
    let Measured { row, plan, changes_meaning } = &all[at];
    if let Some(why) = &row.skipped {
        return format!("cannot be had: {why}");
    }
    let breaks = plan.requirements.iter().zip(judged).find(|(_, (kept, _))| *kept != Kept::Yes);
    if let Some((requirement, (kept, seen))) = breaks {
        let Requirement { bound, line, .. } = requirement;
        let subject = requirement.subject(plan);
        return format!("{}: {subject}, {bound} (line {line}): {seen}", kept.word());
    }
    if Some(at) == chosen {
        return if at == 0 { "chosen: it stays".into() } else { "chosen".into() };
    }
    let Some(best) = chosen.map(|chosen| all[chosen].row) else { return String::new() };
    if *changes_meaning {
        return format!("{}; other messages may arrive: yours to choose", beside(row, best));
    }
    if alike.contains(&at) {
        return "not distinguishable from the choice".into();
    }
    let cpu = |row: &Row| row.figure(CPU).unwrap_or_default();
    format!("{:+.0} % of a CPU; {}", cpu(row) - cpu(best), beside(row, best))
}

/// The cycle beside that of the choice, in words.
fn beside(row: &Row, best: &Row) -> String {
    let over = cycle(row).zip(cycle(best)).and_then(|(row, best)| row.over(best));
    match over {
        Some(over) if over.differs_from_one() => format!("cycle {over:.2} times as long"),
        Some(_) => "cycle not distinguishable".into(),
        None => "not measured".into(),
    }
}

/// Requirements that no alternative keeps, or else pairs of which none keeps both.
fn contradictions(all: &[Measured<'_>], judged: &[Vec<(Kept, String)>]) -> Vec<String> {
    let Some(first) = all.first() else { return vec![] };
    let count = first.plan.requirements.len();
    let keeps = |alternative: usize, requirement: usize| {
        all[alternative].row.skipped.is_none()
            && judged[alternative].get(requirement).is_some_and(|(kept, _)| *kept == Kept::Yes)
    };
    let some = |of: &dyn Fn(usize) -> bool| (0..all.len()).any(of);
    let name = |at: usize| {
        let requirement = &first.plan.requirements[at];
        let Requirement { bound, line, .. } = requirement;
        format!("'{bound}' of {} (line {line})", requirement.subject(first.plan))
    };
    let alone: Vec<usize> = (0..count).filter(|&it| !some(&|at| keeps(at, it))).collect();
    if !alone.is_empty() {
        let closest = |it: usize| {
            let shown = judged.iter().filter_map(|row| row.get(it)).map(|(_, seen)| seen.clone());
            shown.take(3).collect::<Vec<_>>().join("; ")
        };
        let text = |it: usize| {
            format!("no alternative here is shown to keep {}: {}", name(it), closest(it))
        };
        return alone.into_iter().map(text).collect();
    }
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    let apart = pairs.filter(|&(a, b)| !some(&|at| keeps(at, a) && keeps(at, b)));
    let text = |(a, b)| {
        format!("{} and {} contradict each other here: no alternative keeps both", name(a), name(b))
    };
    let mut texts: Vec<_> = apart.map(text).collect();
    if texts.is_empty() && count > 0 {
        texts.push("no alternative here keeps all requirements, though each two are kept".into());
    }
    texts
}

#[cfg(test)]
mod tests;
