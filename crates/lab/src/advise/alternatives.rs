//! What a graph could be instead: its nodes on other threads, its links with other options. Each
//! alternative is a set of edits of the spec, so that exactly what would be written is measured.

use std::collections::BTreeMap;

use sinew_spec::duration_text;
use sinew_spec::edit::{Change, PathStep, Places};
use sinew_spec::plan::{
    Bound, Delivery, Domain, End, Isolation, Link, Overrun, Plan, Realtime, Release, RequiredOf,
    Sync, Thread, Transport, Wait,
};

use crate::words::words;

/// If there are more nodes than this for each CPU, a thread or process for each is no alternative.
const NODES_PER_CPU_MAX: usize = 4;

words! {
    /// Where the nodes of the core run.
    pub(super) enum ThreadLayout {
        /// As the spec says.
        AsItStands = "as_it_is",
        /// One thread for each domain.
        Fused = "fused",
        /// One domain, with one thread.
        OneDomain = "one_domain",
        /// A thread for each node.
        ThreadEach = "thread_each",
        /// A process for each node.
        ProcessEach = "process_each",
        /// As the spec says, but all threads on one CPU.
        OneCpu = "one_cpu",
    }
}

/// The options of a link that leaves a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkWay {
    AsItStands,
    /// Through memory: within one process, or shared by two.
    Memory(Sync, Wait),
    Stream(Transport, Wait),
    /// As it is, but with another delivery.
    Delivery(Delivery),
}

impl LinkWay {
    /// Sorted by preference among equals: first no change, then what is simplest.
    const ALL: [LinkWay; 15] = [
        LinkWay::AsItStands,
        LinkWay::Memory(Sync::LockFree, Wait::Park),
        LinkWay::Memory(Sync::LockFree, Wait::SpinThenPark),
        LinkWay::Memory(Sync::LockFree, Wait::Spin),
        LinkWay::Memory(Sync::LockFree, Wait::Yield),
        LinkWay::Memory(Sync::Mutex, Wait::Park),
        LinkWay::Memory(Sync::Mutex, Wait::Spin),
        LinkWay::Stream(Transport::Pipe, Wait::Park),
        LinkWay::Stream(Transport::Pipe, Wait::Spin),
        LinkWay::Stream(Transport::Unix, Wait::Park),
        LinkWay::Stream(Transport::Unix, Wait::Spin),
        LinkWay::Stream(Transport::Tcp, Wait::Park),
        LinkWay::Stream(Transport::Tcp, Wait::Spin),
        LinkWay::Delivery(Delivery::Queue),
        LinkWay::Delivery(Delivery::Latest),
    ];

    /// What the options of a link would be, as the spec would write them; `None` for an option that
    /// the link would not have.
    fn options(
        self,
        link: &Link,
        in_one_domain: bool,
    ) -> Vec<(&'static str, Option<&'static str>)> {
        let memory = if in_one_domain { Transport::InProcess } else { Transport::SharedMemory };
        match self {
            LinkWay::AsItStands => vec![],
            LinkWay::Memory(sync, wait) => {
                let mut options = vec![];
                let differs = |is: bool, option| if is { None } else { Some(option) };
                options
                    .extend(differs(link.transport == memory, ("transport", Some(memory.word()))));
                options.extend(differs(link.sync == sync, ("sync", Some(sync.word()))));
                options.extend(differs(link.wait == wait, ("wait", Some(wait.word()))));
                options
            }
            LinkWay::Stream(transport, wait) => vec![
                ("transport", Some(transport.word())),
                ("sync", None),
                ("wait", Some(wait.word())),
            ],
            LinkWay::Delivery(Delivery::Latest) => {
                vec![("delivery", Some("latest")), ("capacity", None), ("full", None)]
            }
            LinkWay::Delivery(delivery) => vec![("delivery", Some(delivery.word()))],
        }
    }
}

/// The ways that the links of the core that leave a thread get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ways {
    /// All links the same way.
    All(LinkWay),
    /// Each link its own way, by the link's name.
    Each(BTreeMap<String, LinkWay>),
}

impl Ways {
    fn of(&self, link: &str) -> LinkWay {
        match self {
            Ways::All(crossing) => *crossing,
            Ways::Each(each) => each.get(link).copied().unwrap_or(LinkWay::AsItStands),
        }
    }

