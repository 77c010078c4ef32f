//! From a plan to executors: makes the nodes of a thread, lays out their slots, connects their
//! links.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sinew_spec::catalogue::{Direction, MessageType};
use sinew_spec::plan::{
    Delivery, End, Link, Node as PlanNode, Plan, Release as PlanRelease, Transport,
};

use crate::board::FaultAt;
use crate::clock::Clock;
use crate::cyclic::Release;
use crate::executor::Executor;
use crate::fault::{Cause, Fault};
use crate::finite::Finite;
use crate::flow;
use crate::inject::{self, Injection};
use crate::node::{Make, NodeEntry, Parameters, Wiring};
use crate::refusal::Refusal;
use crate::slots::{Slot, Slots};
use crate::spoiled::Spoiled;
use crate::step::{Guard, Input, Lock, Numbers, Output, Step};
use crate::taps::Taps;
use crate::trace::{self, Holds, Record};
use crate::transport::{Carrier, Receiver, Sender, Shape, row};

/// The carriers of links, by index of the link; taken out when an end is made of them.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub(crate) writers: BTreeMap<usize, Carrier>,
    pub(crate) readers: BTreeMap<usize, Carrier>,
}

/// What makes the ends of links to elsewhere.
pub(crate) trait MakeEnds {
    /// The writing end of link `link`.
    fn sender(&mut self, link: usize) -> Result<Box<dyn Sender>, Fault>;
    /// A reading end of link `link`.
    fn receiver(&mut self, link: usize) -> Result<Box<dyn Receiver>, Fault>;
}

/// Makes them of carriers, with the faults on purpose of the writing ones. A service that has
/// spoiled its region does not keep the core from starting.
struct Carried<'a> {
    plan: &'a Plan,
    injections: &'a [Injection],
    ends: &'a mut Ends,
}

impl MakeEnds for Carried<'_> {
    fn sender(&mut self, link: usize) -> Result<Box<dyn Sender>, Fault> {
        let carrier = self.ends.writers.remove(&link).ok_or_else(|| no_carrier(link))?;
        let made = inject::sender(carrier, self.plan, link, self.injections);
        match self.plan.is_service(self.plan.links[link].to.node) {
            true => made.or_else(|fault| Ok(Box::new(Spoiled::of(fault)?))),
            false => made,
        }
    }

    fn receiver(&mut self, link: usize) -> Result<Box<dyn Receiver>, Fault> {
        let carrier = self.ends.readers.remove(&link).ok_or_else(|| no_carrier(link))?;
        let link = &self.plan.links[link];
        let made = (row(link.transport).receiver)(carrier, &Shape::of(link));
        match self.plan.is_service(link.from.node) {
            true => made.or_else(|fault| Ok(Box::new(Spoiled::of(fault)?))),
            false => made,
        }
    }
}

/// The ends of links to elsewhere that a thread with these nodes has, in the order of their words
/// in its record: for each node the links that it reads, then those that it writes.
pub(crate) fn link_ends(plan: &Plan, nodes: &[usize]) -> Vec<usize> {
    let mut ends = Vec::new();
    for &node in nodes {
        let crossing = || plan.links.iter().enumerate().filter(|(_, link)| !link.fused);
        ends.extend(crossing().filter(|(_, link)| link.to.node == node).map(|(at, _)| at));
        let written = crossing().filter(|(_, link)| link.from.node == node);
        ends.extend(written.map(|(at, _)| at).filter(|&at| leader(plan, at) == at));
    }
    ends
}

/// The link whose writing end also serves link `link`: readers of one broadcast region share it.
/// Each service domain has a region of its own, so that none can spoil it for another reader.
pub(crate) fn leader(plan: &Plan, link: usize) -> usize {
    let this = &plan.links[link];
    if this.delivery != Delivery::Broadcast {
        return link;
    }
    let service =
        |link: &Link| plan.is_service(link.to.node).then(|| plan.nodes[link.to.node].domain);
    let shares = |other: &Link| {
        !this.fused
            && service(other) == service(this)
            && !other.fused
            && (other.from, other.delivery) == (this.from, Delivery::Broadcast)
            && other.transport == this.transport
            && matches!(this.transport, Transport::InProcess | Transport::SharedMemory)
    };
    plan.links.iter().position(shares).unwrap_or(link)
}

