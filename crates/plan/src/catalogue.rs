//! What the compiler knows of node kinds: plain data, handed in by whoever owns the nodes.
//!
//! A kind declares its ports, parameters and signals once, in one static [`Kind`]. The spec is
//! checked against it; help, the JSON schema and the pictures are made from it.

pub use sinew_link::MESSAGE_SIZE_MAX;
pub use sinew_link::message::{Bool, Field, MessageType, Scalar, type_hash};

use crate::Item;
pub use crate::units::unit_of_name;

/// A type of no bytes that stands for something else.
const fn sign(name: &'static str) -> MessageType {
    MessageType { name, size: 0, align: 1, fields: &[], hash: type_hash(name, 0, &[]) }
}

/// Stands where a port takes part in flows: packets cross it, and replies come back.
pub static PACKET: MessageType = sign("packet");

/// Stands where a port of a flow node or of a service takes the messages of whatever node is at the
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

/// Stands where the graph says by a parameter which message crosses a port; see [`Form::Message`].
pub static NAMED_MESSAGE: MessageType = sign("named message");

/// Name of the port where a node is tuned while it runs.
pub const TUNING_PORT: &str = "tuning";

/// Most ports that one name with `[]` stands for.
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
    /// What the actuator then does.
    pub doc: &'static str,
}

