//! From a plan to executors: makes the nodes of a thread, lays out their slots, connects their
//! links.

use std::collections::BTreeMap;
use std::path::Path;

use sinew_plan::catalogue::{Direction, Scalar};
use sinew_plan::plan::{
    End, Link, MessagePart, Node as PlanNode, Plan, Release as PlanRelease, Transport,
};

use super::executor::Executor;
use super::finite::Finite;
use super::release::ReleaseSource;
use super::spoiled::Spoiled;
use super::step::{Around, Guard, Input, Lock, Numbers, Output, PartCopy, Step};
use super::taps::Taps;
use super::tuning::Tuning;
use crate::board::FaultAt;
use crate::clock::Clock;
use crate::ends::leader;
use crate::fault::{Cause, Fault};
use crate::node::{Node, NodeEntry, Parameters, Wiring};
use crate::slots::{Slot, Slots};
use crate::trace::{self, ActuatorHolds, Record};
use crate::transport::{Carrier, LinkShape, Receiver, Sender, row};

/// The carriers of links, by index of the link; taken out when an end is made of them.
#[derive(Debug, Default)]
pub struct Carriers {
    /// Writing ends.
    pub writers: BTreeMap<usize, Carrier>,
    /// Reading ends.
    pub readers: BTreeMap<usize, Carrier>,
    /// Where nodes are tuned, by index of the node.
    pub tunings: BTreeMap<usize, Carrier>,
}

/// What makes the ends of links to elsewhere.
pub trait MakeEnds {
    /// The writing end of link `link`.
    fn sender(&mut self, link: usize) -> Result<Box<dyn Sender>, Fault>;
    /// A reading end of link `link`.
    fn receiver(&mut self, link: usize) -> Result<Box<dyn Receiver>, Fault>;
    /// Where new values of the parameters of node `node` come from; `None`: there will be none.
    fn tuning(&mut self, node: usize) -> Result<Option<Box<dyn Receiver>>, Fault>;
    /// Whether messages still carry their stamps. Recorded messages do not: they have been judged.
    fn are_stamped(&self) -> bool {
        true
    }
}

/// What a drill puts around nodes and writing ends. A run that is no drill has none, at no cost.
pub trait Wrap {
    /// Node `index` of the plan, as it is to run.
    fn node(&self, made: Box<dyn Node>, index: usize) -> Box<dyn Node>;
    /// The writing end of link `link` of the plan, made of its carrier.
    ///
    /// # Errors
    /// The transport refuses the carrier.
    fn sender(&self, carrier: Carrier, link: usize) -> Result<Box<dyn Sender>, Fault>;
}

/// Makes the ends from carriers. A service that has spoiled its region does not keep the core from
/// starting.
struct Carried<'a> {
    plan: &'a Plan,
    wrap: Option<&'a dyn Wrap>,
    ends: &'a mut Carriers,
}

impl MakeEnds for Carried<'_> {
    fn sender(&mut self, link: usize) -> Result<Box<dyn Sender>, Fault> {
        let carrier = self.ends.writers.remove(&link).ok_or_else(|| no_carrier(link))?;
        let planned = &self.plan.links[link];
        let made = match self.wrap {
            Some(wrap) => wrap.sender(carrier, link),
            None => (row(planned.transport).sender)(carrier, &LinkShape::of(planned)),
        };
        match self.plan.is_service(planned.to.node) {
            true => made.or_else(|fault| Ok(Box::new(Spoiled::of(fault)?))),
            false => made,
        }
    }

    fn receiver(&mut self, link: usize) -> Result<Box<dyn Receiver>, Fault> {
        let carrier = self.ends.readers.remove(&link).ok_or_else(|| no_carrier(link))?;
        let link = &self.plan.links[link];
        let made = (row(link.transport).receiver)(carrier, &LinkShape::of(link));
        match self.plan.is_service(link.from.node) {
            true => made.or_else(|fault| Ok(Box::new(Spoiled::of(fault)?))),
            false => made,
        }
    }

    fn tuning(&mut self, node: usize) -> Result<Option<Box<dyn Receiver>>, Fault> {
        let carrier = self.ends.tunings.remove(&node);
        let Some((carrier, (_, port))) = carrier.zip(self.plan.tuning(node)) else {
            return Ok(None);
        };
        (row(Transport::SharedMemory).receiver)(carrier, &LinkShape::tuning(port.message)).map(Some)
    }
}

