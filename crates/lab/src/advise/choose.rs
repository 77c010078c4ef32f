//! Which alternative is chosen, and why not the others: decided by figures alone.

use std::collections::BTreeMap;

use sinew_figures::Interval;
use sinew_figures::units::time;
use sinew_report::{Kept, judge_cpu, judge_latency};
use sinew_spec::plan::{Bound, Plan, RequiredOf, Requirement};

use super::trial::{CPU, CYCLE, cpu_of, cycles_of};
use crate::report::{Measure, Row};

/// An alternative that is not better by this share is not worth a change of the spec.
const WORTH: f64 = 0.05;
/// Where no latency is required, a cycle that is longer by no more than this share of the period
/// does not justify more CPU time. Users who need a shorter one can require it.
const SLACK: f64 = 0.01;
/// CPU times are alike if they differ by less than 2 hundredths of a CPU, or by less than a tenth
/// of the smaller one.
const CPU_ALIKE: (f64, f64) = (2.0, 0.1);

/// What is to be minimised among all alternatives that meet the requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objective {
    /// Nothing bounds a latency: the shortest cycle.
    Latency,
    /// The latency is bounded: the least CPU time that keeps it.
    CpuTime,
}

/// An alternative that was measured.
#[derive(Clone, Debug)]
pub(super) struct Measured<'a> {
    /// Its figures.
    pub(super) row: &'a Row,
    /// Its plan.
    pub(super) plan: &'a Plan,
    /// Whether other messages may arrive than now. Such an alternative is measured and never
    /// chosen.
    pub(super) changes_meaning: bool,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the alternative; `None` if none is shown to keep all requirements.
    pub chosen: Option<usize>,
    /// What is said of each alternative.
    pub words: Vec<String>,
    /// What cannot be had: requirements that no alternative keeps, or pairs of which none keeps
    /// both.
    pub contradictions: Vec<String>,
    /// The alternatives that could not be distinguished from the chosen one.
    pub alike: Vec<usize>,
}

/// Alternatives that are not chosen whatever their figures are, and why not: something seen in
/// another run.
pub(super) type RuledOut = BTreeMap<usize, String>;

/// The figures of a row by which alternatives are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct By<'a> {
    pub(super) objective: Objective,
    /// The name of a measure.
    pub(super) latency: &'a str,
    /// The name of a figure.
    pub(super) cpu: &'a str,
    pub(super) period_ns: u64,
}

/// What the requirements ask to be minimised.
pub(super) fn objective(plan: &Plan) -> Objective {
    let bounds_latency =
        |it: &Requirement| matches!(it.bound, Bound::Latency(_) | Bound::LatencyMax(_));
    match plan.requirements.iter().any(bounds_latency) {
        true => Objective::CpuTime,
        false => Objective::Latency,
    }
}

/// Chooses. The first alternative is the graph as it is; the others follow in the order in which
/// one of equals is preferred. The period is that of the cycles.
pub(super) fn choose(
    all: &[Measured<'_>],
    ruled_out: &RuledOut,
    objective: Objective,
    period_ns: u64,
) -> Choice {
    let judged: Vec<Vec<(Kept, String)>> = all.iter().map(judge).collect();
    let keeps = |at: &usize| {
        all[*at].row.skipped.is_none()
            && all[*at].row.measure(CYCLE).is_some_and(|it| !it.rounds.is_empty())
            && judged[*at].iter().all(|(kept, _)| *kept == Kept::Yes)
    };
    let good = (0..all.len())
        .filter(|at| !all[*at].changes_meaning && !ruled_out.contains_key(at) && keeps(at));
    let by = By { objective, latency: CYCLE, cpu: CPU, period_ns };
    let alike = best(all, good.collect(), &by);
    // The graph stays as it is if nothing is shown to be better; otherwise the first of equals
    // wins.
    let chosen = alike.first().copied();
    let words = |at: usize| match ruled_out.get(&at) {
        Some(why) => why.clone(),
        None => words(all, at, chosen, &alike, &judged[at]),
    };
    let words = (0..all.len()).map(words).collect();
    let mut contradictions = if chosen.is_none() { contradictions(all, &judged) } else { vec![] };
    if chosen.is_none() && contradictions.is_empty() && !judged.iter().all(Vec::is_empty) {
        contradictions.push(match ruled_out.is_empty() {
            true => "no alternative here keeps all requirements, though each pair of them is kept \
                     by one"
                .into(),
            false => "no alternative was shown to keep all requirements with the graph's own \
                      nodes, too: the table says why"
                .into(),
        });
    }
    let alike = alike.into_iter().filter(|&at| Some(at) != chosen).collect();
    Choice { chosen, words, contradictions, alike }
}

/// Those of `some` that cannot be distinguished from the best of them.
pub(super) fn best(all: &[Measured<'_>], some: Vec<usize>, by: &By<'_>) -> Vec<usize> {
    let cpu = By { objective: Objective::CpuTime, ..*by };
    let latency = By { objective: Objective::Latency, ..*by };
    let near = match by.objective {
        Objective::Latency => best_of(all, &some, &latency, SLACK * by.period_ns as f64),
        Objective::CpuTime => some,
    };
    best_of(all, &best_of(all, &near, &cpu, 0.0), &latency, 0.0)
}

/// Those of `some` that cannot be distinguished from the best, or are worse by no more than
/// `within`.
fn best_of(all: &[Measured<'_>], some: &[usize], by: &By<'_>, within: f64) -> Vec<usize> {
    let value = |at: usize| value(all[at].row, by);
    let best = some.iter().copied().min_by(|&a, &b| value(a).total_cmp(&value(b)));
    let Some(best) = best else { return vec![] };
    let alike = |at: &usize| {
        value(*at) - value(best) <= within || is_alike(all[*at].row, all[best].row, by)
    };
    some.iter().copied().filter(alike).collect()
}

/// Every requirement of the alternative's plan: whether its figures show that it is kept.
pub(super) fn judge(of: &Measured<'_>) -> Vec<(Kept, String)> {
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
                None => (Kept::Yes, "the plan has it".into()),
                Some(&link) => (Kept::No, plan.isolation(&plan.links[link]).word().into()),
            },
        }
    };
    plan.requirements.iter().map(of_requirement).collect()
}

