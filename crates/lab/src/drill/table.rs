//! All drills of a graph: every node with every fault that a node can have, and likewise every
//! domain and every link. For each drill: the bar that it must reach, and the end that is expected.

use std::time::Duration;

use sinew_core::Cause;
use sinew_core::catalogue::{Direction, Kind, Scalar};

use sinew_runtime::inject::{InjectedFault, Target};
use sinew_spec::plan::{Link, Overrun, Plan, Realtime, RestartPolicy};

use super::fault::{DrilledFault, OF_DOMAINS, OF_GUESTS, OF_LINKS, OF_NODES, OF_SERVICES};
use super::machine::Machine;
use super::network::{self, Pair};

/// Periods of a delay that every part bears, if the graph bears that many.
const BORNE_MAX: u32 = 5;
/// A time is clearly below a limit if it is at most four fifths of it, and clearly above if the
/// limit is at most four fifths of the time.
const NEAR: (u64, u64) = (4, 5);
/// Periods of a delay beyond what the graph bears.
const BEYOND: u32 = 10;
/// About how long a drill takes: the start, the warm-up, and a fault that soon ends the run.
const TAKES: Duration = Duration::from_millis(2200);

/// What the fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A node: index into the plan.
    Node(usize),
    /// A domain's process.
    Domain(usize),
    /// A link that crosses.
    Link(usize),
    /// Another host: index into the plan's hosts.
    Host(usize),
}

impl Subject {
    /// `node`, `domain`, `link` or `host`.
    pub fn sort(self) -> &'static str {
        match self {
            Subject::Node(_) => "node",
            Subject::Domain(_) => "domain",
            Subject::Link(_) => "link",
            Subject::Host(_) => "host",
        }
    }

    /// Its name. A link is named by its nodes, with their ports if the nodes alone do not tell it
    /// from another link.
    pub fn name(self, plan: &Plan) -> String {
        match self {
            Subject::Node(at) => plan.nodes[at].name.clone(),
            Subject::Domain(at) => plan.domains[at].name.clone(),
            Subject::Link(at) => {
                let nodes = |link: &Link| [link.from.node, link.to.node];
                let link = &plan.links[at];
                let joins = |other: &&Link| !other.fused && nodes(other) == nodes(link);
                if plan.links.iter().filter(joins).count() > 1 {
                    return format!("{}->{}", plan.end_name(link.from), plan.end_name(link.to));
                }
                let [from, to] = nodes(link).map(|node| &plan.nodes[node].name);
                format!("{from}->{to}")
            }
            Subject::Host(at) => plan.hosts.all[at].name.clone(),
        }
    }

    /// The domain that is struck. For a link, the domain of its writer; for another host, the
    /// domain that stands for it here.
    pub(super) fn domain(self, plan: &Plan) -> usize {
        match self {
            Subject::Node(at) => plan.nodes[at].domain,
            Subject::Domain(at) => at,
            Subject::Link(at) => plan.nodes[plan.links[at].from.node].domain,
            Subject::Host(_) => plan.nodes[self.node(plan)].domain,
        }
    }

    /// The node whose thread's cycles time the fault; for a domain its first node.
    pub(super) fn node(self, plan: &Plan) -> usize {
        match self {
            Subject::Node(at) => at,
            Subject::Domain(at) => {
                plan.nodes.iter().position(|node| node.domain == at).unwrap_or_default()
            }
            Subject::Link(at) => plan.links[at].from.node,
            Subject::Host(_) => {
                (0..plan.nodes.len()).find(|&node| plan.is_of_hosts(node)).unwrap_or_default()
            }
        }
    }
}

/// How soon the machine must have its safe output, in cycles of its own, and why so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// The domain that faults sends safe values itself.
    AtOnce,
    /// The guard at the reader's end acts after this many cycles without a fresh command.
    Guard(u64),
    /// Fresh commands still come; their sender bears this many cycles without feedback.
    Policy(u64),
    /// What arrives looks fresh and is garbage: the guard acts, or the machine's own watchdog.
    Watchdog(u64),
    /// The machine itself is late by this many cycles, and hears nothing meanwhile.
    Late(u64),
    /// The limits are too near to say which: the machine goes on, or the guard acts.
    Either(u64),
    /// No safe output is required: the machine goes on.
    GoesOn,
    /// There is nothing to measure; the text says why.
    NotMeasured(&'static str),
}

