//! What the compiler knows of node kinds: plain data, handed in by whoever owns the nodes.
//!
//! A kind declares its ports, parameters and signals once, in one static [`Kind`]. The spec is
//! checked against it; help, the JSON schema and the pictures are made from it.

pub use sinew_link::MESSAGE_SIZE_MAX;
pub use sinew_link::message::{Bool, Field, MessageType, Scalar, type_hash};

use crate::Item;
pub use crate::units::unit_of_name;

/// A message type without bytes, which only marks a sort of port.
const fn sign(name: &'static str) -> MessageType {
    MessageType { name, size: 0, align: 1, fields: &[], hash: type_hash(name, 0, &[]) }
}

/// Marks a port that takes part in flows: packets cross it, and replies come back.
pub static PACKET: MessageType = sign("packet");

/// Marks a port of a flow node or a service that takes the messages of whatever node is at the
/// other end of its link.
pub static ANY_MESSAGE: MessageType = sign("any message");

const VALUE: Field = Field { name: "value", scalar: Scalar::F64, count: 1, offset: 0, labels: &[] };
const TRUTH: Field = Field { scalar: Scalar::Bool, ..VALUE };

/// The message that is one number.
pub static REAL: MessageType = MessageType {
    name: "Real",
    size: 8,
    align: 8,
    fields: &[VALUE],
    hash: type_hash("Real", 8, &[VALUE]),
};

/// The message that is true or false.
pub static FLAG: MessageType = MessageType {
    name: "Flag",
    size: 1,
    align: 1,
    fields: &[TRUTH],
    hash: type_hash("Flag", 1, &[TRUTH]),
};

/// Marks a port whose message the graph names by a parameter; see [`Form::Message`].
pub static NAMED_MESSAGE: MessageType = sign("named message");

/// Name of the port where a node is tuned while it runs.
pub const TUNING_PORT: &str = "tuning";

/// Most ports that one name with `[]` can stand for.
pub const ELEMENTS_MAX: usize = 1024;

/// Whether messages come in or go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The node reads.
    In,
    /// The node writes.
    Out,
}

/// A safe value that an actuator port offers; the spec names one.
#[derive(Debug, PartialEq, Eq)]
pub struct SafeValue {
    /// What the spec writes: `safe: quick_stop`.
    pub name: &'static str,
    /// What the actuator does then.
    pub doc: &'static str,
}

