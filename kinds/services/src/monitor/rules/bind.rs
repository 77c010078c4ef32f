//! Where in a plan the quantity of a rule is found: a rule watches each of its sources alone.

use std::ops::Range;

use sinew_control::status::Status;
use sinew_core::catalogue::Signal;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::{End, Link, Plan, Release};

use super::parse::suggest;
use super::quantity::{How, Known, Take};
use super::{Bound, Change, Judge, Quantity, Rule};
use crate::monitor::figures::Cycle;

/// All rules, each with its sources in a plan.
#[derive(Debug)]
pub(in crate::monitor) struct Watched {
    /// What cycles decide, by their thread.
    threads: Vec<(ThreadId, Vec<Bounded>)>,
    /// What the status decides.
    standing: Vec<Bounded>,
}

/// A rule at one source.
#[derive(Debug)]
pub(in crate::monitor) struct Bounded {
    /// Place of the rule.
    pub(in crate::monitor) rule: usize,
    /// The source, in words.
    pub(in crate::monitor) source: String,
    /// What decides.
    pub(in crate::monitor) judge: Judge,
    place: Place,
}

/// Where the values of a source are.
#[derive(Clone, Debug)]
enum Place {
    Cycle(fn(&Cycle<'_>) -> f64),
    /// Of the node at this place in the thread.
    Execution(usize),
    Signals {
        places: Range<usize>,
        absolute: bool,
    },
    RecordsLost {
        seen: u64,
    },
    Slow {
        known: &'static Known,
        at: Slow,
        seen: Option<f64>,
    },
}

/// A place in the status, which is in the order of the plan.
#[derive(Clone, Copy, Debug)]
enum Slow {
    Domain(usize),
    Node { domain: usize, node: usize },
    Link(usize),
}

/// A change of a rule, and where.
pub(in crate::monitor) struct Seen<'a> {
    pub(in crate::monitor) bounded: &'a Bounded,
    pub(in crate::monitor) change: Change,
}

impl Watched {
    /// Finds the sources of all rules.
    ///
    /// # Errors
    /// A rule names what the plan does not have.
    pub(in crate::monitor) fn bind(rules: &[Rule], plan: &Plan) -> Result<Watched, String> {
        let mut watched = Watched { threads: Vec::new(), standing: Vec::new() };
        for (domain, row) in plan.domains.iter().enumerate() {
            let threads = 0..row.threads().len();
            let threads = threads.map(|thread| (ThreadId { domain, thread }, Vec::new()));
            watched.threads.extend(threads);
        }
        for (at, rule) in rules.iter().enumerate() {
            let sources = sources(rule, plan).map_err(|what| format!("{rule}: {what}"))?;
            for (thread, source, place, bound) in sources {
                let judge = Judge::new(rule, bound);
                let bounded = Bounded { rule: at, source, judge, place };
                let of_thread = watched.threads.iter_mut().find(|it| Some(it.0) == thread);
                of_thread.map_or(&mut watched.standing, |it| &mut it.1).push(bounded);
            }
        }
        Ok(watched)
    }

    /// All rules at all sources.
    pub(in crate::monitor) fn iter(&self) -> impl Iterator<Item = &Bounded> {
        self.threads.iter().flat_map(|it| &it.1).chain(&self.standing)
    }

