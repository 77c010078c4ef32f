//! What comes after an output of a router: the answers that come back, who may get there, and what
//! a request must be on the way.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::rc::Rc;

use sinew_core::Parameters;
use sinew_core::catalogue::RunsIn;
use sinew_spec::plan::Plan;

use super::known::{self, Answers};

/// Most nodes in a row that are looked at; of those after them nothing is known.
const DEPTH_MAX: usize = 500;
/// Most alternatives of who may ask; further ones are left out.
const ALTERNATIVES_MAX: usize = 16;

/// Statuses, and the types that their bodies may have.
pub(super) type Statuses = BTreeMap<u16, BTreeSet<&'static str>>;

/// What is known of a node and of all that comes after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    pub(super) answers: BTreeMap<u16, BTreeSet<&'static str>>,
    pub(super) errors: BTreeMap<u16, BTreeSet<&'static str>>,
    /// Whether any other status may come.
    pub(super) is_open: bool,
    /// Whether nothing may come back, which is 204.
    pub(super) is_silent: bool,
    /// Who may ask: all guards of one of these sets (indices of the plan) must let the request
    /// pass.
    pub(super) access: BTreeSet<BTreeSet<usize>>,
    /// The nodes (indices of the plan) that say what a request must be, in their order.
    pub(super) checks: Vec<usize>,
    /// Whether every way leads through such a check.
    pub(super) is_checked: bool,
}

impl Behind {
    /// Lets all requests pass, and gives no answer.
    fn open_way() -> Behind {
        Behind { access: BTreeSet::from([BTreeSet::new()]), ..Behind::default() }
    }

    /// Replies with the packet that it got.
    fn of_packet() -> Behind {
        Behind { answers: BTreeMap::from([(200, BTreeSet::new())]), ..Behind::open_way() }
    }

    /// Takes in nodes that a request passes too.
    pub(super) fn also(&mut self, other: &Behind) {
        join(&mut self.errors, &other.errors);
        self.is_open |= other.is_open;
        let of_both = |own: &BTreeSet<usize>| {
            other.access.iter().map(|it| own.union(it).copied().collect()).collect::<Vec<_>>()
        };
        self.access = self.access.iter().flat_map(of_both).take(ALTERNATIVES_MAX).collect();
        self.add_checks(other);
        self.is_checked |= other.is_checked;
    }

    /// Takes in another way that a packet may go.
    fn or(&mut self, other: &Behind) {
        join(&mut self.answers, &other.answers);
        join(&mut self.errors, &other.errors);
        self.is_open |= other.is_open;
        self.is_silent |= other.is_silent;
        self.access.extend(other.access.iter().take(ALTERNATIVES_MAX).cloned());
        self.add_checks(other);
        self.is_checked &= other.is_checked;
    }

    fn add_checks(&mut self, other: &Behind) {
        for check in &other.checks {
            if !self.checks.contains(check) {
                self.checks.push(*check);
            }
        }
    }
}