/// How many ports of a node one row of its kind's table stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One, of this name.
    One,
    /// One for each text in the list parameter of this name; the text is the port's name.
    Each(&'static str),
    /// One, for the message that this parameter names.
    Message(&'static str),
    /// One for each number and flag in the message that this parameter names. A port has the name
    /// that a link gives the field: `position_rad`, or `force_n[2]` of an array.
    Fields(&'static str),
}

/// What the number on a port is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The table does not say. A port that the graph names, and a field of a message, has the unit
    /// at the end of its name, as in `turn_rad`.
    Any,
    /// This unit, such as `rad/s`; the empty text means a number without a unit.
    Of(&'static str),
    /// The unit of the port of this name.
    As(&'static str),
    /// The unit in this text parameter; an empty text says nothing.
    Parameter(&'static str),
}

/// A typed end of a link.
#[derive(Debug, PartialEq, Eq)]
pub struct Port {
    /// Name, unique among the node's ports. `out[]` stands for `out[0]`, `out[1]` and so on. Such a
    /// port is the last in its table, and the index of `out[i]` is the index of `out[]` plus `i`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// In or out.
    pub direction: Direction,
    /// What crosses it.
    pub message: &'static MessageType,
    /// Whether the port may stay unlinked.
    pub optional: bool,
    /// The safe values that an actuator port offers; empty for any other port.
    pub safe: &'static [SafeValue],
    /// How many ports of a node this row stands for; in the kind of a compiled node always one.
    pub form: Form,
    /// What the number that crosses is measured in.
    pub unit: Unit,
}

impl Port {
    /// An input that must be linked and moves no actuator.
    pub const fn input(
        name: &'static str,
        doc: &'static str,
        message: &'static MessageType,
    ) -> Port {
        let (optional, safe, form, unit) = (false, &[], Form::One, Unit::Any);
        Port { name, doc, direction: Direction::In, message, optional, safe, form, unit }
    }

    /// The same for an output.
    pub const fn output(
        name: &'static str,
        doc: &'static str,
        message: &'static MessageType,
    ) -> Port {
        Port { direction: Direction::Out, ..Port::input(name, doc, message) }
    }

    /// The same port, but it may stay unlinked.
    pub const fn optional(self) -> Port {
        Port { optional: true, ..self }
    }

    /// The same port, with another form.
    pub const fn form(self, form: Form) -> Port {
        Port { form, ..self }
    }

    /// The same port, with the unit of its number.
    pub const fn unit(self, unit: Unit) -> Port {
        Port { unit, ..self }
    }

    /// The same port, which moves an actuator and offers these safe values.
    pub const fn safe(self, safe: &'static [SafeValue]) -> Port {
        Port { safe, ..self }
    }
}

/// The type of a parameter, with its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterType {
    /// `true` or `false`.
    Bool,
    /// A whole number in a range (both ends included).
    Integer {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// A finite number in a range (both ends included).
    Number {
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// A list of finite numbers, each in a range (both ends included).
    Numbers {
        /// Fewest.
        count_min: usize,
        /// Most.
        count_max: usize,
        /// Least.
        min: f64,
        /// Greatest.
        max: f64,
    },
    /// Text.
    Text,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// A file, relative to the folder of the spec.
    Path,
    /// A list of texts, at most so many.
    Texts {
        /// Most.
        max: usize,
    },
    /// A list of files, relative to the folder of the spec, at most so many.
    Paths {
        /// Most.
        max: usize,
    },
    /// A time with its unit, in a range (both ends included), such as `100ms`.
    Duration {
        /// Least.
        min_ns: u64,
        /// Greatest.
        max_ns: u64,
    },
    /// A size with its unit, in a range (both ends included), such as `1MiB`.
    Size {
        /// Least.
        min_bytes: u64,
        /// Greatest.
        max_bytes: u64,
    },
    /// Whatever YAML can say; the kind itself checks it.
    Yaml,
}

impl ParameterType {
    /// The scalar that carries a value of this type to a running node; `None` if such a parameter
    /// cannot be tunable.
    pub const fn scalar(&self) -> Option<Scalar> {
        match self {
            ParameterType::Bool => Some(Scalar::Bool),
            ParameterType::Integer { .. } => Some(Scalar::I64),
            ParameterType::Number { .. } => Some(Scalar::F64),
            _ => None,
        }
    }
}

/// The value of a parameter, checked against its [`ParameterType`].
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// For [`ParameterType::Bool`].
    Bool(bool),
    /// For [`ParameterType::Integer`].
    Integer(i64),
    /// For [`ParameterType::Number`].
    Number(f64),
    /// For [`ParameterType::Numbers`].
    Numbers(Vec<f64>),
    /// For [`ParameterType::Text`], [`ParameterType::Choice`] and [`ParameterType::Path`].
    Text(String),
    /// For [`ParameterType::Texts`] and [`ParameterType::Paths`].
    Texts(Vec<String>),
    /// For [`ParameterType::Duration`], ns.
    Duration(u64),
    /// For [`ParameterType::Size`], bytes.
    Size(u64),
    /// For [`ParameterType::Yaml`].
    Yaml(Item),
}

/// A parameter of a kind.
#[derive(Debug, PartialEq)]
pub struct Parameter {
    /// Key in the spec, unit last.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Unit, or empty.
    pub unit: &'static str,
    /// Type and limits.
    pub ty: ParameterType,
    /// Default, written as in the spec; `None` means that the spec must give it.
    pub default: Option<&'static str>,
    /// Whether it may change between two cycles of a run; see `Node::tune` of the core.
    pub tunable: bool,
    /// A value for the example of its kind, written as in the spec, if the spec must give the
    /// parameter; empty if no example is shown.
    pub example: &'static str,
}

impl Parameter {
    /// A parameter that the spec must give, without a unit; its doc sentence is added later.
    pub const fn new(name: &'static str, ty: ParameterType) -> Parameter {
        Parameter { name, doc: "", unit: "", ty, default: None, tunable: false, example: "" }
    }

    /// The same parameter with a default, written as in the spec.
    pub const fn or(self, default: &'static str) -> Parameter {
        Parameter { default: Some(default), ..self }
    }

    /// The same parameter with a value for the example of its kind, written as in the spec.
    pub const fn such_as(self, example: &'static str) -> Parameter {
        Parameter { example, ..self }
    }

    /// The same parameter with a unit.
    pub const fn unit(self, unit: &'static str) -> Parameter {
        Parameter { unit, ..self }
    }

    /// The same parameter with its doc sentence.
    pub const fn doc(self, doc: &'static str) -> Parameter {
        Parameter { doc, ..self }
    }

    /// The same parameter, but it may change between two cycles of a run. It must be a number, a
    /// whole number or a flag of a kind in realtime domains.
    pub const fn tunable(self) -> Parameter {
        Parameter { tunable: true, ..self }
    }
}

/// A parameter that is a number in limits, both included.
pub const fn number(
    name: &'static str,
    doc: &'static str,
    unit: &'static str,
    (min, max): (f64, f64),
    default: &'static str,
) -> Parameter {
    Parameter::new(name, ParameterType::Number { min, max }).or(default).unit(unit).doc(doc)
}

/// Figures that a node publishes every cycle: `count` numbers, for view, report and CSV.
#[derive(Debug, PartialEq, Eq)]
pub struct Signal {
    /// Name, unit last.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Unit, or empty.
    pub unit: &'static str,
    /// How many numbers.
    pub count: usize,
    /// If not empty, the number is an index into these words (a state).
    pub labels: &'static [&'static str],
    /// The port whose unit the signal has, if the unit depends on the graph.
    pub unit_as: Option<&'static str>,
}

impl Signal {
    /// A signal that is not a state.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        unit: &'static str,
        count: usize,
    ) -> Signal {
        Signal { name, doc, unit, count, labels: &[], unit_as: None }
    }

    /// The same signal, in the unit of the number at this port.
    pub const fn unit_as(self, port: &'static str) -> Signal {
        Signal { unit_as: Some(port), ..self }
    }

    /// The same signal, whose number is an index into these words.
    pub const fn labels(self, labels: &'static [&'static str]) -> Signal {
        Signal { labels, ..self }
    }
}

/// Where nodes of a kind run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsIn {
    /// In the cycles of a realtime domain.
    Realtime,
    /// On a thread of its own in a service domain, where it may block.
    Service,
    /// In the flows of a service domain: on the threads that all its flow nodes share.
    Flow,
    /// In `sinew test` only, where the node begins a flow; in a run it does nothing.
    Test,
    /// As a service that is also shown the whole run: every cycle of the core with all messages,
    /// the status, the events. It may ask the supervisor to stop the core or to restart a service.
    Observer,
    /// Under the operating system of a guest, whose image brings the kind.
    Guest,
    /// As a service that stands for the other hosts of the graph. The compiler adds it to the part
    /// of each host, with a port for each remote end of a link. No spec names it.
    Hosts,
}

