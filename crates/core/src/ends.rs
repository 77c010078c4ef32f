//! Which ends of links a thread has, and which links share one: derived from the plan alone.

use sinew_plan::plan::{Delivery, Link, Plan, Transport};

/// The ends of links to elsewhere that a thread with these nodes has, in the order of their words
/// in its record: for each node the links that it reads, then those that it writes.
pub fn link_ends(plan: &Plan, nodes: &[usize]) -> Vec<usize> {
    let mut ends = Vec::new();
    for &node in nodes {
        let crossing = || plan.links.iter().enumerate().filter(|(_, link)| !link.fused);
        ends.extend(crossing().filter(|(_, link)| link.to.node == node).map(|(at, _)| at));
        let written = crossing().filter(|(_, link)| link.from.node == node);
        ends.extend(written.map(|(at, _)| at).filter(|&at| leader(plan, at) == at));
    }
    ends
}

/// The link whose writing end also serves link `link`: readers of one broadcast region share it.
/// Each service domain has a region of its own, so that no service can spoil it for another reader.
pub fn leader(plan: &Plan, link: usize) -> usize {
    let this = &plan.links[link];
    if this.delivery != Delivery::Broadcast {
        return link;
    }
    let service =
        |link: &Link| plan.is_service(link.to.node).then(|| plan.nodes[link.to.node].domain);
    let shares = |other: &Link| {
        !this.fused
            && service(other) == service(this)
            && !other.fused
            && (other.from, other.delivery) == (this.from, Delivery::Broadcast)
            && other.part == this.part
            && other.transport == this.transport
            && matches!(this.transport, Transport::InProcess | Transport::SharedMemory)
    };
    plan.links.iter().position(shares).unwrap_or(link)
}

/// Whether a link, or one that shares its writing end, has its ends in two domains: then the parent
/// opens it, otherwise the domain itself.
pub fn crosses_domains(plan: &Plan, link: usize) -> bool {
    let crosses =
        |link: &Link| plan.nodes[link.from.node].domain != plan.nodes[link.to.node].domain;
    if plan.links[link].delivery != Delivery::Broadcast {
        return crosses(&plan.links[link]);
    }
    let same = |index: &usize| leader(plan, *index) == leader(plan, link);
    (0..plan.links.len()).filter(same).any(|index| crosses(&plan.links[index]))
}