    /// The words of a row in the report: transport, sync, wait, delivery.
    pub(super) fn words(&self) -> [&'static str; 4] {
        const SAME: &str = "same";
        const EACH: &str = "each";
        match *self {
            Ways::All(LinkWay::AsItStands) => [SAME; 4],
            Ways::All(LinkWay::Memory(sync, wait)) => ["memory", sync.word(), wait.word(), SAME],
            Ways::All(LinkWay::Stream(transport, wait)) => {
                [transport.word(), "-", wait.word(), SAME]
            }
            Ways::All(LinkWay::Delivery(delivery)) => [SAME, SAME, SAME, delivery.word()],
            Ways::Each(_) => [EACH, EACH, EACH, SAME],
        }
    }

    /// Whether other messages may arrive than now. That is for the user to choose.
    pub(super) fn changes_meaning(&self) -> bool {
        matches!(self, Ways::All(LinkWay::Delivery(_)))
    }

    /// Whether this is not worth measuring in the layout. With other threads than those of the
    /// spec, other transports are not measured again, and no change of delivery. With one CPU only
    /// lock-free memory with parking is measured: a reader that spins keeps the CPU from the
    /// writer.
    pub(super) fn is_far_fetched(&self, layout: ThreadLayout) -> bool {
        match layout {
            ThreadLayout::AsItStands => false,
            ThreadLayout::OneCpu => *self != Ways::All(LinkWay::Memory(Sync::LockFree, Wait::Park)),
            _ => self.changes_meaning() || matches!(self, Ways::All(LinkWay::Stream(..))),
        }
    }
}

/// An alternative: a thread layout, and ways for its links.
#[derive(Clone, Debug)]
pub(super) struct Alternative {
    pub(super) layout: ThreadLayout,
    pub(super) ways: Ways,
    pub(super) changes: Vec<Change>,
}

/// The links of the plan between nodes of the core.
pub(super) fn core_links(plan: &Plan) -> impl Iterator<Item = (usize, &Link)> {
    let inside = |link: &Link| [link.from, link.to].iter().all(|end| !plan.is_service(end.node));
    plan.links.iter().enumerate().filter(move |(_, link)| inside(link))
}

/// What must stand between the ends of a link: what is required; otherwise a process boundary, if
/// the spec has one there. Which nodes fail together is for the user to say.
pub(super) fn floor(plan: &Plan, link: usize) -> Isolation {
    let asked = |of: fn(RequiredOf) -> bool| {
        plan.requirements.iter().find_map(|requirement| match requirement.bound {
            Bound::Isolation(isolation)
                if of(requirement.of) && plan.isolated(requirement.of).any(|it| it == link) =>
            {
                Some(isolation)
            }
            _ => None,
        })
    };
    let has = plan.isolation(&plan.links[link]);
    asked(|of| matches!(of, RequiredOf::Link(_)))
        .or(asked(|of| matches!(of, RequiredOf::Domain(_))))
        .or(asked(|of| of == RequiredOf::Graph))
        .unwrap_or(if has.holds(Isolation::Process) { Isolation::Process } else { Isolation::None })
}

/// The edits that give the nodes this layout; `None` if it is the layout that the spec has already,
/// or one that this graph cannot have.
pub(super) fn lay_out(
    plan: &Plan,
    places: &Places,
    layout: ThreadLayout,
    cpus: &[u32],
) -> Option<Vec<Change>> {
    let domains: Vec<usize> =
        (0..plan.domains.len()).filter(|&at| plan.domains[at].realtime().is_some()).collect();
    let count: usize = domains.iter().map(|&at| nodes(plan, at).len()).sum();
    let few = count <= NODES_PER_CPU_MAX * cpus.len();
    match layout {
        ThreadLayout::AsItStands => Some(vec![]),
        // A thread with a clock of its own is not part of another thread's cycle; in another layout
        // it would be.
        _ if domains.iter().any(|&at| clocks(plan, at) > 1) => None,
        ThreadLayout::Fused => domains
            .iter()
            .filter(|&&at| plan.domains[at].threads().len() > 1)
            .map(|&at| set(places.domain(&plan.domains[at].name), "threads", None))
            .collect(),
        ThreadLayout::ThreadEach if few => domains
            .iter()
            .filter(|&&at| nodes(plan, at).len() > 1)
            .map(|&at| {
                let each = nodes(plan, at).into_iter().map(|node| vec![node]);
                threads_of(plan, places, at, each, None)
            })
            .collect(),
        ThreadLayout::OneCpu => {
            let threads = |at: usize| plan.domains[at].threads();
            let count: usize = domains.iter().map(|&at| threads(at).len()).sum();
            let cpu = Some(*cpus.last().filter(|_| count > 1)?);
            let each = |at: usize| threads(at).iter().map(|thread| thread.nodes.clone());
            domains.iter().map(|&at| threads_of(plan, places, at, each(at), cpu)).collect()
        }
        ThreadLayout::OneDomain if domains.len() > 1 => one_domain(plan, places, &domains),
        ThreadLayout::ProcessEach if few => process_each(plan, places, &domains),
        _ => None,
    }
}

