//! Gives every node its domain and thread, and every thread its release and CPU.

use std::collections::{HashMap, HashSet};

use sinew_plan::catalogue::Kind;
use sinew_plan::plan::{Machine, Release};

use crate::diagnostic::Report;
use crate::draft::{Domain, Draft, Node, Realtime, late};
use crate::fields::Named;
use crate::join::Joined;
use crate::keys::Trigger;
use crate::names::Names;
use crate::nearest::suggest;
use crate::order::sort;
use crate::picture::count;

/// Where a node lives: indices of the draft's domain and of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) domain: usize,
    pub(crate) thread: usize,
}

/// Which sides of the firewall the ends of a link stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Both in the core.
    Core,
    /// From the core to a service.
    Outwards,
    /// From a service to the core.
    Inwards,
    /// Both in services.
    Services,
}

impl Reach {
    pub(crate) fn of(draft: &Draft<'_>, from: Home, to: Home) -> Reach {
        let is_service = |home: Home| draft.domains[home.domain].is_service();
        match (is_service(from), is_service(to)) {
            (false, false) => Reach::Core,
            (false, true) => Reach::Outwards,
            (true, false) => Reach::Inwards,
            (true, true) => Reach::Services,
        }
    }
}

/// Homes of all nodes; `None` where that is reported already.
pub(crate) fn homes<'a>(
    draft: &Draft<'a>,
    names: &Names<'a>,
    report: &mut Report,
) -> Vec<Option<Home>> {
    let mut domains = HashMap::new();
    for (at, domain) in draft.domains.iter().enumerate() {
        domains.insert(domain.name.text, at);
    }
    let mut homes: Vec<Option<Home>> = vec![None; draft.nodes.len()];
    let mut peopled = vec![false; draft.domains.len()];
    for (at, node) in draft.nodes.iter().enumerate() {
        let found = match node.domain {
            Some(named) => domains.get(named.text).copied(),
            None => (draft.domains.len() == 1).then_some(0),
        };
        homes[at] = found.map(|domain| Home { domain, thread: 0 });
        match found {
            Some(domain) => peopled[domain] = true,
            None if is_refused(draft, node.domain) => {}
            None => homeless(draft, node, report),
        }
    }
    assign(draft, names, &mut homes, report);
    for (node, home) in draft.nodes.iter().zip(&mut homes) {
        let fits = |home: &Home| fits(draft, node, &draft.domains[home.domain], report);
        *home = home.filter(fits);
    }
    let all_found = !homes.is_empty() && homes.iter().all(Option::is_some);
    for (domain, peopled) in draft.domains.iter().zip(peopled) {
        if all_found && !peopled {
            let message = format!("domain '{}' has no nodes", domain.name.text);
            report.error(domain.name.span, message, "remove it, or put a node in it");
        }
    }
    homes
}

/// Whether a node can run in its domain; reports one that cannot.
fn fits(draft: &Draft<'_>, node: &Node<'_>, domain: &Domain<'_>, report: &mut Report) -> bool {
    let misplaced = |kind: &&Kind| kind.runs_in.is_service() != domain.is_service();
    let Some(kind) = node.kind.filter(misplaced) else { return true };
    report.error_with(node.name.span, || {
        let (name, kind_name, home) = (node.name.text, kind.name, domain.name.text);
        let other = draft.domains.iter().find(|other| other.is_service() != domain.is_service());
        let there = other.map(|other| format!("write 'domain: {}'", other.name.text));
        if !domain.is_service() {
            let there = there.unwrap_or("add a domain 'services: {}' for it".to_owned());
            return (
                format!("node '{name}' ({kind_name}) may block, and '{home}' is a realtime domain"),
                format!("{there}, or remove 'realtime' from '{home}'"),
            );
        }
        let there = there.unwrap_or("put it in a realtime domain".to_owned());
        let help = match draft.is_bare_list {
            true => "a bare list of nodes is one service: put the nodes under 'nodes:', and give \
                     the graph 'domains: {control: {realtime: {period: 1ms}}}'"
                .to_owned(),
            false => format!("{there}, or give '{home}' 'realtime: {{period: 1ms}}'"),
        };
        (format!("node '{name}' ({kind_name}) runs in cycles, and '{home}' is a service"), help)
    });
    false
}

