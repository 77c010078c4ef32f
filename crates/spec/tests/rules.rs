//! For each rule a kind that breaks it, and the error for that.

use sinew_spec::catalogue::{
    ANY_MESSAGE, Direction, Field, Kind, MessageType, PACKET, Parameter, ParameterType, Port,
    RunsIn, SafeValue, Scalar, Signal,
};
use sinew_spec::catalogue_errors;

use crate::kinds::{free, message};

const FIELDS: &[Field] =
    &[Field { name: "value", scalar: Scalar::F64, count: 1, offset: 0, labels: &[] }];
const ODD: &[Field] = &[
    Field { name: "a", scalar: Scalar::U32, count: 1, offset: 0, labels: &[] },
    Field { name: "b", scalar: Scalar::F64, count: 2, offset: 4, labels: &[] },
];
static NUMBER: MessageType = message("Number", 1, FIELDS);
static OTHER: MessageType = message("Number", 2, FIELDS);
static TWIN: MessageType = message("Number", 1, FIELDS);
static EMPTY: MessageType = message("Empty", 0, &[]);
static LIES: MessageType = MessageType { hash: 1, ..message("Lies", 1, FIELDS) };
static CROOKED: MessageType = message("Crooked", 2, ODD);

const STOP: SafeValue = SafeValue { name: "stop", doc: "" };
const IN: Port = free("in", Direction::In, &NUMBER);
const GAIN: Parameter = Parameter::new("gain", ParameterType::Bool).or("true");
const SPEED: Signal = Signal::new("speed", "", "", 1);
const GOOD: Kind = Kind {
    parameters: &[GAIN],
    signals: &[SPEED],
    ..Kind::new("good", RunsIn::Realtime, &[IN, Port { name: "drive", safe: &[STOP], ..IN }])
};

/// The errors of a catalogue with this kind only.
fn said(kind: Kind) -> Vec<String> {
    catalogue_errors(&[leak(kind)])
}

