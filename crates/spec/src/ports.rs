//! Finds a port by its name in the spec; reports a name that no port has.

use sinew_plan::catalogue::{ANY_MESSAGE, Direction, ELEMENTS_MAX, Kind, MessageType, PACKET};

use crate::diagnostic::Report;
use crate::fields::Named;
use crate::nearest::suggest;

/// What crosses a port, in short.
pub(crate) fn crossing(message: &MessageType) -> &str {
    match message.hash {
        hash if hash == PACKET.hash => "packets",
        hash if hash == ANY_MESSAGE.hash => "messages",
        _ => message.name,
    }
}

/// The port of the node `node` on a side; `elsewhere` says what to do with the name of an input if
/// an output is expected.
pub(crate) fn find(
    kind: &Kind,
    node: &str,
    port: Named<'_>,
    side: Direction,
    elsewhere: &str,
    report: &Report,
) -> Option<usize> {
    let (text, at) = (port.text, kind.port_index(port.text));
    if let Some(at) = at.filter(|&at| kind.port(at).direction == side) {
        return Some(at);
    }
    let (message, help) = match (at, side) {
        (Some(_), Direction::In) => {
            let help = match names(kind, side).as_slice() {
                [] => "it has no inputs".to_owned(),
                names => format!("inputs are: {}", names.join(", ")),
            };
            (format!("'{node}.{text}' is an output port"), help)
        }
        (Some(_), Direction::Out) => {
            (format!("'{text}' is an input port of '{node}'"), elsewhere.to_owned())
        }
        (None, _) => {
            let sort = if side == Direction::In { "input port" } else { "port" };
            let message = format!("'{node}' ({}) has no {sort} '{text}'", kind.name);
            (message, instead(kind, side, text))
        }
    };
    report.error(port.span, message, help);
    None
}

fn names(kind: &Kind, direction: Direction) -> Vec<&'static str> {
    let ports = kind.ports.iter().filter(|port| port.direction == direction);
    ports.map(|port| port.name).collect()
}

/// What to write instead of a name that no port has.
fn instead(kind: &Kind, direction: Direction, text: &str) -> String {
    let names = names(kind, direction);
    let base = text.split('[').next().unwrap_or_default();
    let is_element_of = |name: &&&str| name.strip_suffix("[]") == Some(base);
    match names.iter().find(is_element_of) {
        Some(_) => {
            format!("write {base}[0], {base}[1] and so on, up to {base}[{}]", ELEMENTS_MAX - 1)
        }
        None => suggest(text, names.iter().copied()),
    }
}