/// Whether a link, or one that shares its writing end, has its ends in two domains: then the parent
/// opens it, else the domain itself.
pub(crate) fn crosses_domains(plan: &Plan, link: usize) -> bool {
    let crosses =
        |link: &Link| plan.nodes[link.from.node].domain != plan.nodes[link.to.node].domain;
    if plan.links[link].delivery != Delivery::Broadcast {
        return crosses(&plan.links[link]);
    }
    let same = |index: &usize| leader(plan, *index) == leader(plan, link);
    (0..plan.links.len()).filter(same).any(|index| crosses(&plan.links[index]))
}

/// The row of a node's kind.
///
/// # Panics
/// If the plan was made from another catalogue.
pub(crate) fn entry<'a>(table: &'a [NodeEntry], node: &PlanNode) -> &'a NodeEntry {
    let row = table.iter().find(|row| row.kind.name == node.kind.name);
    row.expect("the plan is made from the same table")
}

/// Makes the node at `index` and drops it again: its files are read, its parameters checked, and a
/// service looks whether it fits into the graph.
///
/// # Errors
/// What the kind says.
pub fn check_node(
    plan: &Plan,
    index: usize,
    table: &[NodeEntry],
    base: &Path,
) -> Result<(), Vec<Refusal>> {
    let node = &plan.nodes[index];
    let (make, parameters) = (entry(table, node).make, parameters(plan, node, base));
    let Make::Service(make) = make else { return make.check(&parameters) };
    make(&parameters).map_err(|fault| vec![fault.into()])?.check(plan, index)
}

/// Tries whether the source at `index` can have what it needs to open, before its domain is
/// started; what comes back holds that. `None` of a node that holds nothing, or cannot be made.
///
/// # Errors
/// What the source says ([`flow::Source::try_open`]).
pub fn try_open(
    plan: &Plan,
    index: usize,
    table: &[NodeEntry],
    base: &Path,
) -> Result<Option<flow::Held>, Refusal> {
    let node = &plan.nodes[index];
    let parameters = parameters(plan, node, base);
    let Make::Source(make) = entry(table, node).make else { return Ok(None) };
    let Ok(source) = make(&parameters) else { return Ok(None) };
    source.try_open().map_err(|(parameter, fault)| {
        let span = Some(parameters.span(parameter));
        Refusal { span, message: fault.to_string(), help: String::new() }
    })
}

/// The files that the flow node at `index` is made of, as far as its kind says: who edits one of
/// them edits the node. None of a node that cannot be made.
pub fn node_files(plan: &Plan, index: usize, table: &[NodeEntry], base: &Path) -> Vec<PathBuf> {
    let node = &plan.nodes[index];
    let parameters = parameters(plan, node, base);
    match entry(table, node).make {
        Make::Flow(make) => make(&parameters).map_or(Vec::new(), |node| node.files()),
        Make::Source(make) => make(&parameters).map_or(Vec::new(), |source| source.files()),
        Make::Cyclic(_) | Make::Service(_) => Vec::new(),
    }
}

/// What a node is made of.
pub fn parameters<'a>(plan: &Plan, node: &'a PlanNode, base: &'a Path) -> Parameters<'a> {
    let period_ns = plan.domains[node.domain].realtime().map_or(0, |domain| domain.period_ns);
    let (values, spans) = (&node.values, &node.spans);
    Parameters { kind: node.kind, values, base, spans, period_ns, messages: messages(plan, node) }
}

/// What crosses the links of a node, with its ports.
fn messages(plan: &Plan, node: &PlanNode) -> Vec<(usize, &'static MessageType)> {
    let is_here = |end: &End| std::ptr::eq(&plan.nodes[end.node], node);
    let here = |link: &Link| [link.from, link.to].into_iter().find(is_here);
    plan.links.iter().filter_map(|link| Some((here(link)?.port, link.message))).collect()
}

/// Puts one thread together.
pub(crate) struct Assembly<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) table: &'a [NodeEntry],
    pub(crate) base: &'a Path,
    pub(crate) clock: Clock,
    pub(crate) injections: &'a [Injection],
}

