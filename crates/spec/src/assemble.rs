//! The last step: a graph without errors becomes a plan. Here every link option is decided.

use std::collections::HashMap;

use crate::diagnostic::{Lines, Report};
use crate::draft::{Draft, Link as DraftLink};
use crate::join::Joined;
use crate::order::sort;
use crate::place::{Home, cpus, cpus_text, periods, releases};
use crate::plan::{
    Delivery, Domain, End, Link, Machine, Node, Plan, Realtime, Release, Role, Sync, Thread,
    Transport, Wait,
};

/// A graph in which every name was found.
pub(crate) struct Graph<'a, 'd> {
    pub(crate) draft: &'d Draft<'a>,
    pub(crate) joined: Vec<Joined<'a, 'd>>,
    pub(crate) homes: Vec<Home>,
    /// All nodes, writers first.
    pub(crate) order: Vec<usize>,
}

/// Reports options that do not go together. `homes` may still have gaps.
pub(crate) fn check_options(
    joined: &[Joined<'_, '_>],
    homes: &[Option<Home>],
    report: &mut Report,
) {
    for Joined { from, to, link } in joined {
        let (Some(a), Some(b)) = (homes[from.node], homes[to.node]) else { continue };
        if a.domain != b.domain && link.transport == Some(Transport::InProcess) {
            report.error(
                link.fields.at("transport"),
                "transport in_process cannot cross between two domains",
                "write shared_memory, or put both nodes in one domain",
            );
        }
        let shares_memory =
            matches!(transport(link, a, b), Transport::InProcess | Transport::SharedMemory);
        if link.sync == Sync::Mutex && !shares_memory {
            report.error(
                link.fields.at("sync"),
                format!(
                    "sync mutex needs shared bytes, and {} has none",
                    transport(link, a, b).word()
                ),
                "remove 'sync', or write transport: shared_memory",
            );
        }
        meaningless(link, report);
    }
}

/// Reports options that the delivery leaves without a meaning.
fn meaningless(link: &DraftLink<'_>, report: &mut Report) {
    for (option, means) in [
        ("capacity", link.delivery != Delivery::Latest),
        ("full", link.delivery == Delivery::Queue),
    ] {
        if let Some(entry) = link.fields.entry(option).filter(|_| !means) {
            let message =
                format!("'{option}' has no meaning with delivery: {}", link.delivery.word());
            report.error(entry.span, message, "remove it, or write delivery: queue");
        }
    }
}

fn transport(link: &DraftLink<'_>, from: Home, to: Home) -> Transport {
    let default =
        if from.domain == to.domain { Transport::InProcess } else { Transport::SharedMemory };
    link.transport.unwrap_or(default)
}

/// Makes the plan; `None` if releases or periods are wrong, which is reported.
pub(crate) fn plan(
    graph: &Graph<'_, '_>,
    machine: &Machine,
    lines: &Lines,
    report: &mut Report,
) -> Option<Plan> {
    let Graph { draft, joined, homes, order } = graph;
    let mut notes = Vec::new();
    let releases = releases(draft, joined, homes, order, &mut notes, report);
    let good = report.is_empty();
    let periods = if good { periods(draft, joined, homes, &releases, report) } else { Vec::new() };
    if !report.is_empty() {
        return None;
    }
    let cpus = cpus(draft, machine, &mut notes);
    let mut threads: Vec<Vec<Thread>> = releases
        .iter()
        .zip(cpus)
        .map(|(releases, cpus)| {
            let pairs = releases.iter().zip(cpus);
            pairs.map(|(&release, cpu)| Thread { cpu, release, nodes: Vec::new() }).collect()
        })
        .collect();
    for &node in order {
        let Home { domain, thread } = homes[node];
        threads[domain][thread].nodes.push(node);
    }
    let mut links = links(graph, &mut notes);
    let mut priorities = graph.draft.domains.iter().map(|domain| domain.priority);
    let first = priorities.next();
    let one_priority = priorities.all(|priority| Some(priority) == first);
    park_if_crowded(&mut links, &threads, homes, one_priority, machine, &mut notes);
    let (stop_order, rank) = stop_order(graph);
    let domains = stop_order.iter().map(|&at| Domain {
        name: draft.domains[at].name.text.to_owned(),
        user: None,
        role: Role::Realtime(Realtime {
            period_ns: periods[at].0,
            deadline_ns: periods[at].1,
            priority: draft.domains[at].priority,
            overrun: draft.domains[at].overrun,
            threads: std::mem::take(&mut threads[at]),
        }),
    });
    let domains = domains.collect();
    let nodes = draft.nodes.iter().zip(homes).filter_map(|(node, home)| {
        Some(Node {
            name: node.name.text.to_owned(),
            kind: node.kind?,
            domain: rank[home.domain],
            thread: home.thread,
            values: node.values.clone(),
            actuators: node.actuators.clone(),
            line: lines.line(node.span.start as usize) as u32,
        })
    });
    Some(Plan { name: draft.name.to_owned(), domains, nodes: nodes.collect(), links, notes })
}

