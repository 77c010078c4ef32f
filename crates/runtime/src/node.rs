//! What a node is, and what it sees: its ports, its parameters, the cycle.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use sinew_spec::catalogue::{Direction, Kind, Value};
use zerocopy::IntoBytes;

use crate::fault::Fault;
use crate::message::Message;

/// A cyclic node. After `start` it neither allocates, locks, logs nor calls the kernel.
pub trait Node: Send {
    /// Once, before the first cycle, in the domain's process; may allocate and take its time.
    fn start(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// The node's work in one cycle; bounded. An error stops the graph.
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault>;

    /// Once, after the last cycle.
    fn stop(&mut self) {}

    /// Whether the machine behind this node stands still and is safe: a domain that is told to stop
    /// goes on with safe commands until all its nodes say so (or a limit of time is over).
    fn at_rest(&self) -> bool {
        true
    }
}

/// A row of a node table.
#[derive(Clone, Copy)]
pub struct NodeEntry {
    /// What the compiler knows of the kind.
    pub kind: &'static Kind,
    /// Makes a node: reads its files, checks what the table of parameters cannot. Also called by
    /// `sinew check`, so it must have no effect outside itself.
    pub make: fn(&Parameters<'_>) -> Result<Box<dyn Node>, Fault>,
    /// Writes safe value `safe` (index into the port's table) of actuator port `port` into
    /// `message`, which is zeroed. `None` for kinds without actuator ports.
    pub safe: Option<fn(port: usize, safe: usize, message: &mut [u8])>,
}

/// One pass of an executor, as its nodes see it.
#[derive(Debug, Default)]
pub struct Cycle {
    /// Counts from 0.
    pub number: u64,
    /// Nominal spacing, ns.
    pub period_ns: u64,
    /// Whole periods lost immediately before this cycle.
    pub skipped: u64,
    /// The graph is stopping: actuators now get their safe values.
    pub stopping: bool,
    finished: Cell<bool>,
}

impl Cycle {
    /// A cycle; for executors and tests.
    pub fn new(number: u64, period_ns: u64) -> Cycle {
        Cycle { number, period_ns, ..Cycle::default() }
    }

    /// The node's job is done: the graph stops in order after this cycle, with outcome `finished`.
    pub fn finish(&self) {
        self.finished.set(true);
    }

    /// Whether a node called [`Cycle::finish`].
    pub fn is_finished(&self) -> bool {
        self.finished.get()
    }

    /// Nominal spacing, s.
    pub fn period_s(&self) -> f64 {
        self.period_ns as f64 * 1e-9
    }
}

/// What a read says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fresh {
    /// Nothing was ever written; the value is all zero bytes.
    None,
    /// Written in an earlier cycle.
    Old,
    /// Written since the last cycle.
    New,
    /// Commands stayed away too long (or the graph stops): this is the port's safe value.
    Safe,
}

/// A place for one message in the memory of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    /// Number of the cycle in which it was written, plus one; 0 means never.
    pub(crate) stamp: u64,
    pub(crate) safe: bool,
}

/// All slots of a thread, in one allocation that is made before the first cycle.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    words: Vec<u64>,
    pub(crate) slots: Vec<Slot>,
}

impl Slots {
    /// Adds a slot of `len` bytes, aligned to 8, zeroed.
    pub(crate) fn add(&mut self, len: usize) -> usize {
        let offset = self.words.len() * 8;
        self.words.resize(self.words.len() + len.div_ceil(8), 0);
        self.slots.push(Slot { offset, len, stamp: 0, safe: false });
        self.slots.len() - 1
    }

    /// Says that the slot was written in cycle `cycle`.
    #[inline]
    pub(crate) fn mark_new(&mut self, slot: usize, cycle: u64) {
        let slot = &mut self.slots[slot];
        slot.stamp = cycle + 1;
        slot.safe = false;
    }