/// The row of a node's kind.
///
/// # Panics
/// If the plan was made from another catalogue.
pub fn entry<'a>(table: &'a [NodeEntry], node: &PlanNode) -> &'a NodeEntry {
    let row = table.iter().find(|row| row.kind.name == node.kind.name);
    row.expect("the plan is made from the same table")
}

/// Puts one thread together.
pub struct Assembly<'a> {
    /// What is put together.
    pub plan: &'a Plan,
    /// Makes its nodes; the plan was made from the same table.
    pub table: &'a [NodeEntry],
    /// The folder of the spec.
    pub base: &'a Path,
    /// Counts the time of nodes.
    pub clock: Clock,
    /// What a drill does, if this run is one.
    pub wrap: Option<&'a dyn Wrap>,
}

/// Where the messages of a thread's nodes are.
struct Places {
    /// By node and port.
    ports: BTreeMap<usize, Vec<Slot>>,
    parts: BTreeMap<PartKey, Slot>,
}

impl Places {
    /// Where a link takes its message from; `None` if another thread writes it.
    fn from(&self, link: &Link) -> Option<Slot> {
        match &link.part {
            Some(part) => self.parts.get(&PartKey::of(link, part)).copied(),
            None => Some(self.ports.get(&link.from.node)?[link.from.port]),
        }
    }
}

/// A number of a message, and what it is converted to.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PartKey {
    from: End,
    offset: u32,
    scalar: Scalar,
    /// The type that crosses.
    as_scalar: Scalar,
}

impl PartKey {
    fn of(link: &Link, part: &MessagePart) -> PartKey {
        let MessagePart { offset, scalar, .. } = *part;
        let as_scalar = link.message.fields.first().map_or(scalar, |field| field.scalar);
        PartKey { from: link.from, offset, scalar, as_scalar }
    }
}

impl Executor {
    /// The executor of a graph that is a single thread: to test a whole chain of nodes in your own
    /// loop, or to measure it.
    ///
    /// # Errors
    /// A node fails in `make` or `start`.
    ///
    /// # Panics
    /// If the plan has more than one domain or thread.
    pub fn fused(plan: &Plan, table: &[NodeEntry], base: &Path) -> Result<Executor, FaultAt> {
        let threads: usize = plan.domains.iter().map(|domain| domain.threads().len()).sum();
        assert_eq!(threads, 1, "the graph is not a single thread");
        let clock = Clock::calibrate();
        let assembly = Assembly { plan, table, base, clock, wrap: None };
        assembly.thread(0, 0, &mut Carriers::default()).map(|(executor, _)| executor)
    }
}

