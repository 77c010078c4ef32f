//! Compares what a service needs at least with its limits: a service that can never get ready would
//! only be restarted in vain. Also checks how many nodes a realtime thread may have.

use std::collections::BTreeMap;

use sinew_carve_out::{NODES_MAX, Name};
use sinew_plan::Span;
use sinew_plan::plan::{Board, BoardNeeds, Flows};

use crate::draft::{Draft, Node, Role, Service};
use crate::join::Joined;
use crate::keys::{DESCRIPTORS_MIN, THREAD_NODES_MAX};
use crate::place::Home;
use crate::value::size_text;

/// Threads of a domain with flows, in addition to its workers and those for blocking work: one that
/// supervises the workers, and one for the work that ends the run.
const FLOW_THREADS: u64 = 2;

/// Nodes and ends of links in a domain.
#[derive(Clone, Copy, Default)]
struct Members {
    /// Nodes with a thread of their own.
    nodes: u64,
    has_flows: bool,
    ends: u64,
    /// Links between a guest and a service; each needs two bells.
    doorbells: u64,
}

/// Reports limits below what the nodes and links of a service need. `homes` may have gaps: the
/// known nodes already need that much.
pub(crate) fn check(draft: &Draft<'_>, joined: &[Joined<'_, '_>], homes: &[Option<Home>]) {
    check_threads(draft, homes);
    check_guests(draft, homes);
    let mut members = vec![Members::default(); draft.domains.len()];
    for (node, home) in draft.nodes.iter().zip(homes) {
        let Some(members) = home.map(|home| &mut members[home.domain]) else { continue };
        match node.kind.is_some_and(|kind| kind.runs_in.is_flow()) {
            true => members.has_flows = true,
            false => members.nodes += 1,
        }
    }
    for link in joined {
        let homes = [link.from, link.to].map(|end| homes[end.node]);
        let roles = homes.map(|home| home.map(|home| &draft.domains[home.domain]));
        let has_doorbell = roles.iter().flatten().filter(|it| it.is_service()).count() == 2
            && roles.iter().flatten().any(|it| it.guest().is_some());
        for home in homes.into_iter().flatten() {
            members[home.domain].ends += 1;
            members[home.domain].doorbells += u64::from(has_doorbell);
        }
    }
    // A node whose kind or home is unknown may be meant for any domain.
    let is_known = |(node, home): (&Node<'_>, &Option<Home>)| node.kind.is_some() && home.is_some();
    let all_known = draft.nodes.iter().zip(homes).all(is_known);
    for (domain, members) in draft.domains.iter().zip(members) {
        let Role::Service(service) = &domain.role else { continue };
        let Members { nodes, has_flows, ends, doorbells } = members;
        let name = domain.name.text;
        if let Some(span) = service.flows_at.filter(|_| all_known && !has_flows) {
            let message =
                format!("'flows' has no meaning in '{name}': no node of it takes packets");
            draft.report.error(span, message, "remove it, or put flow nodes in the domain");
        }
        if let Some(guest) = &service.plan.guest {
            check_board(draft, service, guest.board, name, &members);
            continue;
        }
        let limits = &service.plan.limits;
        let mut threads = vec![format!("a thread for each of its {nodes} nodes")];
        let mut needed = nodes + 1;
        if has_flows {
            let Flows { workers, blocking } = service.plan.flows;
            // The number of CPUs that the core leaves is known only at the start; it is at least
            // one.
            let cpus = service.plan.cpus.as_ref().map_or(1, |cpus| cpus.len() as u64);
            let (workers, blocking) = (workers.map_or(cpus, u64::from), u64::from(blocking.min));
            needed += workers + blocking + FLOW_THREADS;
            threads.retain(|_| nodes > 0);
            threads.push(format!(
                "{workers} for its flows and {FLOW_THREADS} that watch them, {blocking} for their \
                 work that blocks"
            ));
        }
        let why = format!("{}, and one that watches them", threads.join(", "));
        let who = format!("service '{name}'");
        let of_processes = Limit { key: "processes", at: service.processes_at, text: count };
        of_processes.check(draft, &who, limits.processes, needed, &why);
        let own = DESCRIPTORS_MIN as u64;
        let mut why = format!("{own} to begin with, and one for each of {ends} ends of links");
        if doorbells > 0 {
            why += &format!(", two more where it leads to a guest ({doorbells})");
        }
        let of_descriptors = Limit { key: "descriptors", at: service.descriptors_at, text: count };
        of_descriptors.check(draft, &who, limits.descriptors, own + ends + 2 * doorbells, &why);
    }
}

/// Reports limits below what an emulator and the process that supervises it need.
fn check_board(draft: &Draft<'_>, service: &Service, board: Board, name: &str, members: &Members) {
    let Members { nodes, doorbells, .. } = *members;
    let BoardNeeds { memory_bytes, threads, descriptors } = board.needs();
    let (who, limits, word) = (format!("guest '{name}'"), &service.plan.limits, board.word());
    let why = format!("the emulator of board '{word}' takes so much");
    let of_memory = Limit { key: "memory", at: service.memory_at, text: size_text };
    of_memory.check(draft, &who, limits.memory_bytes, memory_bytes, &why);
    let why = format!("the threads of the emulator of board '{word}', and one that looks after it");
    let of_processes = Limit { key: "processes", at: service.processes_at, text: count };
    of_processes.check(draft, &who, limits.processes, threads, &why);
    let why = format!(
        "{descriptors} for the emulator of board '{word}', one for each node, and two for each \
         link to a service"
    );
    let of_descriptors = Limit { key: "descriptors", at: service.descriptors_at, text: count };
    of_descriptors.check(
        draft,
        &who,
        limits.descriptors,
        descriptors + nodes + 2 * doorbells,
        &why,
    );
}

/// One of the limits, as the spec writes it.
struct Limit {
    key: &'static str,
    at: Span,
    text: fn(u64) -> String,
}

impl Limit {
    fn check(&self, draft: &Draft<'_>, who: &str, limit: Option<u64>, needed: u64, why: &str) {
        let Some(limit) = limit.filter(|&limit| limit < needed) else { return };
        let (key, limit, needed) = (self.key, (self.text)(limit), (self.text)(needed));
        let message = format!("{who} cannot run with {key}: {limit}; it needs {needed}");
        draft.report.error(self.at, message, format!("write {key}: {needed} or more: {why}"));
    }
}

fn count(number: u64) -> String {
    number.to_string()
}

/// Reports guests that cannot hold the nodes and links that the graph gives them.
fn check_guests(draft: &Draft<'_>, homes: &[Option<Home>]) {
    for (at, domain) in draft.domains.iter().enumerate() {
        let Some(guest) = domain.guest() else { continue };
        let here = |home: &Option<Home>| home.is_some_and(|home| home.domain == at);
        let nodes = draft.nodes.iter().zip(homes).filter(|(_, home)| here(home));
        let count = nodes.clone().count();
        if count > NODES_MAX {
            let message = format!("guest '{}' has {count} nodes", domain.name.text);
            let help = format!("at most {NODES_MAX}; give it fewer, or make a second guest");
            draft.report.error(guest.image_span, message, help);
        }
        for (node, _) in nodes.filter(|(node, _)| Name::new(node.name.text).is_none()) {
            let message = format!("the name '{}' is too long for a guest", node.name.text);
            draft.report.error(node.name.span, message, "32 bytes at most");
        }
    }
}

/// Reports realtime threads with more nodes than a cycle's record can name.
fn check_threads(draft: &Draft<'_>, homes: &[Option<Home>]) {
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for home in homes.iter().flatten() {
        *counts.entry((home.domain, home.thread)).or_default() += 1;
    }
    for ((domain, _), count) in counts {
        let domain = &draft.domains[domain];
        if count > THREAD_NODES_MAX && !domain.is_service() {
            let message = format!("a thread of domain '{}' has {count} nodes", domain.name.text);
            let help = format!("at most {THREAD_NODES_MAX}; divide them among threads or domains");
            draft.report.error(domain.name.span, message, help);
        }
    }
}
