//! What a node is, and what it sees: its ports, its parameters, the cycle.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sinew_plan::catalogue::{Direction, Kind, MessageType, ParameterValue};
use sinew_plan::plan::{Domain, End, Link, NOWHERE, Node as PlanNode, Plan};
use sinew_plan::{Item, Span};

use crate::fault::Fault;
use crate::log::{self, Level};
use crate::message::Message;
pub use crate::slots::Fresh;
use crate::slots::{Slot, Slots};

/// A cyclic node. After `start` it neither allocates, locks, prints nor calls the kernel; what it
/// has to report it logs by [`Cycle::log`].
pub trait Node: Send {
    /// Once, before the first cycle, in the domain's process; may allocate and take its time.
    fn start(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    /// The node's work in one cycle; bounded. An error stops the graph.
    fn update(&mut self, io: &mut Io<'_>, cycle: &Cycle) -> Result<(), Fault>;

    /// Called between two cycles, when parameters that the kind's table calls tunable have new
    /// values. `parameters` holds all values as they are now, within their limits and accepted by
    /// `make` before. The rules of `update` hold here too; an error stops the graph. `parameters`
    /// does not hold files, the spec or the neighbours of the node.
    fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        let _ = parameters;
        Ok(())
    }

    /// Once, after the last cycle.
    fn stop(&mut self) {}

    /// Whether the machine behind this node stands still and is safe: a domain that is told to stop
    /// goes on with safe commands until all its nodes say so (or a limit of time is over). Called
    /// in every cycle of the stop. In a thread with actuators it is also called before the stop, in
    /// each cycle in which no actuator obeys a command other than its safe value. Bounded; its time
    /// is part of no figure.
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

impl NodeEntry {
    /// A row for a kind without actuator ports; for other kinds put `safe: Some(...)` before
    /// `..NodeEntry::new`.
    pub const fn new(
        kind: &'static Kind,
        make: fn(&Parameters<'_>) -> Result<Box<dyn Node>, Fault>,
    ) -> NodeEntry {
        NodeEntry { kind, make, safe: None }
    }
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
    /// Place in its thread of the node that is at work.
    pub(crate) place: Cell<usize>,
    /// Where lines go; `None`: nowhere. It has its own memory, so that it does not move when the
    /// cycle does.
    lines: RefCell<Option<Box<log::Writer>>>,
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

    /// Logs a line, which becomes an event of the run: in its output, in `sinew log`, on the page
    /// and in recordings, with the node and the number of this cycle. Each number takes the place
    /// of a `{}` in the text, or of a `{:.3}` with so many digits; the reader does that. A text
    /// longer than [`TEXT_MAX`](log::TEXT_MAX) bytes is cut, numbers past [`log::NUMBERS_MAX`] are
    /// left out.
    ///
    /// It takes some 100 ns, never waits, allocates nothing and calls no kernel. A logged line is
    /// kept, whatever happens to the process after that. Of one node ten lines in ten seconds are
    /// kept: log on a change, not in every cycle. Outside of a run only the [`NodeFixture`] and the
    /// caller of [`Cycle::heard`] get the lines.
    ///
    /// ```
    /// # use sinew_core::{Cycle, Level};
    /// # fn check(cycle: &Cycle, angle_rad: f64, most_rad: f64) {
    /// cycle.log(Level::Warning, "it swings {:.2} rad, more than {}", &[angle_rad, most_rad]);
    /// # }
    /// ```
    // Not inlined: it is seldom needed, and a node's code is faster when it is small.
    #[cold]
    #[inline(never)]
    pub fn log(&self, level: Level, text: &str, numbers: &[f64]) {
        // Nothing in `write` calls back to here, so the borrow does not fail.
        if let Ok(mut lines) = self.lines.try_borrow_mut()
            && let Some(lines) = lines.as_mut()
        {
            lines.write(self.number, self.place.get(), level, text, numbers);
        }
    }

    /// Brings what [`Cycle::log`] needs into memory, because it may run for the first time in a
    /// cycle.
    pub fn rehearse_log() {
        if let Ok((cycle, _)) = Cycle::heard(0, 1) {
            cycle.log(Level::Info, "rehearsed", &[0.0]);
        }
    }

    /// The same cycle, whose lines go to `lines`.
    #[must_use]
    pub fn logging(self, lines: log::Writer) -> Cycle {
        Cycle { lines: RefCell::new(Some(Box::new(lines))), ..self }
    }

    /// A cycle for your own executor, and where the lines of its nodes can be read. It serves for
    /// all cycles if it is used again with another number.
    ///
    /// # Errors
    /// The kernel refuses 96 KiB.
    pub fn heard(number: u64, period_ns: u64) -> io::Result<(Cycle, log::Reader)> {
        let (writer, reader) = log::open_here()?;
        Ok((Cycle::new(number, period_ns).logging(writer), reader))
    }

    /// Nominal spacing, s.
    pub fn period_s(&self) -> f64 {
        self.period_ns as f64 * 1e-9
    }

    /// Nominal time since the cycle before, with the periods that were lost, ns.
    pub fn passed_ns(&self) -> u64 {
        self.period_ns.saturating_mul(self.skipped.saturating_add(1))
    }

    /// The same, s.
    pub fn passed_s(&self) -> f64 {
        self.passed_ns() as f64 * 1e-9
    }
}

/// Where a node's ports and signals are.
#[derive(Debug)]
pub(crate) struct Wiring {
    /// Slot of each port of the kind.
    pub(crate) ports: Vec<Slot>,
    /// Start of each signal among those of all nodes, and the end of the last one.
    pub(crate) signals: Vec<usize>,
}

impl Wiring {
    /// The wiring of a node of this kind whose signals start at `first`.
    pub(crate) fn new(kind: &Kind, ports: Vec<Slot>, first: usize) -> Wiring {
        let mut signals = vec![first];
        for signal in kind.signals {
            signals.push(signals[signals.len() - 1] + signal.count);
        }
        Wiring { ports, signals }
    }

    /// The end of the last signal.
    pub(crate) fn signals_end(&self) -> usize {
        self.signals[self.signals.len() - 1]
    }
}

/// A node's ports and signals during one update.
pub struct Io<'a> {
    pub(crate) wiring: &'a Wiring,
    pub(crate) slots: &'a mut Slots,
    /// The signals of all nodes.
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
        let value = self.slots.value(self.wiring.ports[port]);
        value.expect("the port's table names another message type")
    }

    /// What a read says of the value at port `port`.
    #[inline]
    pub fn fresh(&self, port: usize) -> Fresh {
        self.slots.fresh(self.wiring.ports[port], self.cycle)
    }

    /// The place to write this cycle's message for port `port`; bytes that are not overwritten stay
    /// those of the previous message. Without this call nothing is sent in this cycle.
    ///
    /// # Panics
    /// If `T` is not the message type that the kind's table gives for this port.
    #[inline]
    pub fn write<T: Message>(&mut self, port: usize) -> &mut T {
        let value = self.slots.write(self.wiring.ports[port], self.cycle);
        value.expect("the port's table names another message type")
    }

    /// As [`Io::write`], as bytes, of whatever message type.
    pub fn write_bytes(&mut self, port: usize) -> &mut [u8] {
        let slot = self.wiring.ports[port];
        self.slots.mark_new(slot, self.cycle);
        self.slots.bytes_mut(slot)
    }

    /// The numbers of signal `signal` (index into the kind's table).
    #[inline]
    pub fn signal(&mut self, signal: usize) -> &mut [f64] {
        &mut self.values[self.wiring.signals[signal]..self.wiring.signals[signal + 1]]
    }
}

/// The values of a node's parameters.
pub struct Parameters<'a> {
    /// The node's kind.
    pub kind: &'static Kind,
    /// One value for each of the kind's parameters.
    pub values: &'a [ParameterValue],
    /// The folder of the spec: relative paths start here.
    pub base: &'a Path,
    /// Where each value is in the spec; empty outside a graph.
    pub spans: &'a [Span],
    /// Nominal period of the node's domain, ns; 0 in a service domain.
    pub period_ns: u64,
    /// Ports (by index of the kind's table) and what crosses their links to other nodes: one entry
    /// for each link that carries messages.
    pub messages: Vec<(usize, &'static MessageType)>,
    /// The graph, and the index of the node's domain; `None` outside a graph.
    pub home: Option<(&'a Plan, usize)>,
}

impl<'a> Parameters<'a> {
    /// What a node is made of.
    pub fn of(plan: &'a Plan, node: &'a PlanNode, base: &'a Path) -> Parameters<'a> {
        let domain = plan.domains.get(node.domain).and_then(Domain::realtime);
        let period_ns = domain.map_or(0, |domain| domain.period_ns);
        let (values, spans) = (&node.values, &node.spans);
        Parameters {
            kind: node.kind,
            values,
            base,
            spans,
            period_ns,
            messages: messages(plan, node),
            home: Some((plan, node.domain)),
        }
    }

    /// Outside a graph, as tests need them: a value for each row of the kind's table, in its order.
    pub fn alone(
        kind: &'static Kind,
        values: &'a [ParameterValue],
        period: Duration,
    ) -> Parameters<'a> {
        let (base, period_ns) = (Path::new("."), period.as_nanos() as u64);
        Parameters { kind, values, base, spans: &[], period_ns, messages: Vec::new(), home: None }
    }

    /// All nodes of the same domain.
    pub fn neighbours(&self) -> impl Iterator<Item = &'a PlanNode> + Clone {
        let (nodes, home) = match self.home {
            Some((plan, domain)) => (&*plan.nodes, domain),
            None => (&[][..], 0),
        };
        nodes.iter().filter(move |node| are_neighbours(node.domain, home))
    }

    /// Whether a neighbour of this kind, and of this name if one is given, may be missing only
    /// because it is faulty. Then the error that it is missing only follows from the error about
    /// it.
    pub fn is_left_out(&self, kind: &str, name: Option<&str>) -> bool {
        let Some((plan, home)) = self.home else { return false };
        plan.left_out.iter().flatten().any(|node| {
            are_neighbours(node.domain, home)
                && node.kind.is_none_or(|it| it.name == kind)
                && name.is_none_or(|name| node.name == name)
        })
    }

    /// What one of [`Parameters::neighbours`] is made of.
    pub fn of_neighbour(&self, node: &'a PlanNode) -> Option<Parameters<'a>> {
        self.home.map(|(plan, _)| Parameters::of(plan, node, self.base))
    }
}

/// Whether nodes of these domains are neighbours: one whose domain is not known may be in any.
fn are_neighbours(one: usize, other: usize) -> bool {
    one == other || [one, other].contains(&NOWHERE)
}

/// What crosses the links of a node, with its ports.
fn messages(plan: &Plan, node: &PlanNode) -> Vec<(usize, &'static MessageType)> {
    let is_here = |end: &End| std::ptr::eq(&plan.nodes[end.node], node);
    let here = |link: &Link| [link.from, link.to].into_iter().find(is_here);
    plan.links.iter().filter_map(|link| Some((here(link)?.port, link.message))).collect()
}

impl Parameters<'_> {
    fn value(&self, name: &str) -> &ParameterValue {
        &self.values[self.index(name)]
    }

    fn index(&self, name: &str) -> usize {
        let at = self.kind.parameters.iter().position(|parameter| parameter.name == name);
        at.unwrap_or_else(|| panic!("{} has no parameter '{name}'", self.kind.name))
    }

    /// Where a value is in the spec; if it is a default, where the node's name is.
    pub fn span(&self, name: &str) -> Span {
        self.spans.get(self.index(name)).copied().unwrap_or_default()
    }

    /// A bug of the kind's table or of the caller: `name` is of another type.
    fn is_no(&self, what: &str, name: &str) -> ! {
        panic!("parameter '{name}' is not a {what}: {:?}", self.value(name))
    }

    /// A time.
    pub fn duration(&self, name: &str) -> Duration {
        let ParameterValue::Duration(ns) = self.value(name) else { self.is_no("time", name) };
        Duration::from_nanos(*ns)
    }

    /// A size, bytes.
    pub fn size(&self, name: &str) -> u64 {
        let ParameterValue::Size(bytes) = self.value(name) else { self.is_no("size", name) };
        *bytes
    }

    /// A piece of YAML.
    pub fn yaml(&self, name: &str) -> &Item {
        let ParameterValue::Yaml(item) = self.value(name) else {
            self.is_no("piece of YAML", name)
        };
        item
    }

    /// A flag. Like its siblings it panics if the kind's table has no such parameter of that type.
    pub fn bool(&self, name: &str) -> bool {
        let ParameterValue::Bool(value) = self.value(name) else { self.is_no("flag", name) };
        *value
    }

    /// A whole number.
    pub fn integer(&self, name: &str) -> i64 {
        let ParameterValue::Integer(value) = self.value(name) else {
            self.is_no("whole number", name)
        };
        *value
    }

    /// A number.
    pub fn number(&self, name: &str) -> f64 {
        let ParameterValue::Number(value) = self.value(name) else { self.is_no("number", name) };
        *value
    }

    /// A list of numbers, as long as the table says.
    pub fn numbers(&self, name: &str) -> &[f64] {
        let ParameterValue::Numbers(values) = self.value(name) else {
            self.is_no("list of numbers", name)
        };
        values
    }

    /// Text, or the word of a choice.
    pub fn text(&self, name: &str) -> &str {
        let ParameterValue::Text(value) = self.value(name) else { self.is_no("text", name) };
        value
    }

    /// A list of texts.
    pub fn texts(&self, name: &str) -> &[String] {
        let ParameterValue::Texts(values) = self.value(name) else {
            self.is_no("list of texts", name)
        };
        values
    }

    /// A list of files, seen from the folder of the spec.
    pub fn paths(&self, name: &str) -> Vec<PathBuf> {
        self.texts(name).iter().map(|text| self.base.join(text)).collect()
    }

    /// A file, seen from the folder of the spec.
    pub fn path(&self, name: &str) -> PathBuf {
        self.base.join(self.text(name))
    }
}

/// One node with nothing around it, to test it: write its inputs, update, read its outputs.
pub struct NodeFixture {
    node: Box<dyn Node>,
    kind: &'static Kind,
    slots: Slots,
    wiring: Wiring,
    values: Vec<f64>,
    /// The cycle that comes next.
    pub cycle: Cycle,
    lines: log::Reader,
}

impl NodeFixture {
    /// Makes and starts a node.
    ///
    /// # Errors
    /// `make` or `start` fails.
    pub fn new(entry: &NodeEntry, parameters: &Parameters<'_>) -> Result<NodeFixture, Fault> {
        let kind = entry.kind;
        let mut node = (entry.make)(parameters)?;
        node.start()?;
        let mut slots = Slots::default();
        let ports = kind.ports.iter().map(|port| slots.add(port.message.size)).collect();
        let wiring = Wiring::new(kind, ports, 0);
        let values = vec![0.0; wiring.signals_end()];
        let heard = Cycle::heard(0, parameters.period_ns);
        let (cycle, lines) =
            heard.map_err(|error| crate::fault!("no memory for lines: {error}"))?;
        Ok(NodeFixture { node, kind, slots, wiring, values, cycle, lines })
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
        let slot = self.wiring.ports[port];
        self.slots.bytes_mut(slot).copy_from_slice(message.as_bytes());
        self.slots.mark_new(slot, self.cycle.number);
        if safe {
            self.slots.mark_safe(slot);
        }
    }

