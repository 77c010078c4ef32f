//! The layout of the records of the core's cycles, as plain data for programs that did not compile
//! the graph: the nodes of each thread, their signals, the messages at their ports, with units. It
//! follows from the plan and contains nothing from outside of the spec.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sinew_core::pace::Pace;
use sinew_core::trace::{Record, ThreadId, taps};
use sinew_plan::catalogue::{
    Direction, Field, ParameterValue, Port, Scalar, Signal, Unit, unit_of_name,
};
use sinew_plan::plan::{End, MessagePart, Plan, Release};

/// The layout of the records of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLayout {
    /// Name of the graph.
    pub graph: String,
    /// Whether the records hold messages besides the signals.
    pub observed: bool,
    /// For a run that goes as fast as it can: the number of its cycles.
    #[serde(default)]
    pub free_cycles: Option<u64>,
    /// The threads of the core, in the order of the plan.
    pub threads: Vec<ThreadLayout>,
    /// Names of the nodes without records: those of services.
    pub services: Vec<String>,
}

/// The layout of the records of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadLayout {
    /// The name of its domain.
    pub name: String,
    /// The place of its domain in the plan.
    pub domain: usize,
    /// Its place in the domain.
    pub thread: usize,
    /// Nominal spacing of its cycles. For a thread that an input releases: the period of the thread
    /// that it follows.
    pub period_ns: u64,
    /// Whether its cycles are started by a message instead of the clock.
    pub follows_input: bool,
    /// Ends of links in its records.
    pub links: usize,
    /// Bytes of the messages in its records, tap by tap.
    pub taps: Vec<u32>,
    /// Its nodes, in order.
    pub nodes: Vec<NodeLayout>,
}

/// The part of a node in the records of its thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeLayout {
    /// Name.
    pub name: String,
    /// Name of its kind.
    pub kind: String,
    /// Its signals.
    pub signals: Vec<SignalLayout>,
    /// Its ports.
    pub ports: Vec<PortLayout>,
}

/// A signal: numbers that a node publishes every cycle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SignalLayout {
    /// Name, unit last.
    pub name: String,
    /// One sentence.
    pub doc: String,
    /// Unit, or empty.
    pub unit: String,
    /// Its first number, among all signals of the thread.
    pub first: usize,
    /// How many numbers.
    pub count: usize,
    /// If not empty, the number is an index into these words.
    pub labels: Vec<String>,
}

/// A port, and the messages that cross it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PortLayout {
    /// Name.
    pub name: String,
    /// One sentence.
    pub doc: String,
    /// Whether the node reads here.
    pub reads: bool,
    /// Whether a link ends here.
    pub linked: bool,
    /// The place of its message in the record. `None`: the record has none. If a node reads from
    /// another node of its thread, this is the message that the other node wrote.
    pub tap: Option<usize>,
    /// The numbers in that message.
    pub fields: Vec<FieldLayout>,
}

/// Numbers in a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldLayout {
    /// Name; empty if the message is one number only.
    pub name: String,
    /// Unit, or empty.
    pub unit: String,
    /// Place of its scalar in [`Scalar::ALL`].
    pub scalar: usize,
    /// How many.
    pub count: u32,
    /// Bytes from the start of the message.
    pub offset: u32,
    /// Words for its values 0, 1, 2 and so on, if it is an enum. A word is empty if no value has
    /// that number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

impl RunLayout {
    /// The layout for a plan that runs at this pace.
    pub fn of(plan: &Plan, pace: Pace) -> RunLayout {
        let units = Units::of(plan);
        let services = (0..plan.nodes.len()).filter(|&node| plan.is_service(node));
        RunLayout {
            graph: plan.name.clone(),
            observed: plan.is_observed(),
            free_cycles: match pace {
                Pace::AsPlanned => None,
                Pace::Free { cycles } => Some(cycles),
            },
            threads: ThreadId::all(plan).map(|id| thread(plan, id, &units)).collect(),
            services: services.map(|node| plan.nodes[node].name.clone()).collect(),
        }
    }

    /// The pace of the run.
    pub fn pace(&self) -> Pace {
        self.free_cycles.map_or(Pace::AsPlanned, |cycles| Pace::Free { cycles })
    }
}

impl ThreadLayout {
    /// The id of the thread in the plan.
    pub fn id(&self) -> ThreadId {
        ThreadId { domain: self.domain, thread: self.thread }
    }

    /// An empty record of the thread.
    pub fn record(&self) -> Record {
        let signals = self.nodes.iter().flat_map(|node| &node.signals);
        let signals = signals.map(|signal| signal.count).sum();
        Record::new(self.nodes.len(), signals, self.links, &self.taps)
    }
}

impl FieldLayout {
    /// Number `at` of the field in a message, if the message is long enough.
    pub fn number(&self, at: u32, message: &[u8]) -> Option<f64> {
        let scalar = Scalar::ALL.get(self.scalar)?;
        let start = self.offset as usize + at as usize * scalar.bytes() as usize;
        scalar.number(message.get(start..)?)
    }
}

