//! Whether a run kept what its graph requires. What could not be observed counts as not kept.

use serde_json::{Value, json};
use sinew_core::trace::ThreadId;
use sinew_figures::Distribution;
use sinew_spec::plan::{Bound, Isolation, Plan, RequiredOf, Requirement};

use crate::links::{LinkStats, Links};
use crate::stats::Stats;
use crate::usage::ProcessUsage;

/// Whether a bound was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The bound was kept.
    Yes,
    /// The bound was not kept.
    No,
    /// Too little was observed to decide.
    NotShown,
}

impl Kept {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Kept::Yes => "kept",
            Kept::No => "broken",
            Kept::NotShown => "not shown",
        }
    }

    fn by(value: f64, most: f64) -> Kept {
        if value <= most { Kept::Yes } else { Kept::No }
    }
}

/// A requirement, and the result of a run for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// What was required.
    pub requirement: Requirement,
    /// What it is about: `link planner.out -> ik.in`.
    pub subject: String,
    /// Whether it was kept.
    pub kept: Kept,
    /// What was observed, or why nothing was.
    pub seen: String,
}

/// The result for a bound on a latency. With `of_all` no latency may be greater; without it, one of
/// a hundred may.
pub fn judge_latency(most_ns: u64, of_all: bool, times: &Distribution) -> (Kept, String) {
    let Some(max) = times.max() else { return (Kept::NotShown, "nothing was observed".into()) };
    let seen = |what: &str, ns: u64| format!("{what} {} us of {}", ns as f64 / 1e3, times.n());
    if max <= most_ns || of_all {
        return (Kept::by(max as f64, most_ns as f64), seen("at most", max));
    }
    match times.quantile(0.99) {
        Some(p99) => (Kept::by(p99 as f64, most_ns as f64), seen("p99", p99)),
        None => {
            let why = "a p99 needs a thousand of them: run it for longer";
            (Kept::NotShown, format!("{}; {why}", seen("at most", max)))
        }
    }
}

/// The result for a bound on CPU time.
pub fn judge_cpu(percent: u32, used: Option<f64>) -> (Kept, String) {
    match used {
        Some(used) => (Kept::by(used, f64::from(percent)), format!("{used:.1} %")),
        None => (Kept::NotShown, "its CPU time was not read twice: run it for longer".into()),
    }
}

/// The result for required isolation, from the plan.
fn judge_isolation(plan: &Plan, of: RequiredOf, asked: Isolation) -> (Kept, String) {
    let less = plan.less_isolated(of, asked);
    let Some(&first) = less.first() else { return (Kept::Yes, "the plan has it".into()) };
    let has = plan.isolation(&plan.links[first]).word();
    let name = match of {
        RequiredOf::Link(_) => String::new(),
        _ => format!("link {} has ", plan.link_name(first)),
    };
    (Kept::No, format!("{name}{has}"))
}

/// The results for all requirements of a plan.
pub fn judge(plan: &Plan, stats: &Stats, links: &Links, processes: &[ProcessUsage]) -> Vec<Judged> {
    let latency = |of: RequiredOf, most_ns: u64, of_all: bool| match of {
        RequiredOf::Link(link) => of_link(links.of(link), most_ns, of_all),
        RequiredOf::Domain(at) => of_cycles(of_domain(plan, stats, at), most_ns, of_all),
        RequiredOf::Graph => of_cycles(stats.control().map(|it| &it.latency), most_ns, of_all),
    };
    let judged = |&requirement: &Requirement| {
        let Requirement { of, bound, .. } = requirement;
        let (kept, seen) = match bound {
            Bound::Isolation(asked) => judge_isolation(plan, of, asked),
            Bound::Cpu(percent) => judge_cpu(percent, cpu_percent(of, processes)),
            Bound::Latency(ns) => latency(of, ns, false),
            Bound::LatencyMax(ns) => latency(of, ns, true),
        };
        Judged { requirement, subject: requirement.subject(plan), kept, seen }
    };
    plan.requirements.iter().map(judged).collect()
}

fn cpu_percent(of: RequiredOf, processes: &[ProcessUsage]) -> Option<f64> {
    match of {
        RequiredOf::Domain(domain) => processes.get(domain)?.cpu_percent(),
        _ => processes.iter().map(ProcessUsage::cpu_percent).sum(),
    }
}

/// The cycles of a domain: of the thread that its clock releases, or else of its first thread.
fn of_domain<'a>(plan: &Plan, stats: &'a Stats, domain: usize) -> Option<&'a Distribution> {
    let threads: Vec<_> =
        ThreadId::all_of(plan, domain).filter_map(|id| stats.thread(id)).collect();
    let by_timer = threads.iter().find(|thread| thread.is_timer_released());
    by_timer.or(threads.first()).map(|thread| &thread.latency)
}

fn of_cycles(times: Option<&Distribution>, most_ns: u64, of_all: bool) -> (Kept, String) {
    match times {
        Some(times) => judge_latency(most_ns, of_all, times),
        None => (Kept::NotShown, "it has no cycles".into()),
    }
}

fn of_link(row: Option<&LinkStats>, most_ns: u64, of_all: bool) -> (Kept, String) {
    let Some(row) = row else {
        return (Kept::NotShown, "only links between nodes of the core are timed".into());
    };
    let (kept, seen) = judge_latency(most_ns, of_all, &row.latency);
    if !row.may_lag || kept == Kept::No {
        return (kept, seen);
    }
    let why = "but the reader has its own clock, so a message may wait in the queue behind \
               others: let the link release the reader, or write delivery: latest";
    (Kept::NotShown, format!("the newest message: {seen}; {why}"))
}

impl Judged {
    /// As one JSON object of the report.
    pub fn to_json(&self) -> Value {
        json!({
            "of": self.subject,
            "requires": self.requirement.bound.to_string(),
            "line": self.requirement.line,
            "kept": self.kept.word(),
            "seen": self.seen,
        })
    }

    /// `link a.out -> b.in requires latency 10 us (line 7): broken, p99 12.1 us of 3000`.
    pub fn to_line(&self) -> String {
        let Judged { requirement: Requirement { bound, line, .. }, subject, kept, seen } = self;
        format!("{subject} requires {bound} (line {line}): {}, {seen}", kept.word())
    }
}

#[cfg(test)]
mod tests;