/// Searches a graph.
pub(super) struct Walk<'a> {
    plan: &'a Plan,
    base: &'a Path,
    known: HashMap<usize, Rc<Behind>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(plan: &'a Plan, base: &'a Path) -> Walk<'a> {
        Walk { plan, base, known: HashMap::new() }
    }

    /// The parameters of the node with this index.
    pub(super) fn parameters(&self, node: usize) -> Parameters<'a> {
        Parameters::of(self.plan, &self.plan.nodes[node], self.base)
    }

    /// Its name.
    pub(super) fn name(&self, node: usize) -> &'a str {
        &self.plan.nodes[node].name
    }

    /// Whether a packet that leaves an output may come to one of these nodes.
    pub(super) fn leads_to(&self, node: usize, port: usize, to: &[usize]) -> bool {
        let links = self.plan.flow_links_of(node).iter().filter(|link| link.from.port == port);
        let mut open: Vec<usize> = links.map(|link| link.to.node).collect();
        let mut seen = BTreeSet::new();
        while let Some(node) = open.pop() {
            if to.contains(&node) {
                return true;
            }
            if seen.insert(node) {
                open.extend(self.plan.flow_links_of(node).iter().map(|link| link.to.node));
            }
        }
        false
    }

    /// What comes after an output.
    pub(super) fn output(&mut self, node: usize, port: usize) -> Behind {
        self.port(node, port, 0)
    }

    /// What comes before a node.
    pub(super) fn before(&mut self, node: usize) -> Behind {
        self.before_within(node, 0)
    }

    fn before_within(&mut self, node: usize, depth: usize) -> Behind {
        let plan = self.plan;
        let is_error = |node: usize, port| plan.nodes[node].kind.port_index("error") == Some(port);
        let links = plan.flow_links.iter().filter(|link| link.to.node == node);
        let links = links.filter(|link| !is_error(link.from.node, link.from.port));
        let froms: BTreeSet<usize> = links.map(|link| link.from.node).collect();
        let mut ways = froms
            .into_iter()
            .filter(|from| plan.nodes[*from].kind.runs_in != RunsIn::Test && depth < DEPTH_MAX)
            .map(|from| {
                let mut way = self.before_within(from, depth + 1);
                let own = self.own(from, depth);
                way.also(&own);
                join(&mut way.answers, &own.answers);
                way
            });
        let Some(mut first) = ways.next() else { return Behind::open_way() };
        ways.for_each(|way| first.or(&way));
        first
    }

    /// What a node does by itself: which requests it keeps out, and with which errors. If its error
    /// port is linked, what answers its errors.
    fn own(&mut self, node: usize, depth: usize) -> Behind {
        let parameters = self.parameters(node);
        let mut own = Behind::open_way();
        if known::scheme(&parameters).is_some() {
            own.access = BTreeSet::from([BTreeSet::from([node])]);
        }
        if ["validate", "multipart"].contains(&parameters.kind.name) {
            (own.checks, own.is_checked) = (vec![node], true);
        }
        match parameters.kind.port_index("error").filter(|port| self.is_linked(node, *port)) {
            Some(port) => {
                let answer = self.port(node, port, depth);
                (own.answers, own.errors) = (answer.answers, answer.errors);
                own.is_open = answer.is_open;
            }
            None => {
                // If one of these ports is linked, packets go there instead of being such an error.
                let is_spared = ["over", "otherwise"].map(|it| self.is_linked_by_name(node, it));
                if is_spared == [false, false] {
                    add(&mut own.errors, known::errors(&parameters));
                }
                own.is_open = known::is_open(&parameters);
            }
        }
        own
    }

    fn is_linked(&self, node: usize, port: usize) -> bool {
        self.plan.flow_links_of(node).iter().any(|link| link.from.port == port)
    }

    fn port(&mut self, node: usize, port: usize, depth: usize) -> Behind {
        let links = self.plan.flow_links_of(node).iter().filter(|link| link.from.port == port);
        let targets: Vec<usize> = links.map(|link| link.to.node).collect();
        let [first, others @ ..] = &*targets else { return Behind::of_packet() };
        let mut all = (*self.node(*first, depth + 1)).clone();
        for other in others {
            let other = self.node(*other, depth + 1);
            // Each of them gets the packet, and an error of one is the answer.
            all.also(&other);
            all.is_silent &= other.is_silent;
            join(&mut all.answers, &other.answers);
        }
        all
    }

    fn node(&mut self, node: usize, depth: usize) -> Rc<Behind> {
        if let Some(known) = self.known.get(&node) {
            return Rc::clone(known);
        }
        let behind = match depth < DEPTH_MAX {
            true => self.look(node, depth),
            false => Behind { is_open: true, ..Behind::open_way() },
        };
        let behind = Rc::new(behind);
        self.known.insert(node, Rc::clone(&behind));
        behind
    }

    fn look(&mut self, node: usize, depth: usize) -> Behind {
        let parameters = self.parameters(node);
        let kind = parameters.kind;
        let mut ports: Vec<usize> =
            self.plan.flow_links_of(node).iter().map(|link| link.from.port).collect();
        ports.dedup();
        ports.retain(|port| kind.port_index("error") != Some(*port));
        let mut behind = match kind.name {
            "fork" => Behind { is_silent: true, ..Behind::open_way() },
            "pipe" | "transaction" | "for" | "split" => self.steps(node, &ports, depth),
            "try" => return self.attempt(node, depth),
            _ if ports.is_empty() => self.last(&parameters),
            _ => self.ways(node, &ports, depth),
        };
        // An output that leads nowhere gives back the packet.
        if kind.name == "if" && ports.len() == 1 {
            behind.or(&Behind::of_packet());
        }
        let own = self.own(node, depth);
        behind.also(&own);
        join(&mut behind.answers, &own.answers);
        behind
    }

    /// A node that replies by itself.
    fn last(&self, parameters: &Parameters<'_>) -> Behind {
        let mut behind = Behind::open_way();
        match known::answers(parameters) {
            // A node that always fails gives no answer.
            _ if parameters.kind.name == "throw" => {}
            Some(answers) => add(&mut behind.answers, answers),
            None => behind.is_open = true,
        }
        behind
    }

    /// One of several outputs gets the packet.
    fn ways(&mut self, node: usize, ports: &[usize], depth: usize) -> Behind {
        let mut all = self.port(node, ports[0], depth);
        for port in &ports[1..] {
            let way = self.port(node, *port, depth);
            all.or(&way);
        }
        all
    }

    /// One output after the other gets a packet; the reply of the last one is the answer.
    fn steps(&mut self, node: usize, ports: &[usize], depth: usize) -> Behind {
        let mut all = Behind::open_way();
        for port in ports {
            let step = self.port(node, *port, depth);
            all.also(&step);
            (all.answers, all.is_silent) = (step.answers, step.is_silent);
        }
        if ports.is_empty() || ["for", "split"].contains(&self.plan.nodes[node].kind.name) {
            let is_done = self.is_linked_by_name(node, "done");
            if !is_done {
                all.answers = BTreeMap::from([(200, BTreeSet::from([known::JSON]))]);
                all.is_silent = false;
            }
        }
        all
    }

    fn is_linked_by_name(&self, node: usize, port: &str) -> bool {
        let port = self.plan.nodes[node].kind.port_index(port);
        port.is_some_and(|port| self.is_linked(node, port))
    }

    /// `try`: its port `error` answers the errors of the nodes after it.
    fn attempt(&mut self, node: usize, depth: usize) -> Behind {
        let kind = self.plan.nodes[node].kind;
        let port = |name| kind.port_index(name).expect("the table of 'try' has it");
        let (out, error) = (port("out"), port("error"));
        let mut behind = self.port(node, out, depth);
        if self.is_linked(node, error) {
            let answer = self.port(node, error, depth);
            behind.errors = answer.errors;
            join(&mut behind.answers, &answer.answers);
        }
        behind
    }
}

/// Adds statuses and types to others.
pub(super) fn join(to: &mut Statuses, others: &Statuses) {
    for (status, types) in others {
        to.entry(*status).or_default().extend(types);
    }
}

fn add(to: &mut Statuses, answers: Answers) {
    for (status, content_type) in answers {
        to.entry(status).or_default().extend(content_type);
    }
}
