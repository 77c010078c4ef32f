//! The rules for a catalogue, whoever wrote its rows. The compiler relies on all of them.

use std::collections::{BTreeMap, BTreeSet};

use sinew_plan::catalogue::{
    ANY_MESSAGE, Direction, Form, Kind, MessageType, NAMED_MESSAGE, PACKET, Parameter,
    ParameterType, Port, RunsIn, Signal, TUNING_PORT, Unit, type_hash,
};

use crate::draft::read_default;
use crate::fields::is_name_sign;
use crate::keys::{self, NAME_LEN_MAX};
use crate::value::expected;

/// All errors of a catalogue, a sentence each.
pub fn catalogue_errors(catalogue: &[&'static Kind]) -> Vec<String> {
    let mut errors = Vec::new();
    for name in twice(catalogue.iter().map(|kind| kind.name)) {
        errors.push(format!("two kinds are named '{name}'; give one of them another name"));
    }
    for kind in catalogue {
        let say = |why: String| format!("kind '{}': {why}", kind.name);
        errors.extend(of_kind(kind).into_iter().map(say));
    }
    errors.extend(of_messages(catalogue));
    errors
}

/// The names that occur more than once.
fn twice<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

fn of_kind(kind: &Kind) -> Vec<String> {
    let mut errors = Vec::new();
    errors.extend(bad_name("its name", kind.name));
    if kind.name == keys::BLOCK_KIND {
        errors.push("its name stands for a block of nodes; give it another".into());
    }
    let sorts: [(&str, Vec<&str>); 3] = [
        ("ports", kind.ports.iter().map(|port| port.name).collect()),
        ("parameters", kind.parameters.iter().map(|it| it.name).collect()),
        ("signals", kind.signals.iter().map(|signal| signal.name).collect()),
    ];
    for (sort, names) in sorts {
        for name in twice(names.into_iter()) {
            errors.push(format!("two of its {sort} are named '{name}'"));
        }
    }
    for (at, port) in kind.ports.iter().enumerate() {
        let is_last = at + 1 == kind.ports.len();
        let say = |why: String| format!("port '{}' {why}", port.name);
        errors.extend(of_port(kind, port, is_last).into_iter().map(say));
    }
    if kind.parameters.iter().any(|row| row.tunable) {
        let of_core = kind.runs_in == RunsIn::Realtime;
        let taken = kind.ports.iter().any(|port| port.name == TUNING_PORT);
        errors.extend(broken([
            (!of_core, "it has tunable parameters, and runs in no realtime domain"),
            (taken, "it has tunable parameters, which are set at a port 'tuning'; rename its own"),
        ]));
    }
    for row in kind.parameters {
        let say = |why: String| format!("parameter '{}' {why}", row.name);
        errors.extend(of_parameter(row).into_iter().map(say));
    }
    for signal in kind.signals {
        let say = |why: String| format!("signal '{}' {why}", signal.name);
        errors.extend(of_signal(kind, signal).into_iter().map(say));
    }
    errors
}

/// The error in a name, if there is one.
fn bad_name(what: &str, name: &str) -> Option<String> {
    let good = !name.is_empty() && name.len() <= NAME_LEN_MAX && name.chars().all(is_name_sign);
    (!good).then(|| {
        format!("{what} is '{name}'; write 1 to {NAME_LEN_MAX} letters, digits, '_' and '-'")
    })
}

/// The sentences of the rules that are broken.
fn broken<const N: usize>(rules: [(bool, &str); N]) -> impl Iterator<Item = String> {
    rules.into_iter().filter(|(broken, _)| *broken).map(|(_, why)| why.to_owned())
}

fn of_port(kind: &Kind, port: &Port, is_last: bool) -> Vec<String> {
    let name = port.name.strip_suffix("[]").unwrap_or(port.name);
    let has_elements = name != port.name;
    let of_core = !kind.runs_in.is_flow();
    let takes = |message: &MessageType| of_core && port.message.hash == message.hash;
    let has_typed_code = matches!(kind.runs_in, RunsIn::Realtime | RunsIn::Guest);
    let is_actuator = !port.safe.is_empty();
    let mut errors: Vec<String> =
        bad_name("has a name that cannot be written: it", name).into_iter().collect();
    errors.extend(broken([
        (has_elements && !is_last, "stands for many, so it must be the last in its table"),
        (has_elements && of_core, "stands for many, which only nodes of flows can have"),
        (takes(&PACKET), "takes packets, which only nodes of flows can; name its message"),
        (
            has_typed_code && takes(&ANY_MESSAGE),
            "takes messages of any type, which only services and nodes of flows can; name its \
             message",
        ),
        (
            is_actuator && kind.runs_in != RunsIn::Realtime,
            "has safe values, but no guard can stand before it: only the cycles of a realtime \
             domain have one; command the actuator from a realtime kind",
        ),
        (
            is_actuator && port.direction != Direction::In,
            "has safe values and is an output; an actuator takes its commands in",
        ),
    ]));
    errors.extend(of_form(kind, port));
    for safe in port.safe {
        errors.extend(bad_name("has a safe value whose name", safe.name));
    }
    for name in twice(port.safe.iter().map(|safe| safe.name)) {
        errors.push(format!("has two safe values named '{name}'"));
    }
    errors
}

/// The errors in the parameters or ports from which a port takes its form, message and unit.
fn of_form(kind: &Kind, port: &Port) -> impl Iterator<Item = String> {
    let is = |name: &str, fits: fn(&ParameterType) -> bool| {
        kind.parameters.iter().any(|row| row.name == name && fits(&row.ty))
    };
    let is_text = |ty: &ParameterType| matches!(ty, ParameterType::Text);
    let is_texts = |ty: &ParameterType| matches!(ty, ParameterType::Texts { .. });
    let has_form = match port.form {
        Form::One => true,
        Form::Each(parameter) => is(parameter, is_texts),
        Form::Message(parameter) | Form::Fields(parameter) => is(parameter, is_text),
    };
    let has_unit = match port.unit {
        Unit::Any | Unit::Of(_) => true,
        Unit::As(other) => kind.ports.iter().any(|port| port.name == other),
        Unit::Parameter(parameter) => is(parameter, is_text),
    };
    let is_named = matches!(port.form, Form::Message(_) | Form::Fields(_));
    broken([
        (!has_form, "takes its form from a parameter that the kind lacks, or of another type"),
        (!has_unit, "takes its unit from a port or a text that the kind lacks"),
        (
            is_named != (port.message.hash == NAMED_MESSAGE.hash),
            "has a message that is not NAMED_MESSAGE, or one without a form that names it",
        ),
        (
            port.form != Form::One && !port.safe.is_empty(),
            "moves an actuator, so it must be one port, with a message of the table",
        ),
    ])
}

fn of_parameter(row: &Parameter) -> Vec<String> {
    let (fits, none) = match row.ty {
        ParameterType::Integer { min, max } => (min <= max, false),
        ParameterType::Number { min, max } => (is_range(min, max), false),
        ParameterType::Numbers { count_min, count_max, min, max } => {
            (is_range(min, max), count_min > count_max || count_max == 0)
        }
        ParameterType::Duration { min_ns, max_ns } => (min_ns <= max_ns, false),
        ParameterType::Size { min_bytes, max_bytes } => (min_bytes <= max_bytes, false),
        ParameterType::Texts { max } | ParameterType::Paths { max } => (true, max == 0),
        ParameterType::Choice(words) => (true, words.is_empty()),
        _ => (true, false),
    };
    let taken = keys::NODE.keys.iter().any(|key| key.name == row.name);
    let mut errors: Vec<String> =
        bad_name("has a name that cannot be written: it", row.name).into_iter().collect();
    errors.extend(broken([
        (taken, "has the name of a key that every node has; give it another"),
        (!fits, "has limits that no value meets; min must not be greater than max"),
        (none, "is a list or a choice without entries"),
        (
            row.tunable && row.ty.scalar().is_none(),
            "is tunable, which only a number, a whole number or a flag can be",
        ),
    ]));
    if let ParameterType::Choice(words) = row.ty {
        for word in twice(words.iter().copied()) {
            errors.push(format!("offers '{word}' twice"));
        }
    }
    if let Some(text) = row.default.filter(|text| read_default(row, text).is_none()) {
        let expected = expected(row);
        errors.push(format!("has the default '{text}', which it would refuse; write {expected}"));
    }
    errors
}

fn is_range(min: f64, max: f64) -> bool {
    min <= max && min.is_finite() && max.is_finite()
}

fn of_signal(kind: &Kind, signal: &Signal) -> Vec<String> {
    let name = bad_name("has a name that cannot be written: it", signal.name);
    let has_unit = match signal.unit_as {
        Some(port) => kind.ports.iter().any(|it| it.name == port),
        None => true,
    };
    let rest = broken([
        (!has_unit, "takes its unit from a port that the kind lacks"),
        (signal.count == 0, "shows no number; its count is 1 or more"),
        (kind.runs_in != RunsIn::Realtime, "is never shown: only realtime nodes have signals"),
    ]);
    name.into_iter().chain(rest).collect()
}

/// Both ends of a link know a message by its name and hash.
fn of_messages(catalogue: &[&'static Kind]) -> Vec<String> {
    let mut errors = Vec::new();
    let mut seen: BTreeMap<&str, &MessageType> = BTreeMap::new();
    for message in catalogue.iter().flat_map(|kind| kind.ports).map(|port| port.message) {
        match seen.insert(message.name, message) {
            Some(other) if other == message => continue,
            Some(_) => errors.push(format!(
                "message '{}': two types of this name differ; rename one of them",
                message.name
            )),
            None => {}
        }
        if ![&PACKET, &ANY_MESSAGE, &NAMED_MESSAGE].contains(&message) {
            let say = |why: String| format!("message '{}': {why}", message.name);
            errors.extend(of_message(message).into_iter().map(say));
        }
    }
    errors
}

fn of_message(message: &MessageType) -> Vec<String> {
    let mut errors = Vec::new();
    let MessageType { name, size, fields, hash, .. } = *message;
    if size == 0 {
        errors.push("it has no bytes; give it a field".into());
    }
    if hash != type_hash(name, size, fields) {
        errors.push("its hash is not that of its fields; declare it with 'message!'".into());
    }
    let mut end = 0;
    for field in fields {
        let bytes = u64::from(field.scalar.bytes());
        let (offset, count) = (u64::from(field.offset), u64::from(field.count));
        if offset < end || !offset.is_multiple_of(bytes) {
            errors.push(format!(
                "field '{}' starts at byte {offset}; expected a multiple of {bytes} from {end} on",
                field.name
            ));
        }
        end = offset + bytes * count;
    }
    if end > u64::from(size) {
        errors.push(format!("its fields end at byte {end}, its size is {size}"));
    }
    errors
}
