//! Hosts: which domain runs on which host, and the links between them.
//!
//! A link between hosts is not among the plan's links. In the [part] of a host a service stands for
//! the other hosts: messages that leave go to it, and messages that arrive are written by it. So
//! the firewall between services and core also holds for other hosts.

mod part;

use std::collections::BTreeSet;

use sinew_plan::catalogue::{Kind, MESSAGE_SIZE_MAX, RunsIn};
use sinew_plan::plan::{
    Delivery, End, FlowLink, HostPlan, Link, RemoteCall, RemoteEnd, RemoteLink,
};

use crate::draft::{self, Draft, place_of_hosts, unknown_host};
use crate::fields::Named;
use crate::join::{Joined, show};
use crate::keys::{AFTER_NS, HOSTS_MAX};
use crate::options::part_leaves_core;
use crate::place::{Home, Reach};
use crate::requires::unseen;

pub(crate) use part::part;

/// The host of each domain; `None` in a graph without hosts, and if an error is reported already.
pub(crate) fn of_domains(draft: &Draft<'_>, catalogue: &[&'static Kind]) -> Vec<Option<usize>> {
    let Draft { hosts, report, .. } = draft;
    let find = |named: Named<'_>| {
        let found = hosts.iter().position(|host| host.name.text == named.text);
        if found.is_none() {
            unknown_host(named, hosts, report);
        }
        found
    };
    let of_graph = draft.host.map(find);
    let of_domain = |domain: &draft::Domain<'_>| match (domain.host, of_graph, hosts.len()) {
        (Some(named), ..) => find(named),
        (None, Some(given), _) => given,
        (None, None, 0) => None,
        (None, None, 1) => Some(0),
        (None, None, _) => {
            let message = format!("domain '{}' lacks 'host'", domain.name.text);
            let names: Vec<_> = hosts.iter().map(|host| host.name.text).collect();
            let help = format!("add 'host:' with one of {}", names.join(", "));
            report.error(domain.name.span, message, help);
            None
        }
    };
    let found: Vec<_> = draft.domains.iter().map(of_domain).collect();
    let all_found = draft.refused.is_empty() && found.iter().all(Option::is_some);
    for (at, host) in hosts.iter().enumerate().filter(|_| all_found) {
        if !found.contains(&Some(at)) {
            let message = format!("host '{}' has no domains", host.name.text);
            report.error(host.name.span, message, "remove it, or write it at a domain");
        }
    }
    if hosts.len() > HOSTS_MAX {
        let message = format!("the graph has {} hosts", hosts.len());
        let help = format!("at most {HOSTS_MAX}; make several graphs");
        report.error(place_of_hosts(hosts), message, help);
    }
    if !hosts.is_empty() {
        template(draft, catalogue);
    }
    one_manner(draft);
    routers(draft);
    found
}

/// Reports a router that only one host calls, and one that is itself a host of the graph.
fn routers(draft: &Draft<'_>) {
    let calling: Vec<_> =
        draft.hosts.iter().filter_map(|host| Some((host, host.router?))).collect();
    if let [(only, span)] = calling[..] {
        let message = format!("only host '{}' names a router", only.name.text);
        let help = "name it at each host that is to be reached through it, or remove it: two \
                    hosts speak through a router if both name one";
        draft.report.error(span, message, help);
    }
    for (host, span) in calling {
        let router = &host.plan.router;
        let is_there = |other: &&draft::Host<'_>| other.plan.address == *router;
        if let Some(other) = draft.hosts.iter().find(is_there) {
            let message = format!("the router of host '{}' is another host", host.name.text);
            let message = match other.name.text == host.name.text {
                true => format!("the router of host '{}' is that host itself", host.name.text),
                false => format!("{message}, '{}'", other.name.text),
            };
            let help = "write where a router of Zenoh listens (zenohd), or remove 'router': a host \
                        with an address needs none";
            draft.report.error(span, message, help);
        }
    }
}

/// Reports hosts without a certificate, or without a secret, if another host has one.
fn one_manner(draft: &Draft<'_>) {
    type Has = fn(&draft::Host<'_>) -> bool;
    let manners: [(&str, Has, &str); 2] = [
        (
            "tls",
            |host| host.plan.tls.is_some(),
            "give each host a certificate, or none: a host with 'tls' does not connect to one \
             without",
        ),
        (
            "key",
            |host| host.plan.key.is_some(),
            "give each host the same secret, or none: a host with 'key' takes nothing of one \
             without",
        ),
    ];
    for (what, has, help) in manners {
        let Some(with) = draft.hosts.iter().find(|host| has(host)) else { continue };
        for host in draft.hosts.iter().filter(|host| !has(host)) {
            let (name, other) = (host.name.text, with.name.text);
            let message = format!("host '{name}' has no '{what}', and '{other}' has");
            draft.report.error(host.name.span, message, help);
        }
    }
}

/// The kind that stands for other hosts; reports if there is none, or its name is in use.
fn template(draft: &Draft<'_>, catalogue: &[&'static Kind]) {
    let report = draft.report;
    let Some(kind) = template_of(catalogue) else {
        let help = "build it with '--features hosts', or remove 'hosts' and each 'host'";
        let at = place_of_hosts(&draft.hosts);
        return report.error(at, "this program is built without hosts", help);
    };
    let domains = draft.domains.iter().map(|domain| domain.name);
    let nodes = draft.nodes.iter().filter(|node| node.scope == 0).map(|node| node.name);
    for named in domains.chain(nodes).filter(|named| named.text == kind.name) {
        let message = format!("'{}' stands for the other hosts of the graph", kind.name);
        report.error(named.span, message, "give it another name");
    }
}