    /// Whether the slot holds a message (not a safe value) that was written in cycle `cycle`.
    #[inline]
    pub(crate) fn is_new(&self, slot: usize, cycle: u64) -> bool {
        let slot = &self.slots[slot];
        slot.stamp == cycle + 1 && !slot.safe
    }

    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        let (from, to) = (self.slots[from], self.slots[to]);
        let bytes = self.words.as_mut_bytes();
        bytes.copy_within(from.offset..from.offset + from.len, to.offset);
    }

    pub(crate) fn bytes(&self, slot: usize) -> &[u8] {
        let Slot { offset, len, .. } = self.slots[slot];
        &self.words.as_bytes()[offset..offset + len]
    }

    pub(crate) fn bytes_mut(&mut self, slot: usize) -> &mut [u8] {
        let Slot { offset, len, .. } = self.slots[slot];
        &mut self.words.as_mut_bytes()[offset..offset + len]
    }
}

/// A node's ports and signals during one update.
pub struct Io<'a> {
    pub(crate) slots: &'a mut Slots,
    /// Slot of each port of the kind.
    pub(crate) ports: &'a [usize],
    /// Start of each signal in `values`, and the end of the last one.
    pub(crate) signals: &'a [usize],
    pub(crate) values: &'a mut [f64],
    pub(crate) cycle: u64,
}

impl Io<'_> {
    /// The newest value at port `port` (index into the kind's table).
    ///
    /// # Panics
    /// If `T` is not the message type that the kind's table gives for this port.
    #[inline]
    pub fn read<T: Message>(&self, port: usize) -> &T {
        let bytes = self.slots.bytes(self.ports[port]);
        T::ref_from_bytes(bytes).expect("the port's table names another message type")
    }

    /// What is to be said of the value at port `port`.
    #[inline]
    pub fn fresh(&self, port: usize) -> Fresh {
        let slot = &self.slots.slots[self.ports[port]];
        match slot.stamp {
            _ if slot.safe => Fresh::Safe,
            0 => Fresh::None,
            stamp if stamp == self.cycle + 1 => Fresh::New,
            _ => Fresh::Old,
        }
    }

    /// The place to write this cycle's message for port `port`; what is not overwritten keeps the
    /// previous message's bytes. Without this call nothing is sent in this cycle.
    ///
    /// # Panics
    /// If `T` is not the message type that the kind's table gives for this port.
    #[inline]
    pub fn write<T: Message>(&mut self, port: usize) -> &mut T {
        let slot = self.ports[port];
        self.slots.mark_new(slot, self.cycle);
        T::mut_from_bytes(self.slots.bytes_mut(slot))
            .expect("the port's table names another message type")
    }

    /// The numbers of signal `signal` (index into the kind's table).
    #[inline]
    pub fn signal(&mut self, signal: usize) -> &mut [f64] {
        &mut self.values[self.signals[signal]..self.signals[signal + 1]]
    }
}

/// The values of a node's parameters.
pub struct Parameters<'a> {
    /// The node's kind.
    pub kind: &'static Kind,
    /// One value for each of the kind's parameters.
    pub values: &'a [Value],
    /// The folder of the spec: relative paths start here.
    pub base: &'a Path,
    /// Nominal period of the node's domain, ns.
    pub period_ns: u64,
}