/// Reports a node whose domain is not there or not named.
fn homeless(draft: &Draft<'_>, node: &Node<'_>, report: &mut Report) {
    let span = node.domain.unwrap_or(node.name).span;
    report.error_with(span, || {
        let known = draft.domains.iter().map(|domain| domain.name.text);
        match node.domain {
            Some(named) => {
                (format!("there is no domain '{}'", named.text), suggest(named.text, known))
            }
            None => (
                format!("node '{}' lacks 'domain'", node.name.text),
                format!("add 'domain:'; {}", suggest("", known)),
            ),
        }
    });
}

/// Whether the missing domain of a node is reported already, at the domain.
fn is_refused(draft: &Draft<'_>, domain: Option<Named<'_>>) -> bool {
    let refused = |named: Named<'_>| draft.refused.contains(&named.text);
    domain.map_or(draft.domains.is_empty(), refused)
}

/// Assigns nodes to threads in the domains whose spec lists threads.
fn assign<'a>(
    draft: &Draft<'a>,
    names: &Names<'a>,
    homes: &mut [Option<Home>],
    report: &mut Report,
) {
    let mut assigned = vec![false; draft.nodes.len()];
    for (at, domain) in draft.domains.iter().enumerate() {
        for (thread, row) in domain.listed().iter().enumerate() {
            if row.nodes.is_empty() {
                report.error(
                    row.span,
                    "a thread without nodes",
                    "add 'nodes: [NAME]' or remove it",
                );
            }
            for named in &row.nodes {
                let node = names.node(named.text);
                let inside = node.filter(|&node| homes[node].is_some_and(|home| home.domain == at));
                let Some(node) = inside else {
                    stranger(draft, homes, at, *named, report);
                    continue;
                };
                if std::mem::replace(&mut assigned[node], true) {
                    let message = format!("node '{}' is on two threads", named.text);
                    report.error(named.span, message, "name it once");
                }
                homes[node] = Some(Home { domain: at, thread });
            }
        }
    }
    for ((node, home), assigned) in draft.nodes.iter().zip(homes).zip(assigned) {
        let Some(domain) = home.map(|home| &draft.domains[home.domain]) else { continue };
        let lists = domain.realtime().is_some_and(|realtime| realtime.threads.is_some());
        if lists && !assigned {
            let (name, domain) = (node.name, domain.name.text);
            let message = format!("node '{}' is on no thread of domain '{domain}'", name.text);
            report.error(name.span, message, "add its name to 'nodes:' of one of the threads");
        }
    }
}

/// Reports a name in a thread that is no node of the thread's domain.
fn stranger(
    draft: &Draft<'_>,
    homes: &[Option<Home>],
    at: usize,
    named: Named<'_>,
    report: &mut Report,
) {
    report.error_with(named.span, || {
        let lives = |home: &Option<Home>| home.is_some_and(|home| home.domain == at);
        let own = draft.nodes.iter().zip(homes).filter(|(_, home)| lives(home));
        let domain = draft.domains[at].name.text;
        let message = format!("domain '{domain}' has no node '{}'", named.text);
        (message, suggest(named.text, own.map(|(node, _)| node.name.text)))
    });
}

/// What starts each thread's cycles, with `Release::Input` counting in `joined`; for each domain in
/// the order of the draft. `homes` are complete; `order` is that of all nodes, writers first.
pub(crate) fn releases(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    homes: &[Home],
    order: &[usize],
    notes: &mut Vec<String>,
    report: &mut Report,
) -> Vec<Vec<Release>> {
    let mut rank = vec![0; order.len()];
    for (place, &node) in order.iter().enumerate() {
        rank[node] = place;
    }
    let mut inputs = Inputs::new(draft);
    for (at, link) in joined.iter().enumerate().filter(|(_, joined)| !joined.link.delay) {
        let (from, to) = (homes[link.from.node], homes[link.to.node]);
        match Reach::of(draft, from, to) {
            Reach::Core => inputs.add(at, from, to, rank[link.to.node]),
            Reach::Inwards => inputs.of_services[to.domain][to.thread] = true,
            Reach::Outwards | Reach::Services => {}
        }
    }
    let mut releases = Vec::new();
    for (at, domain) in draft.domains.iter().enumerate() {
        let Some(realtime) = domain.realtime() else {
            releases.push(Vec::new());
            continue;
        };
        let threads = 0..thread_count(domain);
        let release = |thread| inputs.release((at, thread), domain.name, realtime, notes, report);
        releases.push(threads.map(release).collect());
    }
    rings(draft, joined, homes, &releases, report);
    releases
}

