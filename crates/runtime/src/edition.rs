//! An edited graph that is to take the place of the one that runs, and what it may change: flow
//! nodes and the links between them, within the domains that have flows already. All else is made
//! once, at the start.

use std::collections::{BTreeMap, BTreeSet};

use sinew_flow::is_same;
use sinew_spec::plan::{
    Domain, End, Host, Link, Node, Plan, Realtime, Role, ServiceDomain, Thread,
};
use sinew_spec::{Brought, Span};

/// An edited graph, compiled and checked by whoever offers it.
#[derive(Clone, Debug)]
pub struct Edition {
    /// The text of the spec.
    pub text: String,
    /// Its plan, for the same CPUs and with the same overrides as the one that runs.
    pub plan: Plan,
    /// Nodes that read files which were edited: they count as changed.
    pub touched: Vec<String>,
    /// What it takes from outside, read anew.
    pub outside: Vec<Brought>,
}

/// The flow nodes that an edition changes, adds and removes, by name.
///
/// # Errors
/// It changes something that must stay; the text says what that is, and what to do.
pub(crate) fn changes(old: &Plan, edition: &Edition) -> Result<Vec<String>, String> {
    let new = &edition.plan;
    if let Some(what) = moved(old, new) {
        return Err(format!("{what}; stop the graph and run it again"));
    }
    let (before, after) = (flow_nodes(old), flow_nodes(new));
    let touched: BTreeSet<&str> = edition.touched.iter().map(String::as_str).collect();
    let is_changed = |name: &&str| match (before.get(name), after.get(name)) {
        (Some(&a), Some(&b)) => {
            let (here, there) = (&old.nodes[a], &new.nodes[b]);
            touched.contains(name)
                || here.domain != there.domain
                || !is_same(here, there)
                || !links(old, a).eq(links(new, b))
        }
        _ => true,
    };
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    Ok(names.into_iter().filter(is_changed).map(str::to_owned).collect())
}

/// What an edition changes of all that must stay.
fn moved(old: &Plan, new: &Plan) -> Option<String> {
    if old.name != new.name {
        return Some(format!("the graph's name changed from '{}' to '{}'", old.name, new.name));
    }
    if old.hold != new.hold {
        return Some("'hold' of the graph changed".into());
    }
    other_domains(old, new)
        .or_else(|| other_hosts(old, new))
        .or_else(|| moved_node(old, new))
        .or_else(|| moved_domain(old, new))
        .or_else(|| moved_link(old, new))
        .or_else(|| other_door(old, new))
}

fn other_domains(old: &Plan, new: &Plan) -> Option<String> {
    let names = |plan: &Plan| {
        let names: Vec<_> = plan.domains.iter().map(|domain| domain.name.clone()).collect();
        names.join(", ")
    };
    let (before, after) = (names(old), names(new));
    (before != after).then(|| format!("the domains changed from {before} to {after}"))
}

/// Hosts are joined once, by what both sides know from the start.
fn other_hosts(old: &Plan, new: &Plan) -> Option<String> {
    let hosts = |plan: &Plan| -> Vec<Host> {
        // Their place in the text does not matter.
        let host = |host: &Host| Host { span: Span::default(), ..host.clone() };
        plan.hosts.all.iter().map(host).collect()
    };
    let links = |plan: &Plan| (plan.hosts.links.clone(), plan.hosts.calls.clone());
    let same = hosts(old) == hosts(new) && links(old) == links(new);
    (!same).then(|| "the hosts of the graph, or the links between them, changed".into())
}

/// Two domains are joined when they are started.
fn other_door(old: &Plan, new: &Plan) -> Option<String> {
    let (before, after) = (old.doors(), new.doors());
    let (from, to) = after.difference(&before).next()?;
    let name = |at: usize| &new.domains[at].name;
    Some(format!(
        "packets cross from domain '{}' to '{}', and did not before",
        name(*from),
        name(*to)
    ))
}

fn moved_domain(old: &Plan, new: &Plan) -> Option<String> {
    old.domains.iter().zip(&new.domains).find_map(|(here, there)| {
        let name = &here.name;
        if here.user != there.user || !same_role(old, here, new, there) {
            return Some(format!("the settings of domain '{name}' changed"));
        }
        match (has_flows(old, here), has_flows(new, there)) {
            (false, true) => Some(format!("domain '{name}' had no flow node and gets one")),
            (true, false) => Some(format!("domain '{name}' loses its last flow node")),
            _ => None,
        }
    })
}