fn thread(plan: &Plan, id: ThreadId, units: &Units) -> ThreadLayout {
    let domain = &plan.domains[id.domain];
    let planned = &domain.threads()[id.thread];
    let taps = taps(plan, &planned.nodes);
    let mut first = 0;
    let mut nodes = Vec::new();
    for &at in &planned.nodes {
        let node = &plan.nodes[at];
        let of_port = |name| {
            let port = node.kind.ports.iter().position(|port| port.name == name)?;
            units.0.get(&End { node: at, port })
        };
        let signals = node.kind.signals.iter().map(|row| {
            let unit = row.unit_as.and_then(of_port).map_or(row.unit, String::as_str);
            signal(row, unit, &mut first)
        });
        let signals = signals.collect();
        let ports = (0..node.kind.ports.len()).map(|port| {
            let end = End { node: at, port };
            let (from, part) = seen_at(plan, end);
            let tap = taps.iter().position(|tap| tap.end == from);
            let linked = plan.links.iter().any(|link| link.from == end || link.to == end);
            let row = plan.port(end);
            let fields = fields(plan.port(from), part, units.0.get(&end));
            let reads = row.direction == Direction::In;
            let (name, doc) = (node.kind.port_name(port), row.doc.into());
            PortLayout { name, doc, reads, linked, tap, fields }
        });
        let (name, kind) = (node.name.clone(), node.kind.name.into());
        nodes.push(NodeLayout { name, kind, signals, ports: ports.collect() });
    }
    ThreadLayout {
        name: domain.name.clone(),
        domain: id.domain,
        thread: id.thread,
        period_ns: domain.realtime().map_or(0, |realtime| realtime.period_ns),
        follows_input: planned.release != Release::Timer,
        links: Record::of(plan, &planned.nodes).links().len(),
        taps: taps.iter().map(|tap| tap.size).collect(),
        nodes,
    }
}

/// The port whose message an end shows, and the part of the message. For a fused link it is the
/// writer's port.
fn seen_at(plan: &Plan, end: End) -> (End, Option<&MessagePart>) {
    let fused = plan.links.iter().find(|link| link.to == end && link.fused);
    fused.map_or((end, None), |link| (link.from, link.part.as_ref()))
}

fn signal(row: &Signal, unit: &str, first: &mut usize) -> SignalLayout {
    let start = *first;
    *first += row.count;
    SignalLayout {
        name: row.name.into(),
        doc: row.doc.into(),
        unit: unit.into(),
        first: start,
        count: row.count,
        labels: row.labels.iter().map(|&label| label.into()).collect(),
    }
}

fn fields(port: &Port, part: Option<&MessagePart>, unit: Option<&String>) -> Vec<FieldLayout> {
    let place = |scalar| Scalar::ALL.iter().position(|one| *one == scalar).unwrap_or(0);
    let unit = unit.cloned().unwrap_or_default();
    let words = |field: &Field| field.labels.iter().map(|&word| word.into()).collect();
    if let Some(part) = part {
        let of_array = part.field.split('[').next();
        let whole = port.message.fields.iter().find(|field| Some(field.name) == of_array);
        let labels = whole.map(words).unwrap_or_default();
        let named = unit_of_name(&part.field).map(str::to_owned);
        let (scalar, offset) = (place(part.scalar), part.offset);
        let unit = named.unwrap_or(unit);
        return vec![FieldLayout { name: String::new(), unit, scalar, count: 1, offset, labels }];
    }
    let layout = |field: &Field| FieldLayout {
        name: field.name.into(),
        unit: unit_of_name(field.name).unwrap_or_default().into(),
        scalar: place(field.scalar),
        count: field.count,
        offset: field.offset,
        labels: words(field),
    };
    match port.message.fields {
        [only] if only.count == 1 => {
            let named = layout(only);
            let unit = if unit.is_empty() { named.unit.clone() } else { unit };
            vec![FieldLayout { name: String::new(), unit, ..named }]
        }
        all => all.iter().map(layout).collect(),
    }
}

/// The units of ports, as far as they follow from kinds, from the texts of nodes and from links.
struct Units(BTreeMap<End, String>);

impl Units {
    fn of(plan: &Plan) -> Units {
        let mut units = Units(BTreeMap::new());
        for (at, node) in plan.nodes.iter().enumerate() {
            for (port, row) in node.kind.ports.iter().enumerate() {
                let unit = match row.unit {
                    Unit::Of(unit) => Some(unit.to_owned()),
                    Unit::Parameter(name) => text(plan, at, name),
                    Unit::Any | Unit::As(_) => None,
                };
                units.learn(End { node: at, port }, unit);
            }
        }
        // An end takes over the unit of the end that it is linked to, until nothing changes.
        while units.spread(plan) {}
        units
    }

    fn learn(&mut self, end: End, unit: Option<String>) -> bool {
        let unit = unit.filter(|unit| !unit.is_empty() && !self.0.contains_key(&end));
        unit.is_some_and(|unit| self.0.insert(end, unit).is_none())
    }

    fn spread(&mut self, plan: &Plan) -> bool {
        let mut learned = false;
        for (node, row) in plan.nodes.iter().enumerate() {
            for (port, row) in row.kind.ports.iter().enumerate() {
                let Unit::As(other) = row.unit else { continue };
                let other = plan.nodes[node].kind.ports.iter().position(|it| it.name == other);
                let Some(other) = other else { continue };
                learned |= self.both(End { node, port }, End { node, port: other });
            }
        }
        for link in plan.links.iter().filter(|link| link.part.is_none()) {
            learned |= self.both(link.from, link.to);
        }
        learned
    }

    fn both(&mut self, one: End, other: End) -> bool {
        let (here, there) = (self.0.get(&one).cloned(), self.0.get(&other).cloned());
        self.learn(one, there) | self.learn(other, here)
    }
}

fn text(plan: &Plan, node: usize, parameter: &str) -> Option<String> {
    let node = &plan.nodes[node];
    let at = node.kind.parameters.iter().position(|row| row.name == parameter)?;
    match &node.values[at] {
        // A value from outside of the spec is a secret.
        ParameterValue::Text(text) if node.written[at].is_none() => Some(text.clone()),
        _ => None,
    }
}