/// How many realtime threads a domain has.
fn thread_count(domain: &Domain<'_>) -> usize {
    let listed = |realtime: &Realtime<'_>| realtime.threads.as_ref().map_or(1, Vec::len);
    domain.realtime().map_or(0, listed)
}

/// For each thread the links that could release it, as (rank of the reader, link): from another
/// thread of its domain, and from other domains.
struct Inputs {
    same: Vec<Vec<Vec<(usize, usize)>>>,
    cross: Vec<Vec<Vec<(usize, usize)>>>,
    /// Whether a service writes to the thread: such a link releases nothing.
    of_services: Vec<Vec<bool>>,
}

impl Inputs {
    fn new(draft: &Draft<'_>) -> Inputs {
        let empty = |domain| vec![Vec::new(); thread_count(domain)];
        let all: Vec<_> = draft.domains.iter().map(empty).collect();
        let none = |domain| vec![false; thread_count(domain)];
        let of_services = draft.domains.iter().map(none).collect();
        Inputs { same: all.clone(), cross: all, of_services }
    }

    fn add(&mut self, link: usize, from: Home, to: Home, rank: usize) {
        if from == to {
            return;
        }
        let side = if from.domain == to.domain { &mut self.same } else { &mut self.cross };
        side[to.domain][to.thread].push((rank, link));
    }

    fn release(
        &self,
        (at, thread): (usize, usize),
        name: Named<'_>,
        realtime: &Realtime<'_>,
        notes: &mut Vec<String>,
        report: &mut Report,
    ) -> Release {
        let row = realtime.threads.as_ref().map(|threads| &threads[thread]);
        let same = self.same[at][thread].iter().min();
        let cross = self.cross[at][thread].iter().min();
        let (link, wants) = match (row.and_then(|row| row.trigger), realtime.trigger) {
            (Some(Trigger::Timer), _) => (None, false),
            (Some(Trigger::Input), _) => (same.or(cross), true),
            (None, Trigger::Input) => (cross.or(same), true),
            (None, Trigger::Timer) => (same, false),
        };
        if wants && link.is_none() {
            let span = row.map_or(name.span, |row| row.span);
            let domain = name.text;
            if self.of_services[at][thread] {
                let message = format!(
                    "thread {thread} of domain '{domain}' waits for an input, but only services \
                     write to it: a service would decide when the core runs"
                );
                let help = "link a node of another realtime thread to it without delay, or use \
                            trigger: timer with 'period:'";
                report.error(span, message, help);
            } else {
                let message = format!(
                    "thread {thread} of domain '{domain}' waits for an input, but no link without \
                     delay comes in from another thread or domain"
                );
                let help = "link a node to it without delay, or use trigger: timer";
                report.error(span, message, help);
            }
        }
        if wants && same.is_none() && self.cross[at][thread].len() > 1 {
            notes.push(format!(
                "{} links from other domains could release domain '{}'; the first one does",
                self.cross[at][thread].len(),
                name.text
            ));
        }
        link.map_or(Release::Timer, |&(_, link)| Release::Input(link))
    }
}

/// Reports threads that release each other in a ring: none of them would ever begin.
fn rings(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    homes: &[Home],
    releases: &[Vec<Release>],
    report: &mut Report,
) {
    let mut done: Vec<Vec<bool>> = releases.iter().map(|all| vec![false; all.len()]).collect();
    for (domain, all) in releases.iter().enumerate() {
        for thread in 0..all.len() {
            let mut path: Vec<Home> = Vec::new();
            let mut home = Home { domain, thread };
            while !std::mem::replace(&mut done[home.domain][home.thread], true) {
                path.push(home);
                let Release::Input(link) = releases[home.domain][home.thread] else { break };
                home = homes[joined[link].from.node];
            }
            let waits = matches!(releases[home.domain][home.thread], Release::Input(_));
            let Some(start) = path.iter().position(|&seen| seen == home).filter(|_| waits) else {
                continue;
            };
            let names = path[start..].iter().chain([&home]).rev();
            let names: Vec<String> = names
                .map(|home| format!("{}[{}]", draft.domains[home.domain].name.text, home.thread))
                .collect();
            let message = format!("threads release each other in a ring: {}", names.join(" -> "));
            let help = "give one of them 'trigger: timer', or one of the links 'delay: 1'";
            report.error(draft.domains[home.domain].name.span, message, help);
        }
    }
}

