//! Finds a port by what the spec calls it; what no port is called is reported.

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

/// The input `port` of the node `node`.
pub(crate) fn input(kind: &Kind, node: &str, port: Named<'_>, report: &Report) -> Option<usize> {
    match kind.port_index(port.text) {
        Some(at) if kind.port(at).direction == Direction::In => Some(at),
        Some(_) => {
            let help = match names(kind, Direction::In).as_slice() {
                [] => "it has no inputs".to_owned(),
                names => format!("inputs are: {}", names.join(", ")),
            };
            report.error(port.span, format!("'{node}.{}' is an output port", port.text), help);
            None
        }
        None => {
            let message = format!("'{node}' ({}) has no input port '{}'", kind.name, port.text);
            report.error(port.span, message, instead(kind, Direction::In, port.text));
            None
        }
    }
}

/// The output `port` of the node `node`; `elsewhere` says what to do with the name of an input.
pub(crate) fn output(
    kind: &Kind,
    node: &str,
    port: Named<'_>,
    elsewhere: &str,
    report: &Report,
) -> Option<usize> {
    match kind.port_index(port.text) {
        Some(at) if kind.port(at).direction == Direction::Out => Some(at),
        Some(_) => {
            let message = format!("'{}' is an input port of '{node}'", port.text);
            report.error(port.span, message, elsewhere);
            None
        }
        None => {
            let message = format!("'{node}' ({}) has no port '{}'", kind.name, port.text);
            report.error(port.span, message, instead(kind, Direction::Out, port.text));
            None
        }
    }
}

fn names(kind: &Kind, direction: Direction) -> Vec<&'static str> {
    let ports = kind.ports.iter().filter(|port| port.direction == direction);
    ports.map(|port| port.name).collect()
}

/// What to write instead of the name of no port.
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
