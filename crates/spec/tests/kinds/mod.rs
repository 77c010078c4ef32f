//! A small catalogue: the four kinds of the arm, a filter, and the machine they run on.

use sinew_spec::catalogue::{
    ANY_MESSAGE, Direction, Field, Kind, MessageType, PACKET, Parameter, ParameterType, Port,
    RunsIn, SafeValue, Scalar, type_hash,
};
use sinew_spec::plan::{Machine, Plan};
use sinew_spec::{Diagnostic, Source, compile};

const fn message(name: &'static str, count: u32, fields: &'static [Field]) -> MessageType {
    let size = count * 8;
    MessageType { name, size, align: 8, fields, hash: type_hash(name, size, fields) }
}

const SIX: &[Field] = &[Field { name: "position_rad", scalar: Scalar::F64, count: 6, offset: 0 }];
const TEN: &[Field] = &[Field { name: "bytes", scalar: Scalar::U64, count: 10, offset: 0 }];

static POSE: MessageType = message("Pose", 6, SIX);
static JOINTS: MessageType = message("Joints", 6, SIX);
static FRAME: MessageType = message("Frame", 10, TEN);

const fn port(name: &'static str, direction: Direction, message: &'static MessageType) -> Port {
    Port { name, doc: "A port.", direction, message, optional: false, safe: &[] }
}

const fn parameter(
    name: &'static str,
    unit: &'static str,
    ty: ParameterType,
    default: Option<&'static str>,
) -> Parameter {
    Parameter { name, doc: "A parameter.", unit, ty, default }
}

static PLANNER: Kind = Kind {
    name: "path_planner",
    runs_in: RunsIn::Realtime,
    doc: "Follows a path.",
    ports: &[
        Port { optional: true, ..port("feedback", Direction::In, &JOINTS) },
        port("out", Direction::Out, &POSE),
    ],
    parameters: &[
        parameter("path", "", ParameterType::Path, None),
        parameter("laps", "", ParameterType::Integer { min: 0, max: 1000 }, Some("1")),
        parameter(
            "speed_max_m_per_s",
            "m/s",
            ParameterType::Number { min: 0.001, max: 5.0 },
            Some("0.5"),
        ),
    ],
    signals: &[],
};

static IK: Kind = Kind {
    name: "ik",
    runs_in: RunsIn::Realtime,
    doc: "Pose to joints.",
    ports: &[port("in", Direction::In, &POSE), port("out", Direction::Out, &JOINTS)],
    parameters: &[parameter(
        "home_rad",
        "rad",
        ParameterType::Numbers { count: 3, min: -4.0, max: 4.0 },
        Some("[0, 0, 0]"),
    )],
    signals: &[],
};

static MASTER: Kind = Kind {
    name: "ethercat_master",
    runs_in: RunsIn::Realtime,
    doc: "Joints to frame bytes.",
    ports: &[
        port("in", Direction::In, &JOINTS),
        Port { optional: true, ..port("frame", Direction::In, &FRAME) },
        port("out", Direction::Out, &FRAME),
        Port { optional: true, ..port("feedback", Direction::Out, &JOINTS) },
    ],
    parameters: &[
        parameter("strict", "", ParameterType::Bool, Some("false")),
        parameter("mode", "", ParameterType::Choice(&["csp", "csv", "cst"]), Some("csp")),
        parameter("label", "", ParameterType::Text, Some("")),
    ],
    signals: &[],
};

static DRIVES: Kind = Kind {
    name: "drives",
    runs_in: RunsIn::Realtime,
    doc: "The machine.",
    ports: &[
        Port {
            safe: &[
                SafeValue { name: "quick_stop", doc: "Brakes along a ramp." },
                SafeValue { name: "disable", doc: "Lets go." },
            ],
            ..port("in", Direction::In, &FRAME)
        },
        Port { optional: true, ..port("out", Direction::Out, &FRAME) },
    ],
    parameters: &[],
    signals: &[],
};

static FILTER: Kind = Kind {
    name: "filter",
    runs_in: RunsIn::Realtime,
    doc: "Joints to joints; its ports may stay unlinked.",
    ports: &[
        Port { optional: true, ..port("in", Direction::In, &JOINTS) },
        Port { optional: true, ..port("extra", Direction::In, &JOINTS) },
        Port { optional: true, ..port("out", Direction::Out, &JOINTS) },
    ],
    parameters: &[],
    signals: &[],
};

static GAUGE: Kind = Kind {
    name: "gauge",
    runs_in: RunsIn::Service,
    doc: "Shows joints, and passes on what somebody wishes; its ports may stay unlinked.",
    ports: &[
        Port { optional: true, ..port("in", Direction::In, &JOINTS) },
        Port { optional: true, ..port("extra", Direction::In, &JOINTS) },
        Port { optional: true, ..port("out", Direction::Out, &JOINTS) },
        Port { optional: true, ..port("frame", Direction::Out, &FRAME) },
    ],
    parameters: &[],
    signals: &[],
};

const fn packets(name: &'static str, direction: Direction) -> Port {
    let optional = matches!(direction, Direction::Out);
    Port { optional, ..port(name, direction, &PACKET) }
}

static BEGIN: Kind = Kind {
    name: "begin",
    runs_in: RunsIn::Flow,
    doc: "Begins flows.",
    ports: &[packets("out", Direction::Out)],
    parameters: &[],
    signals: &[],
};

static TRIAL: Kind =
    Kind { name: "trial", runs_in: RunsIn::Test, doc: "Begins flows in tests.", ..BEGIN };

static STEP: Kind = Kind {
    name: "step",
    runs_in: RunsIn::Flow,
    doc: "Passes packets on.",
    ports: &[
        packets("in", Direction::In),
        packets("out", Direction::Out),
        packets("error", Direction::Out),
    ],
    parameters: &[
        parameter("code", "", ParameterType::Text, Some("")),
        parameter(
            "pause",
            "",
            ParameterType::Duration { min_ns: 1_000_000, max_ns: 3_600_000_000_000 },
            Some("100ms"),
        ),
        parameter(
            "body_max",
            "",
            ParameterType::Size { min_bytes: 1 << 10, max_bytes: 1 << 30 },
            Some("1MiB"),
        ),
        parameter("body", "", ParameterType::Yaml, Some("")),
    ],
    signals: &[],
};

static FAN: Kind = Kind {
    name: "fan",
    runs_in: RunsIn::Flow,
    doc: "Passes packets on to one of many.",
    ports: &[packets("in", Direction::In), packets("out[]", Direction::Out)],
    parameters: &[],
    signals: &[],
};

static LOOK: Kind = Kind {
    name: "look",
    runs_in: RunsIn::Flow,
    doc: "Answers with the newest message, and sends another one.",
    ports: &[
        packets("in", Direction::In),
        port("message", Direction::In, &ANY_MESSAGE),
        Port { optional: true, ..port("wish", Direction::Out, &ANY_MESSAGE) },
    ],
    parameters: &[],
    signals: &[],
};

/// The catalogue.
pub(crate) const KINDS: &[&Kind] =
    &[&PLANNER, &IK, &MASTER, &DRIVES, &FILTER, &GAUGE, &BEGIN, &TRIAL, &STEP, &FAN, &LOOK];

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
    let source = Source { file: "graph.yaml", text, overrides };
    compile(&source, KINDS, &Machine { cpus: (0..cpus).collect() })
}

/// The arm.
pub(crate) const ARM: &str = include_str!("arm.yaml");