/// How many ports of a node a row of its kind's table stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One, of this name.
    One,
    /// One for each text of the list that this parameter is, named by it.
    Each(&'static str),
    /// One, for the message that this parameter names.
    Message(&'static str),
    /// One for each number and flag in the message that this parameter names, named as a link
    /// names it: `position_rad`, or `force_n[2]` of an array.
    Fields(&'static str),
}

/// What the number on a port is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The table does not know. A port that the graph names, and a field of a message, has the unit
    /// that stands last in its name, as in `turn_rad`.
    Any,
    /// This, as in `rad/s`; the empty text is a number without a unit.
    Of(&'static str),
    /// The same as on the port of this name.
    As(&'static str),
    /// What this parameter says, a text; the empty one says nothing.
    Parameter(&'static str),
}

/// A typed end of a link.
#[derive(Debug, PartialEq, Eq)]
pub struct Port {
    /// Name, unique among the node's ports. `out[]` stands for `out[0]`, `out[1]` and so on; such a
    /// port is the last in its table, and the index of `out[i]` is that of `out[]` plus `i`.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// In or out.
    pub direction: Direction,
    /// What crosses it.
    pub message: &'static MessageType,
    /// Whether the port may stay unlinked.
    pub optional: bool,
    /// Not empty: an actuator port, and the safe values that it offers.
    pub safe: &'static [SafeValue],
    /// How many ports of a node this row stands for; of the kind of a node that was compiled, one.
    pub form: Form,
    /// What the number that crosses is measured in.
    pub unit: Unit,
}

impl Port {
    /// One that reads, must be linked and moves nothing.
    pub const fn input(
        name: &'static str,
        doc: &'static str,
        message: &'static MessageType,
    ) -> Port {
        let (optional, safe, form, unit) = (false, &[], Form::One, Unit::Any);
        Port { name, doc, direction: Direction::In, message, optional, safe, form, unit }
    }

    /// The same, but it writes.
    pub const fn output(
        name: &'static str,
        doc: &'static str,
        message: &'static MessageType,
    ) -> Port {
        Port { direction: Direction::Out, ..Port::input(name, doc, message) }
    }

    /// The same, but it may stay unlinked.
    pub const fn optional(self) -> Port {
        Port { optional: true, ..self }
    }

    /// The same, of another form.
    pub const fn form(self, form: Form) -> Port {
        Port { form, ..self }
    }

    /// The same, with what its number is measured in.
    pub const fn unit(self, unit: Unit) -> Port {
        Port { unit, ..self }
    }

    /// The same, which moves an actuator and offers these safe values.
    pub const fn safe(self, safe: &'static [SafeValue]) -> Port {
        Port { safe, ..self }
    }
}

/// The type, and with it the limits, of a parameter.
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
    /// What carries a value of it to a node that runs; `None` if it cannot be tunable.
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
    /// Of one that the spec must give: a value for the example of its kind, written as in the spec;
    /// empty if none is shown.
    pub example: &'static str,
}

impl Parameter {
    /// One that the spec must give, without a unit; its sentence is still to come.
    pub const fn new(name: &'static str, ty: ParameterType) -> Parameter {
        Parameter { name, doc: "", unit: "", ty, default: None, tunable: false, example: "" }
    }

    /// The same with a default, written as in the spec.
    pub const fn or(self, default: &'static str) -> Parameter {
        Parameter { default: Some(default), ..self }
    }

    /// The same with a value for the example of its kind, written as in the spec.
    pub const fn such_as(self, example: &'static str) -> Parameter {
        Parameter { example, ..self }
    }

    /// The same with a unit.
    pub const fn unit(self, unit: &'static str) -> Parameter {
        Parameter { unit, ..self }
    }

    /// The same with its sentence.
    pub const fn doc(self, doc: &'static str) -> Parameter {
        Parameter { doc, ..self }
    }

    /// The same, which may change between two cycles of a run: a number, a whole number or a flag
    /// of a kind in realtime domains.
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

/// Figures that a node shows of itself every cycle: `count` numbers, for view, report and CSV.
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
    /// Not empty: the number is an index into these words (a state).
    pub labels: &'static [&'static str],
    /// The port whose unit it has, where that depends on the graph.
    pub unit_as: Option<&'static str>,
}

impl Signal {
    /// One that is no state.
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        unit: &'static str,
        count: usize,
    ) -> Signal {
        Signal { name, doc, unit, count, labels: &[], unit_as: None }
    }

    /// The same, in the unit of the number at this port.
    pub const fn unit_as(self, port: &'static str) -> Signal {
        Signal { unit_as: Some(port), ..self }
    }

    /// The same, whose number is an index into these words.
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
    /// In `sinew test` only, where it begins a flow; in a run it does nothing.
    Test,
    /// As a service; and it is shown the whole run: every cycle of the core with all messages, the
    /// status, the events. It may ask the supervisor to stop the core or to restart a service.
    Observer,
    /// Under the operating system of a guest, whose image brings the kind.
    Guest,
    /// As a service that stands for the other hosts of the graph: put into the part of each host,
    /// with a port for each end that lies elsewhere. No spec names it.
    Hosts,
}

impl RunsIn {
    /// Whether it has its place in a service domain.
    pub fn is_service(self) -> bool {
        self != RunsIn::Realtime
    }

    /// Whether it takes part in flows.
    pub fn is_flow(self) -> bool {
        matches!(self, RunsIn::Flow | RunsIn::Test)
    }
}

/// A kind of node.
#[derive(Debug, PartialEq)]
pub struct Kind {
    /// Name as it stands in the spec after `kind:`.
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
    /// One without parameters and signals; its sentence is still to come.
    pub const fn new(name: &'static str, runs_in: RunsIn, ports: &'static [Port]) -> Kind {
        Kind { name, runs_in, doc: "", ports, parameters: &[], signals: &[] }
    }

    /// One of realtime domains, without ports, parameters and signals. A table that names only what
    /// it has still compiles when a kind gets another field:
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

    /// One of service domains, without ports and parameters.
    pub const fn service(name: &'static str, doc: &'static str) -> Kind {
        Kind { runs_in: RunsIn::Service, ..Kind::realtime(name, doc) }
    }

    /// The same, which is shown the whole run.
    pub const fn observer(name: &'static str, doc: &'static str) -> Kind {
        Kind { runs_in: RunsIn::Observer, ..Kind::realtime(name, doc) }
    }

    /// One of flows, without ports and parameters.
    pub const fn flow(name: &'static str, doc: &'static str) -> Kind {
        Kind { runs_in: RunsIn::Flow, ..Kind::realtime(name, doc) }
    }

    /// The port with this index; one past the end is an element of the last, `name[]`.
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
