//! Where in a plan the quantity of a rule is found: a rule watches each of its sources separately.

use std::collections::BTreeSet;

use sinew_control::status::Status;
use sinew_core::catalogue::Signal;
use sinew_core::trace::ThreadId;
use sinew_spec::plan::{Plan, Release};
use sinew_spec::suggest;

use super::quantity::{How, Known, Take};
use super::{At, Bound, Change, Judge, News, Quantity, Rule};
use crate::monitor::figures::{Cycle, us};

/// All rules, each with all its sources in a plan.
pub(in crate::monitor) struct Watched(Vec<Bounded>);

/// A rule at one source.
pub(in crate::monitor) struct Bounded {
    /// Index of the rule.
    pub(in crate::monitor) rule: usize,
    /// The source, in words.
    pub(in crate::monitor) source: String,
    /// Decides when the rule fires.
    pub(in crate::monitor) judge: Judge,
    /// The thread of the core whose cycles are judged; `None`: the status is judged.
    pub(in crate::monitor) thread: Option<ThreadId>,
    value: Value,
    /// Whether the value in the status is a count, and its last value.
    is_count: bool,
    seen: Option<f64>,
}

/// The value in the status; `None` if it cannot be known from outside.
type Told = dyn Fn(&Status) -> Option<f64>;