fn value(row: &Row, by: &By<'_>) -> f64 {
    let value = match by.objective {
        Objective::CpuTime => row.figure(by.cpu),
        Objective::Latency => row.measure(by.latency).and_then(Measure::spread).map(|it| it.median),
    };
    value.unwrap_or(f64::INFINITY)
}

/// Whether a row cannot be distinguished from the best, or is so little worse that a change is not
/// worth it.
fn is_alike(row: &Row, best: &Row, by: &By<'_>) -> bool {
    if by.objective == Objective::CpuTime {
        // If the CPU time was not read, it decides nothing.
        return !is_more_cpu(value(row, by), value(best, by));
    }
    let over = row.measure(by.latency).zip(best.measure(by.latency));
    let over = over.and_then(|(row, best)| row.over(best));
    over.is_some_and(|over: Interval| !over.is_firm() || over.low <= 1.0 + WORTH)
}

/// Whether one CPU time, % of a CPU, exceeds the other by an amount that counts.
fn is_more_cpu(this: f64, than: f64) -> bool {
    this - than > CPU_ALIKE.0.max(than * CPU_ALIKE.1)
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
        return format!("not possible: {why}");
    }
    let breaks = plan.requirements.iter().zip(judged).find(|(_, (kept, _))| *kept != Kept::Yes);
    if let Some((requirement, (kept, seen))) = breaks {
        let Requirement { bound, line, .. } = requirement;
        let subject = requirement.subject(plan);
        return format!("{}: {subject}, {bound} (line {line}): {seen}", kept.word());
    }
    if Some(at) == chosen {
        return if at == 0 { "chosen: the graph stays as it is".into() } else { "chosen".into() };
    }
    let Some(best) = chosen.map(|chosen| all[chosen].row) else { return String::new() };
    if *changes_meaning {
        return format!(
            "{}; other messages may arrive, so this choice is yours",
            takes(row, best, CYCLE)
        );
    }
    if alike.contains(&at) {
        return "not distinguishable from the choice".into();
    }
    beside(row, best, CYCLE, CPU)
}

/// A row compared with the best, in words: its CPU time and a measure.
pub(super) fn beside(row: &Row, best: &Row, measure: &str, cpu: &str) -> String {
    let used = |row: &Row| row.figure(cpu).unwrap_or_default();
    format!("{:+.0} % of a CPU; {}", used(row) - used(best), takes(row, best, measure))
}

fn takes(row: &Row, best: &Row, measure: &str) -> String {
    let what = if measure == CYCLE { "cycle " } else { "" };
    let over = row.measure(measure).zip(best.measure(measure));
    match over.and_then(|(row, best)| row.over(best)) {
        Some(over) if over.differs_from_one() => format!("{what}{over:.2} times as long"),
        Some(_) => format!("{what}not distinguishable"),
        None => "not measured".into(),
    }
}

/// Requirements that no alternative keeps; if there are none, pairs of which no alternative keeps
/// both.
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
            format!("no alternative here was shown to keep {}: {}", name(it), closest(it))
        };
        return alone.into_iter().map(text).collect();
    }
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    let apart = pairs.filter(|&(a, b)| !some(&|at| keeps(at, a) && keeps(at, b)));
    let text = |(a, b)| {
        format!("{} and {} contradict each other here: no alternative keeps both", name(a), name(b))
    };
    apart.map(text).collect()
}

/// The first requirement that the graph's own nodes did not keep, and what was seen.
pub(super) fn broken(own: &Measured<'_>) -> Option<String> {
    let mut judged = judge(own).into_iter().zip(&own.plan.requirements);
    let ((kept, seen), requirement) = judged.find(|((kept, _), _)| *kept != Kept::Yes)?;
    let Requirement { bound, line, .. } = requirement;
    let subject = requirement.subject(own.plan);
    Some(format!("with its own nodes {}: {subject}, {bound} (line {line}): {seen}", kept.word()))
}

/// Why an alternative that ran with the graph's own nodes is not chosen, compared with the graph as
/// it is; `None` if it holds.
pub(super) fn why_not(own: &Measured<'_>, stands: &Measured<'_>) -> Option<String> {
    if let Some(why) = broken(own) {
        return Some(why);
    }
    if broken(stands).is_some() {
        return None;
    }
    let cpu = |of: &Measured<'_>| of.row.figure(CPU);
    let cycle = |of: &Measured<'_>| of.row.measure(CYCLE)?.distribution.quantile(0.5);
    let (Some(cycle_ns), Some(stands_ns)) = (cycle(own), cycle(stands)) else {
        return Some("with its own nodes not shown: too few cycles were seen".into());
    };
    let is_shorter = (cycle_ns as f64) < stands_ns as f64 * (1.0 - WORTH);
    let is_cheaper =
        cpu(own).zip(cpu(stands)).is_some_and(|(own, stands)| is_more_cpu(stands, own));
    (!is_shorter && !is_cheaper).then(|| {
        let (cycle, stands) = (time(cycle_ns as f64), time(stands_ns as f64));
        format!("with its own nodes no better than the graph as it is: cycle {cycle} and {stands}")
    })
}

#[cfg(test)]
mod tests;