/// Domains in the order in which they stop, and the place of each in it.
fn stop_order(graph: &Graph<'_, '_>) -> (Vec<usize>, Vec<usize>) {
    let direct = graph.joined.iter().filter(|joined| !joined.link.delay);
    let pairs: Vec<(usize, usize)> = direct
        .map(|Joined { from, to, .. }| (graph.homes[from.node].domain, graph.homes[to.node].domain))
        .filter(|(from, to)| from != to)
        .collect();
    let (order, _) = sort(graph.draft.domains.len(), &pairs);
    let mut rank = vec![0; order.len()];
    for (place, &domain) in order.iter().enumerate() {
        rank[domain] = place;
    }
    (order, rank)
}

fn links(graph: &Graph<'_, '_>, notes: &mut Vec<String>) -> Vec<Link> {
    let mut links = Vec::with_capacity(graph.joined.len());
    for &Joined { from, to, link } in &graph.joined {
        let (a, b) = (graph.homes[from.node], graph.homes[to.node]);
        let Some(kind) = graph.draft.nodes[from.node].kind else { continue };
        let fused = a == b;
        if fused && link.transport.is_some_and(|transport| transport != Transport::InProcess) {
            notes.push(format!(
                "link '{}' -> '{}' stays inside one thread: a plain slot takes the place of {}",
                end(graph, from),
                end(graph, to),
                transport(link, a, b).word()
            ));
        }
        links.push(Link {
            from,
            to,
            message: kind.ports[from.port].message,
            fused,
            transport: if fused { Transport::InProcess } else { transport(link, a, b) },
            sync: link.sync,
            delivery: link.delivery,
            wait: link.wait,
            capacity: if link.delivery == Delivery::Latest { 1 } else { link.capacity },
            full: link.full,
            delay: link.delay,
        });
    }
    links
}

fn end(graph: &Graph<'_, '_>, end: End) -> String {
    let node = &graph.draft.nodes[end.node];
    let port = node.kind.map_or("", |kind| kind.ports[end.port].name);
    format!("{}.{port}", node.name.text)
}

/// With more threads that poll than CPUs, each would poll away the time of who it waits for. One
/// that yields gives it away, but only to threads of its own priority.
fn park_if_crowded(
    links: &mut [Link],
    threads: &[Vec<Thread>],
    homes: &[Home],
    one_priority: bool,
    machine: &Machine,
    notes: &mut Vec<String>,
) {
    let polls = |link: &Link| match link.wait {
        Wait::Spin => !link.fused,
        Wait::Yield => !link.fused && !one_priority,
        Wait::Park | Wait::SpinThenPark => false,
    };
    let mut spins: Vec<Vec<bool>> = threads.iter().map(|all| vec![false; all.len()]).collect();
    for (at, link) in links.iter().enumerate().filter(|(_, link)| polls(link)) {
        let home = homes[link.to.node];
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
