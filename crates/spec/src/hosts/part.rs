//! The part of one host, cut out of the plan of the whole graph.

use sinew_plan::Span;
use sinew_plan::catalogue::{Direction, Kind, MessageType, PACKET, Port};
use sinew_plan::plan::{
    Delivery, Domain, End, FlowLink, Full, HostPlan, Link, Node, Plan, Release, RemoteCall,
    RemoteEnd, RemoteLink, RequiredOf, Requirement, Restart, RestartPolicy, Role, ServiceDomain,
    Sync, Transport, Wait,
};

use crate::draft::default_service;
use crate::keys::RESTARTS_MAX;
use crate::made::{self, PortRow};

/// Which domains, nodes and links of the whole plan are in the part, and their indices there.
struct Places {
    domains: Vec<Option<usize>>,
    nodes: Vec<Option<usize>>,
    links: Vec<Option<usize>>,
}

/// The part of host `own` of a whole plan, in which a node of kind `template` stands for the other
/// hosts.
pub(crate) fn part(whole: &Plan, own: usize, template: &'static Kind) -> Plan {
    let places = Places::of(whole, own);
    let mut links: Vec<RemoteLink> = whole.hosts.links.clone();
    links.retain(|link| link.from.host == own || link.to.host == own);
    let mut calls: Vec<RemoteCall> = whole.hosts.calls.clone();
    calls.retain(|call| call.from.host == own || call.to.host == own);
    let ports = number_ports(&mut links, &mut calls, own);
    let flow_links = places.flow_links(whole, &calls);
    let hosts = HostPlan { own: Some(own), links, calls, ..whole.hosts.clone() };
    let mut part = Plan {
        domains: places.domains(whole),
        nodes: places.nodes(whole),
        links: places.links(whole),
        flow_links,
        requirements: places.requirements(whole),
        hosts,
        ..whole.clone()
    };
    add_others(&mut part, &places, whole, stand_in(template, &ports));
    part
}

impl Places {
    fn of(whole: &Plan, own: usize) -> Places {
        let domains = numbered(whole.domains.iter().map(|domain| domain.host == Some(own)));
        let is_here = |node: usize| domains[whole.nodes[node].domain].is_some();
        let nodes = numbered((0..whole.nodes.len()).map(is_here));
        // None of them leads to another host: links between hosts are not among the plan's links.
        let links = numbered(whole.links.iter().map(|link| nodes[link.from.node].is_some()));
        Places { domains, nodes, links }
    }

    fn end(&self, end: End) -> Option<End> {
        Some(End { node: self.nodes[end.node]?, ..end })
    }

    fn domains(&self, whole: &Plan) -> Vec<Domain> {
        let own = whole.domains.iter().zip(&self.domains).filter(|(_, place)| place.is_some());
        let mut domains: Vec<Domain> = own.map(|(domain, _)| domain.clone()).collect();
        let place = |node: &usize| self.nodes[*node];
        for domain in &mut domains {
            match &mut domain.role {
                Role::Service(service) => {
                    service.nodes = service.nodes.iter().filter_map(place).collect();
                }
                Role::Realtime(realtime) => {
                    for thread in &mut realtime.threads {
                        thread.nodes = thread.nodes.iter().filter_map(place).collect();
                        if let Release::Input(link) = &mut thread.release {
                            *link = self.links[*link].unwrap_or_default();
                        }
                    }
                }
            }
        }
        domains
    }

    fn nodes(&self, whole: &Plan) -> Vec<Node> {
        let own = whole.nodes.iter().filter_map(|node| {
            let domain = self.domains[node.domain]?;
            Some(Node { domain, ..node.clone() })
        });
        own.collect()
    }

    fn links(&self, whole: &Plan) -> Vec<Link> {
        let own = whole.links.iter().filter_map(|link| {
            Some(Link { from: self.end(link.from)?, to: self.end(link.to)?, ..link.clone() })
        });
        own.collect()
    }

