//! Gives every node its domain and thread, and every thread its release and CPU.

use std::collections::{HashMap, HashSet};
use std::iter;

use sinew_plan::catalogue::{Kind, RunsIn};
use sinew_plan::plan::{End, FlowLink, Plan, Release, Role, TargetMachine, Thread};

use crate::draft::{Domain, Draft, Node, Realtime, late};
use crate::fields::Named;
use crate::images;
use crate::join::Joined;
use crate::keys::Trigger;
use crate::nearest::suggest;
use crate::order::sort;
use crate::picture::count;

/// The home of a node: indices of the draft's domain and of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    pub(crate) domain: usize,
    pub(crate) thread: usize,
}

/// On which sides of the firewall the ends of a link are.
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

/// A graph in which every name was found.
pub(crate) struct Graph<'a, 'd> {
    pub(crate) draft: &'d Draft<'a>,
    /// Links that carry messages.
    pub(crate) joined: Vec<Joined<'a, 'd>>,
    /// Links that carry packets.
    pub(crate) flow_links: Vec<FlowLink>,
    pub(crate) homes: Vec<Home>,
    /// Links between hosts.
    pub(crate) remote: Vec<Joined<'a, 'd>>,
    /// The host of each domain, if there are hosts.
    pub(crate) hosts: Vec<Option<usize>>,
    /// All nodes, writers first.
    pub(crate) order: Vec<usize>,
}

impl Graph<'_, '_> {
    pub(crate) fn reach(&self, from: End, to: End) -> Reach {
        Reach::of(self.draft, self.homes[from.node], self.homes[to.node])
    }
}

/// Homes of all nodes; `None` if the error is reported already.
pub(crate) fn homes(draft: &Draft<'_>) -> Vec<Option<Home>> {
    let domains = draft.domains.iter().enumerate().map(|(at, domain)| (domain.name.text, at));
    let domains: HashMap<&str, usize> = domains.collect();
    let mut homes: Vec<Option<Home>> = vec![None; draft.nodes.len()];
    for (at, node) in draft.nodes.iter().enumerate() {
        let found = match node.domain {
            Some(named) => domains.get(named.text).copied(),
            None => (draft.domains.len() == 1).then_some(0),
        };
        homes[at] = found.map(|domain| Home { domain, thread: 0 });
        // The missing domain may be reported already, where it is declared.
        let refused = |named: Named<'_>| draft.refused.contains(&named.text);
        if found.is_none() && !node.domain.map_or(draft.domains.is_empty(), refused) {
            homeless(draft, node);
        }
    }
    assign(draft, &mut homes);
    for (node, home) in draft.nodes.iter().zip(&mut homes) {
        let fits = |home: &Home| fits(draft, node, &draft.domains[home.domain]);
        *home = home.filter(fits);
    }
    let peopled: HashSet<usize> = homes.iter().flatten().map(|home| home.domain).collect();
    let all_found = !homes.is_empty() && homes.iter().all(Option::is_some);
    let empty = |at: &usize| all_found && !peopled.contains(at);
    for Named { text, span } in
        (0..draft.domains.len()).filter(empty).map(|at| draft.domains[at].name)
    {
        let message = format!("domain '{text}' has no nodes");
        draft.report.error(span, message, "remove it, or put a node in it");
    }
    homes
}