impl Parameters<'_> {
    fn value(&self, name: &str) -> &Value {
        let at = self.kind.parameters.iter().position(|parameter| parameter.name == name);
        &self.values[at.unwrap_or_else(|| panic!("{} has no parameter '{name}'", self.kind.name))]
    }

    /// A flag. Like its siblings it panics if the kind's table has no such parameter of that type.
    pub fn bool(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Bool(value) => *value,
            other => panic!("parameter '{name}' is no flag: {other:?}"),
        }
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Integer(value) => *value,
            other => panic!("parameter '{name}' is no whole number: {other:?}"),
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(value) => *value,
            other => panic!("parameter '{name}' is no number: {other:?}"),
        }
    }

    /// A list of numbers, as long as the table says.
    pub fn numbers(&self, name: &str) -> &[f64] {
        match self.value(name) {
            Value::Numbers(values) => values,
            other => panic!("parameter '{name}' is no list of numbers: {other:?}"),
        }
    }

    /// Text, or the word of a choice.
    pub fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(value) => value,
            other => panic!("parameter '{name}' is no text: {other:?}"),
        }
    }

    /// A file, seen from the folder of the spec.
    pub fn path(&self, name: &str) -> PathBuf {
        self.base.join(self.text(name))
    }
}

/// Start of each signal of a kind among its values, and the end of the last one.
pub(crate) fn signal_starts(kind: &Kind) -> Vec<usize> {
    let mut starts = vec![0];
    for signal in kind.signals {
        starts.push(starts[starts.len() - 1] + signal.count);
    }
    starts
}

/// One node with nothing around it, to test it: write its inputs, update, read its outputs.
pub struct Fixture {
    node: Box<dyn Node>,
    kind: &'static Kind,
    slots: Slots,
    ports: Vec<usize>,
    signals: Vec<usize>,
    values: Vec<f64>,
    /// The cycle that comes next.
    pub cycle: Cycle,
}

impl Fixture {
    /// Makes and starts a node.
    ///
    /// # Errors
    /// What `make` or `start` say.
    pub fn new(entry: &NodeEntry, parameters: &Parameters<'_>) -> Result<Fixture, Fault> {
        let kind = entry.kind;
        let mut node = (entry.make)(parameters)?;
        node.start()?;
        let mut slots = Slots::default();
        let ports = kind.ports.iter().map(|port| slots.add(port.message.size as usize)).collect();
        let signals = signal_starts(kind);
        let values = vec![0.0; signals[signals.len() - 1]];
        let cycle = Cycle::new(0, parameters.period_ns);
        Ok(Fixture { node, kind, slots, ports, signals, values, cycle })
    }

    /// Puts a new message on input port `port`.
    pub fn put<T: Message>(&mut self, port: usize, message: &T) {
        assert_eq!(self.kind.ports[port].direction, Direction::In);
        self.put_as(port, message, false);
    }

    /// Puts a message on actuator port `port` as its safe value.
    pub fn put_safe<T: Message>(&mut self, port: usize, message: &T) {
        self.put_as(port, message, true);
    }

    fn put_as<T: Message>(&mut self, port: usize, message: &T, safe: bool) {
        let slot = self.ports[port];
        self.slots.bytes_mut(slot).copy_from_slice(message.as_bytes());
        self.slots.slots[slot].stamp = self.cycle.number + 1;
        self.slots.slots[slot].safe = safe;
    }

    /// Runs one cycle.
    ///
    /// # Errors
    /// What the node says.
    pub fn update(&mut self) -> Result<(), Fault> {
        let mut io = Io {
            slots: &mut self.slots,
            ports: &self.ports,
            signals: &self.signals,
            values: &mut self.values,
            cycle: self.cycle.number,
        };
        let result = self.node.update(&mut io, &self.cycle);
        self.cycle.number += 1;
        result
    }

    /// The message on output port `port`, if the last update wrote one.
    pub fn get<T: Message>(&self, port: usize) -> Option<T> {
        let slot = self.ports[port];
        (self.slots.slots[slot].stamp == self.cycle.number).then(|| {
            T::read_from_bytes(self.slots.bytes(slot)).expect("the port has another message type")
        })
    }

    /// The numbers of signal `signal`.
    pub fn signal(&self, signal: usize) -> &[f64] {
        &self.values[self.signals[signal]..self.signals[signal + 1]]
    }

    /// Whether the node says that the machine behind it stands still.
    pub fn at_rest(&self) -> bool {
        self.node.at_rest()
    }
}