    /// Flow links whose other end is on another host begin or end at the node that is added last.
    fn flow_links(&self, whole: &Plan, calls: &[RemoteCall]) -> Vec<FlowLink> {
        let others = self.nodes.iter().flatten().count();
        let other = |link: &FlowLink| {
            let is_it = |end: End, port: &RemoteEnd| {
                let node = &whole.nodes[end.node];
                node.name == port.node && node.kind.port_name(end.port) == port.port
            };
            let is_it = |it: &&RemoteCall| is_it(link.from, &it.from) && is_it(link.to, &it.to);
            Some(End { node: others, port: calls.iter().find(is_it)?.port })
        };
        let own = whole.flow_links.iter().filter_map(|link| {
            let (from, to) = match (self.end(link.from), self.end(link.to)) {
                (Some(from), Some(to)) => (from, to),
                (Some(from), None) => (from, other(link)?),
                (None, Some(to)) => (other(link)?, to),
                (None, None) => return None,
            };
            Some(FlowLink { from, to })
        });
        let mut own: Vec<FlowLink> = own.collect();
        // The sort is stable: at one port the order is that of the spec.
        own.sort_by_key(|link| link.from);
        // Callers of the same input share one flow link to it.
        own.dedup_by(|a, b| a == b && a.from.node == others);
        own
    }

    fn requirements(&self, whole: &Plan) -> Vec<Requirement> {
        let own = whole.requirements.iter().filter_map(|row| {
            let of = match row.of {
                RequiredOf::Graph => RequiredOf::Graph,
                RequiredOf::Domain(at) => RequiredOf::Domain(self.domains[at]?),
                RequiredOf::Link(at) => RequiredOf::Link(self.links[at]?),
            };
            Some(Requirement { of, ..*row })
        });
        own.collect()
    }
}

/// The new indices of the elements that stay.
fn numbered(stays: impl Iterator<Item = bool>) -> Vec<Option<usize>> {
    let mut next = 0..;
    stays.map(|stays| stays.then(|| next.next()).flatten()).collect()
}

