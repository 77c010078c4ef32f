//! What a graph requires of its links, its domains and itself.

use std::collections::HashMap;

use sinew_plan::Span;
use sinew_plan::plan::{Bound, Isolation, Plan, RequiredOf, Requirement};

use crate::diagnostic::Report;
use crate::draft::{Draft, Required};
use crate::join::Joined;
use crate::place::{Home, Reach};

/// Reports requirements that could never be checked. `homes` may have gaps.
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
            unseen(
                &link.requires,
                draft.report,
                "a run does not see when a service takes a message",
            );
        }
    }
}

/// Reports the requirements of latency.
pub(crate) fn unseen(all: &[Required], report: &Report, why: &str) {
    for (bound, span) in all {
        if matches!(bound, Bound::Latency(_) | Bound::LatencyMax(_)) {
            let help = "remove it, or require it of a link or domain of the core";
            report.error(*span, format!("this latency cannot be promised: {why}"), help);
        }
    }
}

/// All requirements of a graph. `rank` gives the place of each domain in the plan; the links are
/// those of the plan.
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

/// Notes for requirements of isolation that are not met; no run is needed to know it.
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
