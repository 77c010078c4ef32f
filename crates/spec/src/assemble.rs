//! The last step: a graph without errors becomes a plan. Every link option is decided here.

use sinew_plan::plan::{
    Link, Node, Plan, Realtime, Role, ServiceDomain, SpecText, TargetMachine, Wait,
};

use crate::draft::{self, Draft};
use crate::firewall::{self, ThreadWaits};
use crate::hosts;
use crate::join::{Joined, show};
use crate::made;
use crate::options::decide;
use crate::order::sort;
use crate::picture;
use crate::place::{Graph, Home, Reach, cpus, periods, release, threads};
use crate::requires;
use crate::shapes::shape;

/// Makes the plan; nothing in it depends on a machine yet. `None` if releases or periods are wrong,
/// which is reported.
pub(crate) fn plan(graph: &Graph<'_, '_>) -> Option<Plan> {
    let Graph { draft, homes, .. } = graph;
    let mut notes = Vec::new();
    let mut threads = threads(graph);
    release(graph, &mut threads, &mut notes);
    let good = draft.report.is_empty();
    let periods = if good { periods(graph, &threads) } else { Vec::new() };
    if !draft.report.is_empty() {
        return None;
    }
    let mut members = vec![Vec::new(); draft.domains.len()];
    for (node, home) in homes.iter().enumerate() {
        members[home.domain].push(node);
    }
    let links = links(graph, &mut notes);
    let (stop_order, rank) = stop_order(graph);
    let domains = stop_order.iter().map(|&at| {
        let role = match &draft.domains[at].role {
            draft::Role::Realtime(realtime) => Role::Realtime(Realtime {
                period_ns: periods[at].0,
                deadline_ns: periods[at].1,
                priority: realtime.priority,
                overrun: realtime.overrun,
                threads: std::mem::take(&mut threads[at]),
            }),
            draft::Role::Service(service) => {
                let nodes = std::mem::take(&mut members[at]);
                Role::Service(ServiceDomain { nodes, ..service.plan.clone() })
            }
        };
        draft.domains[at].planned(role, graph.hosts[at])
    });
    let domains = domains.collect();
    let nodes = homes.iter().enumerate();
    let nodes = nodes.filter_map(|(at, home)| node(draft, at, rank[home.domain], home.thread));
    let requirements = requires::all(draft, &graph.joined, &rank);
    let (name, hold, nodes) = (draft.name.to_owned(), draft.hold, nodes.collect());
    let flow_links = graph.flow_links.clone();
    let text = SpecText { file: draft.file.to_owned(), lines: draft.lines.clone() };
    let between = (&*graph.remote, &*flow_links);
    let (left_out, hosts) = (None, hosts::planned(draft, between, homes, &graph.hosts));
    let mut plan = Plan {
        name,
        hold,
        observe: false,
        domains,
        nodes,
        links,
        flow_links,
        hosts,
        requirements,
        notes,
        left_out,
        text,
    };
    requires::notes(&mut plan);
    Some(plan)
}

/// Decides what depends on the machine: the CPUs of threads, how links wait, their shapes.
pub(crate) fn settle(plan: &mut Plan, machine: &TargetMachine) {
    cpus(plan, machine);
    park_if_crowded(plan, machine);
    shape(plan, machine);
}

/// A node of the draft, in this domain and thread of the plan; `None` if its kind is unknown.
pub(crate) fn node(draft: &Draft<'_>, at: usize, domain: usize, thread: usize) -> Option<Node> {
    let node = &draft.nodes[at];
    Some(Node {
        name: draft.name(at).into_owned(),
        kind: node.kind?,
        domain,
        thread,
        values: node.values.clone(),
        spans: node.spans.clone(),
        actuators: node.actuators.clone(),
        tuning: node.kind.and_then(made::tuning),
        entries: node.entries.clone(),
        written: node.written.clone(),
        line: draft.lines.line(node.span.start as usize) as u32,
    })
}

