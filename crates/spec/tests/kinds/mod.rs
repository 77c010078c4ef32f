//! A small catalogue: the four kinds of the arm, a filter, and the machine they run on.

use sinew_spec::catalogue::{
    ANY_MESSAGE,
    Direction::{self, In, Out},
    FLAG, Field, Form, Kind, MessageType, NAMED_MESSAGE, PACKET, Parameter, ParameterType, Port,
    REAL, RunsIn, SafeValue, Scalar, Unit, type_hash,
};
use sinew_spec::plan::{Plan, TargetMachine};
use sinew_spec::{Diagnostic, SpecSource, compile, render};

/// A message of `count` words.
pub(crate) const fn message(
    name: &'static str,
    count: u32,
    fields: &'static [Field],
) -> MessageType {
    let size = count * 8;
    MessageType { name, size, align: 8, fields, hash: type_hash(name, size, fields) }
}

const SIX: &[Field] =
    &[Field { name: "position_rad", scalar: Scalar::F64, count: 6, offset: 0, labels: &[] }];
const TEN: &[Field] =
    &[Field { name: "bytes", scalar: Scalar::U64, count: 10, offset: 0, labels: &[] }];

static POSE: MessageType = message("Pose", 6, SIX);
pub(crate) static JOINTS: MessageType = message("Joints", 6, SIX);
pub(crate) static WORD: MessageType = message("Word", 1, &[]);
pub(crate) static FRAME: MessageType = message("Frame", 10, TEN);

/// A port that must be linked.
const fn port(name: &'static str, direction: Direction, message: &'static MessageType) -> Port {
    Port { direction, ..Port::input(name, "A port.", message) }
}

/// A port that may stay unlinked.
pub(crate) const fn free(
    name: &'static str,
    direction: Direction,
    message: &'static MessageType,
) -> Port {
    port(name, direction, message).optional()
}

const fn packets(name: &'static str, direction: Direction) -> Port {
    Port { optional: matches!(direction, Out), ..port(name, direction, &PACKET) }
}

const fn parameter(
    name: &'static str,
    ty: ParameterType,
    default: Option<&'static str>,
) -> Parameter {
    Parameter { default, ..Parameter::new(name, ty).doc("A parameter.") }
}

const SPEED: ParameterType = ParameterType::Number { min: 0.001, max: 5.0 };
const ANGLES: ParameterType =
    ParameterType::Numbers { count_min: 3, count_max: 3, min: -4.0, max: 4.0 };
const PAUSE: ParameterType =
    ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600_000_000_000 };
const BODY: ParameterType = ParameterType::Size { min_bytes: 1 << 10, max_bytes: 1 << 30 };

static PLANNER: Kind = Kind {
    parameters: &[
        parameter("path", ParameterType::Path, None),
        parameter("laps", ParameterType::Integer { min: 0, max: 1000 }, Some("1")),
        Parameter { unit: "m/s", ..parameter("speed_max_m_per_s", SPEED, Some("0.5")) },
    ],
    ..Kind::new(
        "path_planner",
        RunsIn::Realtime,
        &[free("feedback", In, &JOINTS), port("out", Out, &POSE)],
    )
};

static IK: Kind = Kind {
    parameters: &[Parameter { unit: "rad", ..parameter("home_rad", ANGLES, Some("[0, 0, 0]")) }],
    ..Kind::new("ik", RunsIn::Realtime, &[port("in", In, &POSE), port("out", Out, &JOINTS)])
};

static MASTER: Kind = Kind {
    ports: &[
        port("in", In, &JOINTS),
        free("frame", In, &FRAME),
        port("out", Out, &FRAME),
        free("feedback", Out, &JOINTS),
    ],
    parameters: &[
        parameter("strict", ParameterType::Bool, Some("false")),
        parameter("mode", ParameterType::Choice(&["csp", "csv", "cst"]), Some("csp")),
        parameter("label", ParameterType::Text, Some("")),
    ],
    ..Kind::new("ethercat_master", RunsIn::Realtime, &[])
};

static DRIVES: Kind = Kind::new(
    "drives",
    RunsIn::Realtime,
    &[
        Port {
            safe: &[
                SafeValue { name: "quick_stop", doc: "Brakes along a ramp." },
                SafeValue { name: "disable", doc: "Lets go." },
            ],
            ..port("in", In, &FRAME)
        },
        free("out", Out, &FRAME),
    ],
);

static FILTER: Kind = Kind::new(
    "filter",
    RunsIn::Realtime,
    &[free("in", In, &JOINTS), free("extra", In, &JOINTS), free("out", Out, &JOINTS)],
);

static GAUGE: Kind = Kind::new(
    "gauge",
    RunsIn::Service,
    &[
        free("in", In, &JOINTS),
        free("extra", In, &JOINTS),
        free("out", Out, &JOINTS),
        free("frame", Out, &FRAME),
    ],
);

static BEGIN: Kind = Kind::new("begin", RunsIn::Flow, &[packets("out", Out)]);