impl Assembly<'_> {
    /// The executor of a thread, its nodes started, and what releases it.
    ///
    /// # Errors
    /// What a node says to `make` or `start`, or what attaching a link says.
    pub(crate) fn thread(
        &self,
        domain: usize,
        thread: usize,
        ends: &mut Ends,
    ) -> Result<(Executor, Release), FaultAt> {
        let Assembly { plan, injections, .. } = *self;
        self.thread_with(domain, thread, &mut Carried { plan, injections, ends })
    }

    /// As [`Assembly::thread`], with links to elsewhere that end as `ends` makes them.
    pub(crate) fn thread_with(
        &self,
        domain: usize,
        thread: usize,
        ends: &mut dyn MakeEnds,
    ) -> Result<(Executor, Release), FaultAt> {
        let planned = &self.plan.domains[domain].threads()[thread];
        let timer = planned.release == PlanRelease::Timer;
        let mut slots = Slots::default();
        let ports = self.lay_out(&planned.nodes, &mut slots);
        let (mut steps, mut feedback, mut release) = (Vec::new(), Vec::new(), Release::Timer);
        let (mut signals, mut ends_seen) = (0, 0);
        for (at, &index) in planned.nodes.iter().enumerate() {
            let in_node = |fault| FaultAt { fault, node: Some(index), cycle: None };
            let mut step =
                self.step(index, at, &ports, &mut slots, &mut signals).map_err(in_node)?;
            let inputs = self.inputs(index, &step.wiring.ports, &mut slots, ends);
            for (link, mut input) in inputs.map_err(in_node)? {
                input.end = next(&mut ends_seen);
                if timer && self.plan.links[link].delay {
                    feedback.push(input);
                    continue;
                }
                if planned.release == PlanRelease::Input(link) {
                    let wait = self.plan.links[link].wait;
                    release = Release::Input { step: at, input: step.inputs.len(), wait };
                }
                step.inputs.push(input);
            }
            step.outputs = self.outputs(index, &step.wiring.ports, ends).map_err(in_node)?;
            step.outputs.iter_mut().for_each(|output| output.end = next(&mut ends_seen));
            steps.push(step);
        }
        let record = Record::of(self.plan, &planned.nodes);
        let taps = trace::taps(self.plan, &planned.nodes);
        let taps = Taps::new(taps.iter().map(|tap| ports[&tap.end.node][tap.end.port]));
        let (values, delayed) = (vec![0.0; signals], self.delayed(&planned.nodes, &ports));
        let clock = self.clock;
        let executor = Executor {
            steps,
            slots,
            values,
            delayed,
            feedback,
            clock,
            record,
            taps,
            at: None,
            updating: false,
            restless: None,
        };
        Ok((executor, release))
    }

    /// The slot of every port of every node: a fused link is one slot for both its ends, unless it
    /// commands an actuator.
    fn lay_out(&self, nodes: &[usize], slots: &mut Slots) -> BTreeMap<usize, Vec<Slot>> {
        let mut ports: BTreeMap<usize, Vec<Slot>> = BTreeMap::new();
        for &node in nodes {
            let kind = self.plan.nodes[node].kind;
            let own = kind.ports.iter().map(|port| slots.add(port.message.size));
            ports.insert(node, own.collect());
        }
        for link in self.plan.links.iter().filter(|link| self.is_shared(link)) {
            if let Some(slot) = ports.get(&link.from.node).map(|from| from[link.from.port]) {
                ports.entry(link.to.node).and_modify(|to| to[link.to.port] = slot);
            }
        }
        ports
    }

    /// Whether both ends of a link are one slot.
    fn is_shared(&self, link: &Link) -> bool {
        link.fused && !link.delay && !self.is_actuator(link.to)
    }

    fn is_actuator(&self, end: End) -> bool {
        self.plan.nodes[end.node].actuators.iter().any(|actuator| actuator.port == end.port)
    }

    /// The slot that an actuator port takes its command from, if that is one of this thread.
    fn command(&self, end: End, ports: &BTreeMap<usize, Vec<Slot>>) -> Option<Slot> {
        let from = |link: &&Link| link.fused && !link.delay && link.to == end;
        let link = self.plan.links.iter().find(from)?;
        Some(ports.get(&link.from.node)?[link.from.port])
    }

    fn step(
        &self,
        index: usize,
        place: usize,
        ports: &BTreeMap<usize, Vec<Slot>>,
        slots: &mut Slots,
        signals: &mut usize,
    ) -> Result<Step, Fault> {
        let node = &self.plan.nodes[index];
        let make = entry(self.table, node).make;
        let made = make.cyclic(&parameters(self.plan, node, self.base))?;
        let mut made = inject::node(made, self.plan, index, self.injections);
        made.start()?;
        let wiring = Wiring::new(node.kind, ports[&index].clone(), *signals);
        *signals = wiring.signals_end();
        let written = node.kind.ports.iter().zip(&wiring.ports);
        let written = written.filter(|(port, _)| port.direction == Direction::Out);
        let numbers = written.filter_map(|(port, &slot)| {
            Some(Numbers { slot, port: port.name, finite: Finite::of(port.message)? })
        });
        let numbers = numbers.collect();
        let mut guards = Vec::new();
        for actuator in &node.actuators {
            let end = End { node: index, port: actuator.port };
            let safe = slots.add(self.plan.port(end).message.size);
            slots.bytes_mut(safe).copy_from_slice(&self.safe_value(end, actuator.safe)?);
            let (slot, from) = (wiring.ports[actuator.port], self.command(end, ports));
            let (after, holds) = (actuator.after, Holds::default());
            guards.push(Guard { slot, from, after, safe, missed: 0, holds });
        }
        Ok(Step {
            node: made,
            name: node.name.clone(),
            index,
            place,
            wiring,
            inputs: Vec::new(),
            guards,
            outputs: Vec::new(),
            numbers,
            signals: node.kind.signals,
        })
    }

    fn inputs(
        &self,
        node: usize,
        ports: &[Slot],
        slots: &mut Slots,
        ends: &mut dyn MakeEnds,
    ) -> Result<Vec<(usize, Input)>, Fault> {
        let links = self.plan.links.iter().enumerate();
        let links = links.filter(|(_, link)| !link.fused && link.to.node == node);
        let input = |(index, link): (usize, &Link)| {
            let lock = || Lock {
                staging: slots.add(link.message.size),
                finite: Finite::of(link.message),
                capacity: link.capacity,
                broken: false,
            };
            let input = Input {
                slot: ports[link.to.port],
                receiver: ends.receiver(index)?,
                from: self.plan.nodes[link.from.node].name.clone(),
                missing: false,
                closed: false,
                end: 0,
                lock: self.plan.is_service(link.from.node).then(lock),
            };
            Ok((index, input))
        };
        links.map(input).collect()
    }

    fn outputs(
        &self,
        node: usize,
        ports: &[Slot],
        ends: &mut dyn MakeEnds,
    ) -> Result<Vec<Output>, Fault> {
        let links = self.plan.links.iter().enumerate();
        let links = links.filter(|(index, link)| {
            !link.fused && link.from.node == node && leader(self.plan, *index) == *index
        });
        let output = |(index, link): (usize, &Link)| {
            Ok(Output {
                slot: ports[link.from.port],
                sender: ends.sender(index)?,
                full: link.full,
                safe: self.safe_message(index)?,
                to: self.plan.nodes[link.to.node].name.clone(),
                closed: false,
                end: 0,
                to_service: self.plan.is_service(link.to.node),
                broken: false,
            })
        };
        links.map(output).collect()
    }

    fn delayed(&self, nodes: &[usize], ports: &BTreeMap<usize, Vec<Slot>>) -> Vec<(Slot, Slot)> {
        let here = |link: &&Link| link.fused && link.delay && nodes.contains(&link.from.node);
        let slot = |end: End| ports[&end.node][end.port];
        self.plan.links.iter().filter(here).map(|link| (slot(link.from), slot(link.to))).collect()
    }

    /// What goes over a link after a fault: the safe value of the actuators at its other end. If
    /// those of a broadcast differ in it, each takes its own when it sees the link closed.
    fn safe_message(&self, link: usize) -> Result<Option<Vec<u8>>, Fault> {
        let links = self.plan.links.iter().enumerate().filter(|(_, link)| !link.fused);
        let served = links.filter(|(index, _)| leader(self.plan, *index) == link);
        let mut safes = Vec::new();
        for (_, served) in served {
            let mut actuators = self.plan.nodes[served.to.node].actuators.iter();
            if let Some(actuator) = actuators.find(|actuator| actuator.port == served.to.port) {
                safes.push(self.safe_value(served.to, actuator.safe)?);
            }
        }
        let are_one = safes.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(safes.pop().filter(|_| are_one))
    }

    /// Safe value `safe` of an actuator port, as long as the port's message.
    ///
    /// # Errors
    /// Of a table that nobody has checked: it offers the value, and cannot write it.
    fn safe_value(&self, end: End, safe: usize) -> Result<Vec<u8>, Fault> {
        let node = &self.plan.nodes[end.node];
        let write = entry(self.table, node).safe.ok_or_else(|| {
            let (kind, port) = (node.kind.name, self.plan.port(end).name);
            Fault::new(
                Cause::System,
                format_args!(
                    "port '{port}' of kind '{kind}' has safe values, its row 'safe: None'"
                ),
            )
        })?;
        let mut message = vec![0; self.plan.port(end).message.size as usize];
        write(end.port, safe, &mut message);
        Ok(message)
    }
}

/// The next number.
fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

pub(crate) fn no_carrier(link: usize) -> Fault {
    Fault::new(Cause::System, format_args!("no carrier for link {link} reached this domain"))
}