/// Whether two domains promise the same, whatever flow nodes they have.
fn same_role(old: &Plan, here: &Domain, new: &Plan, there: &Domain) -> bool {
    match (&here.role, &there.role) {
        (Role::Service(a), Role::Service(b)) => {
            let times =
                |it: &ServiceDomain| (it.start_deadline_ns, it.heartbeat_ns, it.stop_deadline_ns);
            let same = (a.flows, a.restart, a.limits) == (b.flows, b.restart, b.limits);
            same && a.cpus == b.cpus && times(a) == times(b)
        }
        (Role::Realtime(a), Role::Realtime(b)) => {
            let times = |it: &Realtime| (it.period_ns, it.deadline_ns, it.priority, it.overrun);
            let threads = |plan: &Plan, it: &Realtime| -> Vec<_> {
                let name = |&node: &usize| plan.nodes[node].name.clone();
                let names = |it: &Thread| it.nodes.iter().map(name).collect::<Vec<_>>();
                it.threads.iter().map(|it| (it.cpu, it.release, names(it))).collect()
            };
            times(a) == times(b) && threads(old, a) == threads(new, b)
        }
        _ => false,
    }
}

/// What an edition changes of the nodes that take no part in flows.
fn moved_node(old: &Plan, new: &Plan) -> Option<String> {
    let (before, after) = (other_nodes(old), other_nodes(new));
    let said = |plan: &Plan, node: usize| {
        let of = match plan.is_service(node) {
            true => format!("domain '{}'", plan.domains[plan.nodes[node].domain].name),
            false => "the core".into(),
        };
        format!("node '{}' of {of}", plan.nodes[node].name)
    };
    for (name, &node) in &before {
        let Some(&other) = after.get(name) else {
            return Some(format!("{} is gone", said(old, node)));
        };
        let (here, there) = (&old.nodes[node], &new.nodes[other]);
        let place = |it: &Node| (it.domain, it.thread);
        let is_same = is_same(here, there) && here.actuators == there.actuators;
        if place(here) != place(there) || !is_same {
            return Some(format!("{} changed", said(old, node)));
        }
    }
    let added = after.iter().find(|(name, _)| !before.contains_key(*name));
    added.map(|(_, &node)| format!("{} is new", said(new, node)))
}

fn moved_link(old: &Plan, new: &Plan) -> Option<String> {
    let written = |plan: &Plan, link: &Link| {
        let end = |end: End| {
            let node = &plan.nodes[end.node];
            format!("{}.{}", node.name, node.kind.port_name(end.port))
        };
        let options = (link.fused, link.transport, link.sync, link.delivery, link.wait);
        (end(link.from), end(link.to), options, (link.capacity, link.full, link.delay))
    };
    let all = |plan: &Plan| -> Vec<_> { plan.links.iter().map(|it| written(plan, it)).collect() };
    let (before, after) = (all(old), all(new));
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (from, to, ..) = before.get(same).or(after.get(same))?;
    Some(format!("the link that carries messages from {from} to {to} changed"))
}

/// Where the outputs of a flow node lead.
fn links(plan: &Plan, node: usize) -> impl Iterator<Item = (usize, &str, usize)> {
    let links = plan.flow_links_of(node).iter();
    links.map(|it| (it.from.port, &*plan.nodes[it.to.node].name, it.to.port))
}

pub(crate) fn has_flows(plan: &Plan, domain: &Domain) -> bool {
    domain.service().is_some_and(|service| service.nodes.iter().any(|&node| plan.is_flow(node)))
}

/// The nodes that take part in the flows of a run, by name.
fn flow_nodes(plan: &Plan) -> BTreeMap<&str, usize> {
    let services = plan.domains.iter().filter_map(Domain::service);
    let nodes = services.flat_map(|service| &service.nodes).copied();
    nodes.filter(|&at| plan.is_flow(at)).map(|at| (&*plan.nodes[at].name, at)).collect()
}

/// The nodes that take no part in flows, by name.
fn other_nodes(plan: &Plan) -> BTreeMap<&str, usize> {
    let all = plan.nodes.iter().enumerate().filter(|(at, _)| !plan.is_flow(*at));
    all.map(|(at, node)| (&*node.name, at)).collect()
}

#[cfg(test)]
mod tests;
