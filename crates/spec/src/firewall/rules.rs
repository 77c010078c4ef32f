//! The rules of the firewall, each checked on the plan alone.

use sinew_plan::catalogue::Direction;
use sinew_plan::plan::{Delivery, Link, Node, Plan, Sync, Transport, Wait};

use super::{Firewall, WaitsFor, direction};
use crate::keys::CAPACITY_MAX;
use crate::picture::count;

/// Violations of the firewall, in the order of the plan.
pub(super) fn violations(plan: &Plan, firewall: &Firewall) -> Vec<String> {
    let mut violations = misplaced(plan);
    for link in firewall.crossings.iter().map(|&at| &plan.links[at]) {
        let broken = crossing_rules(plan, link, direction(plan, link));
        violations.extend(broken.into_iter().map(|what| format!("{}: {what}", name(plan, link))));
    }
    violations.extend(stamps(plan));
    violations.extend(waits(plan, firewall));
    violations.extend(services(plan));
    violations.extend(crowded(firewall));
    violations
}

fn name(plan: &Plan, link: &Link) -> String {
    format!("link '{}' -> '{}'", plan.end_name(link.from), plan.end_name(link.to))
}

/// Nodes that may block but run in a cycle.
fn misplaced(plan: &Plan) -> Vec<String> {
    let wrong = plan.nodes.iter().filter(|node| {
        let serves = plan.domains[node.domain].service().is_some();
        serves != node.kind.runs_in.is_service()
    });
    let what = |node: &Node| {
        let domain = &plan.domains[node.domain].name;
        format!("node '{}' ({}) has no place in domain '{domain}'", node.name, node.kind.name)
    };
    wrong.map(what).collect()
}

/// The errors of a link between the core and a service.
fn crossing_rules(plan: &Plan, link: &Link, direction: Direction) -> Vec<&'static str> {
    let delivery = match direction {
        Direction::Out => link.delivery != Delivery::Queue,
        Direction::In => link.delivery != Delivery::Broadcast,
    };
    let is_bounded = (1..=CAPACITY_MAX).contains(&link.capacity);
    let is_guest = plan.carve_out(link).is_some();
    let shared = if is_guest { Transport::CarveOut } else { Transport::SharedMemory };
    let commands = direction == Direction::In && !is_guest && !plan.port(link.to).safe.is_empty();
    let rules = [
        (!link.fused, "a slot of a thread cannot leave the core"),
        (link.transport == shared, "it must lie in bytes that outlive a service"),
        (link.sync == Sync::LockFree, "a service that holds a lock would hold up the core"),
        (delivery, "with its delivery the core waits for the service, or loses its messages"),
        (is_bounded, "it has no bound"),
        (link.wait == Wait::Spin, "the core would sleep on it, or would have to wake a service"),
        (!link.delay, "it is delayed, and a service is not part of the cycle"),
        (!commands, "a service commands an actuator"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
}

/// Errors in the age limit of messages from other hosts.
fn stamps(plan: &Plan) -> Vec<String> {
    let mut violations = Vec::new();
    for link in &plan.links {
        let is_stamped = link.after_ns.is_some();
        let is_remote = plan.is_of_hosts(link.from.node) && !plan.is_service(link.to.node);
        let moves = !plan.nodes[link.to.node].actuators.is_empty();
        let rules = [
            (is_remote && !is_stamped, "messages from another host have no stamp"),
            (!is_remote && is_stamped, "messages have a stamp, but no other host writes it"),
            (is_remote && moves, "another host writes to a node that moves an actuator"),
        ];
        let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
        violations.extend(broken.map(|(_, what)| format!("{}: {what}", name(plan, link))));
    }
    violations
}

/// Services among the things that a realtime thread can wait for.
fn waits(plan: &Plan, firewall: &Firewall) -> Vec<String> {
    let mut violations = Vec::new();
    for thread in &firewall.threads {
        let links = thread.waits.iter().filter_map(|wait| match wait {
            WaitsFor::Link(_, link) => Some(&plan.links[*link]),
            WaitsFor::Clock => None,
        });
        for link in links.filter(|link| plan.leaves_core(link)) {
            let domain = &plan.domains[thread.domain].name;
            violations.push(format!(
                "thread {} of domain '{domain}' can wait for a service, on {}",
                thread.thread,
                name(plan, link)
            ));
        }
    }
    violations
}

/// A service that polls takes a CPU that the core may need.
fn services(plan: &Plan) -> Vec<String> {
    let inside = |link: &&Link| plan.is_service(link.from.node) && plan.is_service(link.to.node);
    let polls = |link: &&Link| matches!(link.wait, Wait::Spin | Wait::Yield);
    let wrong = plan.links.iter().filter(inside).filter(polls);
    wrong.map(|link| format!("{}: a service would poll on it", name(plan, link))).collect()
}

/// More threads that poll than CPUs: each uses up the time of the thread that it waits for.
fn crowded(firewall: &Firewall) -> Option<String> {
    let (polling, all, cpus) = (firewall.polling(), firewall.threads.len(), firewall.cpus);
    let crowded = polling > cpus || (polling > 0 && polling == cpus && all > cpus);
    crowded.then(|| format!("{polling} of {all} realtime threads poll, on {}", count(cpus, "CPU")))
}