#[track_caller]
fn says(kind: Kind, words: &str) {
    let errors = said(kind);
    assert!(errors.iter().any(|error| error.contains(words)), "'{words}' not in {errors:?}");
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn with_ports<const N: usize>(ports: [Port; N]) -> Kind {
    Kind { ports: leak(ports), ..GOOD }
}

fn with_port(port: Port) -> Kind {
    with_ports([port])
}

fn with_parameter(row: Parameter) -> Kind {
    Kind { parameters: leak([row]), ..GOOD }
}

#[test]
fn a_good_kind_has_no_errors() {
    assert_eq!(said(GOOD), Vec::<String>::new());
    assert_eq!(catalogue_errors(&[leak(GOOD), leak(Kind { name: "two", ..GOOD })]).len(), 0);
}

#[test]
fn names_are_unique_and_can_be_written() {
    let twice = catalogue_errors(&[leak(GOOD), leak(GOOD), leak(GOOD)]);
    assert_eq!(twice, ["two kinds are named 'good'; give one of them another name"]);
    says(Kind { name: "my kind", ..GOOD }, "its name is 'my kind'");
    says(Kind { name: "", ..GOOD }, "its name is ''");
    says(Kind { name: "block", ..GOOD }, "stands for a block");
    says(with_ports([IN, IN]), "two of its ports are named 'in'");
    says(Kind { parameters: &[GAIN, GAIN], ..GOOD }, "two of its parameters are named 'gain'");
    says(Kind { signals: &[SPEED, SPEED], ..GOOD }, "two of its signals are named 'speed'");
    says(with_port(Port { name: "in.x", ..IN }), "port 'in.x' has a name");
    says(with_parameter(Parameter { name: "a b", ..GAIN }), "parameter 'a b' has a name");
    says(with_parameter(Parameter { name: "safe", ..GAIN }), "a key that every node has");
    says(
        Kind { signals: leak([Signal { name: "a:b", ..SPEED }]), ..GOOD },
        "signal 'a:b' has a name",
    );
}

#[test]
fn ports_are_what_their_kind_can_have() {
    let many = Port { name: "in[]", ..IN };
    says(with_port(many), "which only nodes of flows can have");
    says(with_ports([Port { name: "in[]", ..IN }, IN]), "must be the last");
    says(with_port(Port { message: &PACKET, ..IN }), "takes packets");
    let any = || Port { message: &ANY_MESSAGE, ..IN };
    says(with_port(any()), "messages of any type");
    says(Kind { runs_in: RunsIn::Guest, signals: &[], ..with_port(any()) }, "messages of any type");
    for runs_in in [RunsIn::Service, RunsIn::Observer] {
        assert_eq!(said(Kind { runs_in, signals: &[], ..with_port(any()) }), Vec::<String>::new());
    }
    let many = Port { name: "in[]", message: &PACKET, ..IN };
    let packets = Kind { runs_in: RunsIn::Flow, ports: leak([many]), signals: &[], ..GOOD };
    assert_eq!(said(packets), Vec::<String>::new());
}

#[test]
fn an_actuator_is_an_input_of_the_core_with_names_for_its_safe_values() {
    for runs_in in [RunsIn::Service, RunsIn::Observer, RunsIn::Flow, RunsIn::Test] {
        says(Kind { runs_in, ..GOOD }, "no guard can stand before it");
    }
    let out = Port { direction: Direction::Out, safe: leak([STOP]), ..IN };
    says(with_port(out), "has safe values and is an output");
    says(with_port(Port { safe: leak([STOP, STOP]), ..IN }), "two safe values named 'stop'");
    let nameless = SafeValue { name: "not one", doc: "" };
    says(with_port(Port { safe: leak([nameless]), ..IN }), "safe value whose name");
}

#[test]
fn a_parameter_can_be_met_and_takes_its_own_default() {
    let of = |ty, default| with_parameter(Parameter { ty, default, ..GAIN });
    let refused = "which it would refuse; write a whole number from 1 to 5";
    says(of(ParameterType::Integer { min: 1, max: 5 }, Some("6")), refused);
    says(of(ParameterType::Bool, Some("yes")), "has the default 'yes'");
    says(of(ParameterType::Integer { min: 5, max: 1 }, None), "limits that no value meets");
    let nan = ParameterType::Number { min: f64::NAN, max: 1.0 };
    says(of(nan, None), "limits that no value meets");
    says(of(ParameterType::Duration { min_ns: 2, max_ns: 1 }, None), "limits that no value meets");
    says(of(ParameterType::Size { min_bytes: 2, max_bytes: 1 }, None), "limits that no value");
    says(of(ParameterType::Choice(&[]), None), "a choice without entries");
    says(of(ParameterType::Choice(&["a", "a"]), None), "offers 'a' twice");
    says(of(ParameterType::Texts { max: 0 }, None), "a list or a choice without entries");
    assert_eq!(said(of(ParameterType::Text, Some(""))), Vec::<String>::new());
}

#[test]
fn signals_are_numbers_of_the_core() {
    says(Kind { signals: leak([Signal { count: 0, ..SPEED }]), ..GOOD }, "shows no number");
    says(Kind { runs_in: RunsIn::Service, ..GOOD }, "is never shown");
}

#[test]
fn a_message_is_laid_out_as_it_says() {
    says(with_port(Port { message: &EMPTY, ..IN }), "it has no bytes");
    says(with_port(Port { message: &LIES, ..IN }), "its hash is not that of its fields");
    says(with_port(Port { message: &CROOKED, ..IN }), "'b' starts at byte 4; expected a multiple");
    says(with_port(Port { message: &CROOKED, ..IN }), "its fields end at byte 20, its size is 16");
    let two = [IN, Port { name: "other", message: &OTHER, ..IN }];
    says(with_ports(two), "two types of this name differ");
    let same = [IN, Port { name: "other", message: &TWIN, ..IN }];
    assert_eq!(said(with_ports(same)), Vec::<String>::new());
}

#[test]
fn all_errors_of_all_kinds_stand_in_one_list() {
    let bad = Kind { name: "block", ports: leak([IN, IN]), ..GOOD };
    let all = catalogue_errors(&[leak(bad), leak(GOOD), leak(GOOD)]);
    assert_eq!(all.len(), 3, "{all:?}");
}