    /// The core has begun anew: what cycles had decided is forgotten.
    pub(in crate::monitor) fn reset(&mut self, thread: ThreadId, mut each: impl FnMut(Seen<'_>)) {
        let of_thread = self.threads.iter_mut().filter(|it| it.0 == thread);
        for bounded in of_thread.flat_map(|it| &mut it.1) {
            if let Some(change) = bounded.judge.reset() {
                each(Seen { bounded, change });
            }
        }
    }

    /// The same of what the status had decided, for those of these rules.
    pub(in crate::monitor) fn reset_standing(
        &mut self,
        is_it: impl Fn(usize) -> bool,
        mut each: impl FnMut(Seen<'_>),
    ) {
        for bounded in self.standing.iter_mut().filter(|it| is_it(it.rule)) {
            if let Some(change) = bounded.judge.reset() {
                each(Seen { bounded, change });
            }
        }
    }

    /// Judges a cycle.
    pub(in crate::monitor) fn cycle(
        &mut self,
        thread: ThreadId,
        cycle: &Cycle<'_>,
        mut each: impl FnMut(Seen<'_>),
    ) {
        let of_thread = self.threads.iter_mut().filter(|it| it.0 == thread);
        for bounded in of_thread.flat_map(|it| &mut it.1) {
            let value = match &bounded.place {
                Place::Cycle(take) => take(cycle),
                Place::Execution(node) => cycle.execution_us(*node),
                Place::Signals { places, absolute } => {
                    let values = cycle.record.signals().skip(places.start).take(places.len());
                    let sign = |value: f64| if *absolute { value.abs() } else { value };
                    bounded.judge.foremost(values.map(sign))
                }
                Place::RecordsLost { .. } | Place::Slow { .. } => continue,
            };
            if let Some(change) = bounded.judge.take(cycle.record.start_ns(), value) {
                each(Seen { bounded, change });
            }
        }
    }

    /// Judges how many cycles of a thread this monitor has lost so far.
    pub(in crate::monitor) fn lost(
        &mut self,
        thread: ThreadId,
        (now_ns, lost): (u64, u64),
        mut each: impl FnMut(Seen<'_>),
    ) {
        let of_thread = self.threads.iter_mut().filter(|it| it.0 == thread);
        for bounded in of_thread.flat_map(|it| &mut it.1) {
            let Place::RecordsLost { seen } = &mut bounded.place else { continue };
            let more = lost.saturating_sub(std::mem::replace(seen, lost));
            if let Some(change) = bounded.judge.take(now_ns, more as f64) {
                each(Seen { bounded, change });
            }
        }
    }

    /// Judges the status.
    pub(in crate::monitor) fn status(
        &mut self,
        now_ns: u64,
        status: &Status,
        mut each: impl FnMut(Seen<'_>),
    ) {
        for bounded in &mut self.standing {
            let Place::Slow { known, at, seen } = &mut bounded.place else { continue };
            let Some(value) = at.value(known.take, status) else { continue };
            // What was counted before the first look is not news; a count that starts anew is.
            let value = match (known.how, seen.replace(value)) {
                (How::Count, None) => 0.0,
                (How::Count, Some(before)) if before <= value => value - before,
                _ => value,
            };
            if let Some(change) = bounded.judge.take(now_ns, value) {
                each(Seen { bounded, change });
            }
        }
    }
}

impl Slow {
    fn value(self, take: Take, status: &Status) -> Option<f64> {
        match (self, take) {
            (Slow::Domain(at), Take::Domain(take)) => Some(take(status.domains.get(at)?)),
            (Slow::Node { domain, node }, Take::Service(take)) => {
                Some(take(status.domains.get(domain)?.nodes.get(node)?))
            }
            (Slow::Link(at), Take::Link(take)) => take(status.links.get(at)?),
            _ => None,
        }
    }
}

/// Thread, words, place and bound of a source.
type Source = (Option<ThreadId>, String, Place, f64);

fn sources(rule: &Rule, plan: &Plan) -> Result<Vec<Source>, String> {
    match &rule.quantity {
        Quantity::Signal { node, signal, element, absolute } => {
            signal_source(rule, plan, (node, signal), *element, *absolute)
        }
        Quantity::Known { known, selector } => {
            let Bound::Number(bound) = rule.bound else {
                return Err("expected a number to compare with".into());
            };
            let is_chosen = |it: &&Candidate| {
                let has = |key: &str, value: &str| {
                    it.0.iter().any(|(name, is)| *name == key && names(value, is))
                };
                selector.iter().all(|(key, value)| has(key, value))
            };
            let all = known_sources(known, plan);
            let chosen = all.iter().filter(is_chosen);
            let sources: Vec<Source> = chosen
                .map(|(_, thread, words, place)| (*thread, words.clone(), place.clone(), bound))
                .collect();
            if sources.is_empty() {
                return Err(nothing_chosen(known, selector, &all));
            }
            Ok(sources)
        }
    }
}

/// `planner.out` names a port at an end of a link, `planner` any of that node.
fn names(value: &str, is: &str) -> bool {
    is.strip_prefix(value).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Keys of a source, its thread, its words, its place.
type Candidate = (Vec<(&'static str, String)>, Option<ThreadId>, String, Place);

fn nothing_chosen(known: &Known, selector: &[(&str, String)], all: &[Candidate]) -> String {
    for (key, value) in selector {
        let values = all.iter().flat_map(|it| &it.0).filter(|(name, _)| name == key);
        let mut values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
        values.sort_unstable();
        values.dedup();
        if !values.iter().any(|is| names(value, is)) {
            let help = suggest(value, values.into_iter());
            return format!("no {key} '{value}' that has '{}'; {help}", known.name);
        }
    }
    format!("nothing in this graph has '{}'", known.name)
}

/// Everything in the plan that has the quantity.
fn known_sources(known: &'static Known, plan: &Plan) -> Vec<Candidate> {
    match known.take {
        Take::Cycle(take) => of_threads(plan, |_| Place::Cycle(take)),
        Take::Planned(take) => {
            let mut all = of_threads(plan, |_| Place::Cycle(take));
            all.retain(|(_, id, _, _)| id.is_some_and(|id| is_timed(plan, id)));
            all
        }
        Take::RecordsLost => of_threads(plan, |_| Place::RecordsLost { seen: 0 }),
        Take::Execution => of_nodes(plan),
        Take::Domain(_) | Take::Service(_) => of_domains(plan, known),
        Take::Link(_) => {
            let link = |(at, link): (usize, &Link)| {
                let (from, to) = (port(plan, link.from), port(plan, link.to));
                let words = format!("link {from} > {to}");
                let place = Place::Slow { known, at: Slow::Link(at), seen: None };
                (vec![("from", from), ("to", to)], None, words, place)
            };
            plan.links.iter().enumerate().map(link).collect()
        }
    }
}

/// As the status writes it.
fn port(plan: &Plan, end: End) -> String {
    format!("{}.{}", plan.nodes[end.node].name, plan.port(end).name)
}

fn of_threads(plan: &Plan, place: impl Fn(ThreadId) -> Place) -> Vec<Candidate> {
    let mut all = Vec::new();
    for (domain, row) in plan.domains.iter().enumerate() {
        for thread in 0..row.threads().len() {
            let id = ThreadId { domain, thread };
            let keys = vec![("domain", row.name.clone()), ("thread", thread.to_string())];
            let words = format!("{}, thread {thread}", row.name);
            all.push((keys, Some(id), words, place(id)));
        }
    }
    all
}

/// Whether the clock releases it.
fn is_timed(plan: &Plan, id: ThreadId) -> bool {
    plan.domains[id.domain].threads()[id.thread].release == Release::Timer
}

fn of_nodes(plan: &Plan) -> Vec<Candidate> {
    let mut all = Vec::new();
    for (domain, row) in plan.domains.iter().enumerate() {
        for (thread, nodes) in row.threads().iter().enumerate() {
            for (at, &node) in nodes.nodes.iter().enumerate() {
                let name = plan.nodes[node].name.clone();
                let words = format!("node '{name}'");
                let keys = vec![("domain", row.name.clone()), ("node", name)];
                let id = ThreadId { domain, thread };
                all.push((keys, Some(id), words, Place::Execution(at)));
            }
        }
    }
    all
}

/// Domains, or the nodes of those that are services.
fn of_domains(plan: &Plan, known: &'static Known) -> Vec<Candidate> {
    let mut all = Vec::new();
    for (domain, row) in plan.domains.iter().enumerate() {
        let slow = |at| Place::Slow { known, at, seen: None };
        if matches!(known.take, Take::Domain(_)) {
            let keys = vec![("domain", row.name.clone())];
            all.push((keys, None, format!("domain '{}'", row.name), slow(Slow::Domain(domain))));
            continue;
        }
        for (at, &node) in row.service().iter().flat_map(|it| it.nodes.iter().enumerate()) {
            let name = plan.nodes[node].name.clone();
            let words = format!("node '{name}'");
            let keys = vec![("domain", row.name.clone()), ("node", name)];
            all.push((keys, None, words, slow(Slow::Node { domain, node: at })));
        }
    }
    all
}

fn signal_source(
    rule: &Rule,
    plan: &Plan,
    (node, signal): (&str, &str),
    element: Option<usize>,
    absolute: bool,
) -> Result<Vec<Source>, String> {
    let names = plan.nodes.iter().filter(|it| !it.kind.signals.is_empty());
    let Some(at) = plan.nodes.iter().position(|it| it.name == node) else {
        let help = suggest(node, names.map(|it| it.name.as_str()));
        return Err(format!("no node '{node}'; {help}"));
    };
    let row = &plan.nodes[at];
    let Some(place) = row.kind.signals.iter().position(|it| it.name == signal) else {
        let help = suggest(signal, row.kind.signals.iter().map(|it| it.name));
        return Err(format!("'{node}' has no signal '{signal}'; {help}"));
    };
    let found = &row.kind.signals[place];
    let thread = ThreadId { domain: row.domain, thread: row.thread };
    let Some(nodes) = plan.domains[row.domain].threads().get(row.thread) else {
        return Err(format!("'{node}' is a service, and has no cycles"));
    };
    let before = nodes.nodes.iter().take_while(|&&it| it != at);
    let before = before.flat_map(|&it| plan.nodes[it].kind.signals).map(|it| it.count);
    let own = row.kind.signals[..place].iter().map(|it| it.count);
    let first: usize = before.chain(own).sum();
    let places = match element {
        None => first..first + found.count,
        Some(index) if index < found.count => first + index..first + index + 1,
        Some(index) => {
            return Err(format!(
                "'{node}.{signal}' has no element {index}, only 0 to {}",
                found.count - 1
            ));
        }
    };
    let bound = bound_of(rule, found)?;
    let words = element.map_or(String::new(), |index| format!("[{index}]"));
    let words = format!("{node}.{signal}{words}");
    Ok(vec![(Some(thread), words, Place::Signals { places, absolute }, bound)])
}

/// The number that a signal is compared with; a state has its number in the labels.
fn bound_of(rule: &Rule, signal: &Signal) -> Result<f64, String> {
    match &rule.bound {
        Bound::Number(number) => Ok(*number),
        Bound::Word(word) => {
            let place = signal.labels.iter().position(|label| label == word);
            place.map(|place| place as f64).ok_or_else(|| match signal.labels {
                [] => format!("'{}' is no state: expected a number, not '{word}'", signal.name),
                labels => {
                    let help = suggest(word, labels.iter().copied());
                    format!("no state '{word}' of '{}'; {help}", signal.name)
                }
            })
        }
    }
}