/// The kind that stands for other hosts, if a catalogue has one.
pub(crate) fn template_of(catalogue: &[&'static Kind]) -> Option<&'static Kind> {
    catalogue.iter().copied().find(|kind| kind.runs_in == RunsIn::Hosts)
}

/// The hosts at both ends of a link, if they differ.
fn between(
    from: End,
    to: End,
    homes: &[Option<Home>],
    hosts: &[Option<usize>],
) -> Option<[usize; 2]> {
    let host = |end: End| hosts[homes[end.node]?.domain];
    let (from, to) = (host(from)?, host(to)?);
    (from != to).then_some([from, to])
}

/// Separates links between hosts from those within one.
pub(crate) fn split<'a, 'd>(
    joined: Vec<Joined<'a, 'd>>,
    homes: &[Option<Home>],
    hosts: &[Option<usize>],
) -> (Vec<Joined<'a, 'd>>, Vec<Joined<'a, 'd>>) {
    let is_remote = |it: &Joined<'_, '_>| between(it.from, it.to, homes, hosts).is_some();
    joined.into_iter().partition(is_remote)
}

/// Reports hosts that pass packets to each other while neither of them can be reached.
pub(crate) fn check_packets(
    draft: &Draft<'_>,
    of_packets: &[Joined<'_, '_>],
    homes: &[Option<Home>],
    hosts: &[Option<usize>],
) {
    let mut paired = BTreeSet::new();
    for joined in of_packets {
        pair(draft, joined, between(joined.from, joined.to, homes, hosts), &mut paired);
    }
}

/// Reports options that links between hosts cannot have, and `after` on other links.
pub(crate) fn check(
    draft: &Draft<'_>,
    (remote, local): (&[Joined<'_, '_>], &[Joined<'_, '_>]),
    homes: &[Option<Home>],
    hosts: &[Option<usize>],
) {
    for joined in local.iter().filter(|joined| joined.link.after_ns.is_some()) {
        refuse(joined, "after", "'after' has no meaning within a host", "remove it");
    }
    let mut paired = BTreeSet::new();
    for joined in remote {
        options(joined);
        unseen(&joined.link.requires, draft.report, "two hosts share no clock");
        let into_core = matches!(reach(draft, joined, homes), Some(Reach::Core | Reach::Inwards));
        match into_core {
            true => into_the_core(draft, joined),
            false => refuse(
                joined,
                "after",
                "'after' has no meaning on a link to a service",
                "remove it: only the core drops old messages of another host",
            ),
        }
        for end in [joined.from, joined.to] {
            if homes[end.node].is_some_and(|it| draft.domains[it.domain].guest().is_some()) {
                let message = format!(
                    "{} is in a guest, and the other end on another host",
                    show(draft, end)
                );
                let help = "link it to a node of its own host, and link that node to the other \
                            host";
                draft.report.error(joined.link.node.span, message, help);
            }
        }
        pair(draft, joined, between(joined.from, joined.to, homes, hosts), &mut paired);
    }
}

fn reach(draft: &Draft<'_>, joined: &Joined<'_, '_>, homes: &[Option<Home>]) -> Option<Reach> {
    Some(Reach::of(draft, homes[joined.from.node]?, homes[joined.to.node]?))
}

fn refuse(Joined { link, .. }: &Joined<'_, '_>, option: &str, message: &str, help: &str) {
    if let Some(entry) = link.fields.entry(option) {
        link.fields.report.error(entry.span, message, help);
    }
}

/// Reports options that a link between hosts does not have.
fn options(joined: &Joined<'_, '_>) {
    let rows = [
        ("transport", "remove it: the hosts are connected as 'hosts' says"),
        ("sync", "remove it: two hosts share no memory"),
        ("wait", "remove it: no node waits for another host"),
        ("full", "remove it: a message without room is dropped and counted"),
        ("delay", "remove it: another host is not part of the cycle"),
    ];
    for (option, help) in rows {
        let message = format!("'{option}' has no meaning between hosts");
        refuse(joined, option, &message, help);
    }
    let Joined { link, part, .. } = joined;
    if part.is_some() {
        part_leaves_core(link);
    }
    if link.delivery == Some(Delivery::Broadcast) {
        let help = "write queue (what is lost on the way is counted) or latest (the newest)";
        refuse(joined, "delivery", "a broadcast cannot lead to another host", help);
    }
    if link.delivery == Some(Delivery::Latest) {
        let help = "remove it, or write delivery: queue";
        refuse(joined, "capacity", "'capacity' has no meaning with delivery: latest", help);
    }
}

/// Reports a link from another host that leads where it must not.
fn into_the_core(draft: &Draft<'_>, joined: &Joined<'_, '_>) {
    let &Joined { to, link, message, .. } = joined;
    let node = &draft.nodes[to.node];
    let ports = node.kind.map_or(&[][..], |kind| kind.ports);
    if ports.iter().any(|port| !port.safe.is_empty()) {
        let name = draft.name(to.node);
        let message = format!("another host must not command '{name}', which moves an actuator");
        let help = "link it to a node of the core that limits the command, and link that node to \
                    the actuator";
        draft.report.error(link.node.span, message, help);
    }
    if message.size + Link::STAMP_BYTES > MESSAGE_SIZE_MAX {
        let most = MESSAGE_SIZE_MAX - Link::STAMP_BYTES;
        let message = format!("message '{}' has {} bytes", message.name, message.size);
        let help = format!("at most {most} from another host into the core");
        draft.report.error(link.node.span, message, help);
    }
}

/// Reports two hosts that cannot reach each other, at the first link between them.
fn pair(
    draft: &Draft<'_>,
    joined: &Joined<'_, '_>,
    ends: Option<[usize; 2]>,
    paired: &mut BTreeSet<(usize, usize)>,
) {
    let Some([from, to]) = ends.filter(|&[a, b]| paired.insert((a.min(b), a.max(b)))) else {
        return;
    };
    let ends = [from, to].map(|host| &draft.hosts[host]);
    if ends.iter().any(|host| host.plan.address.is_some()) {
        return;
    }
    let [from, to] = ends.map(|host| host.name.text);
    let message = format!("neither '{from}' nor '{to}' has an address");
    let (message, help) = match ends.map(|host| host.router.is_some()) {
        [true, true] => return,
        [false, false] => (
            message,
            "add 'address: NAME:PORT' to one of them: the other one calls it; or 'router: \
             NAME:PORT' to both"
                .into(),
        ),
        [of_from, _] => {
            let (with, without) = if of_from { (from, to) } else { (to, from) };
            let message = format!("{message}, and only '{with}' names a router");
            (message, format!("add 'router: NAME:PORT' to '{without}', or an address to one"))
        }
    };
    draft.report.error(joined.link.node.span, message, help);
}

/// The plan's data about hosts.
pub(crate) fn planned(
    draft: &Draft<'_>,
    (remote, flow_links): (&[Joined<'_, '_>], &[FlowLink]),
    homes: &[Home],
    hosts: &[Option<usize>],
) -> HostPlan {
    let end = |end: End| RemoteEnd {
        host: hosts[homes[end.node].domain].unwrap_or_default(),
        node: draft.name(end.node).into_owned(),
        port: draft.nodes[end.node].kind.map_or(String::new(), |kind| kind.port_name(end.port)),
    };
    let links = remote.iter().map(|&Joined { from, to, message, link, .. }| {
        let reach = Reach::of(draft, homes[from.node], homes[to.node]);
        let of_core = matches!(reach, Reach::Core | Reach::Outwards);
        let into_core = matches!(reach, Reach::Core | Reach::Inwards);
        let default = if of_core { Delivery::Latest } else { Delivery::Queue };
        let delivery = link.delivery.unwrap_or(default);
        RemoteLink {
            from: end(from),
            to: end(to),
            message,
            delivery,
            capacity: if delivery == Delivery::Latest { 1 } else { link.capacity },
            after_ns: into_core.then(|| link.after_ns.unwrap_or(AFTER_NS)),
            port: 0,
        }
    });
    let links: Vec<RemoteLink> = links.collect();
    // A test does nothing in a run.
    let is_test =
        |end: End| draft.nodes[end.node].kind.is_some_and(|it| it.runs_in == RunsIn::Test);
    let calls = flow_links.iter().filter(|link| !is_test(link.from));
    let calls = calls.map(|link| RemoteCall { from: end(link.from), to: end(link.to), port: 0 });
    let calls = calls.filter(|call| call.from.host != call.to.host).collect();
    let all: Vec<_> = draft.hosts.iter().map(|host| host.plan.clone()).collect();
    let mut hosts = HostPlan { all, own: None, links, calls, version: 0 };
    hosts.version = version(draft.name, &hosts);
    hosts
}

/// A hash over what two parts must agree on: the hosts, and what crosses between them.
fn version(graph: &str, hosts: &HostPlan) -> u64 {
    let name = |end: &RemoteEnd| format!("{} {}.{}", hosts.all[end.host].name, end.node, end.port);
    let mut rows: Vec<String> = hosts.all.iter().map(|host| host.name.clone()).collect();
    rows.extend(hosts.links.iter().map(|link| {
        let RemoteLink { from, to, message, delivery, .. } = link;
        format!("{} > {} {:08x} {}", name(from), name(to), message.hash, delivery.word())
    }));
    rows.extend(hosts.calls.iter().map(|it| format!("{} >> {}", name(&it.from), name(&it.to))));
    // The order in the spec does not matter.
    rows.sort_unstable();
    let text = format!("{graph}\n{}", rows.join("\n"));
    // FNV-1a, 64 bits.
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