/// Whether a node can run in its domain; reports one that cannot.
fn fits(draft: &Draft<'_>, node: &Node<'_>, domain: &Domain<'_>) -> bool {
    let is_of_guest = |kind: &Kind| kind.runs_in == RunsIn::Guest;
    let of_guest = node.kind.filter(|kind| domain.guest().is_some() || is_of_guest(kind));
    if let Some(kind) = of_guest {
        return fits_guest(draft, node, kind, domain);
    }
    let misplaced = |kind: &&Kind| kind.runs_in.is_service() != domain.is_service();
    let Some(kind) = node.kind.filter(misplaced) else { return true };
    draft.report.error_with(node.name.span, || {
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

/// Whether a node is in the right place: a node of a guest only in the guest whose image brings its
/// kind, and any other node outside of guests. Reports a node that is not.
fn fits_guest(draft: &Draft<'_>, node: &Node<'_>, kind: &Kind, domain: &Domain<'_>) -> bool {
    let brings = |domain: &Domain<'_>| {
        domain.guest().is_some_and(|guest| images::brings(draft.images, guest, kind))
    };
    let good = brings(domain);
    if !good {
        let (name, home) = (node.name.text, domain.name.text);
        let bringer = draft.domains.iter().find(|domain| brings(domain));
        let (message, help) = match (domain.guest(), bringer) {
            (_, Some(bringer)) => (
                format!(
                    "node '{name}' ({}) runs in a guest, and '{home}' is another domain",
                    kind.name
                ),
                format!("write 'domain: {}', whose image has the kind", bringer.name.text),
            ),
            (Some(guest), None) => (
                format!("the image of guest '{home}' has no kind '{}'", kind.name),
                format!("put '{name}' in another domain, or add the kind to '{}'", guest.image),
            ),
            (None, None) => (
                format!("node '{name}' ({}) runs in a guest", kind.name),
                "put it in a domain with 'guest:'".to_owned(),
            ),
        };
        draft.report.error(node.name.span, message, help);
    }
    good
}

/// Reports a node whose domain does not exist or is not given.
fn homeless(draft: &Draft<'_>, node: &Node<'_>) {
    let span = node.domain.unwrap_or(node.name).span;
    draft.report.error_with(span, || {
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

/// Assigns nodes to threads in the domains whose spec lists threads.
fn assign(draft: &Draft<'_>, homes: &mut [Option<Home>]) {
    let mut assigned = vec![false; draft.nodes.len()];
    for (at, domain) in draft.domains.iter().enumerate() {
        for (thread, row) in domain.listed().iter().enumerate() {
            if row.nodes.is_empty() {
                let help = "add 'nodes: [NAME]' or remove it";
                draft.report.error(row.span, "a thread without nodes", help);
            }
            for named in &row.nodes {
                let node = draft.node(named.text);
                let inside = node.filter(|&node| homes[node].is_some_and(|home| home.domain == at));
                let Some(node) = inside else {
                    stranger(draft, homes, at, *named);
                    continue;
                };
                if std::mem::replace(&mut assigned[node], true) {
                    let message = format!("node '{}' is on two threads", named.text);
                    draft.report.error(named.span, message, "name it once");
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
            let help = "add its name to 'nodes:' of one of the threads";
            draft.report.error(name.span, message, help);
        }
    }
}

/// Reports a name in a thread that is not a node of the thread's domain.
fn stranger(draft: &Draft<'_>, homes: &[Option<Home>], at: usize, named: Named<'_>) {
    draft.report.error_with(named.span, || {
        let lives = |home: &Option<Home>| home.is_some_and(|home| home.domain == at);
        let own = draft.nodes.iter().zip(homes).filter(|(_, home)| lives(home));
        let domain = draft.domains[at].name.text;
        let message = format!("domain '{domain}' has no node '{}'", named.text);
        (message, suggest(named.text, own.map(|(node, _)| node.name.text)))
    });
}

/// The realtime threads of each domain, with their nodes; the clock releases all of them at first.
pub(crate) fn threads(graph: &Graph<'_, '_>) -> Vec<Vec<Thread>> {
    let Graph { draft, homes, order, .. } = graph;
    let thread = |cpu| Thread { cpu, release: Release::Timer, nodes: Vec::new() };
    let mut threads: Vec<Vec<Thread>> = Vec::with_capacity(draft.domains.len());
    for domain in &draft.domains {
        let rows = domain.realtime().map(|realtime| realtime.threads.as_deref());
        threads.push(match rows {
            Some(Some(listed)) => listed.iter().map(|row| thread(row.cpu)).collect(),
            Some(None) => vec![thread(None)],
            None => Vec::new(),
        });
    }
    for &node in order {
        let Home { domain, thread } = homes[node];
        if let Some(thread) = threads[domain].get_mut(thread) {
            thread.nodes.push(node);
        }
    }
    threads
}

/// Links that could release a thread, as (rank of the reader, link).
#[derive(Default)]
struct Inputs {
    /// Links from another thread of its domain.
    same: Vec<(usize, usize)>,
    /// Links from other domains.
    cross: Vec<(usize, usize)>,
    /// Whether a service writes to the thread: such a link releases nothing.
    of_services: bool,
}

/// Finds what starts each thread's cycles. `Release::Input` holds an index into the graph's links.
pub(crate) fn release(graph: &Graph<'_, '_>, threads: &mut [Vec<Thread>], notes: &mut Vec<String>) {
    let Graph { draft, joined, homes, order, .. } = graph;
    let mut rank = vec![0; order.len()];
    for (place, &node) in order.iter().enumerate() {
        rank[node] = place;
    }
    let mut inputs: HashMap<Home, Inputs> = HashMap::new();
    for (at, link) in joined.iter().enumerate().filter(|(_, joined)| !joined.link.delay) {
        let (from, to) = (homes[link.from.node], homes[link.to.node]);
        let (inputs, row) = (inputs.entry(to).or_default(), (rank[link.to.node], at));
        match graph.reach(link.from, link.to) {
            Reach::Core if from == to => {}
            Reach::Core if from.domain == to.domain => inputs.same.push(row),
            Reach::Core => inputs.cross.push(row),
            Reach::Inwards => inputs.of_services = true,
            Reach::Outwards | Reach::Services => {}
        }
    }
    for (domain, threads) in threads.iter_mut().enumerate() {
        for (at, thread) in threads.iter_mut().enumerate() {
            let home = Home { domain, thread: at };
            let inputs = inputs.remove(&home).unwrap_or_default();
            if let Some(link) = inputs.first(draft, home, notes) {
                thread.release = Release::Input(link);
            }
        }
    }
    rings(graph, threads);
}

impl Inputs {
    /// The link that releases a thread; `None`: the clock does.
    fn first(&self, draft: &Draft<'_>, home: Home, notes: &mut Vec<String>) -> Option<usize> {
        let domain = &draft.domains[home.domain];
        let (realtime, thread) = (domain.realtime()?, home.thread);
        let row = realtime.threads.as_ref().map(|threads| &threads[thread]);
        let (same, cross) = (self.same.iter().min(), self.cross.iter().min());
        let (link, wants) = match (row.and_then(|row| row.trigger), realtime.trigger) {
            (Some(Trigger::Timer), _) => (None, false),
            (Some(Trigger::Input), _) => (same.or(cross), true),
            (None, Trigger::Input) => (cross.or(same), true),
            (None, Trigger::Timer) => (same, false),
        };
        let Named { text: name, span } = domain.name;
        if wants && link.is_none() {
            let (but, help) = match self.of_services {
                true => (
                    "only services write to it: a service would decide when the core runs",
                    "link a node of another realtime thread to it without delay, or use trigger: \
                     timer with 'period:'",
                ),
                false => (
                    "no link without delay comes in from another thread or domain",
                    "link a node to it without delay, or use trigger: timer",
                ),
            };
            let message =
                format!("thread {thread} of domain '{name}' waits for an input, but {but}");
            draft.report.error(row.map_or(span, |row| row.span), message, help);
        }
        if wants && same.is_none() && self.cross.len() > 1 {
            notes.push(format!(
                "{} links from other domains could release domain '{name}'; the first one does",
                self.cross.len(),
            ));
        }
        link.map(|&(_, link)| link)
    }
}

/// Reports threads that release each other in a loop: none of them would ever begin.
fn rings(Graph { draft, joined, homes, .. }: &Graph<'_, '_>, threads: &[Vec<Thread>]) {
    let releaser = |home: Home| match threads[home.domain][home.thread].release {
        Release::Input(link) => Some(homes[joined[link].from.node]),
        Release::Timer => None,
    };
    let mut done: HashSet<Home> = HashSet::new();
    for (domain, all) in threads.iter().enumerate() {
        for thread in 0..all.len() {
            let first = Home { domain, thread };
            let mut path: Vec<Home> = Vec::new();
            let next = iter::successors(Some(first), |&home| releaser(home)).find(|&home| {
                path.push(home);
                !done.insert(home)
            });
            // The last one was seen before, in this walk or in that of another thread.
            path.truncate(path.len() - usize::from(next.is_some()));
            let start = next.and_then(|next| path.iter().position(|&seen| seen == next));
            let Some(start) = start else { continue };
            let names = path[start..].iter().chain(&path[start..=start]).rev();
            let names: Vec<String> = names
                .map(|home| format!("{}[{}]", draft.domains[home.domain].name.text, home.thread))
                .collect();
            let message = format!("threads release each other in a ring: {}", names.join(" -> "));
            let help = "give one of them 'trigger: timer', or one of the links 'delay: 1'";
            draft.report.error(draft.domains[path[start].domain].name.span, message, help);
        }
    }
}

/// Period and deadline of each domain, ns. An input-released domain takes them from the domain
/// whose message releases it. A loop of such domains is reported.
pub(crate) fn periods(graph: &Graph<'_, '_>, threads: &[Vec<Thread>]) -> Vec<(u64, u64)> {
    let Graph { draft, joined, homes, .. } = graph;
    let other = |at: usize, thread: &Thread| match thread.release {
        Release::Input(link) => Some(homes[joined[link].from.node].domain).filter(|&to| to != at),
        Release::Timer => None,
    };
    let follows = |at: usize| {
        let input = |realtime: &Realtime<'_>| realtime.trigger == Trigger::Input;
        let input = draft.domains[at].realtime().is_some_and(input);
        threads[at].iter().filter(|_| input).find_map(|thread| other(at, thread))
    };
    let count = draft.domains.len();
    let pairs: Vec<(usize, usize)> = (0..count).filter_map(|at| Some((follows(at)?, at))).collect();
    let (order, rings) = sort(count, &pairs);
    for ring in rings {
        unreleased(draft, ring[0]);
    }
    let mut periods = vec![(0, 0); count];
    for at in order {
        let domain = &draft.domains[at];
        let Some(realtime) = domain.realtime() else { continue };
        let (period_ns, deadline_ns) = match (realtime.period_ns, follows(at)) {
            (Some(period_ns), _) => (period_ns, period_ns),
            (None, Some(released_by)) => periods[released_by],
            (None, None) => {
                unreleased(draft, at);
                continue;
            }
        };
        let deadline_ns = realtime.deadline_ns.unwrap_or(deadline_ns);
        if deadline_ns > period_ns && period_ns > 0 {
            late(realtime.deadline_at, deadline_ns, period_ns, draft.report);
        }
        periods[at] = (period_ns, deadline_ns);
    }
    periods
}

fn unreleased(draft: &Draft<'_>, at: usize) {
    let domain = &draft.domains[at];
    let name = domain.name.text;
    let message =
        format!("domain '{name}' has trigger: input, but no domain with a period releases it");
    let help = "link a node of a domain with a period to it, or give it 'period:' instead";
    draft.report.error(domain.name.span, message, help);
}

/// Reports CPUs that the machine does not have, in the domains that run on it.
pub(crate) fn check_cpus(
    draft: &Draft<'_>,
    machine: &TargetMachine,
    is_here: impl Fn(usize) -> bool,
) {
    let here = || draft.domains.iter().enumerate().filter(|(at, _)| is_here(*at)).map(|it| it.1);
    let of_threads = here().flat_map(Domain::listed);
    let of_threads = of_threads.filter_map(|row| Some((row.cpu?, row.cpu_at)));
    let of_services = here().filter_map(Domain::service);
    let of_services = of_services.flat_map(|service| service.cpus_at.iter().copied());
    for (cpu, at) in of_threads.chain(of_services) {
        if !machine.cpus.contains(&cpu) {
            let cpus: Vec<String> = machine.cpus.iter().map(u32::to_string).collect();
            let message = format!("cpu {cpu} does not exist or may not be used");
            let help = format!("this process may use: {}", cpus.join(", "));
            draft.report.error(at, message, help);
        }
    }
}

/// Gives a CPU of its own to each realtime thread that names none, while there are enough.
pub(crate) fn cpus(plan: &mut Plan, machine: &TargetMachine) {
    let threads = || plan.domains.iter().flat_map(|domain| domain.threads());
    let (all, unplaced) = (threads().count(), threads().filter(|it| it.cpu.is_none()).count());
    let taken: HashSet<u32> = threads().filter_map(|thread| thread.cpu).collect();
    let mut free = machine.cpus.iter().rev().copied().filter(|cpu| !taken.contains(cpu));
    if all > machine.cpus.len() {
        let cpus = count(machine.cpus.len(), "CPU");
        plan.notes.extend((unplaced > 0).then(|| {
            format!("{all} realtime threads on {cpus}: the kernel places those without 'cpu:'")
        }));
        return;
    }
    for domain in &mut plan.domains {
        if let Role::Realtime(realtime) = &mut domain.role {
            let rest = realtime.threads.iter_mut().filter(|thread| thread.cpu.is_none());
            rest.for_each(|thread| thread.cpu = free.next());
        }
    }
}
