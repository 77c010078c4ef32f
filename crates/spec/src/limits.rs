//! What a service needs at least, held against its limits: one that can never get ready would only
//! be restarted in vain.

use crate::diagnostic::{Report, Span};
use crate::draft::{Draft, Role};
use crate::join::Joined;
use crate::keys::DESCRIPTORS_MIN;
use crate::place::Home;

/// Nodes and ends of links in a domain.
#[derive(Clone, Copy, Default)]
struct Members {
    nodes: u64,
    ends: u64,
}

/// Reports limits below what the nodes and links of a service need. `homes` may have gaps; what is
/// there already needs so much.
pub(crate) fn check(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    homes: &[Option<Home>],
    report: &mut Report,
) {
    let mut members = vec![Members::default(); draft.domains.len()];
    for home in homes.iter().flatten() {
        members[home.domain].nodes += 1;
    }
    for end in joined.iter().flat_map(|link| [link.from, link.to]) {
        if let Some(home) = homes[end.node] {
            members[home.domain].ends += 1;
        }
    }
    for (domain, members) in draft.domains.iter().zip(members) {
        let Role::Service(service) = &domain.role else { continue };
        let Members { nodes, ends } = members;
        let limits = &service.plan.limits;
        let mut check = |key: &str, limit: Option<u64>, at: Span, needed: u64, why: String| {
            if let Some(limit) = limit.filter(|&limit| limit < needed) {
                let message = format!(
                    "service '{}' cannot live with {key}: {limit}; it needs {needed}",
                    domain.name.text
                );
                report.error(at, message, format!("write {key}: {needed} or more: {why}"));
            }
        };
        let why = format!("a thread for each of its {nodes} nodes, and one that watches them");
        check("processes", limits.processes, service.processes_at, nodes + 1, why);
        let own = DESCRIPTORS_MIN as u64;
        let why = format!("{own} to begin with, and one for each of {ends} ends of links");
        check("descriptors", limits.descriptors, service.descriptors_at, own + ends, why);
    }
}