/// Domains in the order in which they stop, and the place of each domain in that order. First the
/// core: domains that command before those that obey. Then the services: readers before writers,
/// senders of packets before those that answer them, and otherwise the later one in the spec first.
fn stop_order(graph: &Graph<'_, '_>) -> (Vec<usize>, Vec<usize>) {
    let count = graph.draft.domains.len();
    let home = |node: usize| graph.homes[node].domain;
    let messages = |reach: Reach| {
        let those = graph.joined.iter().filter(move |joined| {
            !joined.link.delay && graph.reach(joined.from, joined.to) == reach
        });
        those.map(|Joined { from, to, .. }| (home(from.node), home(to.node)))
    };
    let packets = graph.flow_links.iter().map(|link| (home(link.to.node), home(link.from.node)));
    let sorted = |pairs: Vec<(usize, usize)>| {
        let between: Vec<_> = pairs.into_iter().filter(|(from, to)| from != to).collect();
        sort(count, &between).0
    };
    let is_service = |at: &usize| graph.draft.domains[*at].is_service();
    let core = sorted(messages(Reach::Core).collect());
    let services = sorted(messages(Reach::Services).chain(packets).collect());
    let core = core.into_iter().filter(|at| !is_service(at));
    let services = services.into_iter().rev().filter(is_service);
    let order: Vec<usize> = core.chain(services).collect();
    let mut rank = vec![0; count];
    for (place, &domain) in order.iter().enumerate() {
        rank[domain] = place;
    }
    (order, rank)
}

fn links(graph: &Graph<'_, '_>, notes: &mut Vec<String>) -> Vec<Link> {
    let decided = graph.joined.iter().map(|joined| {
        let &Joined { from, to, link, .. } = joined;
        let homes = (graph.homes[from.node], graph.homes[to.node]);
        let decided = self::link(graph.draft, joined, homes);
        let other = link.transport.filter(|&given| given != decided.transport);
        if let Some(other) = other {
            let (from, to) = (show(graph.draft, from), show(graph.draft, to));
            notes.push(format!(
                "link {from} -> {to} stays inside one thread: a plain slot takes the place of {}",
                other.word()
            ));
        }
        decided
    });
    decided.collect()
}

/// A link between nodes with these homes.
pub(crate) fn link(draft: &Draft<'_>, joined: &Joined<'_, '_>, (a, b): (Home, Home)) -> Link {
    let guest = [a, b].iter().any(|home| draft.domains[home.domain].guest().is_some());
    decide(joined, Reach::of(draft, a, b), guest, a, b)
}

/// If more realtime threads poll than there are CPUs, each would use up the time of the thread that
/// it waits for.
fn park_if_crowded(plan: &mut Plan, machine: &TargetMachine) {
    let threads = firewall::threads(plan);
    let cpu = |row: &ThreadWaits| plan.domains[row.domain].threads()[row.thread].cpu;
    let shared = |one: &u32| threads.iter().filter(|row| cpu(row) == Some(*one)).count() > 1;
    let spinning = || threads.iter().filter(|row| row.polls);
    let (count, all, cpus) = (spinning().count(), threads.len(), machine.cpus.len());
    let crowd = if count > cpus || (count == cpus && all > cpus) {
        let threads = picture::count(count, "thread");
        format!("{threads} of {all} would spin on {}", picture::count(cpus, "CPU"))
    } else if let Some(cpu) = spinning().filter_map(cpu).filter(shared).min() {
        format!("a thread would spin on CPU {cpu}, which 'cpu:' gives to another one too")
    } else {
        return;
    };
    let one_priority = firewall::have_one_priority(plan);
    let inside = |node: usize| !plan.is_service(node);
    let parks = |link: &Link| {
        let is_inside = !link.fused && inside(link.from.node) && inside(link.to.node);
        is_inside && firewall::polls(link.wait, one_priority)
    };
    let parks: Vec<bool> = plan.links.iter().map(parks).collect();
    for (link, _) in plan.links.iter_mut().zip(parks).filter(|(_, parks)| *parks) {
        link.wait = Wait::SpinThenPark;
    }
    plan.notes.push(format!("{crowd}: links wait with spin_then_park instead"));
}