/// Where the values of a source are.
enum Value {
    Cycle(Box<dyn Fn(&Cycle<'_>) -> f64>),
    Status(Box<Told>),
    RecordsLost,
}

impl Bounded {
    fn news(&self, change: Change, at: Option<At>) -> News {
        News { rule: self.rule, source: self.source.clone(), change, at }
    }
}

impl Watched {
    /// Finds the sources of all rules.
    ///
    /// # Errors
    /// A rule names something that the plan does not have.
    pub(in crate::monitor) fn bind(rules: &[Rule], plan: &Plan) -> Result<Watched, String> {
        let mut watched = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            let (bound, sources) = sources(rule, plan).map_err(|what| format!("{rule}: {what}"))?;
            watched.extend(sources.into_iter().map(|Source { thread, words, value, .. }| {
                Bounded {
                    rule: at,
                    source: words,
                    judge: Judge::new(rule, bound),
                    thread,
                    // What was counted before the first poll of the status does not count.
                    seen: matches!(value, Value::RecordsLost).then_some(0.0),
                    is_count: rule.quantity.how() == How::Count,
                    value,
                }
            }));
        }
        Ok(Watched(watched))
    }

    /// All sources of a rule.
    pub(in crate::monitor) fn of(&self, rule: usize) -> impl Iterator<Item = &Bounded> {
        self.0.iter().filter(move |it| it.rule == rule)
    }

    /// The core was started again: the state of these sources is forgotten.
    pub(in crate::monitor) fn reset(&mut self, is_it: impl Fn(&Bounded) -> bool) -> Vec<News> {
        let chosen = self.0.iter_mut().filter(|it| is_it(it));
        chosen.filter_map(|it| it.judge.reset().map(|change| it.news(change, None))).collect()
    }

    /// Judges a cycle.
    pub(in crate::monitor) fn cycle(&mut self, at: At, cycle: &Cycle<'_>) -> Vec<News> {
        let of_thread = self.0.iter_mut().filter(|it| it.thread == Some(at.thread));
        let judged = of_thread.filter_map(|it| {
            let Value::Cycle(value) = &it.value else { return None };
            let change = it.judge.take(at.start_ns, value(cycle))?;
            Some(it.news(change, Some(at)))
        });
        judged.collect()
    }

    /// Judges the status, and how many cycles of each thread this monitor has lost so far.
    pub(in crate::monitor) fn status(
        &mut self,
        now_ns: u64,
        status: &Status,
        lost: impl Fn(ThreadId) -> u64,
    ) -> Vec<News> {
        let judged = self.0.iter_mut().filter_map(|it| {
            let value = match &it.value {
                Value::Cycle(_) => return None,
                Value::Status(value) => value(status)?,
                Value::RecordsLost => lost(it.thread?) as f64,
            };
            // A count that begins again from 0 is new as a whole.
            let value = match (it.is_count, it.seen.replace(value)) {
                (true, None) => 0.0,
                (true, Some(before)) if before <= value => value - before,
                _ => value,
            };
            let change = it.judge.take(now_ns, value)?;
            Some(it.news(change, None))
        });
        judged.collect()
    }
}

/// A source: the keys that selectors choose it by, its thread, its words, its values.
struct Source {
    keys: [(&'static str, String); 2],
    thread: Option<ThreadId>,
    words: String,
    value: Value,
}

impl Source {
    /// Whether a selector chooses it. `planner.out` names a port at an end of a link, `planner` any
    /// port of that node.
    fn has(&self, key: &str, value: &str) -> bool {
        let rest = |is: &str| is.strip_prefix(value).map(|rest| rest.chars().next());
        self.keys.iter().any(|it| it.0 == key && matches!(rest(&it.1), Some(None | Some('.'))))
    }
}

/// The number that a rule is compared with, and its sources.
fn sources(rule: &Rule, plan: &Plan) -> Result<(f64, Vec<Source>), String> {
    let (known, selector) = match &rule.quantity {
        Quantity::Known { known, selector } => (known, selector),
        Quantity::Signal { node, signal, element, absolute } => {
            return signal_source(rule, plan, (node, signal), *element, *absolute);
        }
    };
    let Bound::Number(bound) = rule.bound else {
        return Err("expected a number to compare with".into());
    };
    let all = known_sources(known, plan);
    let is_chosen = |it: &Source| selector.iter().all(|(key, value)| it.has(key, value));
    if !all.iter().any(is_chosen) {
        return Err(nothing_chosen(known, selector, &all));
    }
    Ok((bound, all.into_iter().filter(is_chosen).collect()))
}

fn nothing_chosen(known: &Known, selector: &[(&str, String)], all: &[Source]) -> String {
    let is_unknown = |row: &&(&str, String)| !all.iter().any(|it| it.has(row.0, &row.1));
    let Some((key, value)) = selector.iter().find(is_unknown) else {
        return format!("nothing in this graph has '{}'", known.name);
    };
    let values = all.iter().flat_map(|it| &it.keys).filter(|(name, _)| name == key);
    let values: BTreeSet<&str> = values.map(|(_, value)| value.as_str()).collect();
    let help = suggest(value, values.iter().copied());
    format!("no {key} '{value}' that has '{}'; {help}", known.name)
}

/// All sources in the plan that have the quantity.
fn known_sources(known: &Known, plan: &Plan) -> Vec<Source> {
    let mut all = Vec::new();
    let mut add = |keys: [(&'static str, &str); 2], thread, words, value| {
        let keys = keys.map(|(key, value)| (key, value.to_owned()));
        all.push(Source { keys, thread, words, value });
    };
    let name = |node: usize| plan.nodes[node].name.as_str();
    for (domain, row) in plan.domains.iter().enumerate() {
        let of_domain = ("domain", row.name.as_str());
        if let Take::Domain(take) = known.take {
            let value = move |it: &Status| Some(take(it.domains.get(domain)?));
            let words = format!("domain '{}'", row.name);
            add([of_domain, ("", "")], None, words, Value::Status(Box::new(value)));
        }
        for (at, &node) in row.service().iter().flat_map(|it| it.nodes.iter().enumerate()) {
            let Take::Service(take) = known.take else { break };
            let value = move |it: &Status| Some(take(it.domains.get(domain)?.nodes.get(at)?));
            let (keys, words) = ([of_domain, ("node", name(node))], of_node(name(node)));
            add(keys, None, words, Value::Status(Box::new(value)));
        }
        for (thread, placed) in row.threads().iter().enumerate() {
            let id = Some(ThreadId { domain, thread });
            let value = match known.take {
                Take::Cycle(take) => Value::Cycle(Box::new(take)),
                Take::Planned(take) if placed.release == Release::Timer => {
                    Value::Cycle(Box::new(take))
                }
                Take::RecordsLost => Value::RecordsLost,
                Take::Execution => {
                    for (at, &node) in placed.nodes.iter().enumerate() {
                        let value = move |cycle: &Cycle<'_>| us(cycle.execution_ns(at));
                        let keys = [of_domain, ("node", name(node))];
                        add(keys, id, of_node(name(node)), Value::Cycle(Box::new(value)));
                    }
                    continue;
                }
                _ => continue,
            };
            let words = format!("{}, thread {thread}", row.name);
            add([of_domain, ("thread", &thread.to_string())], id, words, value);
        }
    }
    for (at, link) in plan.links.iter().enumerate() {
        let Take::Link(take) = known.take else { break };
        let (from, to) = (plan.end_name(link.from), plan.end_name(link.to));
        let value = move |it: &Status| take(it.links.get(at)?);
        let words = format!("link {from} > {to}");
        add([("from", &from), ("to", &to)], None, words, Value::Status(Box::new(value)));
    }
    all
}

fn of_node(name: &str) -> String {
    format!("node '{name}'")
}

fn signal_source(
    rule: &Rule,
    plan: &Plan,
    (node, signal): (&str, &str),
    element: Option<usize>,
    absolute: bool,
) -> Result<(f64, Vec<Source>), String> {
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
    let (first, count, words) = match element {
        None => (first, found.count, format!("{node}.{signal}")),
        Some(index) if index < found.count => {
            (first + index, 1, format!("{node}.{signal}[{index}]"))
        }
        Some(index) => {
            let last = found.count - 1;
            return Err(format!("'{node}.{signal}' has no element {index}, only 0 to {last}"));
        }
    };
    let (comparison, bound) = (rule.comparison, bound_of(rule, found)?);
    let value = move |cycle: &Cycle<'_>| {
        let values = cycle.record.signals().skip(first).take(count);
        let sign = |value: f64| if absolute { value.abs() } else { value };
        comparison.foremost(values.map(sign), bound)
    };
    let (keys, value) = (Default::default(), Value::Cycle(Box::new(value)));
    Ok((bound, vec![Source { keys, thread: Some(thread), words, value }]))
}

/// The number that a signal is compared with; a state has its number in the labels.
fn bound_of(rule: &Rule, signal: &Signal) -> Result<f64, String> {
    match &rule.bound {
        Bound::Number(number) => Ok(*number),
        Bound::Word(word) => {
            let place = signal.labels.iter().position(|label| label == word);
            place.map(|place| place as f64).ok_or_else(|| match signal.labels {
                [] => format!("'{}' is not a state: expected a number, not '{word}'", signal.name),
                labels => {
                    let help = suggest(word, labels.iter().copied());
                    format!("no state '{word}' of '{}'; {help}", signal.name)
                }
            })
        }
    }
}