fn set(to: Option<Vec<PathStep>>, key: &str, value: Option<String>) -> Option<Change> {
    Some(Change { to: to?, key: key.into(), value })
}

/// The edit that gives a domain these threads, on this CPU if one is named.
fn threads_of(
    plan: &Plan,
    places: &Places,
    domain: usize,
    threads: impl Iterator<Item = Vec<usize>>,
    cpu: Option<u32>,
) -> Option<Change> {
    let cpu = cpu.map(|cpu| format!("cpu: {cpu}, ")).unwrap_or_default();
    let thread = |all: Vec<usize>| {
        let names: Vec<_> = all.iter().map(|&node| plan.nodes[node].name.as_str()).collect();
        format!("{{{cpu}nodes: [{}]}}", names.join(", "))
    };
    let threads = format!("[{}]", threads.map(thread).collect::<Vec<_>>().join(", "));
    set(places.domain(&plan.domains[domain].name), "threads", Some(threads))
}

/// The nodes of a domain of the core, in the order in which they run.
fn nodes(plan: &Plan, domain: usize) -> Vec<usize> {
    plan.domains[domain].threads().iter().flat_map(|thread| thread.nodes.clone()).collect()
}

/// How many threads of a domain the clock releases.
fn clocks(plan: &Plan, domain: usize) -> usize {
    let by_timer = |thread: &&Thread| thread.release == Release::Timer;
    plan.domains[domain].threads().iter().filter(by_timer).count()
}

/// Moves all nodes to the domain that the clock releases. `None` if another domain has options or
/// requirements that would then be lost.
fn one_domain(plan: &Plan, places: &Places, domains: &[usize]) -> Option<Vec<Change>> {
    let mut clocked = domains.iter().filter(|&&at| clocks(plan, at) > 0);
    let (Some(&leader), None) = (clocked.next(), clocked.next()) else { return None };
    let says = |at: usize| {
        let domain = &plan.domains[at];
        let realtime = domain.realtime()?;
        Some((domain.user.as_deref(), realtime.priority, realtime.overrun, realtime.deadline_ns))
    };
    let of_other = |of: RequiredOf| matches!(of, RequiredOf::Domain(at) if at != leader);
    if domains.iter().any(|&at| says(at) != says(leader))
        || plan.requirements.iter().any(|it| of_other(it.of))
    {
        return None;
    }
    let name = &plan.domains[leader].name;
    let mut changes = vec![];
    if plan.domains[leader].threads().len() > 1 {
        changes.push(set(places.domain(name), "threads", None)?);
    }
    for &at in domains.iter().filter(|&&at| at != leader) {
        for node in nodes(plan, at) {
            changes.push(set(places.node(&plan.nodes[node].name), "domain", Some(name.clone()))?);
        }
        let to = vec![PathStep::Key("domains".into())];
        changes.push(Change { to, key: plan.domains[at].name.clone(), value: None });
    }
    Some(changes)
}