/// Period and deadline of each domain, ns. An input-released domain takes them from the domain
/// whose message releases it. A ring of such domains is reported.
pub(crate) fn periods(
    draft: &Draft<'_>,
    joined: &[Joined<'_, '_>],
    homes: &[Home],
    releases: &[Vec<Release>],
    report: &mut Report,
) -> Vec<(u64, u64)> {
    let other = |at: usize, release: &Release| match release {
        Release::Input(link) => Some(homes[joined[*link].from.node].domain).filter(|&to| to != at),
        Release::Timer => None,
    };
    let follows = |at: usize| {
        let input = |realtime: &Realtime<'_>| realtime.trigger == Trigger::Input;
        let input = draft.domains[at].realtime().is_some_and(input);
        releases[at].iter().filter(|_| input).find_map(|release| other(at, release))
    };
    let count = draft.domains.len();
    let pairs: Vec<(usize, usize)> = (0..count).filter_map(|at| Some((follows(at)?, at))).collect();
    let (order, rings) = sort(count, &pairs);
    for ring in rings {
        unreleased(&draft.domains[ring[0]], report);
    }
    let mut periods = vec![(0, 0); count];
    for at in order {
        let domain = &draft.domains[at];
        let Some(realtime) = domain.realtime() else { continue };
        let (period_ns, deadline_ns) = match (realtime.period_ns, follows(at)) {
            (Some(period_ns), _) => (period_ns, period_ns),
            (None, Some(released_by)) => periods[released_by],
            (None, None) => {
                unreleased(domain, report);
                continue;
            }
        };
        let deadline_ns = realtime.deadline_ns.unwrap_or(deadline_ns);
        if deadline_ns > period_ns && period_ns > 0 {
            late(realtime.deadline_at, deadline_ns, period_ns, report);
        }
        periods[at] = (period_ns, deadline_ns);
    }
    periods
}

fn unreleased(domain: &Domain<'_>, report: &mut Report) {
    let name = domain.name.text;
    let message =
        format!("domain '{name}' has trigger: input, but no domain with a period releases it");
    let help = "link a node of a domain with a period to it, or give it 'period:' instead";
    report.error(domain.name.span, message, help);
}

/// Reports CPUs that the machine does not have.
pub(crate) fn check_cpus(draft: &Draft<'_>, machine: &Machine, report: &mut Report) {
    let rows = draft.domains.iter().flat_map(Domain::listed);
    for row in rows {
        if let Some(cpu) = row.cpu.filter(|cpu| !machine.cpus.contains(cpu)) {
            let cpus: Vec<String> = machine.cpus.iter().map(u32::to_string).collect();
            let message = format!("cpu {cpu} does not exist or may not be used");
            let help = format!("this process may use: {}", cpus.join(", "));
            report.error(row.cpu_at, message, help);
        }
    }
}

/// How many CPUs there are, in words.
pub(crate) fn cpus_text(machine: &Machine) -> String {
    count(machine.cpus.len(), "CPU")
}

/// CPUs of all realtime threads, in the order of the draft.
pub(crate) fn cpus(
    draft: &Draft<'_>,
    machine: &Machine,
    notes: &mut Vec<String>,
) -> Vec<Vec<Option<u32>>> {
    let given: Vec<Vec<Option<u32>>> = draft
        .domains
        .iter()
        .map(|domain| match domain.listed() {
            [] => vec![None; thread_count(domain)],
            listed => listed.iter().map(|row| row.cpu).collect(),
        })
        .collect();
    let threads: usize = given.iter().map(Vec::len).sum();
    let taken: HashSet<u32> = given.iter().flatten().flatten().copied().collect();
    let mut free = machine.cpus.iter().rev().copied().filter(|cpu| !taken.contains(cpu));
    if threads > machine.cpus.len() {
        if given.iter().flatten().any(Option::is_none) {
            notes.push(format!(
                "{threads} realtime threads on {}: the kernel places those without 'cpu:'",
                cpus_text(machine)
            ));
        }
        return given;
    }
    let mut place = |cpu: Option<u32>| cpu.or_else(|| free.next());
    given.into_iter().map(|all| all.into_iter().map(&mut place).collect()).collect()
}
