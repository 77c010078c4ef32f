//! The last step: a graph without errors becomes a plan. Here every link option is decided.

use std::collections::HashMap;

use sinew_plan::plan::{
    Domain, End, FlowLink, Link, Machine, Node, Plan, Realtime, Release, Role, Service, Thread,
    Wait,
};

use crate::draft::{self, Draft};
use crate::join::{Joined, show};
use crate::options::decide;
use crate::order::sort;
use crate::place::{Home, Reach, cpus, cpus_text, periods, release, threads};

/// A graph in which every name was found.
pub(crate) struct Graph<'a, 'd> {
    pub(crate) draft: &'d Draft<'a>,
    /// Links that carry messages.
    pub(crate) joined: Vec<Joined<'a, 'd>>,
    /// Links that carry packets.
    pub(crate) flow_links: Vec<FlowLink>,
    pub(crate) homes: Vec<Home>,
    /// All nodes, writers first.
    pub(crate) order: Vec<usize>,
}

impl Graph<'_, '_> {
    fn reach(&self, from: End, to: End) -> Reach {
        Reach::of(self.draft, self.homes[from.node], self.homes[to.node])
    }
}

/// Makes the plan; `None` if releases or periods are wrong, which is reported.
pub(crate) fn plan(graph: Graph<'_, '_>, machine: &Machine) -> Option<Plan> {
    let Graph { draft, joined, homes, order, .. } = &graph;
    let mut notes = Vec::new();
    let mut threads = threads(draft, homes, order);
    release(draft, joined, homes, order, &mut threads, &mut notes);
    let good = draft.report.is_empty();
    let periods = if good { periods(draft, joined, homes, &threads) } else { Vec::new() };
    if !draft.report.is_empty() {
        return None;
    }
    cpus(&mut threads, machine, &mut notes);
    let mut members = vec![Vec::new(); draft.domains.len()];
    for (node, home) in homes.iter().enumerate() {
        members[home.domain].push(node);
    }
    let mut links = links(&graph, &mut notes);
    park_if_crowded(&mut links, &threads, &graph, machine, &mut notes);
    let (stop_order, rank) = stop_order(&graph);
    let domains = stop_order.iter().map(|&at| Domain {
        name: draft.domains[at].name.text.to_owned(),
        user: draft.domains[at].user.map(|user| user.text.to_owned()),
        user_span: draft.domains[at].user.map(|user| user.span).unwrap_or_default(),
        role: match &draft.domains[at].role {
            draft::Role::Realtime(realtime) => Role::Realtime(Realtime {
                period_ns: periods[at].0,
                deadline_ns: periods[at].1,
                priority: realtime.priority,
                overrun: realtime.overrun,
                threads: std::mem::take(&mut threads[at]),
            }),
            draft::Role::Service(service) => {
                let nodes = std::mem::take(&mut members[at]);
                Role::Service(Service { nodes, ..service.plan.clone() })
            }
        },
    });
    let domains = domains.collect();
    let nodes = draft.nodes.iter().zip(homes).enumerate().filter_map(|(at, (node, home))| {
        Some(Node {
            name: draft.name(at).into_owned(),
            kind: node.kind?,
            domain: rank[home.domain],
            thread: home.thread,
            values: node.values.clone(),
            spans: node.spans.clone(),
            actuators: node.actuators.clone(),
            entries: node.entries.clone(),
            line: draft.lines.line(node.span.start as usize) as u32,
        })
    });
    let (name, hold, nodes) = (draft.name.to_owned(), draft.hold, nodes.collect());
    Some(Plan { name, hold, domains, nodes, links, flow_links: graph.flow_links, notes })
}

/// Domains in the order in which they stop, and the place of each in it: the core, who commands
/// before who obeys; then the services, who reads before who writes, and who stands further down in
/// the spec before who stands above.
fn stop_order(graph: &Graph<'_, '_>) -> (Vec<usize>, Vec<usize>) {
    let count = graph.draft.domains.len();
    let between = |reach: Reach| {
        let domains = graph.joined.iter().filter(move |joined| {
            !joined.link.delay && graph.reach(joined.from, joined.to) == reach
        });
        let pairs = domains.map(|Joined { from, to, .. }| {
            (graph.homes[from.node].domain, graph.homes[to.node].domain)
        });
        sort(count, &pairs.filter(|(from, to)| from != to).collect::<Vec<_>>()).0
    };
    let is_service = |at: &usize| graph.draft.domains[*at].is_service();
    let core = between(Reach::Core).into_iter().filter(|at| !is_service(at));
    let services = between(Reach::Services).into_iter().rev().filter(is_service);
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
        let (a, b) = (graph.homes[from.node], graph.homes[to.node]);
        let decided = decide(joined, graph.reach(from, to), a, b);
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

/// With more realtime threads that poll than CPUs, each would poll away the time of who it waits
/// for. One that yields gives it away, but only to threads of its own priority.
fn park_if_crowded(
    links: &mut [Link],
    threads: &[Vec<Thread>],
    graph: &Graph<'_, '_>,
    machine: &Machine,
    notes: &mut Vec<String>,
) {
    let realtime = graph.draft.domains.iter().filter_map(draft::Domain::realtime);
    let mut priorities = realtime.map(|realtime| realtime.priority);
    let first = priorities.next();
    let one_priority = priorities.all(|priority| Some(priority) == first);
    let polls = |link: &Link| match link.wait {
        _ if link.fused || graph.reach(link.from, link.to) != Reach::Core => false,
        Wait::Spin => true,
        Wait::Yield => !one_priority,
        Wait::Park | Wait::SpinThenPark => false,
    };
    let mut spins: Vec<Vec<bool>> = threads.iter().map(|all| vec![false; all.len()]).collect();
    for (at, link) in links.iter().enumerate().filter(|(_, link)| polls(link)) {
        let home = graph.homes[link.to.node];
        // A thread waits on the link that releases it, or, released by the clock, at the end of its
        // cycle on what comes back with a delay.
        let waits = match threads[home.domain][home.thread].release {
            Release::Input(release) => release == at,
            Release::Timer => link.delay,
        };
        spins[home.domain][home.thread] |= waits;
    }
    let spinning = spins.iter().flatten().filter(|spins| **spins).count();
    let (all, cpus) = (spins.iter().flatten().count(), machine.cpus.len());
    let crowd = if spinning > cpus || (spinning == cpus && all > cpus) {
        let s = if spinning == 1 { "" } else { "s" };
        format!("{spinning} thread{s} of {all} would spin on {}", cpus_text(machine))
    } else if let Some(cpu) = shared_cpu(threads, &spins) {
        format!("a thread would spin on CPU {cpu}, which 'cpu:' gives to another one too")
    } else {
        return;
    };
    for link in links.iter_mut().filter(|link| polls(link)) {
        link.wait = Wait::SpinThenPark;
    }
    notes.push(format!("{crowd}: links wait with spin_then_park instead"));
}

/// A CPU on which a thread would spin away the time of another one.
fn shared_cpu(threads: &[Vec<Thread>], spins: &[Vec<bool>]) -> Option<u32> {
    let mut on_cpu: HashMap<u32, (usize, bool)> = HashMap::new();
    for (thread, spins) in threads.iter().flatten().zip(spins.iter().flatten()) {
        let Some(cpu) = thread.cpu else { continue };
        let entry = on_cpu.entry(cpu).or_default();
        *entry = (entry.0 + 1, entry.1 || *spins);
    }
    let shared = on_cpu.into_iter().filter(|(_, (count, spins))| *count > 1 && *spins);
    shared.map(|(cpu, _)| cpu).min()
}