static TRIAL: Kind = Kind::new("trial", RunsIn::Test, &[packets("out", Out)]);

static STEP: Kind = Kind {
    parameters: &[
        parameter("code", ParameterType::Text, Some("")),
        parameter("pause", PAUSE, Some("100ms")),
        parameter("body_max", BODY, Some("1MiB")),
        parameter("body", ParameterType::Yaml, Some("")),
    ],
    ..Kind::new(
        "step",
        RunsIn::Flow,
        &[packets("in", In), packets("out", Out), packets("error", Out)],
    )
};

static FAN: Kind = Kind::new("fan", RunsIn::Flow, &[packets("in", In), packets("out[]", Out)]);

static LOOK: Kind = Kind::new(
    "look",
    RunsIn::Flow,
    &[packets("in", In), port("message", In, &ANY_MESSAGE), free("wish", Out, &ANY_MESSAGE)],
);

const fn number(name: &'static str, direction: Direction, unit: Unit) -> Port {
    free(name, direction, &REAL).unit(unit)
}

static NUMBER: Kind = Kind {
    parameters: &[parameter("unit", ParameterType::Text, Some(""))],
    ..Kind::new(
        "number",
        RunsIn::Realtime,
        &[number("out", Out, Unit::Parameter("unit")), free("holds", Out, &FLAG)],
    )
};

static CONTROLLER: Kind = Kind::new(
    "controller",
    RunsIn::Realtime,
    &[
        number("wanted", In, Unit::As("measured")),
        number("measured", In, Unit::Any),
        free("enabled", In, &FLAG),
        number("out", Out, Unit::Any),
    ],
);

static MOTOR: Kind = Kind::new(
    "motor",
    RunsIn::Realtime,
    &[number("voltage", In, Unit::Of("V")), number("turn", Out, Unit::Of("rad"))],
);

static ADDER: Kind = Kind {
    parameters: &[parameter("inputs", ParameterType::Texts { max: 4 }, None)],
    ..Kind::new(
        "adder",
        RunsIn::Realtime,
        &[number("in", In, Unit::Any).form(Form::Each("inputs")), number("out", Out, Unit::Any)],
    )
};

static METER: Kind = Kind::new("meter", RunsIn::Service, &[number("in", In, Unit::Any)]);

static PACKER: Kind = Kind {
    parameters: &[parameter("message", ParameterType::Text, None)],
    ..Kind::new(
        "packer",
        RunsIn::Realtime,
        &[
            free("in", In, &NAMED_MESSAGE).form(Form::Fields("message")),
            free("out", Out, &NAMED_MESSAGE).form(Form::Message("message")),
        ],
    )
};

/// Stands for the other hosts of a graph.
static OTHERS: Kind = Kind::new("others", RunsIn::Hosts, &[]);

/// The catalogue.
pub(crate) const KINDS: &[&Kind] = &[
    &PLANNER,
    &IK,
    &MASTER,
    &DRIVES,
    &FILTER,
    &GAUGE,
    &BEGIN,
    &TRIAL,
    &STEP,
    &FAN,
    &LOOK,
    &NUMBER,
    &CONTROLLER,
    &MOTOR,
    &ADDER,
    &PACKER,
    &METER,
    &OTHERS,
];

/// Compiles for a machine with CPUs 0 to `cpus` - 1.
pub(crate) fn compile_on(cpus: u32, text: &str) -> Result<Plan, Vec<Diagnostic>> {
    compile_with(cpus, text, &[])
}

/// The same with overrides.
pub(crate) fn compile_with(
    cpus: u32,
    text: &str,
    overrides: &[(String, String)],
) -> Result<Plan, Vec<Diagnostic>> {
    let source = SpecSource { overrides, ..SpecSource::of("graph.yaml", text) };
    compile(&source, KINDS, &TargetMachine::of((0..cpus).collect()))
}

/// The part of a host of a good spec, for a machine with four CPUs.
pub(crate) fn part(text: &str, host: &str) -> Plan {
    let source = SpecSource { host: Some(host), ..SpecSource::of("graph.yaml", text) };
    let plan = compile(&source, KINDS, &TargetMachine::of((0..4).collect()));
    plan.unwrap_or_else(|errors| panic!("{}", render(&errors, text, false)))
}

/// Compiles a good spec for a machine with four CPUs.
pub(crate) fn plan(text: &str) -> Plan {
    compile_on(4, text).unwrap_or_else(|errors| panic!("{}", render(&errors, text, false)))
}

/// Compiles with one parameter changed on the command line.
pub(crate) fn set(text: &str, path: &str, value: &str) -> Result<Plan, Vec<Diagnostic>> {
    compile_with(4, text, &[(path.to_owned(), value.to_owned())])
}

/// The names of a plan's domains, in their order.
pub(crate) fn domains(plan: &Plan) -> Vec<&str> {
    plan.domains.iter().map(|domain| domain.name.as_str()).collect()
}

/// The arm.
pub(crate) const ARM: &str = include_str!("arm.yaml");