/// A port of the node that stands for the other hosts.
type OtherPort = (Direction, String, &'static MessageType);

/// Gives a port to each remote end, seen from `own`: one for each port that writes, and one for
/// each input that packets go to.
fn number_ports(links: &mut [RemoteLink], calls: &mut [RemoteCall], own: usize) -> Vec<OtherPort> {
    let mut ports: Vec<OtherPort> = Vec::new();
    let mut number = |from: &RemoteEnd, named: &RemoteEnd, message| {
        let direction = if from.host == own { Direction::In } else { Direction::Out };
        // A writer on another host may have the same name as one on this host.
        let port = (direction, format!("{}.{}", named.node, named.port), message);
        let is_it = |known: &OtherPort| (known.0, &known.1) == (port.0, &port.1);
        let found = ports.iter().position(is_it);
        found.unwrap_or_else(|| {
            ports.push(port);
            ports.len() - 1
        })
    };
    for link in links {
        link.port = number(&link.from, &link.from, link.message);
    }
    for call in calls {
        call.port = number(&call.from, &call.to, &PACKET);
    }
    ports
}

/// The kind of the node that stands for the other hosts: `template` with these ports.
fn stand_in(template: &'static Kind, ports: &[OtherPort]) -> &'static Kind {
    let row = |&(direction, ref name, message): &OtherPort| {
        let doc = match direction {
            Direction::In => "What goes to other hosts.",
            Direction::Out => "What comes from another host.",
        };
        let rest = Port { direction, ..Port::input("", doc, message) };
        PortRow { name: name.clone(), rest }
    };
    made::kind(template, &ports.iter().map(row).collect::<Vec<_>>())
}

/// Adds the node that stands for the other hosts, in a domain of its own, and its links. The domain
/// is the last one, so it starts first and stops last.
fn add_others(part: &mut Plan, places: &Places, whole: &Plan, kind: &'static Kind) {
    let (node, domain) = (part.nodes.len(), part.domains.len());
    let own = part.hosts.own.unwrap_or_default();
    let span = part.hosts.all[own].span;
    part.nodes.push(Node {
        name: kind.name.to_owned(),
        kind,
        domain,
        thread: 0,
        values: Vec::new(),
        spans: Vec::new(),
        entries: Vec::new(),
        written: Vec::new(),
        actuators: Vec::new(),
        tuning: None,
        line: part.text.line(span).unwrap_or(1) as u32,
    });
    let plan = default_service();
    // It is never given up: without it nothing comes from the other hosts.
    let restart =
        Restart { policy: RestartPolicy::Always, restarts_max: RESTARTS_MAX, ..plan.restart };
    part.domains.push(Domain {
        name: kind.name.to_owned(),
        user: None,
        user_span: Span::default(),
        host: Some(own),
        role: Role::Service(ServiceDomain { nodes: vec![node], restart, ..plan }),
    });
    let here = |name: &str, port: &str| {
        let node = whole
            .nodes
            .iter()
            .zip(&places.nodes)
            .find_map(|(it, place)| Some((*place)?).filter(|_| it.name == name));
        let node = node.expect("a link between hosts begins and ends at nodes of the plan");
        let port = part.nodes[node].kind.port_index(port);
        End { node, port: port.expect("it was the name of a port") }
    };
    let mut added: Vec<Link> = Vec::new();
    for link in &part.hosts.links {
        let other = End { node, port: link.port };
        let RemoteLink { message, delivery, capacity, .. } = *link;
        let hop = Hop { message, delivery, capacity, after_ns: link.after_ns };
        if link.from.host != own {
            let to = here(&link.to.node, &link.to.port);
            added.push(hop.inwards(other, to, part.is_service(to.node)));
            continue;
        }
        let from = here(&link.from.node, &link.from.port);
        let known = added.iter_mut().find(|known| known.to == other);
        match known {
            // Several readers, on one host or on several: the link gets the widest options of
            // theirs.
            Some(known) => hop.widen(known, part.is_service(from.node)),
            None => added.push(hop.outwards(from, other, part.is_service(from.node))),
        }
    }
    part.links.extend(added);
}

/// Half of the way between two hosts: the link between a node and the one that stands for the other
/// hosts.
struct Hop {
    message: &'static MessageType,
    delivery: Delivery,
    capacity: u32,
    after_ns: Option<u64>,
}

impl Hop {
    fn link(&self, from: End, to: End, among_services: bool) -> Link {
        Link {
            from,
            to,
            message: self.message,
            part: None,
            fused: false,
            transport: Transport::SharedMemory,
            sync: Sync::LockFree,
            delivery: self.delivery,
            wait: if among_services { Wait::Park } else { Wait::Spin },
            capacity: self.capacity,
            full: Full::Drop,
            delay: false,
            tuning: None,
            after_ns: None,
        }
    }

    /// Messages into the core have a stamp, those to a service have none.
    fn inwards(&self, from: End, to: End, is_service: bool) -> Link {
        let after_ns = self.after_ns.filter(|_| !is_service);
        Link { after_ns, ..self.link(from, to, is_service) }
    }

    fn outwards(&self, from: End, to: End, is_service: bool) -> Link {
        Link { delivery: self.leaves(is_service), ..self.link(from, to, is_service) }
    }

    fn widen(&self, known: &mut Link, is_service: bool) {
        if self.delivery == Delivery::Queue {
            known.delivery = self.leaves(is_service);
            known.capacity = known.capacity.max(self.capacity);
        }
    }

    /// The core never waits: a link that must carry every message out of it is a broadcast.
    fn leaves(&self, is_service: bool) -> Delivery {
        match self.delivery {
            Delivery::Queue if !is_service => Delivery::Broadcast,
            other => other,
        }
    }
}