impl Assembly<'_> {
    /// The executor of a thread, its nodes started, and what releases it.
    ///
    /// # Errors
    /// A node fails in `make` or `start`, or a link cannot be attached.
    pub fn thread(
        &self,
        domain: usize,
        thread: usize,
        ends: &mut Carriers,
    ) -> Result<(Executor, ReleaseSource), FaultAt> {
        let Assembly { plan, wrap, .. } = *self;
        self.thread_with(domain, thread, &mut Carried { plan, wrap, ends })
    }

    /// As [`Assembly::thread`], but `ends` makes the ends of links to elsewhere.
    pub fn thread_with(
        &self,
        domain: usize,
        thread: usize,
        ends: &mut dyn MakeEnds,
    ) -> Result<(Executor, ReleaseSource), FaultAt> {
        let planned = &self.plan.domains[domain].threads()[thread];
        let mut slots = Slots::default();
        let places = self.lay_out(&planned.nodes, &mut slots);
        let (mut steps, mut feedback, mut release) = (Vec::new(), Vec::new(), ReleaseSource::Timer);
        let (mut signals, mut ends_seen) = (0, 0);
        for (at, &index) in planned.nodes.iter().enumerate() {
            let in_node = |fault| FaultAt { fault, node: Some(index), cycle: None };
            let mut step =
                self.step(index, at, &places, &mut slots, &mut signals).map_err(in_node)?;
            let inputs = self.inputs(index, &step.wiring.ports, &mut slots, ends);
            for (link, mut input) in inputs.map_err(in_node)? {
                input.end = next(&mut ends_seen);
                if self.plan.is_feedback(&self.plan.links[link]) {
                    feedback.push(input);
                    continue;
                }
                if planned.release == PlanRelease::Input(link) {
                    let wait = self.plan.links[link].wait;
                    release = ReleaseSource::Input { step: at, input: step.inputs.len(), wait };
                }
                step.inputs.push(input);
            }
            step.tuning = self.tuning(index, &step.wiring.ports, ends).map_err(in_node)?;
            step.parts = self.parts(index, &places);
            step.outputs = self.outputs(index, &places, ends).map_err(in_node)?;
            step.outputs.iter_mut().for_each(|output| output.end = next(&mut ends_seen));
            steps.push(step.settled());
        }
        let record = Record::of(self.plan, &planned.nodes);
        let taps = trace::taps(self.plan, &planned.nodes);
        let taps = Taps::new(taps.iter().map(|tap| places.ports[&tap.end.node][tap.end.port]));
        let (values, delayed) = (vec![0.0; signals], self.delayed(&planned.nodes, &places));
        let clock = self.clock;
        let executor = Executor {
            given_up: Vec::with_capacity(steps.len()),
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

    /// The slot of every port of every node, and of every part of a message: a fused link is one
    /// slot for both its ends, unless it commands an actuator.
    fn lay_out(&self, nodes: &[usize], slots: &mut Slots) -> Places {
        let mut ports: BTreeMap<usize, Vec<Slot>> = BTreeMap::new();
        for &node in nodes {
            let kind = self.plan.nodes[node].kind;
            let tuning = self.plan.tuning(node).map(|(_, port)| port);
            let own = kind.ports.iter().chain(tuning).map(|port| slots.add(port.message.size));
            ports.insert(node, own.collect());
        }
        let mut parts = BTreeMap::new();
        let links = self.plan.links.iter().filter(|link| ports.contains_key(&link.from.node));
        for (link, part) in links.filter_map(|link| Some((link, link.part.as_ref()?))) {
            let key = PartKey::of(link, part);
            parts.entry(key).or_insert_with(|| slots.add(link.message.size));
        }
        let mut places = Places { ports, parts };
        for link in self.plan.links.iter().filter(|link| self.is_shared(link)) {
            if let Some(slot) = places.from(link) {
                places.ports.entry(link.to.node).and_modify(|to| to[link.to.port] = slot);
            }
        }
        places
    }

    /// What tunes a node, if anything may.
    fn tuning(
        &self,
        node: usize,
        ports: &[Slot],
        ends: &mut dyn MakeEnds,
    ) -> Result<Option<Box<Tuning>>, Fault> {
        let Some((end, port)) = self.plan.tuning(node) else { return Ok(None) };
        let parameters = Parameters::of(self.plan, &self.plan.nodes[node], self.base);
        let tuning = |receiver| Tuning::new(&parameters, port, ports[end.port], receiver);
        Ok(ends.tuning(node)?.map(tuning).map(Box::new))
    }

    /// The parts that links take from the messages of a node.
    fn parts(&self, node: usize, places: &Places) -> Vec<PartCopy> {
        let of_node = places.parts.iter().filter(|(key, _)| key.from.node == node);
        let copy = |(key, &to): (&PartKey, &Slot)| PartCopy {
            from: places.ports[&node][key.from.port],
            offset: key.offset as usize,
            scalar: key.scalar,
            to,
            as_scalar: key.as_scalar,
        };
        of_node.map(copy).collect()
    }

    /// Whether both ends of a link are one slot.
    fn is_shared(&self, link: &Link) -> bool {
        link.fused && !link.delay && !self.is_actuator(link.to)
    }

    fn is_actuator(&self, end: End) -> bool {
        self.plan.nodes[end.node].actuators.iter().any(|actuator| actuator.port == end.port)
    }

    /// The slot that an actuator port takes its command from, if that slot is in this thread.
    fn command(&self, end: End, places: &Places) -> Option<Slot> {
        let from = |link: &&Link| link.fused && !link.delay && link.to == end;
        places.from(self.plan.links.iter().find(from)?)
    }

    fn step(
        &self,
        index: usize,
        place: usize,
        places: &Places,
        slots: &mut Slots,
        signals: &mut usize,
    ) -> Result<Step, Fault> {
        let node = &self.plan.nodes[index];
        let make = entry(self.table, node).make;
        let made = make(&Parameters::of(self.plan, node, self.base))?;
        let mut made = match self.wrap {
            Some(wrap) => wrap.node(made, index),
            None => made,
        };
        made.start()?;
        let wiring = Wiring::new(node.kind, places.ports[&index].clone(), *signals);
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
            let (slot, from) = (wiring.ports[actuator.port], self.command(end, places));
            let (after, holds) = (actuator.after, ActuatorHolds::default());
            guards.push(Guard { slot, from, after, safe, missed: 0, holds });
        }
        Ok(Step {
            node: made,
            name: node.name.clone(),
            index,
            place,
            wiring,
            around: Around::default(),
            inputs: Vec::new(),
            guards,
            tuning: None,
            parts: Vec::new(),
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
            let after_ns = link.after_ns.filter(|_| ends.are_stamped());
            let lock = || {
                let (staging, message) = match after_ns {
                    Some(_) => slots.add_stamped(link.message.size),
                    None => [slots.add(link.message.size); 2].into(),
                };
                let (finite, capacity) = (Finite::of(link.message), link.capacity);
                Lock { staging, message, after_ns, finite, capacity, broken: false }
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
        places: &Places,
        ends: &mut dyn MakeEnds,
    ) -> Result<Vec<Output>, Fault> {
        let links = self.plan.links.iter().enumerate();
        let links = links.filter(|(index, link)| {
            !link.fused && link.from.node == node && leader(self.plan, *index) == *index
        });
        let output = |(index, link): (usize, &Link)| {
            Ok(Output {
                slot: places.from(link).expect("the node has its places"),
                sender: ends.sender(index)?,
                full: link.full,
                safe: self.safe_message(index)?,
                to: self.plan.nodes[link.to.node].name.clone(),
                owes_safe: false,
                closed: false,
                end: 0,
                to_service: self.plan.is_service(link.to.node),
                broken: false,
            })
        };
        links.map(output).collect()
    }

    fn delayed(&self, nodes: &[usize], places: &Places) -> Vec<(Slot, Slot)> {
        let here = |link: &&Link| link.fused && link.delay && nodes.contains(&link.from.node);
        let slots =
            |link: &Link| Some((places.from(link)?, places.ports[&link.to.node][link.to.port]));
        self.plan.links.iter().filter(here).filter_map(slots).collect()
    }

    /// What goes over a link after a fault: the safe value of the actuators at its other end. If
    /// the actuators of a broadcast have different safe values, each takes its own when it sees the
    /// link closed.
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
    /// The table was not checked: it offers the value but cannot write it.
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

/// The fault of a link whose carrier the parent has not handed over.
pub fn no_carrier(link: usize) -> Fault {
    Fault::new(Cause::System, format_args!("no carrier for link {link} reached this domain"))
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "`message!` declares public types")]
mod tests;