/// Every node but the first of each domain gets a domain of its own, which a message releases and
/// which has the same options.
fn process_each(plan: &Plan, places: &Places, domains: &[usize]) -> Option<Vec<Change>> {
    let mut changes = vec![];
    for &at in domains {
        let (domain, all) = (&plan.domains[at], nodes(plan, at));
        if domain.threads().len() > 1 {
            changes.push(set(places.domain(&domain.name), "threads", None)?);
        }
        for &node in &all[1..] {
            let name = &plan.nodes[node].name;
            if plan.domains.iter().any(|domain| domain.name == *name) {
                return None;
            }
            let value = released_by_input(domain)?;
            let to = vec![PathStep::Key("domains".into())];
            changes.push(Change { to, key: name.clone(), value: Some(value) });
            changes.push(set(places.node(name), "domain", Some(name.clone()))?);
        }
    }
    (!changes.is_empty()).then_some(changes)
}

/// A domain like this one that a message releases, as the spec writes it.
fn released_by_input(domain: &Domain) -> Option<String> {
    let Realtime { period_ns, deadline_ns, priority, overrun, .. } = domain.realtime()?;
    let overrun = match overrun {
        Overrun::Stop { consecutive_max } => {
            format!("policy: stop, consecutive_max: {consecutive_max}")
        }
        Overrun::Count => "policy: count".to_owned(),
    };
    let deadline = match deadline_ns == period_ns {
        true => String::new(),
        false => format!(", deadline: {}", duration_text(*deadline_ns)),
    };
    let user = domain.user.as_ref().map(|user| format!(", user: {user}")).unwrap_or_default();
    let realtime =
        format!("trigger: input{deadline}, priority: {priority}, overrun: {{{overrun}}}");
    Some(format!("{{realtime: {{{realtime}}}{user}}}"))
}

/// The edits that give these options to the links that leave a thread in `laid`, which is a plan of
/// the text at `places`.
fn cross(laid: &Plan, places: &Places, ways: &Ways) -> Option<Vec<Change>> {
    let mut changes = vec![];
    for (at, link) in core_links(laid).filter(|(_, link)| !link.fused) {
        let domain = |node: usize| laid.nodes[node].domain;
        let in_one_domain = domain(link.from.node) == domain(link.to.node);
        let to = place_of(laid, places, at)?;
        let crossing = ways.of(&laid.link_name(at));
        let options = crossing.options(link, in_one_domain).into_iter();
        changes.extend(options.map(|(key, value)| Change {
            to: to.clone(),
            key: key.into(),
            value: value.map(str::to_owned),
        }));
    }
    Some(changes)
}

/// Where the options of a link are in the spec.
fn place_of(plan: &Plan, places: &Places, link: usize) -> Option<Vec<PathStep>> {
    let link = &plan.links[link];
    let name = |node: usize| plan.nodes[node].name.as_str();
    let port = |end: End| plan.nodes[end.node].kind.port_name(end.port);
    let (from, to) = (port(link.from), port(link.to));
    places.link((name(link.from.node), &from), (name(link.to.node), &to))
}

/// The threads of an alternative, before its links are chosen.
pub(super) struct Laid {
    pub(super) layout: ThreadLayout,
    pub(super) changes: Vec<Change>,
    /// The places of its parts in the text with the changes, and the plan of that text.
    pub(super) places: Places,
    pub(super) plan: Plan,
}

impl Laid {
    /// With one way for all links; the first alternative leaves them as they are.
    pub(super) fn uniform(&self) -> Vec<Alternative> {
        LinkWay::ALL.iter().filter_map(|&crossing| self.with(Ways::All(crossing))).collect()
    }

    /// With these ways for the links.
    pub(super) fn with(&self, ways: Ways) -> Option<Alternative> {
        let more = cross(&self.plan, &self.places, &ways)?;
        let changes = [&self.changes[..], &more].concat();
        Some(Alternative { layout: self.layout, ways, changes })
    }
}

#[cfg(test)]
mod tests {
    use sinew_runtime::Kinds;
    use sinew_spec::edit::edit;
    use sinew_spec::plan::Role;

    use super::*;
    use crate::graph::compiled;
    use crate::scenario::table;

    /// Two stages on a thread each, in one domain or two.
    fn spec(domains: &str, home: &str) -> String {
        format!(
            "name: two
domains:
{domains}
nodes:
  - {{kind: lab_stage, name: a, domain: core, leads: true, ports: {{out: [{{name: b, port: in}}]}}}}
  - {{kind: lab_stage, name: b, domain: {home}, ports: {{out: [{{name: a, port: in, delay: 1}}]}}}}
"
        )
    }

