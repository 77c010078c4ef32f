//! What a graph requires of its links, its domains and itself.

use std::collections::HashMap;

use sinew_plan::Span;
use sinew_plan::plan::{Bound, Isolation, Plan, RequiredOf, Requirement};

use crate::diagnostic::Report;
use crate::draft::Draft;
use crate::fields::Fields;
use crate::join::Joined;
use crate::place::{Home, Reach};
use crate::value::duration_text;

/// A requirement, and where it stands.
pub(crate) type Required = (Bound, Span);

/// Reads the key `requires` of a mapping, if it is there. A link takes no CPU time of its own.
pub(crate) fn read(outer: &Fields<'_>, takes_cpu_time: bool) -> Vec<Required> {
    let Some(entry) = outer.entry("requires") else { return Vec::new() };
    let fields = outer.inner("requires");
    let number = |name: &str| Some((fields.number_if_given(name)?, fields.entry(name)?.span));
    let (latency, latency_max) = (number("latency"), number("latency_max"));
    if let (Some((p99_ns, span)), Some((max_ns, _))) = (latency, latency_max)
        && p99_ns > max_ns
    {
        let (p99, max) = (duration_text(p99_ns), duration_text(max_ns));
        let message = format!("latency {p99} says nothing beside latency_max {max}");
        fields.report.error(span, message, "remove it, or write less than latency_max");
    }
    let mut all = Vec::new();
    all.extend(latency.map(|(ns, span)| (Bound::Latency(ns), span)));
    all.extend(latency_max.map(|(ns, span)| (Bound::LatencyMax(ns), span)));
    if let Some(isolation) = fields.given_word("isolation", Isolation::ALL) {
        all.push((Bound::Isolation(isolation), fields.at("isolation")));
    }
    if takes_cpu_time {
        all.extend(number("cpu").map(|(percent, span)| (Bound::Cpu(percent as u32), span)));
    }
    if fields.entries().is_empty() {
        let help = "write a bound, such as {latency: 10us}, or remove it";
        outer.report.error(entry.span, "'requires' says nothing", help);
    }
    all
}

/// Reports requirements that nobody could see kept or broken. `homes` may have gaps.
pub(crate) fn check(draft: &Draft<'_>, joined: &[Joined<'_, '_>], homes: &[Option<Home>]) {
    let has_core = draft.domains.iter().any(|domain| !domain.is_service());
    if !has_core {
        unseen(&draft.requires, draft.report, "a graph without a core has no cycles");
    }
    for domain in draft.domains.iter().filter(|domain| domain.is_service()) {
        unseen(&domain.requires, draft.report, "a service has no cycles");
    }
    for Joined { from, to, link, .. } in joined {
        let (Some(a), Some(b)) = (homes[from.node], homes[to.node]) else { continue };
        if Reach::of(draft, a, b) != Reach::Core {
            unseen(&link.requires, draft.report, "nobody sees when a service takes a message");
        }
    }
}

/// Reports the latencies among them.
fn unseen(all: &[Required], report: &Report, why: &str) {
    for (bound, span) in all {
        if matches!(bound, Bound::Latency(_) | Bound::LatencyMax(_)) {
            let help = "remove it, or require it of a link or domain of the core";
            report.error(*span, format!("this latency cannot be promised: {why}"), help);
        }
    }
}

/// All requirements of a graph whose domains stand in the plan by `rank`; the links are those of
/// the plan.
pub(crate) fn all(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    rank: &[usize],
) -> Vec<Requirement> {
    let line = |span: Span| draft.lines.line(span.start as usize) as u32;
    let row = |of: RequiredOf| {
        move |&(bound, span): &Required| Requirement { of, bound, line: line(span) }
    };
    let of_graph = draft.requires.iter().map(row(RequiredOf::Graph));
    let of_domains = draft
        .domains
        .iter()
        .zip(rank)
        .flat_map(|(domain, &rank)| domain.requires.iter().map(row(RequiredOf::Domain(rank))));
    let of_links = joined
        .iter()
        .enumerate()
        .flat_map(|(at, joined)| joined.link.requires.iter().map(row(RequiredOf::Link(at))));
    of_graph.chain(of_domains).chain(of_links).collect()
}

/// What the plan says of isolation that is required and not there: no run is needed to see it.
pub(crate) fn notes(plan: &mut Plan) {
    let mut told: HashMap<usize, Isolation> = HashMap::new();
    let mut notes = Vec::new();
    for requirement in &plan.requirements {
        let Bound::Isolation(asked) = requirement.bound else { continue };
        for link in plan.less_isolated(requirement.of, asked) {
            if told.insert(link, asked) == Some(asked) {
                continue;
            }
            let (name, line) = (plan.link_name(link), requirement.line);
            let (has, asked) = (plan.isolation(&plan.links[link]).word(), asked.word());
            notes.push(format!(
                "link {name} has isolation {has}, and line {line} requires {asked}: 'sinew advise' \
                 says what to write"
            ));
        }
    }
    plan.notes.extend(notes);
}