/// Cycles besides those of the watchdog: the one in which the fault happens, and the one that tells
/// the machine.
const AT_ONCE: u64 = 2;

impl Rule {
    /// The bar, in cycles of the machine.
    pub(super) fn cycles(self) -> Option<u64> {
        match self {
            Rule::AtOnce => Some(AT_ONCE),
            Rule::Guard(n) | Rule::Policy(n) | Rule::Watchdog(n) | Rule::Late(n) => {
                Some(AT_ONCE + n)
            }
            Rule::Either(_) | Rule::GoesOn | Rule::NotMeasured(_) => None,
        }
    }

    /// In words.
    pub(super) fn words(self) -> String {
        match self {
            Rule::AtOnce => "2 cycles: the domain that faults sends safe values itself".into(),
            Rule::Guard(n) => format!("2 cycles + after ({n})"),
            Rule::Policy(n) => format!("2 cycles + what is tolerated without feedback ({n})"),
            Rule::Watchdog(n) => format!("2 cycles + after or the machine's watchdog ({n})"),
            Rule::Late(n) => format!("2 cycles + those that the machine itself is late ({n})"),
            Rule::Either(n) => format!("it goes on, or stops within 2 cycles + after ({n})"),
            Rule::GoesOn => "the machine goes on".into(),
            Rule::NotMeasured(why) => why.into(),
        }
    }
}

/// How the run must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// With a fault; with this cause in the struck domain, if one is named.
    Faulted(Option<Cause>),
    /// With a fault or by our order.
    Either,
    /// By our order, without a fault of the graph.
    GoesOn {
        /// Whether the struck service must have been started again.
        comes_back: bool,
    },
}

/// A drill.
#[derive(Clone, Debug, PartialEq)]
pub struct Drill {
    /// What is struck.
    pub subject: Subject,
    /// The fault.
    pub fault: DrilledFault,
    /// Why it cannot be carried out; `None` if it can.
    pub obstacle: Option<String>,
    pub(super) rule: Rule,
    pub(super) expected: Expected,
    /// Whether it happens in a guest, whose report takes a while to arrive.
    pub(super) is_in_guest: bool,
    /// What to inject; `None` for a fault from outside.
    pub(super) injected: Option<(Target, InjectedFault)>,
}

impl Drill {
    /// Whether the fault comes from outside and lasts for a while.
    fn lasts(&self) -> bool {
        self.fault.lasts() || matches!(self.subject, Subject::Host(_))
    }

    /// How soon the machine must have its safe output, and what else must be seen.
    pub(super) fn words(&self) -> String {
        let rule = self.rule.words();
        network::row_of(self.fault).map_or(rule.clone(), |row| format!("{rule}; {}", row.must))
    }

    /// About how long `n` drills take.
    pub(super) fn takes(&self, n: usize) -> Duration {
        TAKES * u32::try_from(n).unwrap_or(u32::MAX)
    }
}

/// The lasting faults that hit the services and hosts of a plan from outside.
pub fn of_services(plan: &Plan) -> Vec<Drill> {
    all(plan).into_iter().filter(|drill| drill.lasts()).collect()
}

/// Every drill of a plan, in the order of its nodes, domains, links and other hosts.
pub fn all(plan: &Plan) -> Vec<Drill> {
    let machines = Machine::all(plan);
    let graph = Whole { plan, machines: &machines };
    let nodes = (0..plan.nodes.len()).map(Subject::Node);
    let nodes = nodes.flat_map(|node| {
        let is_guest = graph.guest(node).is_some();
        let besides = OF_GUESTS.into_iter().filter(move |_| is_guest);
        OF_NODES.into_iter().chain(besides).map(move |fault| (node, fault))
    });
    let nodes = nodes.map(|(node, fault)| graph.drill(node, fault));
    let domains = (0..plan.domains.len()).map(Subject::Domain);
    let domains = domains.flat_map(|domain| {
        let is_service = graph.is_service(domain);
        let is_served = is_service && graph.guest(domain).is_none();
        let beside = OF_SERVICES.into_iter().filter(move |_| is_served);
        OF_DOMAINS.into_iter().chain(beside).map(move |fault| (domain, fault))
    });
    let domains = domains.map(|(domain, fault)| graph.drill(domain, fault));
    let links = (0..plan.links.len()).filter(|&link| !plan.links[link].fused).map(Subject::Link);
    let links = links.flat_map(|link| OF_LINKS.map(|fault| graph.drill(link, fault)));
    let others =
        linked_hosts(plan).flat_map(|host| network::of_hosts().map(move |fault| (host, fault)));
    let others = others.map(|(host, fault)| graph.drill(Subject::Host(host), fault));
    nodes.chain(domains).chain(links).chain(others).collect()
}