    /// Runs one cycle.
    ///
    /// # Errors
    /// The node fails.
    pub fn update(&mut self) -> Result<(), Fault> {
        let mut io = Io {
            wiring: &self.wiring,
            slots: &mut self.slots,
            values: &mut self.values,
            cycle: self.cycle.number,
        };
        let result = self.node.update(&mut io, &self.cycle);
        self.cycle.number += 1;
        result
    }

    /// Hands the node new values of its parameters.
    ///
    /// # Errors
    /// The node fails.
    pub fn tune(&mut self, parameters: &Parameters<'_>) -> Result<(), Fault> {
        self.node.tune(parameters)
    }

    /// The message on output port `port`, if the last update wrote one.
    pub fn get<T: Message>(&self, port: usize) -> Option<T> {
        let slot = self.wiring.ports[port];
        let value = || *self.slots.value(slot).expect("the port has another message type");
        self.get_bytes(port).map(|_| value())
    }

    /// The same as bytes, of whatever message type.
    pub fn get_bytes(&self, port: usize) -> Option<&[u8]> {
        let slot = self.wiring.ports[port];
        // The last update was that of the cycle before the one to come.
        let written = self.cycle.number > 0 && self.slots.is_new(slot, self.cycle.number - 1);
        written.then(|| self.slots.bytes(slot))
    }

    /// The numbers of signal `signal`.
    pub fn signal(&self, signal: usize) -> &[f64] {
        &self.values[self.wiring.signals[signal]..self.wiring.signals[signal + 1]]
    }

    /// What the node has [logged](Cycle::log) since the last call, as text; if there are more than
    /// [`log::LINES_MAX`] lines, the newest.
    pub fn lines(&mut self) -> Vec<(Level, String)> {
        let mut lines = Vec::new();
        self.lines.read(&mut |line| lines.push((line.level(), line.to_string())));
        lines
    }

    /// Whether the node says that the machine behind it stands still.
    pub fn at_rest(&self) -> bool {
        self.node.at_rest()
    }
}