    fn plan(text: &str) -> Plan {
        let kinds = table(&Kinds::default()).catalogue();
        let made = compiled("two.yaml", text.into(), vec![], &kinds, &[0, 1]);
        made.unwrap_or_else(|why| panic!("{why}\n{text}")).plan
    }

    fn laid(text: &str, layout: ThreadLayout) -> Option<Plan> {
        let places = Places::of(text).expect("YAML");
        let changes = lay_out(&plan(text), &places, layout, &[0, 1])?;
        Some(plan(&edit(text, &changes).expect("it can be edited")))
    }

    const THREADS: &str = "threads: [{nodes: [a]}, {nodes: [b]}]";

    #[test]
    fn a_domain_that_is_split_says_the_same_of_all_its_parts() {
        let overrun = "overrun: {policy: stop, consecutive_max: 7}";
        let realtime = format!("period: 1ms, deadline: 900us, priority: 70, {overrun}");
        let core = format!("  core: {{realtime: {{{realtime}}}, {THREADS}}}");
        let split = laid(&spec(&core, "core"), ThreadLayout::ProcessEach).expect("it can be split");
        assert_eq!(split.domains.len(), 2);
        for domain in &split.domains {
            let Role::Realtime(role) = &domain.role else { panic!("{domain:?}") };
            assert_eq!((role.deadline_ns, role.priority), (900_000, 70));
            assert_eq!(role.overrun, Overrun::Stop { consecutive_max: 7 });
        }
    }

    #[test]
    fn threads_come_together_on_one_cpu_and_keep_their_nodes() {
        let split = format!("  core: {{realtime: {{period: 1ms}}, {THREADS}}}");
        let one = laid(&spec(&split, "core"), ThreadLayout::OneCpu).expect("there are two");
        let threads = one.domains[0].threads();
        assert_eq!(threads.iter().map(|it| it.cpu).collect::<Vec<_>>(), [Some(1), Some(1)]);
        assert_eq!(threads.iter().map(|it| it.nodes.len()).collect::<Vec<_>>(), [1, 1]);
        let fused = "  core: {realtime: {period: 1ms}}";
        assert!(laid(&spec(fused, "core"), ThreadLayout::OneCpu).is_none());
    }

    #[test]
    fn domains_become_one_only_where_they_say_the_same_of_themselves() {
        let two = |overrun: &str| {
            let second = format!("  other: {{realtime: {{trigger: input, overrun: {overrun}}}}}");
            spec(&format!("  core: {{realtime: {{period: 1ms}}}}\n{second}"), "other")
        };
        let same = two("{policy: stop, consecutive_max: 3}");
        let one = laid(&same, ThreadLayout::OneDomain).expect("they can be one");
        assert!(one.domains.len() == 1 && one.links.iter().all(|link| link.fused));
        assert!(laid(&two("{policy: count}"), ThreadLayout::OneDomain).is_none());
    }

    #[test]
    fn threads_with_clocks_of_their_own_keep_their_layout() {
        let core = format!("  core: {{realtime: {{period: 1ms}}, {THREADS}}}");
        assert!(laid(&spec(&core, "core"), ThreadLayout::Fused).is_some());
        let clocks = core.replace("nodes: [b]", "nodes: [b], trigger: timer");
        for layout in [ThreadLayout::Fused, ThreadLayout::ThreadEach, ThreadLayout::ProcessEach] {
            assert!(laid(&spec(&clocks, "core"), layout).is_none(), "{layout:?}");
        }
    }

    #[test]
    fn a_link_across_domains_keeps_its_process_unless_less_is_required() {
        let two = |requires: &str| {
            let core = format!("  core: {{realtime: {{period: 1ms}}}}\n{requires}");
            plan(&spec(&core, "other"))
        };
        let other = "  other: {realtime: {trigger: input}";
        assert_eq!(floor(&two(&format!("{other}}}")), 0), Isolation::Process);
        let less = two(&format!("{other}, requires: {{isolation: thread}}}}"));
        assert_eq!(floor(&less, 0), Isolation::Thread);
    }
}