/// What the rows are derived from.
struct Whole<'a> {
    plan: &'a Plan,
    machines: &'a [Machine],
}

impl Whole<'_> {
    fn drill(&self, subject: Subject, fault: DrilledFault) -> Drill {
        let core = !self.is_service(subject);
        let is_in_guest = self.guest(subject).is_some();
        let guest = self.guest(subject).filter(|&guest| self.commands(guest));
        let (rule, expected) = match (guest, core, fault.frozen_ns()) {
            (Some(guest), ..) => self.of_guest(guest, fault),
            (None, true, Some(ns)) => self.of_freeze(subject.domain(self.plan), ns),
            (None, true, None) => (self.rule(subject, fault), self.expected(subject, fault)),
            (None, false, _) => (Rule::GoesOn, self.expected_of_service(subject, fault)),
        };
        let injected = self.injected(subject, fault);
        let obstacle = self.obstacle(subject, fault, core);
        Drill { subject, fault, obstacle, rule, expected, is_in_guest, injected }
    }

    /// Whether a fault there concerns only a service, so that the core goes on.
    fn is_service(&self, subject: Subject) -> bool {
        match subject {
            Subject::Node(node) => self.plan.is_service(node),
            Subject::Domain(domain) => self.plan.domains[domain].service().is_some(),
            Subject::Link(at) => {
                let link = &self.plan.links[at];
                self.plan.is_service(link.from.node) || self.plan.is_service(link.to.node)
            }
            Subject::Host(_) => true,
        }
    }

    /// The guest's domain that is struck, if it is one.
    fn guest(&self, subject: Subject) -> Option<usize> {
        let domain = match subject {
            Subject::Link(at) => self.plan.carve_out(&self.plan.links[at])?,
            _ => subject.domain(self.plan),
        };
        self.plan.domains[domain].guest().map(|_| domain)
    }

    /// A fault of a guest that commands a machine: while the guest is gone the machine's guard
    /// acts. What the core makes of that depends on the graph.
    fn of_guest(&self, guest: usize, fault: DrilledFault) -> (Rule, Expected) {
        let after = self.machines.iter().map(|machine| machine.after).max().unwrap_or_default();
        // A command may also be under way in the guest, for one of its cycles.
        let period_ns = |at: usize| self.plan.domains[at].realtime().map_or(1, |it| it.period_ns);
        let machine_ns = self.machines.first().map_or(1, |it| period_ns(it.thread.domain));
        let own_ns = self.plan.domains[guest].guest().map_or(0, |guest| guest.period_ns);
        let after = after + own_ns.div_ceil(machine_ns);
        let watchdog = self.machines.iter().filter_map(|machine| machine.watchdog).max();
        match (fault, fault.frozen_ns()) {
            (DrilledFault::FailStart, _) => {
                (Rule::NotMeasured("the guest never runs: nothing moves"), Expected::Either)
            }
            (DrilledFault::Hostile, _) => {
                (Rule::Watchdog(after.max(watchdog.unwrap_or_default())), Expected::Either)
            }
            (_, Some(ns)) => match self.of_freeze(usize::MAX, ns) {
                (Rule::GoesOn, expected) => (Rule::GoesOn, expected),
                (Rule::Either(_), expected) => {
                    let why = "so near to the limits it may come back first, and be stopped again";
                    (Rule::NotMeasured(why), expected)
                }
                (rule, _) => (rule, Expected::Either),
            },
            _ => (Rule::Guard(after), Expected::Either),
        }
    }

    fn obstacle(&self, subject: Subject, fault: DrilledFault, core: bool) -> Option<String> {
        let node = &self.plan.nodes[subject.node(self.plan)];
        let why = match (subject, fault) {
            (Subject::Node(at), _) if self.plan.is_flow(at) => {
                "a flow node has no separate thread; its domain can be struck"
            }
            (Subject::Node(at), DrilledFault::NotFinite) if self.plan.is_of_hosts(at) => {
                "it passes on the bytes of other hosts, and makes no numbers itself"
            }
            (Subject::Node(_), DrilledFault::NotFinite) if !sends_numbers(node.kind) => {
                "none of its outputs holds floating-point numbers"
            }
            (Subject::Node(_), DrilledFault::Late | DrilledFault::LateBorne) if !core => {
                "a service has no deadline; a service that hangs is drill 'hang'"
            }
            (Subject::Node(_), DrilledFault::LateBorne) if self.borne() == 0 => {
                "this graph tolerates no late cycle"
            }
            (Subject::Link(at), DrilledFault::PeerGone | DrilledFault::Stalled)
                if self.is_sent_by_service(at) =>
            {
                "no node waits for the messages of a service, so nothing would show it; its domain \
                 can be struck"
            }
            (Subject::Host(other), fault) => {
                let pair = Pair { plan: self.plan, other };
                return network::row_of(fault)
                    .and_then(|row| (row.obstacle)(&pair))
                    .map(Into::into);
            }
            (Subject::Node(_), DrilledFault::Late) if self.bears_all() => {
                "the overrun policy only counts, and nothing has a guard"
            }
            _ => return None,
        };
        Some(why.into())
    }

    fn injected(&self, subject: Subject, fault: DrilledFault) -> Option<(Target, InjectedFault)> {
        let what = match fault {
            DrilledFault::Panic => InjectedFault::Panic,
            DrilledFault::Error => InjectedFault::Error,
            DrilledFault::Segv => InjectedFault::Segv,
            DrilledFault::Undefined => InjectedFault::Undefined,
            DrilledFault::Kill => InjectedFault::Kill,
            DrilledFault::Stop => InjectedFault::Stop,
            DrilledFault::Hang => InjectedFault::Hang,
            DrilledFault::NotFinite => InjectedFault::NotFinite,
            DrilledFault::LateBorne => InjectedFault::Late { cycles: self.borne() },
            DrilledFault::Late => InjectedFault::Late { cycles: self.beyond() },
            DrilledFault::FailStart => InjectedFault::FailStart,
            DrilledFault::PeerGone => InjectedFault::PeerGone,
            DrilledFault::Stalled => InjectedFault::Stalled { messages: u64::MAX },
            DrilledFault::Hostile => InjectedFault::Hostile,
            // These come from outside.
            _ => return None,
        };
        match subject {
            Subject::Node(node) => Some((Target::Node(node), what)),
            // A service that sends only when somebody asks it may never send, so its link is struck
            // from outside.
            Subject::Link(link) if self.is_sent_by_service(link) => None,
            Subject::Link(link) => Some((Target::Link(link), what)),
            Subject::Domain(_) | Subject::Host(_) => None,
        }
    }

    fn is_sent_by_service(&self, link: usize) -> bool {
        self.plan.is_service(self.plan.links[link].from.node)
    }

    /// What a freeze of this length of a domain of the core does to the machine: nothing if guards
    /// and policies bear it, a stop if none does.
    fn of_freeze(&self, domain: usize, frozen_ns: u64) -> (Rule, Expected) {
        let period_ns =
            |at: usize| self.plan.domains[at].realtime().map_or(1, |domain| domain.period_ns);
        let mut limits_ns: Vec<u64> = self.borne_by_policy_ns().collect();
        limits_ns.extend(self.machines.iter().map(|it| it.after * period_ns(it.thread.domain)));
        let after = self.machines.iter().map(|machine| machine.after).max().unwrap_or_default();
        let is_machine = self.machines.iter().any(|machine| machine.thread.domain == domain);
        let (least_ns, most_ns) = (limits_ns.iter().min(), limits_ns.iter().max());
        let near = |limit: Option<&u64>| limit.copied().unwrap_or(u64::MAX);
        if frozen_ns.saturating_mul(NEAR.1) <= near(least_ns).saturating_mul(NEAR.0) {
            // A guest in between may have a limit of its own, which the graph does not show.
            return match self.commands_through_guest(domain) {
                true => (Rule::Either(after), Expected::Either),
                false => (Rule::GoesOn, Expected::GoesOn { comes_back: false }),
            };
        }
        if near(most_ns).saturating_mul(NEAR.1) > frozen_ns.saturating_mul(NEAR.0) {
            return (Rule::Either(after), Expected::Either);
        }
        let rule = match is_machine {
            _ if self.machines.is_empty() => self.rule(Subject::Domain(domain), DrilledFault::Stop),
            true => Rule::Late(frozen_ns / period_ns(domain)),
            false => Rule::Guard(after),
        };
        (rule, Expected::Faulted(None))
    }

    /// The time without a cycle that each domain's policy bears.
    fn borne_by_policy_ns(&self) -> impl Iterator<Item = u64> {
        let realtime = self.plan.domains.iter().filter_map(|domain| domain.realtime());
        realtime.map(|domain| match domain.overrun {
            Overrun::Stop { consecutive_max } => u64::from(consecutive_max) * domain.period_ns,
            Overrun::Count => u64::MAX,
        })
    }

    fn rule(&self, subject: Subject, fault: DrilledFault) -> Rule {
        let Some(machine) = self.machines.first() else {
            return Rule::NotMeasured("the graph has no actuator port: it moves nothing");
        };
        let after = self.machines.iter().map(|machine| machine.after).max().unwrap_or_default();
        let watchdog = self.machines.iter().filter_map(|machine| machine.watchdog).max();
        let struck = subject.domain(self.plan);
        let is_machine = struck == machine.thread.domain;
        match (subject, fault) {
            (_, DrilledFault::FailStart) => {
                Rule::NotMeasured("the graph never runs: nothing moves")
            }
            (_, DrilledFault::LateBorne) => Rule::GoesOn,
            (Subject::Link(link), fault) => self.rule_of_link(link, fault, after, watchdog),
            (
                Subject::Node(node),
                DrilledFault::Panic | DrilledFault::Error | DrilledFault::NotFinite,
            ) if self.machines.iter().any(|machine| machine.node == node) => Rule::NotMeasured(
                "a node that failed is not run again, and the simulated machine is that node; \
                     a real one has a watchdog",
            ),
            (_, DrilledFault::Panic | DrilledFault::Error | DrilledFault::NotFinite) => {
                if is_machine || self.commands(struck) {
                    Rule::AtOnce
                } else {
                    Rule::Guard(after)
                }
            }
            (_, DrilledFault::Late) if is_machine => Rule::Late(u64::from(self.beyond())),
            _ if is_machine => Rule::NotMeasured(
                "the simulated machine stands or ends with its process; a real one has brakes",
            ),
            _ => Rule::Guard(after),
        }
    }

    fn rule_of_link(
        &self,
        at: usize,
        fault: DrilledFault,
        after: u64,
        watchdog: Option<u64>,
    ) -> Rule {
        let link = &self.plan.links[at];
        let into_machine = self.machines.iter().any(|machine| machine.node == link.to.node);
        let borne = after.max(u64::from(self.borne_max()));
        match (fault, into_machine) {
            (DrilledFault::PeerGone, true) => Rule::AtOnce,
            (DrilledFault::PeerGone, false) => Rule::Guard(after),
            (DrilledFault::Hostile, _) => Rule::Watchdog(borne.max(watchdog.unwrap_or_default())),
            (_, true) => Rule::Guard(after),
            (_, false) => Rule::Policy(borne),
        }
    }

    /// Whether a domain writes to an actuator port of a machine.
    fn commands(&self, domain: usize) -> bool {
        self.plan.links.iter().any(|link| {
            self.plan.nodes[link.from.node].domain == domain
                && self.machines.iter().any(|machine| machine.node == link.to.node)
        })
    }

    /// Whether a guest passes on to a machine what a domain of the core commands.
    fn commands_through_guest(&self, domain: usize) -> bool {
        let sends = |link: &Link| self.plan.nodes[link.from.node].domain == domain;
        let links = self.plan.links.iter().filter(|link| sends(link));
        let mut guests = links.filter_map(|link| self.plan.carve_out(link));
        guests.any(|guest| guest != domain && self.commands(guest))
    }

    fn expected(&self, subject: Subject, fault: DrilledFault) -> Expected {
        let cause = match (subject, fault) {
            (_, DrilledFault::LateBorne) => {
                return Expected::GoesOn { comes_back: false };
            }
            // The guard makes it safe; whether a node faults depends on the graph.
            (Subject::Link(at), DrilledFault::Stalled) if !self.is_awaited(at) => {
                return Expected::Either;
            }
            (Subject::Link(_), _) => None,
            (_, DrilledFault::Panic) => Some(Cause::Panic),
            (_, DrilledFault::Error | DrilledFault::FailStart) => Some(Cause::Error),
            (_, DrilledFault::NotFinite) => Some(Cause::NotFinite),
            (_, DrilledFault::Segv | DrilledFault::Kill) => Some(Cause::Died),
            // Whether its reader or the supervisor notices first depends on the graph's limits.
            _ => None,
        };
        Expected::Faulted(cause)
    }

    /// Whether a link is feedback that its reader awaits in every cycle, and without which it
    /// faults.
    fn is_awaited(&self, at: usize) -> bool {
        let link = &self.plan.links[at];
        let reader = &self.plan.nodes[link.to.node];
        let domain = self.plan.domains[reader.domain].realtime();
        let stops = |domain: &Realtime| matches!(domain.overrun, Overrun::Stop { .. });
        self.plan.is_feedback(link) && domain.is_some_and(stops)
    }

    fn expected_of_service(&self, subject: Subject, fault: DrilledFault) -> Expected {
        let domain = self.plan.domains[subject.domain(self.plan)].service();
        let policy = domain.map(|service| service.restart.policy);
        let restarts = policy.is_some_and(|policy| policy != RestartPolicy::Never);
        let bears =
            [DrilledFault::NotFinite, DrilledFault::Late, DrilledFault::LateBorne].contains(&fault);
        let is_link = matches!(subject, Subject::Link(_));
        let is_host = matches!(subject, Subject::Host(_));
        let lasts = fault.frozen_ns().is_some() || fault.lasts() || is_host;
        let ends = !is_link && !bears && !lasts;
        Expected::GoesOn { comes_back: ends && restarts }
    }

    /// Overruns in a row that all realtime domains bear.
    fn borne_max(&self) -> u32 {
        let realtime = self.plan.domains.iter().filter_map(|domain| domain.realtime());
        let borne = realtime.map(|domain| match domain.overrun {
            Overrun::Stop { consecutive_max } => consecutive_max,
            Overrun::Count => u32::MAX,
        });
        borne.min().unwrap_or_default()
    }

    /// The least `after` of all machines.
    fn after_min(&self) -> u32 {
        let after = self.machines.iter().map(|machine| machine.after).min();
        after.map_or(u32::MAX, |after| u32::try_from(after).unwrap_or(u32::MAX))
    }

    fn bears_all(&self) -> bool {
        self.borne_max().min(self.after_min()) == u32::MAX
    }

    /// A delay that every part bears: half of the least limit.
    fn borne(&self) -> u32 {
        (self.borne_max().min(self.after_min()) / 2).min(BORNE_MAX)
    }

    /// A delay that no part bears, of those that have a limit.
    fn beyond(&self) -> u32 {
        let limits = [self.borne_max(), self.after_min()];
        let finite = limits.into_iter().filter(|&limit| limit < u32::MAX);
        finite.max().unwrap_or_default().saturating_add(BEYOND)
    }
}

/// Whether any output of a kind holds numbers that could be not finite.
fn sends_numbers(kind: &Kind) -> bool {
    let outputs = kind.ports.iter().filter(|port| port.direction == Direction::Out);
    let mut fields = outputs.flat_map(|port| port.message.fields);
    fields.any(|field| matches!(field.scalar, Scalar::F64 | Scalar::F32))
}

/// In the part of one host: the other hosts that it has links with.
fn linked_hosts(plan: &Plan) -> impl Iterator<Item = usize> {
    let is_linked = |host: usize| {
        let mut links = plan.hosts.links.iter();
        links.any(|link| [link.from.host, link.to.host].contains(&host))
    };
    let others = (0..plan.hosts.all.len()).filter(|&host| plan.hosts.own != Some(host));
    others.filter(move |&host| plan.hosts.own.is_some() && is_linked(host))
}

#[cfg(test)]
mod tests;