impl RunsIn {
    /// Whether nodes of the kind run in a service domain.
    pub fn is_service(self) -> bool {
        self != RunsIn::Realtime
    }

    /// Whether nodes of the kind take part in flows.
    pub fn is_flow(self) -> bool {
        matches!(self, RunsIn::Flow | RunsIn::Test)
    }
}

/// A kind of node.
#[derive(Debug, PartialEq)]
pub struct Kind {
    /// Name, as the spec writes it after `kind:`.
    pub name: &'static str,
    /// Where it runs.
    pub runs_in: RunsIn,
    /// What it does: first a sentence, then whatever a user must know.
    pub doc: &'static str,
    /// Ports, by the index that the node's code uses.
    pub ports: &'static [Port],
    /// Parameters, by name.
    pub parameters: &'static [Parameter],
    /// Signals, by the index that the node's code uses.
    pub signals: &'static [Signal],
}

impl Kind {
    /// A kind without parameters and signals; its doc sentence is added later.
    pub const fn new(name: &'static str, runs_in: RunsIn, ports: &'static [Port]) -> Kind {
        Kind { name, runs_in, doc: "", ports, parameters: &[], signals: &[] }
    }

    /// A kind of realtime domains, without ports, parameters and signals. A table that names only
    /// the fields it needs still compiles when `Kind` gets another field:
    ///
    /// ```
    /// use sinew_plan::catalogue::{Kind, Port, REAL};
    ///
    /// static VALVE: Kind = Kind {
    ///     ports: &[Port::input("in", "How far.", &REAL)],
    ///     ..Kind::realtime("valve", "Opens and closes.")
    /// };
    /// ```
    pub const fn realtime(name: &'static str, doc: &'static str) -> Kind {
        Kind { doc, ..Kind::new(name, RunsIn::Realtime, &[]) }
    }

    /// A kind of service domains, without ports and parameters.
    pub const fn service(name: &'static str, doc: &'static str) -> Kind {
        Kind { runs_in: RunsIn::Service, ..Kind::realtime(name, doc) }
    }

    /// The same, but shown the whole run ([`RunsIn::Observer`]).
    pub const fn observer(name: &'static str, doc: &'static str) -> Kind {
        Kind { runs_in: RunsIn::Observer, ..Kind::realtime(name, doc) }
    }

    /// A kind of flows, without ports and parameters.
    pub const fn flow(name: &'static str, doc: &'static str) -> Kind {
        Kind { runs_in: RunsIn::Flow, ..Kind::realtime(name, doc) }
    }

    /// The port with this index; an index past the end is an element of the last port, `name[]`.
    ///
    /// # Panics
    /// If the kind has no port at all.
    pub fn port(&self, index: usize) -> &'static Port {
        &self.ports[index.min(self.ports.len() - 1)]
    }

    /// The index of the port that the spec calls `text`: a name of the table, or `name[i]`.
    pub fn port_index(&self, text: &str) -> Option<usize> {
        if let Some(found) = self.ports.iter().position(|port| port.name == text) {
            return (!text.ends_with("[]")).then_some(found);
        }
        let (name, element) = text.strip_suffix(']')?.split_once('[')?;
        let last = self.ports.last()?.name.strip_suffix("[]")?;
        let canonical = element == "0" || !element.starts_with(['0', '+']);
        let element: usize = element.parse().ok().filter(|&at| canonical && at < ELEMENTS_MAX)?;
        (name == last).then_some(self.ports.len() - 1 + element)
    }

    /// What the spec calls the port with this index.
    pub fn port_name(&self, index: usize) -> String {
        let name = self.port(index).name;
        match name.strip_suffix("[]") {
            Some(name) => format!("{name}[{}]", index + 1 - self.ports.len()),
            None => name.to_owned(),
        }
    }
}

impl Port {
    /// Whether it takes part in flows.
    pub fn is_flow(&self) -> bool {
        self.message.hash == PACKET.hash
    }
}
